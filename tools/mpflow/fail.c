// SPDX-License-Identifier: GPL-2.0
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

noreturn void fail(enum exit_code code, const char *format, ...)
{
	va_list args;

	fputs("mpflow: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(code);
}
