// SPDX-License-Identifier: GPL-2.0
/*
 * usrsctp works in threads of its own and calls back when something has happened to a
 * socket. That is made a descriptor (eventfd) which becomes readable, so that the rest
 * of the program sleeps in epoll as it does with the kernel's sockets. Each call that
 * may leave something to be read makes the descriptor readable again.
 */
#include "userland.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "fail.h"

#define UDP_PORT	9899		/* RFC 6951: of both ends */
#define FD_MAX		4096
/* How long the last packets of closing associations may take, the repeated ones included. */
#define LINGER_S	60
#define FINISH_POLL_US	100000
/* Bounds in bytes are enough; the library's own is 512 messages. */
#define NO_BOUND	UINT32_MAX

#define SCTP_CMT_ON_OFF		0x1200		/* the library's number */
#define SCTP_CMT_USE_DAC	0x1201

struct entry {
	struct socket *socket;		/* NULL: not one of ours */
	int patience_ms;		/* how long a call that blocks may take */
};

static struct entry entries[FD_MAX];
static size_t open_sockets;

struct socket *userland_of(int fd)
{
	return fd >= 0 && fd < FD_MAX ? entries[fd].socket : NULL;
}

static void wake(int fd)
{
	eventfd_write(fd, 1);
}

static void sleep_again(int fd)
{
	eventfd_t value;

	eventfd_read(fd, &value);
}

static void happened(struct socket *socket, void *fd, int flags)
{
	(void)socket;
	(void)flags;
	wake((int)(intptr_t)fd);
}

static void ignored(struct socket *socket, void *fd, int flags)
{
	(void)socket;
	(void)fd;
	(void)flags;
}

/* Wait until something happens; false after @patience_ms. */
static bool wait_for(int fd, int patience_ms)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };

	return poll(&one, 1, patience_ms) > 0;
}

static void wake_if_readable(int fd)
{
	if (usrsctp_get_events(entries[fd].socket) & (SCTP_EVENT_READ | SCTP_EVENT_ERROR))
		wake(fd);
}

/* Nothing may be lost of a transfer that has just ended: the peer may still ask for the last packets. */
static void finish(void)
{
	for (int i = 0; open_sockets == 0 && usrsctp_finish() != 0 && i < LINGER_S * 1000000 / FINISH_POLL_US; i++)
		usleep(FINISH_POLL_US);
}

/* The library says nothing when it does not get its port. */
static void check_port(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(UDP_PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) != 0)
		fail(EXIT_USAGE, "UDP port %d: %s; expected it free of other programs and net.sctp.udp_port",
		     UDP_PORT, strerror(errno));
	close(fd);
}

/* Signals are for the thread that waits for them, which is none of the library's. */
static void start(void)
{
	static bool started;
	sigset_t set;

	if (started)
		return;
	started = true;
	check_port();
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	usrsctp_init(UDP_PORT, NULL, NULL);
	usrsctp_sysctl_set_sctp_max_chunks_on_queue(NO_BOUND);
	atexit(finish);
}

/* A descriptor for @socket, -1 and errno when there is none left. */
static int enter(struct socket *socket)
{
	int fd = socket ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;

	if (fd >= FD_MAX) {
		close(fd);
		fd = -1;
		errno = EMFILE;
	}
	if (fd < 0)
		return -1;
	entries[fd] = (struct entry){ .socket = socket, .patience_ms = -1 };
	open_sockets++;
	usrsctp_set_non_blocking(socket, 1);
	usrsctp_set_upcall(socket, happened, (void *)(intptr_t)fd);
	wake_if_readable(fd);
	return fd;
}

int userland_socket(int domain, int type, int protocol)
{
	struct sctp_udpencaps udp = { .sue_port = htons(UDP_PORT) };
	struct socket *made;

	(void)type;
	if (protocol != IPPROTO_SCTP) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	start();
	made = usrsctp_socket(domain, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	udp.sue_address.ss_family = domain;
	if (made && usrsctp_setsockopt(made, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof(udp)) != 0)
		return -1;
	return enter(made);
}

int userland_bind(int fd, struct sockaddr *address, socklen_t len)
{
	return usrsctp_bind(userland_of(fd), address, len);
}

int userland_bindx(int fd, struct sockaddr *addresses, int count, int flags)
{
	return usrsctp_bindx(userland_of(fd), addresses, count, flags);
}

int userland_listen(int fd, int backlog)
{
	return usrsctp_listen(userland_of(fd), backlog);
}

/* Never waits. */
int userland_accept(int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	struct socket *made;

	sleep_again(fd);
	made = usrsctp_accept(userland_of(fd), (struct sockaddr *)&peer, &len);
	if (made)
		wake(fd);
	return enter(made);
}

static bool is_established(int fd)
{
	struct sctp_status status = { 0 };
	socklen_t len = sizeof(status);

	return usrsctp_getsockopt(userland_of(fd), IPPROTO_SCTP, SCTP_STATUS, &status, &len) == 0 &&
	       status.sstat_state == SCTP_ESTABLISHED;
}

/* Waits for the association. */
int userland_connectx(int fd, struct sockaddr *addresses, int count)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (usrsctp_connectx(userland_of(fd), addresses, count, NULL) != 0 && errno != EINPROGRESS)
		return -1;
	while (!is_established(fd)) {
		if (!wait_for(fd, entries[fd].patience_ms)) {
			errno = EINPROGRESS;
			return -1;
		}
		sleep_again(fd);
		usrsctp_getsockopt(userland_of(fd), SOL_SOCKET, SO_ERROR, &error, &len);
		if (error) {
			errno = error;
			return -1;
		}
	}
	wake_if_readable(fd);
	return 0;
}

int userland_shutdown(int fd, int how)
{
	return usrsctp_shutdown(userland_of(fd), how);
}

int userland_close(int fd)
{
	if (userland_of(fd)) {
		usrsctp_set_upcall(userland_of(fd), ignored, NULL);
		usrsctp_close(userland_of(fd));
		entries[fd].socket = NULL;
		open_sockets--;
	}
	return close(fd);
}

/* @value: 0 and up as SCTP_CMT_ON_OFF has it; the library refuses the option while its sysctl is 0. */
static int set_cmt(int fd, const struct sctp_assoc_value *value)
{
	if (usrsctp_sysctl_set_sctp_cmt_on_off(value->assoc_value) != 0)
		return -1;
	if (value->assoc_value == SCTP_CMT_OFF)
		return 0;
	return usrsctp_setsockopt(userland_of(fd), IPPROTO_SCTP, SCTP_CMT_ON_OFF, value, sizeof(*value));
}

static int set_patience(int fd, const struct timeval *t)
{
	entries[fd].patience_ms = t->tv_sec * 1000 + (t->tv_usec + 999) / 1000;
	return 0;
}

int userland_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	const struct sctp_assoc_value *number = value;

	if (level == SOL_SOCKET && (name == SO_SNDTIMEO || name == SO_RCVTIMEO))
		return set_patience(fd, value);
	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY)
		return 0;		/* the library's sockets let IPv4 in */
	if (level == IPPROTO_SCTP && name == SCTP_EXPOSE_PF_STATE)
		return 0;		/* nothing to expose */
	if (level == IPPROTO_SCTP && name == SCTP_CMT_ON_OFF)
		return set_cmt(fd, number);
	if (level == IPPROTO_SCTP && name == SCTP_CMT_USE_DAC)
		return usrsctp_sysctl_set_sctp_cmt_use_dac(number->assoc_value);
	return usrsctp_setsockopt(userland_of(fd), level, name, value, len);
}

static int get_stats(struct sctp_assoc_stats *found, socklen_t *len)
{
	struct sctpstat stat;

	if (*len < sizeof(*found)) {
		errno = EINVAL;
		return -1;
	}
	usrsctp_get_stat(&stat);
	*found = (struct sctp_assoc_stats){
		.sas_rtxchunks = stat.sctps_sendretransdata,
		.sas_isacks = stat.sctps_recvsacks,
		.sas_osacks = stat.sctps_sendsacks,
		.sas_idupchunks = stat.sctps_recvdupdata,
		.sas_ipackets = stat.sctps_recvpackets,
		.sas_opackets = stat.sctps_sendpackets,
		.sas_oodchunks = stat.sctps_outorderchunks,
		.sas_ouodchunks = stat.sctps_outunorderchunks,
	};
	return 0;
}

int userland_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (level == IPPROTO_SCTP && name == SCTP_GET_ASSOC_STATS)
		return get_stats(value, len);
	if (level == IPPROTO_SCTP && name == SCTP_CMT_USE_DAC) {
		((struct sctp_assoc_value *)value)->assoc_value = usrsctp_sysctl_get_sctp_cmt_use_dac();
		return 0;
	}
	return usrsctp_getsockopt(userland_of(fd), level, name, value, len);
}

static ssize_t send_one(int fd, const struct msghdr *message)
{
	const struct iovec *iov = message->msg_iov;
	struct sctp_sndinfo info;

	memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(message)), sizeof(info));
	return usrsctp_sendv(userland_of(fd), iov->iov_base, iov->iov_len, NULL, 0, &info, sizeof(info),
			     SCTP_SENDV_SNDINFO, 0);
}

/* @flags: MSG_DONTWAIT. Returns how many messages the library took, -1 and errno for none. */
int userland_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	bool wait = !(flags & MSG_DONTWAIT);
	unsigned int done = 0;

	while (done < count) {
		if (wait)
			sleep_again(fd);
		if (send_one(fd, &messages[done].msg_hdr) >= 0)
			done++;
		else if (errno != EAGAIN || done > 0 || !wait || !wait_for(fd, entries[fd].patience_ms))
			break;
	}
	if (wait)
		wake_if_readable(fd);
	return done > 0 ? (int)done : -1;
}

/* One message or a part of it, in @message; its length, 0 at the end, or -1 and errno. */
static ssize_t receive_one(int fd, struct msghdr *message)
{
	struct cmsghdr *control = message->msg_control;
	socklen_t from_len = sizeof(struct sockaddr_storage), info_len = sizeof(struct sctp_rcvinfo);
	struct sctp_rcvinfo info = { 0 };
	struct sockaddr_storage from;
	unsigned int info_type = 0;
	ssize_t len;

	message->msg_flags = 0;
	len = usrsctp_recvv(userland_of(fd), message->msg_iov->iov_base, message->msg_iov->iov_len,
			    (struct sockaddr *)&from, &from_len, &info, &info_len, &info_type, &message->msg_flags);
	control->cmsg_level = IPPROTO_SCTP;
	control->cmsg_type = SCTP_RCVINFO;
	control->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(control), &info, sizeof(info));
	return len;
}

/* @flags: MSG_DONTWAIT, else the first may be waited for. Returns how many, -1 and errno for none. */
int userland_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	unsigned int done = 0;
	ssize_t len;

	do {
		sleep_again(fd);
		len = receive_one(fd, &messages[0].msg_hdr);
	} while (len < 0 && errno == EAGAIN && !(flags & MSG_DONTWAIT) && wait_for(fd, entries[fd].patience_ms));
	while (len >= 0) {
		messages[done++].msg_len = len;
		if (len == 0 || done == count)
			break;
		len = receive_one(fd, &messages[done].msg_hdr);
	}
	wake_if_readable(fd);
	return done > 0 ? (int)done : -1;
}
