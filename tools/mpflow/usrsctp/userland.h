/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The socket calls that mpflow makes, over usrsctp in UDP. A descriptor stands for
 * each socket: it becomes readable when anything may have happened to it.
 */
#ifndef MPFLOW_USERLAND_H
#define MPFLOW_USERLAND_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <usrsctp.h>

/* Linux's numbers */
#define SCTP_SNDINFO		2	/* a cmsg_type, as the next */
#define SCTP_RCVINFO		3
#define SCTP_GET_ASSOC_STATS	112
#define SCTP_EXPOSE_PF_STATE	131

/* Linux's names; of the whole program, which has one association as a rule. */
struct sctp_assoc_stats {
	uint64_t sas_rtxchunks, sas_maxrto, sas_isacks, sas_osacks, sas_gapcnt, sas_idupchunks;
	uint64_t sas_ipackets, sas_opackets, sas_oodchunks, sas_ouodchunks;
};

struct socket *userland_of(int fd);

int userland_socket(int domain, int type, int protocol);
int userland_bind(int fd, struct sockaddr *address, socklen_t len);
int userland_bindx(int fd, struct sockaddr *addresses, int count, int flags);
int userland_listen(int fd, int backlog);
int userland_accept(int fd);
int userland_connectx(int fd, struct sockaddr *addresses, int count);
int userland_shutdown(int fd, int how);
int userland_close(int fd);
int userland_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int userland_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int userland_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags);
int userland_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags);

#endif
