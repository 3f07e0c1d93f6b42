/* SPDX-License-Identifier: GPL-2.0 */
/* Options of a socket: set or end the program with the option's name, read where the kernel has it. */
#ifndef MPFLOW_SOCKOPT_H
#define MPFLOW_SOCKOPT_H

#include <stdbool.h>
#include <sys/socket.h>

#include <netinet/in.h>	/* must come before sctp.h */
#include <netinet/sctp.h>	/* of usrsctp/, where the library's calls take the place of the system's */

void sockopt_set(int fd, int level, int name, const void *value, socklen_t len, const char *option);
bool sockopt_get(int fd, int level, int name, void *value, socklen_t len);

#endif
