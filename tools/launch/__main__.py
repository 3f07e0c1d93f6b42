# SPDX-License-Identifier: GPL-2.0
"""python -m launch."""

import sys

from launch.cli import main

sys.exit(main())
