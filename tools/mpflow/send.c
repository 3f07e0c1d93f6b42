// SPDX-License-Identifier: GPL-2.0
/*
 * The sender: one association; messages one after the other when each is due, or in
 * bursts as fast as the socket takes them.
 *
 * A burst is sent by a call that blocks, so that the kernel need not wake the program
 * whenever there is room for a message or two. That call gives up when nothing goes
 * on, and the program sleeps in epoll_wait, which sees all that may happen. It is edge
 * triggered: a level-triggered poll may call an SCTP socket writable that still
 * refuses a message (poll counts the queue, sendmsg also the packets below it), and
 * a program that spins on that stops the clock of a kernel in virtual time.
 */
#include "flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "burst.h"
#include "clock.h"
#include "payload.h"
#include "result.h"
#include "sockopt.h"
#include "stop.h"
#include "transport.h"

/* So many messages are sent on time before the sender looks up, should it never have to wait. */
#define LOOK_EVERY	64
/* The messages of a burst carry one time: it is to be small beside what waits in the socket. */
#define BURST_BYTES	32768
#define BURSTS_IN_BUFFER	16
#define INPUT		(EPOLLIN | EPOLLRDHUP | EPOLLET)
#define NOTES		4
#define NOTE_SIZE	4096

struct sender {
	const struct options *o;
	struct json *json;
	int fd, epoll, timer, stop;
	int64_t deadline;		/* steady clock */
	int64_t start_wall, start_steady;
	uint16_t key;
	bool due, dry, finishing, closed;
	uint64_t messages, bytes;	/* made so far; in the result: handed over */
	struct result result;
	struct burst burst;
	struct inbox inbox;
};

/* False: the transfer is over. */
static bool lost(struct sender *s, enum status status, const char *reason)
{
	if (s->result.status == STATUS_OK)
		result_set(&s->result, status, reason);
	return false;
}

static bool take_note(struct sender *s, const uint8_t *buf, size_t len)
{
	switch (assoc_note(s->json, buf, len, ROLE_SEND, 0)) {
	case NOTE_LOST:
		return lost(s, STATUS_ABORTED, "association lost");
	case NOTE_DRY:
		s->dry = true;
		return true;
	case NOTE_CLOSED:
		s->closed = true;
		return true;
	default:
		return true;
	}
}

/* A piece of what a receiver sends: a notification or its end; anything else is not for us. */
static bool take_piece(struct sender *s, const struct piece *piece)
{
	if (piece->len == 0)
		s->closed = true;
	return !piece->notification || take_note(s, piece->data, piece->len);
}

/* Read until there is no more. */
static bool drain(struct sender *s)
{
	while (!s->closed) {
		int count = inbox_receive(&s->inbox, s->fd, s->o->proto, false);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno == EAGAIN)
			return true;
		if (count < 0)
			return lost(s, STATUS_ABORTED, strerror(errno));
		for (int i = 0; i < count; i++)
			if (!take_piece(s, &s->inbox.piece[i]))
				return false;
	}
	return s->finishing || lost(s, STATUS_ABORTED, "the receiver closed before the end of the transfer");
}

/* Take what has happened, waiting for it @timeout ms at most (-1: for ever). False: the transfer is over. */
static bool take_events(struct sender *s, int timeout)
{
	struct epoll_event events[3];
	uint64_t expirations;
	int n = epoll_wait(s->epoll, events, 3, timeout);

	if (has_passed(s->deadline))
		return lost(s, STATUS_TIMEOUT, "--timeout has passed");
	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == s->stop)
			return lost(s, STATUS_ABORTED, STOPPED);
		if (events[i].data.fd == s->timer)
			s->due = read(s->timer, &expirations, sizeof(expirations)) > 0;
		else if (events[i].events & ~EPOLLOUT && !drain(s))
			return false;
	}
	return true;
}

/* Sleep until something happens. */
static bool wait_event(struct sender *s)
{
	return take_events(s, timeout_ms(s->deadline));
}

/* Sleep until @when (steady clock), to the nanosecond: a timer has none of epoll_wait's slack. */
static bool wait_until(struct sender *s, int64_t when)
{
	struct itimerspec at = { .it_value = { .tv_sec = when / NS_PER_S, .tv_nsec = when % NS_PER_S } };

	if (steady_ns() >= when)
		return true;
	s->due = false;
	timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &at, NULL);
	while (!s->due)
		if (!wait_event(s))
			return false;
	return true;
}

/* Hand the burst to the socket, however long that takes. @block: in a call that blocks. */
static bool put(struct sender *s, bool block)
{
	size_t done = 0, all = burst_length(&s->burst, s->o->proto);

	while (done < all) {
		ssize_t n = burst_send(&s->burst, s->fd, s->o->proto, done, block);

		if (n >= 0) {
			done += n;
		} else if (errno == EAGAIN) {
			if (!wait_event(s))
				return false;
		} else if (errno != EINTR) {
			int error = errno;

			return drain(s) && lost(s, STATUS_ABORTED, strerror(error));
		}
	}
	return true;
}

static bool put_messages(struct sender *s, bool block)
{
	if (!put(s, block))
		return false;
	s->result.messages += s->burst.count;
	s->result.bytes += s->burst.bytes;
	burst_empty(&s->burst);
	return true;
}

/* The next message goes into the burst. */
static void add_message(struct sender *s, uint32_t size, int64_t sent_ns)
{
	uint64_t seq = s->messages;
	struct header header = { .key = s->key, .length = size, .seq = seq, .sent_ns = sent_ns };
	uint8_t *out = burst_add(&s->burst, size, seq % s->o->streams, s->o->unordered ? SCTP_UNORDERED : 0);

	header_write(out, &header);
	payload_fill(out + HEADER_SIZE, s->key, seq, 0, size - HEADER_SIZE);
	s->messages++;
	s->bytes += size;
}

/* Size of a message due at @due; 0 when enough has been made. A rest too small for a header is filled up. */
static uint32_t next_size(const struct sender *s, int64_t due)
{
	const struct options *o = s->o;
	int64_t left = o->bytes - (int64_t)s->bytes;

	if (o->duration_ns != NOT_GIVEN)
		return due < s->start_steady + o->duration_ns ? o->size : 0;
	if (o->moments > 0)
		return s->messages < o->moments ? o->size : 0;
	if (o->messages != NOT_GIVEN)
		return (int64_t)s->messages < o->messages ? o->size : 0;
	if (left <= 0)
		return 0;
	return left >= o->size ? o->size : left > HEADER_SIZE ? left : HEADER_SIZE;
}

/* When message @seq is due, after the start. */
static int64_t due_offset(const struct options *o, uint64_t seq)
{
	if (o->moments > 0)
		return o->moment_ns[seq < o->moments ? seq : o->moments - 1];
	return (int64_t)seq * o->interval_us * 1000;
}

/* Each message is due at its time whatever became of those before it. */
static bool put_on_time(struct sender *s)
{
	for (uint64_t seq = 0; ; seq++) {
		int64_t offset = due_offset(s->o, seq);
		uint32_t size = next_size(s, s->start_steady + offset);

		if (size == 0)
			return true;
		if (seq % LOOK_EVERY == 0 && !take_events(s, 0))
			return false;
		if (!wait_until(s, s->start_steady + offset))
			return false;
		add_message(s, size, s->start_wall + offset);
		if (!put_messages(s, false))
			return false;
	}
}

static bool put_in_bursts(struct sender *s)
{
	uint32_t size;

	do {
		int64_t sent = wall_ns(), due = s->o->duration_ns == NOT_GIVEN ? 0 : steady_ns();

		while ((size = next_size(s, due)) > 0 && burst_has_room(&s->burst, size))
			add_message(s, size, sent);
		if (!take_events(s, 0) || !put_messages(s, true))
			return false;
	} while (size > 0);
	return true;
}

static bool put_end(struct sender *s)
{
	struct header header = {
		.key = s->key, .length = END_LENGTH, .seq = s->messages, .sent_ns = wall_ns(),
	};

	header_write(burst_add(&s->burst, HEADER_SIZE, 0, SCTP_SACK_IMMEDIATELY), &header);
	/* Nothing follows: Nagle's algorithm and a delayed SACK would only hold the end back. */
	transport_nodelay(s->fd, s->o->proto);
	return put(s, true);
}

static void watch(struct sender *s, int operation, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (fd < 0 || epoll_ctl(s->epoll, operation, fd, &event) != 0)
		fail(EXIT_TRANSFER, "cannot watch a descriptor: %s", strerror(errno));
}

/* Wait until the receiver has everything, note the paths, close in order. */
static bool finish(struct sender *s)
{
	watch(s, EPOLL_CTL_MOD, s->fd, INPUT);
	if (s->o->proto == PROTO_SCTP) {
		assoc_want_dry(s->fd);
		while (!s->dry)
			if (!wait_event(s))
				return false;
		s->result.last_ns = wall_ns();
		assoc_snapshot(s->fd, &s->result.end);
	}
	s->finishing = true;
	shutdown(s->fd, SHUT_WR);
	while (!s->closed)
		if (!wait_event(s))
			return false;
	if (s->o->proto != PROTO_SCTP)
		s->result.last_ns = wall_ns();
	return true;
}

/* One message at least. */
static size_t burst_room(const struct sender *s)
{
	int room = BURST_BYTES, sndbuf = 0;

	sockopt_get(s->fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf));
	if (room > sndbuf / BURSTS_IN_BUFFER)
		room = sndbuf / BURSTS_IN_BUFFER;
	return room > s->o->size ? room : s->o->size;
}

/* Memory and descriptors; what only the association can tell. Ends the program when something is not possible. */
static void prepare(struct sender *s)
{
	burst_open(&s->burst, burst_room(s));
	inbox_open(&s->inbox, NOTES, NOTE_SIZE);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	s->stop = stop_open();
	watch(s, EPOLL_CTL_ADD, s->fd, INPUT | EPOLLOUT);
	watch(s, EPOLL_CTL_ADD, s->timer, EPOLLIN);
	watch(s, EPOLL_CTL_ADD, s->stop, EPOLLIN);
	if (s->o->proto != PROTO_SCTP)
		return;
	if (assoc_streams_out(s->fd) < s->o->streams)
		fail(EXIT_USAGE, "--streams: the receiver allows only %u", assoc_streams_out(s->fd));
	if (s->o->primary.count)
		assoc_set_primary(s->fd, &s->o->primary.item[0]);
}

static void transfer(struct sender *s)
{
	int error = transport_connect(s->fd, s->o, s->deadline);

	if (error) {
		lost(s, error == ETIMEDOUT ? STATUS_TIMEOUT : STATUS_FAILED, strerror(error));
		return;
	}
	prepare(s);
	transport_write_connected(s->json, s->fd, s->o, 0);
	s->start_steady = steady_ns();
	s->start_wall = wall_ns();
	s->result.first_ns = s->start_wall;
	if ((s->o->interval_us > 0 || s->o->moments > 0 ? put_on_time(s) : put_in_bursts(s)) && put_end(s))
		finish(s);
	if (s->result.last_ns == 0)
		s->result.last_ns = wall_ns();
}

/* SCTP takes a message whole or not at all. */
static void check_size(int fd, const struct options *o)
{
	int sndbuf = 0;

	if (o->proto == PROTO_SCTP && sockopt_get(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf)) &&
	    o->size > sndbuf)
		fail(EXIT_USAGE, "--size: %d is larger than the send buffer of %d; raise --sndbuf",
		     (int)o->size, sndbuf);
}

enum exit_code send_run(struct options *o, struct json *j)
{
	struct sender s = {
		.o = o, .json = j,
		.deadline = o->timeout_ns == NOT_GIVEN ? NEVER : steady_ns() + o->timeout_ns,
		.key = payload_key(o->seed),
		.result = { .role = ROLE_SEND, .proto = o->proto },
	};

	if (o->interval_us == NOT_GIVEN)
		o->interval_us = 0;
	s.fd = transport_open(o);
	check_size(s.fd, o);
	transfer(&s);
	result_write(j, &s.result, NULL, NULL);
	if (s.result.status == STATUS_OK)
		close(s.fd);
	else
		transport_abort(s.fd);
	assoc_snapshot_free(&s.result.end);
	free(s.burst.data);
	free(s.inbox.data);
	return s.result.status == STATUS_OK ? EXIT_OK : EXIT_TRANSFER;
}
