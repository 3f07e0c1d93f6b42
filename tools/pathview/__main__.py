# SPDX-License-Identifier: GPL-2.0
"""python3 -m pathview, from tools/."""

import sys

from pathview.cli import main

sys.exit(main())
