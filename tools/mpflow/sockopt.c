// SPDX-License-Identifier: GPL-2.0
#include "sockopt.h"

#include <errno.h>
#include <string.h>

#include "fail.h"

void sockopt_set(int fd, int level, int name, const void *value, socklen_t len, const char *option)
{
	if (setsockopt(fd, level, name, value, len) != 0)
		fail(EXIT_USAGE, "%s: refused by the kernel: %s", option, strerror(errno));
}

bool sockopt_get(int fd, int level, int name, void *value, socklen_t len)
{
	return getsockopt(fd, level, name, value, &len) == 0;
}
