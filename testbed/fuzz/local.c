// SPDX-License-Identifier: GPL-2.0
/* fuzz-local CASE OUT.json: a program that gets its socket options wrong while data flow.
 *
 * Both ends are sockets of this kernel, in two namespaces. Exit status: 0 the machine is as before, 1 something hangs,
 * 2 the fuzzer itself failed. Whether the kernel complained is for its log to say.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/sctp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "net.h"
#include "watch.h"

#define PORT		5000
#define LIMIT_S		60.0
#define PEELED_MAX	4

/* Those of ours, those that share state with them, and those that say how data go. */
static const int options[] = {
	0x1200, 0x1201, 0x1280, 0x1281, 0x1282, 0x1283, 0x1284, 0x1285, 0x1286, 0x1287, 0x1288, 0x1289, 0x128a,
	0x128b, 0x128c,
	SCTP_RTOINFO, SCTP_ASSOCINFO, SCTP_PEER_ADDR_PARAMS, SCTP_PEER_ADDR_THLDS, 36 /* THLDS_V2 */,
	SCTP_DELAYED_SACK, SCTP_MAXSEG, SCTP_MAX_BURST, SCTP_NODELAY, SCTP_PRIMARY_ADDR,
	SCTP_SET_PEER_PRIMARY_ADDR, SCTP_FRAGMENT_INTERLEAVE, SCTP_PARTIAL_DELIVERY_POINT, SCTP_AUTOCLOSE,
	SCTP_RESET_STREAMS, SCTP_ADD_STREAMS, SCTP_STREAM_SCHEDULER, SCTP_INTERLEAVING_SUPPORTED,
	SCTP_STATUS, SCTP_GET_PEER_ADDR_INFO,
};

static volatile uint64_t *calls;
static int peeled[PEELED_MAX], sock, style, assoc;

static void address_of(struct sockaddr_in *a, uint32_t address)
{
	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_port = htons(PORT);
	a->sin_addr.s_addr = htonl(address);
}

static int endpoint(bool victim)
{
	int fd = socket(victim && chance(40) ? AF_INET6 : AF_INET, style, IPPROTO_SCTP);
	struct sctp_event_subscribe events = { .sctp_data_io_event = 1, .sctp_association_event = 1,
					       .sctp_partial_delivery_event = 1 };
	struct sockaddr_in all[PATHS];

	for (int i = 0; i < PATHS; i++)
		address_of(&all[i], victim ? victim_address(i) : peer_address(i));
	if (fd < 0 || setsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, all, sizeof(all)))
		die("bindx");
	setsockopt(fd, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof(events));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void read_some(int fd)
{
	static char in[70000];

	for (int i = 0; i < 30 && recv(fd, in, below(8) ? sizeof(in) : 1 + below(100), MSG_DONTWAIT) > 0; i++)
		;
}

/* The other end: takes all, sends a little. Tells READY when it listens. */
static _Noreturn void serve(int ready)
{
	int listener = endpoint(false), fd = style == SOCK_STREAM ? -1 : listener;

	if (listen(listener, 5) || write(ready, "", 1) != 1)
		die("listen");
	for (;;) {
		if (fd < 0 && (fd = accept(listener, NULL, NULL)) >= 0)
			fcntl(fd, F_SETFL, O_NONBLOCK);
		if (fd >= 0) {
			read_some(fd);
			if (style == SOCK_STREAM && chance(20))
				send(fd, "answer", 6, MSG_DONTWAIT | MSG_NOSIGNAL);
		}
		sleep_s(0.02);
	}
}

static void fill(uint8_t *value, size_t size)
{
	struct sockaddr_in to;
	uint32_t word;

	for (size_t i = 0; i + 4 <= size; i += 4) {
		word = chance(40) ? 0 : chance(50) ? below(10) : extreme();
		memcpy(value + i, &word, 4);
	}
	word = chance(70) ? (uint32_t)assoc : chance(50) ? below(4) : draw();
	memcpy(value, &word, 4);
	if (chance(40)) {
		address_of(&to, peer_address((int)below(PATHS + 1)));
		memcpy(value + 4, &to, sizeof(to));
	}
}

static void one_option(int fd)
{
	static const socklen_t sizes[] = { 0, 1, 3, 4, 8, 12, 16, 20, 136, 140, 144, 152, 156, 160, 400 };
	int option = options[below(sizeof(options) / sizeof(*options))];
	uint8_t value[400];
	socklen_t size = sizes[below(15)];

	if (chance(60))		/* the length it ought to have: the kernel knows */
		size = option >= 0x1200 ? 8 : option == SCTP_RTOINFO ? 16 : option == SCTP_ASSOCINFO ? 20 :
		       option == SCTP_PEER_ADDR_PARAMS ? sizeof(struct sctp_paddrparams) :
		       option == SCTP_PEER_ADDR_THLDS ? 136 : option == 36 ? 144 :
		       option == SCTP_DELAYED_SACK ? 12 : 8;
	fill(value, sizeof(value));
	if (chance(75))
		setsockopt(fd, IPPROTO_SCTP, option, value, size);
	else
		getsockopt(fd, IPPROTO_SCTP, option, value, &size);
	++*calls;
}

static void interface(int path, bool gso)
{
	struct ethtool_value value = { .cmd = ETHTOOL_SGSO, .data = chance(50) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "vA%d", path);
	if (gso) {
		request.ifr_data = (void *)&value;
		ioctl(fd, SIOCETHTOOL, &request);
	} else if (!ioctl(fd, SIOCGIFFLAGS, &request)) {
		request.ifr_flags = (short)(chance(70) ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
		ioctl(fd, SIOCSIFFLAGS, &request);
	}
	close(fd);
	++*calls;
}

static void peel(void)
{
	sctp_peeloff_arg_t argument = { .associd = assoc };
	socklen_t size = sizeof(argument);
	uint32_t slot = below(PEELED_MAX);

	if (style != SOCK_SEQPACKET || getsockopt(sock, IPPROTO_SCTP, SCTP_SOCKOPT_PEELOFF, &argument, &size))
		return;
	if (peeled[slot])
		close(peeled[slot]);
	peeled[slot] = argument.sd;
	fcntl(argument.sd, F_SETFL, O_NONBLOCK);
}

static void abuse(void)
{
	int fd = chance(30) && peeled[0] ? peeled[0] : sock, size;
	struct sockaddr_in one;

	switch (below(16)) {
	case 0:
		address_of(&one, victim_address((int)below(PATHS)));
		setsockopt(fd, IPPROTO_SCTP, chance(50) ? SCTP_SOCKOPT_BINDX_ADD : SCTP_SOCKOPT_BINDX_REM, &one,
			   chance(90) ? sizeof(one) : below(40));
		++*calls;
		break;
	case 1:
		interface((int)below(PATHS), false);
		break;
	case 2:
		interface((int)below(PATHS), true);
		break;
	case 3:
		wild_setting();
		++*calls;
		break;
	case 4:
		if (chance(20))
			peel();
		break;
	case 5:
		size = (int)extreme();
		setsockopt(fd, SOL_SOCKET, chance(50) ? SO_SNDBUF : SO_RCVBUF, &size, sizeof(size));
		++*calls;
		break;
	default:
		one_option(fd);
	}
}

static void connect_all(void)
{
	struct sockaddr_in to[PATHS];
	int n;

	for (int i = 0; i < PATHS; i++)
		address_of(&to[i], peer_address(i));
	n = setsockopt(sock, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, to, sizeof(to));
	assoc = n > 0 ? n : 0;
	++*calls;
}

/* Ends by itself, by kill -9 of its parent, or with everything still open. */
static _Noreturn void misbehave(void)
{
	static char out[60000];
	double until = now_s() + 2 + below(6);

	draw_start(1);
	sock = endpoint(true);
	for (int n = (int)below(10); n; n--)
		abuse();
	connect_all();
	while (now_s() < until) {
		int fd = chance(30) && peeled[0] ? peeled[0] : sock;

		for (uint32_t n = below(20); n; n--)
			if (send(fd, out, 1 + below(chance(80) ? 1400 : sizeof(out) - 1), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
				break;
		read_some(fd);
		for (uint32_t n = below(6); n; n--)
			abuse();
		if (below(100) == 0)
			shutdown(fd, (int)below(3));
		if (below(150) == 0)
			connect_all();
		sleep_s((1 + below(20)) / 1000.0);
	}
	_exit(0);
}

static bool ended(pid_t pid, double limit_s)
{
	double start = now_s();

	while (!waitpid(pid, NULL, WNOHANG)) {
		if (now_s() - start > limit_s)
			return false;
		sleep_s(0.05);
	}
	return true;
}

int main(int argc, char **argv)
{
	const char *failure = "", *outcome = "done";
	pid_t server, program, watcher;
	int ready[2], paths[2];
	char byte;

	if (argc != 3) {
		fprintf(stderr, "usage: fuzz-local CASE OUT.json\n");
		return 2;
	}
	fuzz_start(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	calls = mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (calls == MAP_FAILED)
		die("mmap");
	draw_start(0);
	style = chance(50) ? SOCK_STREAM : SOCK_SEQPACKET;
	own_namespace();
	/* Who waits sleeps first, and then for the other end if that is slower: in virtual time it never is. */
	if (pipe(ready) || pipe(paths))
		die("pipe");
	server = fork();
	if (!server) {
		own_namespace();
		if (write(ready[1], "", 1) != 1)
			_exit(2);
		sleep_s(0.5);
		if (read(paths[0], &byte, 1) != 1)
			_exit(2);
		for (int i = 0; i < PATHS; i++) {
			char command[160];

			snprintf(command, sizeof(command), "ip link set pB%d up && ip addr add 10.%d.1.0/16 dev pB%d",
				 i, 10 + i, i);
			if (system(command))
				_exit(2);
		}
		serve(ready[1]);
	}
	close(ready[1]);
	sleep_s(0.2);
	if (read(ready[0], &byte, 1) != 1)
		die("the other end's namespace");
	join(server, true);
	if (write(paths[1], "", 1) != 1)
		die("the other end's paths");
	draw_settings();
	sleep_s(1);
	if (read(ready[0], &byte, 1) != 1)
		die("the other end");
	watcher = watch_start();
	program = fork();
	if (!program)
		misbehave();
	if (chance(30)) {
		sleep_s(1 + below(3));
		kill(program, SIGKILL);
		outcome = "killed";
	}
	if (!ended(program, LIMIT_S)) {
		failure = "hang: the program does not end";
		kill(program, SIGKILL);
	}
	if (chance(50))		/* else both namespaces end while the association may live */
		sleep_s(below(10));
	watch_end(watcher);
	kill(server, SIGKILL);
	if (!ended(server, LIMIT_S))
		failure = "hang: the other end does not end";
	return report(argv[2], "calls", *calls, outcome, failure);
}
