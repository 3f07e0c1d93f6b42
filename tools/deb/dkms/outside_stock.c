// SPDX-License-Identifier: GPL-2.0
/* The same, built with the headers of the kernel. */
#include "outside.c"
