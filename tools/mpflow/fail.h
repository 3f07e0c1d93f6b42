/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MPFLOW_FAIL_H
#define MPFLOW_FAIL_H

#include <stdnoreturn.h>

enum exit_code {
	EXIT_OK = 0,
	EXIT_TRANSFER = 1,	/* lost, timed out, or not what was sent */
	EXIT_USAGE = 2,		/* what was asked for cannot be done */
};

/* One line on stderr, then the end. */
__attribute__((format(printf, 2, 3)))
noreturn void fail(enum exit_code code, const char *format, ...);

#endif
