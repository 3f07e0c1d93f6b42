/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stands in for libsctp's <netinet/sctp.h> when mpflow-usrsctp is built: the same
 * socket calls and structures (RFC 6458), made by the library usrsctp instead of the
 * kernel. Names that only Linux has get the numbers and the meaning of Linux.
 */
#ifndef MPFLOW_USRSCTP_SCTP_H
#define MPFLOW_USRSCTP_SCTP_H

/* All headers that declare what is renamed below have to come first. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <usrsctp.h>

#include "../userland.h"

#define sctp_prim			sctp_setprim

#define SCTP_UNKNOWN			0xffff		/* states of a path */
#define SCTP_PF				0x0800
#define SCTP_ADDR_POTENTIALLY_FAILED	7

#define socket(domain, type, protocol)		userland_socket(domain, type, protocol)
#define bind(fd, address, len)			userland_bind(fd, address, len)
#define listen(fd, backlog)			userland_listen(fd, backlog)
#define accept4(fd, address, len, flags)	userland_accept(fd)
#define shutdown(fd, how)			userland_shutdown(fd, how)
#define close(fd)				userland_close(fd)
#define setsockopt(fd, level, name, value, len)	userland_setsockopt(fd, level, name, value, len)
#define getsockopt(fd, level, name, value, len)	userland_getsockopt(fd, level, name, value, len)
#define sendmmsg(fd, messages, count, flags)	userland_sendmmsg(fd, messages, count, flags)
#define recvmmsg(fd, messages, count, flags, t)	userland_recvmmsg(fd, messages, count, flags)
#define sctp_bindx(fd, addresses, count, flags)	userland_bindx(fd, addresses, count, flags)
#define sctp_connectx(fd, addresses, count, id)	userland_connectx(fd, addresses, count)
#define sctp_getpaddrs(fd, id, list)		usrsctp_getpaddrs(userland_of(fd), id, list)
#define sctp_freepaddrs(list)			usrsctp_freepaddrs(list)
#define sctp_getladdrs(fd, id, list)		usrsctp_getladdrs(userland_of(fd), id, list)
#define sctp_freeladdrs(list)			usrsctp_freeladdrs(list)

#endif
