// SPDX-License-Identifier: GPL-2.0
/* The program that talks to the peer through the kernel's SCTP. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/sctp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire.h"

#define LARGEST		60000
#define MP_TWICE	(1 << 14)	/* SCTP_MP_TWICE; the kernel's series has it */
#define ADDR_POTENTIALLY_FAILED	6	/* SCTP_ADDR_POTENTIALLY_FAILED; the library need not have it */
#define QUIET_S		1.0	/* until what is under way has arrived */
#define TAIL_LIMIT_S	300.0	/* RTO.Max is 5 s: the queue's head has been tried 60 times */

static int family, sock, listener = -1;
static int lost_by;	/* errno when the association was lost, 0 at the end of what the peer sends */
static char buffer[LARGEST + 1];

static void address_of(struct sockaddr_in *a, uint32_t address, int port)
{
	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_port = htons((uint16_t)port);
	a->sin_addr.s_addr = htonl(address);
}

/* The library's functions are system calls in disguise; without it the programs link anywhere. */
static int bind_all(int fd)
{
	struct sockaddr_in all[PATHS];

	for (int i = 0; i < PATHS; i++)
		address_of(&all[i], victim_address(i), VICTIM_PORT);
	return setsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, all, sizeof(all));
}

static void draw_options(int fd)
{
	int one = 1, size = chance(40) ? 20000 + (int)below(4000000) : 4000000;
	struct sctp_event_subscribe events = { .sctp_data_io_event = 1, .sctp_association_event = 1,
					       .sctp_address_event = 1, .sctp_partial_delivery_event = 1 };

	setsockopt(fd, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof(events));
	if (chance(70))
		setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &one, sizeof(one));
	if (chance(60))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	if (chance(30)) {
		struct sctp_assoc_value interleaving = { .assoc_value = 1 };

		one = 2;
		setsockopt(fd, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &one, sizeof(one));
		/* Taken where net.sctp.intl_enable is set, too: then the association may use I-DATA. */
		setsockopt(fd, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &interleaving, sizeof(interleaving));
	}
}

static bool open_association(void)
{
	struct sockaddr_in to[150];
	int n = shared->addresses < 150 ? shared->addresses : 150;
	double start = now_s();

	family = chance(40) ? AF_INET6 : AF_INET;	/* IPv4 addresses all the same */
	sock = socket(family, SOCK_STREAM, IPPROTO_SCTP);
	if (sock < 0 || bind_all(sock))
		die("bindx");
	draw_options(sock);
	fcntl(sock, F_SETFL, O_NONBLOCK);
	if (shared->peer_connects) {
		if (listen(sock, 5))
			die("listen");
		listener = sock;
		while ((sock = accept(listener, NULL, NULL)) < 0) {
			if (now_s() - start > 25)
				return false;
			sleep_s(0.02);
		}
		fcntl(sock, F_SETFL, O_NONBLOCK);
		return true;
	}
	for (int i = 0; i < n; i++)
		address_of(&to[i], peer_address(i), PEER_PORT);
	setsockopt(sock, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, to, (socklen_t)((size_t)n * sizeof(*to)));
	while (!shared->established && now_s() - start < 25)
		sleep_s(0.02);
	sleep_s(0.2);	/* the COOKIE ACK is on its way */
	return shared->established;
}

static ssize_t send_message(size_t length, uint32_t stream, int flags, uint32_t lifetime_ms)
{
	struct iovec part = { buffer, length };
	char control[CMSG_SPACE(sizeof(struct sctp_sndrcvinfo))] = { 0 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	struct sctp_sndrcvinfo info = { .sinfo_stream = (uint16_t)stream, .sinfo_flags = (uint16_t)flags,
					.sinfo_timetolive = lifetime_ms };

	header->cmsg_level = IPPROTO_SCTP;
	header->cmsg_type = SCTP_SNDRCV;
	header->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(header), &info, sizeof(info));
	return sendmsg(sock, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A notification: does a path fail, or work again? */
static bool changes_path(const struct sctp_paddr_change *told, size_t length)
{
	return length >= sizeof(*told) && told->spc_type == SCTP_PEER_ADDR_CHANGE &&
	       (told->spc_state == SCTP_ADDR_AVAILABLE || told->spc_state == SCTP_ADDR_UNREACHABLE ||
		told->spc_state == ADDR_POTENTIALLY_FAILED);
}

/* Read whatever there is. False: the association is over. */
static bool drain(void)
{
	static _Alignas(struct sctp_paddr_change) char in[LARGEST];

	for (int i = 0; i < 50; i++) {
		struct iovec part = { in, sizeof(in) };
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
		ssize_t got = recvmsg(sock, &message, MSG_DONTWAIT);

		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
			lost_by = got ? errno : 0;
			return false;
		}
		if (got < 0)
			break;
		shared->changes += message.msg_flags & MSG_NOTIFICATION && changes_path((void *)in, (size_t)got);
	}
	return true;
}

static bool transfer(void)
{
	static const uint32_t sizes[] = { 100, 1400, 9000, LARGEST };
	uint32_t most = sizes[below(4)];
	bool partial = chance(25), twice = chance(25);
	double start = now_s();

	while (now_s() - start < shared->hostile_s) {
		for (uint32_t n = below(30); n; n--) {
			int flags = (chance(10) ? SCTP_UNORDERED : 0) | (twice && chance(50) ? MP_TWICE : 0);
			uint32_t lifetime = 0;

			if (partial && chance(40)) {
				flags |= chance(50) ? SCTP_PR_SCTP_TTL : SCTP_PR_SCTP_RTX;
				lifetime = flags & SCTP_PR_SCTP_RTX ? below(5) : 1 + below(500);
			}
			if (send_message(1 + below(most), below(8), flags, lifetime) >= 0)
				continue;
			if (errno != EAGAIN && errno != EINVAL) {
				lost_by = errno;
				return false;
			}
			break;
		}
		if (!drain())
			return false;
		sleep_s((1 + below(20)) / 1000.0);
	}
	return true;
}

/* All of the tail, then the end of the association. Returns "" or why it did not come so far. */
static const char *finish(void)
{
	double start = now_s();

	sleep_s(QUIET_S);
	for (uint32_t i = 0; i < TAIL_MESSAGES;) {
		memcpy(buffer, TAIL_MARK, sizeof(TAIL_MARK));
		put32((uint8_t *)buffer + sizeof(TAIL_MARK), i);
		if (send_message(200, 0, 0, 0) >= 0) {
			i++;
			continue;
		}
		if (errno != EAGAIN)
			return "lost";
		if (!drain())
			return "lost";
		if (now_s() - start > TAIL_LIMIT_S)
			return "hang: the send buffer stays full";
		sleep_s(0.02);
	}
	shared->tail_sent = true;
	shutdown(sock, SHUT_WR);
	start = now_s();
	while (associations_left()) {
		drain();
		if (now_s() - start > TAIL_LIMIT_S)
			return "hang: the shutdown does not end";
		sleep_s(0.05);
	}
	return "";
}

const char *victim_live(void)
{
	struct linger at_once = { 1, 0 };
	const char *outcome;

	draw_start(1);
	if (!open_association())
		outcome = "silent";
	else if (!transfer())
		outcome = "lost";
	else {
		shared->behave = true;
		outcome = finish();
	}
	if (!strncmp(outcome, "hang", 4))
		note_state();
	if (!strcmp(outcome, "lost")) {
		static char words[64];

		snprintf(words, sizeof(words), "lost, %s", lost_by ? strerror(lost_by) : "end of stream");
		outcome = words;
	}
	setsockopt(sock, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(sock);
	if (listener >= 0)
		close(listener);
	return outcome;
}
