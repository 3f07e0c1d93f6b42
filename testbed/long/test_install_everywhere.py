# SPDX-License-Identifier: GPL-2.0
"""The package on every stock Debian kernel there is a module for; dkms compiles it in one of the machines."""

from pathlib import Path

import pytest
from sctpkernel import deb, module
from tests.install_run import whole_way

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("name", module.kernels())
def test_stock_debian_gets_it_uses_it_and_is_stock_again(tmp_path: Path, name: str) -> None:
    package = deb.made()
    whole_way(name, tmp_path, package, {"second": module.installed(name, package) / "dkms.tar.gz"})
