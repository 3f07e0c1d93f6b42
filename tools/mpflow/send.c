// SPDX-License-Identifier: GPL-2.0
/*
 * The sender: one association, one message after the other.
 *
 * The socket never blocks. When it is full, the program sleeps in epoll_wait, edge
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

#include "clock.h"
#include "payload.h"
#include "result.h"
#include "stop.h"
#include "transport.h"

/* So many messages are sent before the sender looks up, should it never have to wait. */
#define LOOK_EVERY	64

struct sender {
	const struct options *o;
	struct json *json;
	int fd, epoll, timer, stop;
	int64_t deadline;		/* steady clock */
	int64_t start_wall, start_steady;
	uint16_t key;
	bool due, dry, finishing, closed;
	struct result result;
	uint8_t *message;
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

/* Read notifications until there are no more; what else a receiver sends is its end. */
static bool drain(struct sender *s)
{
	uint8_t buf[4096];
	struct piece piece = { 0 };

	while (!s->closed) {
		ssize_t n = s->o->proto == PROTO_SCTP ? assoc_receive(s->fd, buf, sizeof(buf), &piece) :
							recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0)
			return lost(s, STATUS_ABORTED, strerror(errno));
		if (n == 0)
			s->closed = true;
		else if (piece.notification && !take_note(s, buf, n))
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

	if (steady_ns() >= s->deadline)
		return lost(s, STATUS_TIMEOUT, "--timeout has passed");
	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == s->stop)
			return lost(s, STATUS_ABORTED, STOPPED);
		if (events[i].data.fd == s->timer)
			s->due = read(s->timer, &expirations, sizeof(expirations)) > 0;
		else if (!drain(s))
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

/* Hand @len bytes to the socket, however long that takes. @flags: as for assoc_send. */
static bool put(struct sender *s, const uint8_t *data, size_t len, uint16_t stream, uint16_t flags)
{
	while (len > 0) {
		ssize_t n = s->o->proto == PROTO_SCTP ? assoc_send(s->fd, data, len, stream, flags) :
							send(s->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0) {
			data += n;
			len -= n;
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

static bool put_message(struct sender *s, uint64_t seq, uint32_t size, int64_t sent_ns)
{
	struct header header = { .key = s->key, .length = size, .seq = seq, .sent_ns = sent_ns };

	header_write(s->message, &header);
	payload_fill(s->message + HEADER_SIZE, s->key, seq, 0, size - HEADER_SIZE);
	if (!put(s, s->message, size, seq % s->o->streams, s->o->unordered ? SCTP_UNORDERED : 0))
		return false;
	s->result.messages++;
	s->result.bytes += size;
	return true;
}

/* Size of a message due at @due; 0 when enough has been sent. A rest too small for a header is filled up. */
static uint32_t next_size(const struct sender *s, int64_t due)
{
	const struct options *o = s->o;
	int64_t left = o->bytes - (int64_t)s->result.bytes;

	if (o->duration_ns != NOT_GIVEN)
		return due < s->start_steady + o->duration_ns ? o->size : 0;
	if (o->messages != NOT_GIVEN)
		return (int64_t)s->result.messages < o->messages ? o->size : 0;
	if (left <= 0)
		return 0;
	return left >= o->size ? o->size : left > HEADER_SIZE ? left : HEADER_SIZE;
}

/* With an interval, message n is due at start + n * interval whatever became of those before it. */
static bool put_all(struct sender *s)
{
	int64_t interval = s->o->interval_us * 1000;
	uint32_t size;

	for (uint64_t seq = 0; ; seq++) {
		int64_t offset = (int64_t)seq * interval;

		size = next_size(s, interval > 0 ? s->start_steady + offset : steady_ns());
		if (size == 0)
			return true;
		if (seq % LOOK_EVERY == 0 && !take_events(s, 0))
			return false;
		if (interval > 0 && !wait_until(s, s->start_steady + offset))
			return false;
		if (!put_message(s, seq, size, interval > 0 ? s->start_wall + offset : wall_ns()))
			return false;
	}
}

static bool put_end(struct sender *s)
{
	struct header header = { .key = s->key, .length = END_LENGTH, .seq = s->result.messages, .sent_ns = wall_ns() };
	uint8_t marker[HEADER_SIZE];

	header_write(marker, &header);
	/* Nothing follows: Nagle's algorithm and a delayed SACK would only hold the end back. */
	transport_nodelay(s->fd, s->o->proto);
	return put(s, marker, sizeof(marker), 0, SCTP_SACK_IMMEDIATELY);
}

/* Wait until the receiver has everything, note the paths, close in order. */
static bool finish(struct sender *s)
{
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

static void watch(struct sender *s, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (fd < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		fail(EXIT_TRANSFER, "cannot watch a descriptor: %s", strerror(errno));
}

/* Memory and descriptors; what only the association can tell. Ends the program when something is not possible. */
static void prepare(struct sender *s)
{
	s->message = malloc(s->o->size);
	if (!s->message)
		fail(EXIT_TRANSFER, "out of memory");
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	s->stop = stop_open();
	watch(s, s->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	watch(s, s->timer, EPOLLIN);
	watch(s, s->stop, EPOLLIN);
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
	if (put_all(s) && put_end(s))
		finish(s);
	if (s->result.last_ns == 0)
		s->result.last_ns = wall_ns();
}

/* SCTP takes a message whole or not at all. */
static void check_size(int fd, const struct options *o)
{
	int sndbuf = 0;

	if (o->proto == PROTO_SCTP && transport_get(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf)) &&
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
	free(s.message);
	return s.result.status == STATUS_OK ? EXIT_OK : EXIT_TRANSFER;
}
