# SPDX-License-Identifier: GPL-2.0
"""python3 -m doctor."""

from doctor.cli import main

raise SystemExit(main())
