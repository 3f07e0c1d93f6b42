# SPDX-License-Identifier: GPL-2.0
"""The package on stock Debian 12 with Linux 6.12, all the way; testbed/long has the others."""

from pathlib import Path

import pytest
from sctpkernel import deb, module
from tests.install_run import whole_way

pytestmark = pytest.mark.kernel


def test_stock_debian_gets_it_uses_it_and_is_stock_again(tmp_path: Path) -> None:
    package = deb.made()
    compiled = module.installed("debian-12-6.12", package) / "dkms.tar.gz"
    whole_way("debian-12-6.12", tmp_path, package, compiled)
