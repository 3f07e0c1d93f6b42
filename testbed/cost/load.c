// SPDX-License-Identifier: GPL-2.0
/* cost-load KIND ADDRESSES OUTSTANDING NUMBER OUT.json [SETTING=VALUE ...]: packets whose cost is counted.
 *
 * One association between a socket and a peer made of raw frames, both in this process: a frame that the peer sends has
 * been processed when sendto() returns. The measured part is between two marks, calls of sethostname() with a length
 * that the kernel refuses: cost-steps sees them, and they have no other effect.
 *
 * KIND  data, heartbeat      NUMBER packets of the peer, from all its ADDRESSES in turn
 *       sack                 NUMBER SACKs for two chunks each, while OUTSTANDING chunks are outstanding
 *       sack-timeout         the same after the retransmission timer has expired; the peer's window is closed then
 *       sack-gaps            the same after SACKs that report half of them missing, in runs; likewise
 *       send                 NUMBER messages of 1400 bytes, acknowledged as RFC 9260 6.2 says: at once while there is
 *                            a gap, else every other packet
 *       send-per-path        the same, acknowledged per path: every other packet of it, gaps or not
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/sctp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire.h"

enum { DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT, COOKIE_ECHO = 10, COOKIE_ACK };

#define SOCKET_BUFFER	(200 << 20)
#define WINDOW		(64U << 20)	/* of the peer, where nothing is to wait for it */
#define TRANSFER_WINDOW	131072U		/* of the peer in a transfer: no queue of a path overflows */
#define MESSAGE		1400
#define TRANSFER_AHEAD	(window / MESSAGE + 50)	/* messages: the send buffer is never empty */
#define GROW		6000	/* messages of 1400 bytes that open the windows */
#define WARM		2000	/* and those before a transfer is measured */
#define DELAYED_MS	20	/* the peer's delayed SACK */
#define SMALL		20		/* bytes in a chunk of the backlog */
#define FEW		100		/* chunks, and small enough for windows as they are */
#define TSN_LIMIT	4096		/* outstanding at most with cmt */
#define RUNS		50		/* gaps in a SACK of sack-gaps */
#define LIMIT_S		600.0

struct shared *shared;

static int sock = -1;
static bool open_, receiving, per_path;
static uint32_t own_tag = 0x5a5a5a5a, victim_tag, own_tsn = 1000, first_tsn, cum, highest, window = WINDOW;
static uint32_t said;				/* messages of the socket so far */
static uint32_t frames;				/* that the peer has received */
static uint32_t seen[SEEN];
static unsigned int unacked[PATHS];
static uint64_t cycles[100000];
static uint32_t sacks;
static uint32_t outstanding, rtx;	/* chunks, before the first SACK that is measured */
static struct packet out;

static bool later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* The kernel refuses lengths above 64. */
static void mark(bool on)
{
	syscall(SYS_sethostname, "", on ? 1001 : 1000);
}

static uint64_t clock_cycles(void)
{
	return __builtin_ia32_rdtsc();
}

static void address_of(struct sockaddr_in *a, uint32_t address, int port)
{
	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_port = htons((uint16_t)port);
	a->sin_addr.s_addr = htonl(address);
}

/* --- the peer --- */

static void send_init(void)
{
	uint8_t *at;

	packet_start(&out, 0);
	at = chunk(&out, INIT, 0, 16 + 8 * (size_t)shared->addresses);
	put32(at, own_tag);
	put32(at + 4, WINDOW);
	put16(at + 8, 10);
	put16(at + 10, 10);
	put32(at + 12, own_tsn);
	at += 16;
	for (int i = 0; i < shared->addresses; i++, at += 8) {
		put16(at, 5);
		put16(at + 2, 8);
		put32(at + 4, peer_address(i));
	}
	packet_send(&out, 0, 0);
}

static void echo(int type, const uint8_t *body, size_t length, int path)
{
	uint8_t *at;

	packet_start(&out, victim_tag);
	at = chunk(&out, type, 0, length);
	if (length)
		memcpy(at, body, length);
	packet_send(&out, path, path);
}

static void take_init_ack(const uint8_t *body, size_t length)
{
	victim_tag = get32(body);
	first_tsn = get32(body + 12);
	cum = highest = first_tsn - 1;
	for (size_t at = 16; at + 4 <= length; at += (get16(body + at + 2) + 3) & ~3U) {
		size_t size = get16(body + at + 2);

		if (size < 4 || at + size > length)
			break;
		if (get16(body + at) == 7)
			echo(COOKIE_ECHO, body + at + 4, size - 4, 0);
	}
}

/* BLOCKS: pairs of first and last TSN; FLAGS: as the victim's own receiver sets them. */
static void send_sack(const uint32_t *blocks, size_t n, int flags, int path)
{
	uint8_t *at;

	packet_start(&out, victim_tag);
	at = chunk(&out, SACK, flags, 12 + 4 * n);
	put32(at, cum);
	put32(at + 4, window);
	put16(at + 8, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		put16(at + 12 + 4 * i, blocks[2 * i] - cum);
		put16(at + 14 + 4 * i, blocks[2 * i + 1] - cum);
	}
	packet_send(&out, path, path);
	sacks++;
}

static bool has(uint32_t tsn)
{
	return seen[tsn % SEEN] == tsn;
}

static size_t find_blocks(uint32_t *blocks, size_t most)
{
	size_t n = 0;

	for (uint32_t tsn = cum + 1; !later(tsn, highest) && n < most; tsn++) {
		if (!has(tsn))
			continue;
		blocks[2 * n] = tsn;
		while (!later(tsn + 1, highest) && has(tsn + 1))
			tsn++;
		blocks[2 * n++ + 1] = tsn;
	}
	return n;
}

static void acknowledge(int path)
{
	uint32_t blocks[2 * 300], packets = unacked[path];
	size_t n = find_blocks(blocks, 300);

	send_sack(blocks, n, per_path ? (int)(packets < 3 ? packets : 3) << 6 : 0, path);
	if (per_path)
		unacked[path] = 0;	/* each path has its own clock */
	else
		memset(unacked, 0, sizeof(unacked));
}

static void take_packet(const uint8_t *sctp, size_t length, int path)
{
	bool data = false, gap = later(highest, cum);

	frames++;
	if (get16(sctp + 2) != PEER_PORT)
		return;
	for (size_t at = 12; at + 4 <= length;) {
		size_t size = get16(sctp + at + 2);
		const uint8_t *body = sctp + at + 4;
		uint32_t tsn;

		if (size < 4 || at + size > length)
			break;
		switch (sctp[at]) {
		case DATA:
			if (size < 16)
				break;
			data = true;
			tsn = get32(body);
			if (!later(tsn, cum))
				break;
			if (later(tsn, highest))
				highest = tsn;
			if (!receiving)
				break;
			seen[tsn % SEEN] = tsn;
			while (has(cum + 1))
				cum++;
			break;
		case INIT_ACK:
			if (!open_ && size >= 20)
				take_init_ack(body, size - 4);
			break;
		case COOKIE_ACK:
			open_ = true;
			break;
		case HEARTBEAT:
			echo(HEARTBEAT_ACK, body, size - 4, path);
			break;
		case ABORT:
			fprintf(stderr, "cost-load: the socket sent an ABORT\n");
			exit(2);
		}
		at += (size + 3) & ~(size_t)3;
	}
	if (!data || !receiving)
		return;
	unacked[path]++;
	if (unacked[path] > 1 || (!per_path && (gap || later(highest, cum) ||
						unacked[0] + unacked[1] + unacked[2] > 1)))
		acknowledge(path);
}

/* Let the kernel, the links and the peer go on for MS of virtual time. */
static void pump(int ms)
{
	double until = now_s() + ms / 1000.0;

	do
		packets_receive(ms > 1 ? 5 : 1, take_packet);
	while (now_s() < until);
}

/* --- the socket --- */

static void command(const char *words)
{
	if (system(words))
		die(words);
}

static pid_t other_namespace(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		own_namespace();
		if (write(ready[1], "", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	if (read(ready[0], &byte, 1) != 1)
		die("the peer's namespace");
	return pid;
}

static void enter(pid_t pid)
{
	char path[40];
	int ns;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	ns = open(path, O_RDONLY);
	if (ns < 0 || setns(ns, CLONE_NEWNET))
		die(path);
	close(ns);
}

/* The peer's sockets stay in its namespace; this process comes back.
 *
 * JUMBO: an INIT ACK with hundreds of addresses in its cookie fits. Else packets are what a card sends: gso_max_size.
 */
static pid_t make_paths(bool jumbo, bool transfer)
{
	int home;
	pid_t pid;

	own_namespace();
	pid = other_namespace();
	join(pid, false);
	if (jumbo)
		command("for i in 0 1 2; do ip link set vA$i mtu 9000 || exit 1; done");
	else
		command("for i in 0 1 2; do ip link set vA$i gso_max_size 1500 || exit 1; done");
	if (transfer)
		command("for i in 0 1 2; do tc qdisc replace dev vA$i root netem delay 10ms rate 20mbit limit 1000"
			" || exit 1; done");
	home = open("/proc/self/ns/net", O_RDONLY);
	enter(pid);
	command("for i in 0 1 2; do ip link set pB$i mtu 9000 arp off up || exit 1; done");
	packet_sockets();
	if (home < 0 || setns(home, CLONE_NEWNET))
		die("setns");
	return pid;
}

static void open_association(void)
{
	struct sockaddr_in all[PATHS];
	int listener, size = SOCKET_BUFFER;

	for (int i = 0; i < PATHS; i++)
		address_of(&all[i], victim_address(i), VICTIM_PORT);
	listener = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	if (listener < 0 || setsockopt(listener, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, all, sizeof(all)))
		die("bindx");
	if (setsockopt(listener, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) ||
	    setsockopt(listener, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) || listen(listener, 5))
		die("listen");
	fcntl(listener, F_SETFL, O_NONBLOCK);
	send_init();
	for (double start = now_s(); (sock = accept(listener, NULL, NULL)) < 0; pump(10))
		if (now_s() - start > 20)
			die("accept");
	fcntl(sock, F_SETFL, O_NONBLOCK);
	close(listener);
}

static uint32_t retransmitted(void)
{
	struct sctp_assoc_stats stats = { 0 };
	socklen_t size = sizeof(stats);

	if (getsockopt(sock, IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &stats, &size))
		die("SCTP_GET_ASSOC_STATS");
	return (uint32_t)stats.sas_rtxchunks;
}

/* A message is a chunk. */
static bool say(size_t length)
{
	static char buffer[MESSAGE];

	if (send(sock, buffer, length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
		said++;
		return true;
	}
	if (errno != EAGAIN)
		die("send");
	return false;
}

/* NUMBER messages of 1400 bytes, until the last one is acknowledged. */
static void transfer(uint32_t number)
{
	double start = now_s();
	uint32_t before;

	receiving = true;
	for (uint32_t i = 0; i < number || cum + 1 != first_tsn + said;) {
		while (i < number && first_tsn + said - cum < TRANSFER_AHEAD && say(MESSAGE))
			i++;
		before = frames;
		packets_receive(DELAYED_MS, take_packet);
		if (frames == before && (unacked[0] || unacked[1]))
			acknowledge(unacked[1] ? 1 : 0);
		if (now_s() - start > LIMIT_S)
			die("the transfer");
	}
	receiving = false;
}

/* Windows wide enough for all of it, then OUTSTANDING chunks that nobody acknowledges. */
static void build_up(uint32_t outstanding)
{
	int one = 1;

	transfer(outstanding > FEW ? GROW : 100);
	pump(100);
	/* Few fit into a packet, which would not be full. */
	if (outstanding <= FEW && setsockopt(sock, IPPROTO_SCTP, SCTP_NODELAY, &one, sizeof(one)))
		die("SCTP_NODELAY");
	for (uint32_t i = 0; i < outstanding; i++)
		if (!say(SMALL))
			die("backlog");
	pump(100);
}

/* --- what is measured --- */

/* Packets of a wrong tag, which the socket drops: each page that sends has been touched before any is timed. */
static void warm_up(void)
{
	for (int i = 0; i < 100; i++) {
		packet_start(&out, ~victim_tag);
		chunk(&out, HEARTBEAT, 0, 44);
		packet_send(&out, 0, 0);
	}
}

static uint32_t backlog_gaps(uint32_t chunks, uint32_t *blocks)
{
	uint32_t run = chunks / (2 * RUNS), n = 0;

	for (uint32_t i = 0; run && i < RUNS; i++, n++) {
		blocks[2 * n] = cum + 1 + (2 * i + 1) * run;
		blocks[2 * n + 1] = blocks[2 * n] + run - 1;
	}
	return n;
}

static void measure_sacks(const char *kind, uint32_t chunks, uint32_t number)
{
	uint32_t blocks[2 * RUNS], n = 0, past = 0, least = chunks < TSN_LIMIT ? chunks : TSN_LIMIT;

	build_up(chunks);
	if (!strcmp(kind, "sack-timeout")) {
		pump(1500);
		window = 0;
		send_sack(NULL, 0, 0, 0);
	}
	if (!strcmp(kind, "sack-gaps")) {
		n = backlog_gaps(chunks, blocks);
		window = 0;
		for (int i = 0; i < 4; i++)
			send_sack(blocks, n, 0, 0);
	}
	outstanding = highest - cum;
	if (later(cum, highest) || outstanding < least / 10 * 9) {
		fprintf(stderr, "cost-load: %d chunks are outstanding, expected %u\n", (int)outstanding, least);
		exit(2);
	}
	rtx = retransmitted();
	for (uint32_t i = 0; i < number; i++) {
		uint64_t start;

		cum += 2;
		while (past < n && !later(blocks[2 * past], cum))
			past++;
		mark(true);
		start = clock_cycles();
		send_sack(blocks + 2 * past, n - past, 0, 0);
		cycles[i] = clock_cycles() - start;
		mark(false);
	}
}

static void measure_packets(bool heartbeat, uint32_t number)
{
	for (uint32_t i = 0; i < number; i++) {
		/* Two in a row: a receiver that acknowledges per path sends as many SACKs. */
		int address = (int)(i / 2 * 7 % (uint32_t)shared->addresses);
		uint64_t start;
		uint8_t *at;

		packet_start(&out, victim_tag);
		at = chunk(&out, heartbeat ? HEARTBEAT : DATA, heartbeat ? 0 : 3, heartbeat ? 44 : 12 + 100);
		if (heartbeat) {
			put16(at, 1);
			put16(at + 2, 44);
		} else {
			put32(at, own_tsn++);
			put16(at + 6, i);
		}
		mark(true);
		start = clock_cycles();
		packet_send(&out, address, address % PATHS);
		cycles[i] = clock_cycles() - start;
		mark(false);
	}
}

static void write_result(const char *file, uint32_t number)
{
	FILE *to = fopen(file, "w");

	if (!to)
		die(file);
	fprintf(to, "{\"outstanding\": %u, \"retransmitted\": %u, \"sacks\": %u, \"cycles\": [", outstanding,
		rtx, sacks);
	for (uint32_t i = 0; i < number; i++)
		fprintf(to, "%s%llu", i ? ", " : "", (unsigned long long)cycles[i]);
	fprintf(to, "]}\n");
	if (fclose(to))
		die(file);
}

int main(int argc, char **argv)
{
	uint32_t chunks, number;
	const char *kind;
	bool sends;
	pid_t pid;

	if (argc < 6) {
		fprintf(stderr, "usage: cost-load KIND ADDRESSES OUTSTANDING NUMBER OUT.json [SETTING=VALUE ...]\n");
		return 2;
	}
	kind = argv[1];
	chunks = (uint32_t)atoi(argv[3]);
	number = (uint32_t)atoi(argv[4]);
	sends = !strncmp(kind, "send", 4);
	per_path = !strcmp(kind, "send-per-path");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	shared->behave = true;
	shared->addresses = atoi(argv[2]);
	if (shared->addresses < 1 || shared->addresses > ADDRESSES || number > 100000 || chunks >= SEEN - 6000)
		die("a number out of range");
	pid = make_paths(!sends && chunks <= FEW, sends);
	for (int i = 6; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			die(argv[i]);
		*value++ = 0;
		if (!setting(argv[i], value))
			die(argv[i]);
	}
	if (sends)
		window = TRANSFER_WINDOW;
	else if (!setting_number("max_burst", 0))	/* the backlog leaves at once */
		die("max_burst");
	open_association();
	pump(10000);		/* all addresses are confirmed */
	warm_up();
	if (sends) {
		transfer(WARM);
		sacks = 0;
		mark(true);
		transfer(number);
		mark(false);
	} else if (!strncmp(kind, "sack", 4)) {
		measure_sacks(kind, chunks, number);
	} else {
		measure_packets(!strcmp(kind, "heartbeat"), number);
	}
	pump(50);		/* an ABORT ends this here */
	write_result(argv[5], sends ? 0 : number);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
