/* SPDX-License-Identifier: GPL-2.0 */
/* A monitor beside the traffic that asks sock_diag and listens to events, and gets its requests wrong. */
#ifndef FUZZ_WATCH_H
#define FUZZ_WATCH_H

#include <sys/types.h>

pid_t watch_start(void);	/* in the caller's namespace; ends with its parent */
void watch_end(pid_t pid);

#endif
