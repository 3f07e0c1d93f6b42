# SPDX-License-Identifier: GPL-2.0
"""The package on stock Debian with a kernel of the base that is tested; testbed/long has every Debian."""

from pathlib import Path

import pytest
from sctpkernel import deb, module
from sctplab.spec.model import USUAL_BASE
from tests.install_run import ADDRESSES, whole_way

pytestmark = pytest.mark.kernel


def test_stock_debian_gets_it_uses_it_and_is_stock_again(tmp_path: Path) -> None:
    package = deb.made()
    name = module.usual(USUAL_BASE)
    compiled = module.installed(name, package) / "dkms.tar.gz"
    whole_way(name, tmp_path, package, dict.fromkeys(ADDRESSES, compiled))
