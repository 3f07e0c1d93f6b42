// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "watch.h"

#define REQ_PATHS	0x1280		/* SCTP_DIAG_REQ_PATHS */
#define ANSWERS		200		/* of one request that are read at most */
#define GROUPS		40		/* of generic netlink, ours among them */

static char in[1 << 16];

static size_t put(uint8_t *to, uint16_t type, const void *payload, uint16_t size)
{
	struct nlattr attr = { .nla_len = (uint16_t)(NLA_HDRLEN + size), .nla_type = type };

	memcpy(to, &attr, sizeof(attr));
	if (size)
		memcpy(to + NLA_HDRLEN, payload, size);
	return (size_t)NLA_ALIGN(attr.nla_len);
}

/* Attributes of a request: ours as a rule, and others of any length. */
static size_t attributes(uint8_t *to)
{
	static const uint16_t types[] = { REQ_PATHS, REQ_PATHS, REQ_PATHS | NLA_F_NESTED, 0, 1, 2, 3, 4, 0x1281, 0x3fff };
	uint8_t payload[64];
	size_t size = 0;

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)draw();
	if (chance(60))
		size += put(to, REQ_PATHS, NULL, 0);
	for (uint32_t n = below(4); n; n--)
		size += put(to + size, types[below(sizeof(types) / sizeof(*types))], payload,
			    (uint16_t)below(sizeof(payload)));
	if (size > 4 && chance(10))	/* a length that is wrong */
		to[below((uint32_t)size)] = (uint8_t)draw();
	return size;
}

static size_t request(uint8_t *to)
{
	struct nlmsghdr header = { .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = 1 };
	struct inet_diag_req_v2 diag = {
		.sdiag_family = chance(80) ? AF_INET : chance(80) ? AF_INET6 : (uint8_t)draw(),
		.sdiag_protocol = IPPROTO_SCTP,
		.idiag_ext = (uint8_t)draw(),
		.idiag_states = chance(80) ? 0xfff : draw(),
		.id = { .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	size_t size = NLMSG_HDRLEN + sizeof(diag);

	if (chance(20))
		diag.id.idiag_dport = htons(5000);
	if (chance(15))		/* one association, by its addresses */
		diag.id.idiag_sport = htons((uint16_t)draw());
	header.nlmsg_flags |= chance(80) ? NLM_F_DUMP : chance(50) ? NLM_F_ROOT : 0;
	header.nlmsg_type = chance(95) ? SOCK_DIAG_BY_FAMILY : TCPDIAG_GETSOCK;
	memcpy(to + NLMSG_HDRLEN, &diag, sizeof(diag));
	size += attributes(to + size);
	if (chance(5))
		size -= below(40);
	header.nlmsg_len = (uint32_t)size;
	memcpy(to, &header, sizeof(header));
	return size;
}

/* Read an answer in pieces of any size, and not always to its end. */
static void ask(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
	size_t room = chance(50) ? sizeof(in) : 1 + below(sizeof(in));
	uint8_t out[512] = { 0 };
	size_t size = request(out);

	if (fd < 0)
		return;
	if (send(fd, out, size, 0) > 0)
		for (uint32_t n = chance(90) ? ANSWERS : below(4); n; n--)
			if (recv(fd, in, room, MSG_DONTWAIT) <= 0)
				break;
	close(fd);
}

/* A listener to all groups, now and then one that does not read. */
static int listener(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), least = 1;
	struct sockaddr_nl any = { .nl_family = AF_NETLINK };

	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)))
		return fd;
	for (int group = 1; group < GROUPS; group++)
		setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group));
	if (chance(50))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
	return fd;
}

static _Noreturn void watch(void)
{
	int fd;

	draw_start(5);
	for (;;) {
		fd = listener();
		for (uint32_t rounds = 1 + below(50); rounds; rounds--) {
			ask();
			for (int n = 0; n < 20 && chance(50) && recv(fd, in, sizeof(in), MSG_DONTWAIT) > 0; n++)
				;
			sleep_s((1 + below(200)) / 1000.0);
		}
		if (fd >= 0)
			close(fd);
	}
}

pid_t watch_start(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		watch();
	}
	return pid;
}

void watch_end(pid_t pid)
{
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}
