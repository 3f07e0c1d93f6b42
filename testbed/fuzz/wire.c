// SPDX-License-Identifier: GPL-2.0
/* fuzz-wire CASE OUT.json: one association with a hostile peer, which behaves at the end.
 *
 * Needs namespaces of its own and ip, tc of iproute2. Exit status: 0 all arrived or the association ended for a reason,
 * 1 it hangs or lost messages, 2 the fuzzer itself failed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watch.h"
#include "wire.h"

/* Changes of the state of a path while a peer is hostile, ten seconds at most: a path that has failed fails again after
 * a wait that doubles, and the first is some milliseconds.
 */
#define CHANGES	24

struct shared *shared;

static void draw_shape(void)
{
	static const int addresses[] = { 1, 2, 3, 3, 3, 3, 3, 6, 8, 16, 64, ADDRESSES };

	draw_start(6);
	shared->answers = chance(80) ? ALL : chance(50) ? COPIES : HEARTBEATS;
	draw_start(0);
	shared->addresses = addresses[below(12)];
	shared->peer_connects = chance(50) || shared->addresses > 150;
	shared->hostile_s = 2 + below(8);
	draw_settings();
	if (!shared->answers)
		return;
	setting_number("failover_suspect", 1);
	setting_number("pf_enable", 1);
	setting_number("pf_expose", 2);
}

/* The peer waits in a namespace of its own until the paths are there. */
static pid_t start_peer(int *go)
{
	int ready[2], paths[2];
	char byte;
	pid_t pid;

	if (pipe(ready) || pipe(paths))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(paths[1]);
		own_namespace();
		if (write(ready[1], "", 1) != 1 || read(paths[0], &byte, 1) != 1)
			_exit(2);
		if (system("for i in 0 1 2; do ip link set pB$i mtu 9000 arp off up || exit 1; done"))
			_exit(2);
		packet_sockets();
		peer_live();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		die("the peer's namespace");
	*go = paths[1];
	return pid;
}

static const char *check(const char *outcome, char *failure, size_t size)
{
	unsigned int missing = 0;

	*failure = 0;
	if (!strncmp(outcome, "hang", 4)) {
		snprintf(failure, size, "%s", outcome);
		return "hang";
	}
	if (!strncmp(outcome, "lost", 4) && shared->aborts) {
		static char aborted[120];

		snprintf(aborted, sizeof(aborted), "aborted, cause %u %s", shared->abort_cause,
			 shared->abort_text);
		return aborted;
	}
	if (*outcome)
		return outcome;
	if (shared->answers && shared->changes > (uint32_t)shared->addresses * CHANGES) {
		snprintf(failure, size, "%u changes of %d paths", shared->changes, shared->addresses);
		return "flaps";
	}
	for (int i = 0; i < TAIL_MESSAGES; i++)
		missing += !shared->tail_seen[i];
	if (missing)
		snprintf(failure, size, "%u of %d messages never arrived", missing, TAIL_MESSAGES);
	return missing ? "incomplete" : "done";
}

int main(int argc, char **argv)
{
	char failure[100];
	const char *outcome;
	pid_t pid, watcher;
	int go;

	if (argc != 3) {
		fprintf(stderr, "usage: fuzz-wire CASE OUT.json\n");
		return 2;
	}
	fuzz_start(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	own_namespace();
	draw_shape();
	pid = start_peer(&go);
	join(pid, false);
	/* An INIT ACK with hundreds of addresses in its cookie: the peer puts no fragments together. */
	if (shared->addresses > 60 && system("for i in 0 1 2; do ip link set vA$i mtu 9000 || exit 1; done"))
		die("ip link set mtu");
	if (write(go, "", 1) != 1)
		die("the peer");
	watcher = watch_start();
	outcome = check(victim_live(), failure, sizeof(failure));
	watch_end(watcher);
	shared->done = true;
	waitpid(pid, NULL, 0);
	return report(argv[2], "packets", shared->packets, outcome, failure);
}
