// SPDX-License-Identifier: GPL-2.0
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "fail.h"

/*
 * A descriptor that becomes readable on ^C or SIGTERM, which from now on do nothing
 * else: there is a result to write.
 */
int stop_open(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		fail(EXIT_TRANSFER, "cannot wait for signals: %s", strerror(errno));
	return fd;
}
