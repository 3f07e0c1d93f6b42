# SPDX-License-Identifier: GPL-2.0
"""python -m sctplab."""

import sys

from sctplab.cli import main

sys.exit(main())
