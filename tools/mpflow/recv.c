// SPDX-License-Identifier: GPL-2.0
/*
 * The receiver: takes any number of transfers, at once or one after the other, and
 * judges each message as it comes.
 */
#include "flow.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "burst.h"
#include "check.h"
#include "clock.h"
#include "result.h"
#include "stats.h"
#include "stop.h"
#include "transport.h"

#define PIECE_SIZE	65536
/* So many reads block, when there is but one transfer to wait for, before the receiver looks up. */
#define LOOK_EVERY	64

struct flow {
	struct flow *next;
	int fd;
	struct check *check;
	struct flow_stats *stats;
	struct result result;
};

struct receiver {
	const struct options *o;
	struct json *json;
	int epoll, stop;
	int *listeners;			/* [listener_count] */
	size_t listener_count;
	int64_t deadline;		/* steady clock */
	int accepted, finished;
	bool failed;
	struct flow *flows;		/* those that go on */
	int *closing;			/* [closing_count] SCTP sockets to close at the very end */
	size_t closing_count;
	int reads;			/* since epoll_wait was asked */
	struct inbox inbox;
};

/* @what: the flow; NULL for a listener; &r->stop. */
static void watch(struct receiver *r, int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		fail(EXIT_TRANSFER, "cannot watch a socket: %s", strerror(errno));
}

/* A program that does not read. It can be stopped all the same. */
static void sleep_first(const struct receiver *r)
{
	struct pollfd stop = { .fd = r->stop, .events = POLLIN };
	int64_t until = steady_ns() + r->o->sleep_ns;

	if (r->o->sleep_ns == NOT_GIVEN)
		return;
	if (until > r->deadline)
		until = r->deadline;
	while (!has_passed(until) && poll(&stop, 1, timeout_ms(until)) <= 0)
		;
}

static void start_flow(struct receiver *r, int fd)
{
	struct flow *flow = calloc(1, sizeof(*flow));

	if (flow) {
		flow->check = check_new();
		flow->stats = calloc(1, sizeof(*flow->stats));
	}
	if (!flow || !flow->check || !flow->stats)
		fail(EXIT_TRANSFER, "out of memory");
	flow->fd = fd;
	flow->result = (struct result){ .role = ROLE_RECV, .proto = r->o->proto, .association = r->accepted++ };
	flow->next = r->flows;
	r->flows = flow;
	watch(r, fd, flow);
	transport_write_connected(r->json, fd, r->o, flow->result.association);
	sleep_first(r);
}

/* Nobody else is to come. MPTCP's listeners stay: a connection's further paths come in through them. */
static void stop_listening(struct receiver *r)
{
	for (size_t i = 0; i < r->listener_count; i++) {
		epoll_ctl(r->epoll, EPOLL_CTL_DEL, r->listeners[i], NULL);
		if (r->o->proto != PROTO_MPTCP)
			close(r->listeners[i]);
	}
}

static void accept_flows(struct receiver *r)
{
	for (size_t i = 0; i < r->listener_count; i++) {
		int fd;

		while (r->accepted < r->o->count && (fd = transport_accept(r->listeners[i])) >= 0)
			start_flow(r, fd);
	}
	if (r->accepted == r->o->count)
		stop_listening(r);
}

/* The sender waits for this close; SCTP's does not, it has its SHUTDOWN ACK: there the end can wait. */
static void close_flow(struct receiver *r, struct flow *flow)
{
	if (flow->result.status != STATUS_OK) {
		transport_abort(flow->fd);
	} else if (r->o->proto != PROTO_SCTP) {
		close(flow->fd);
	} else {
		epoll_ctl(r->epoll, EPOLL_CTL_DEL, flow->fd, NULL);
		r->closing[r->closing_count++] = flow->fd;
	}
}

/* Write the result and forget the flow. */
static void end_flow(struct receiver *r, struct flow *flow, enum status status, const char *reason)
{
	struct flow **link = &r->flows;
	struct result *result = &flow->result;

	result_set(result, status, reason);
	if (status == STATUS_OK) {
		check_finish(flow->check);
		if (!check_passed(flow->check))
			result_set(result, STATUS_FAILED, flow->check->content[0] ? flow->check->content :
									       flow->check->order);
	}
	if (r->o->proto == PROTO_SCTP && !result->end.path)
		assoc_snapshot(flow->fd, &result->end);
	result->bytes = flow->check->bytes;
	result->messages = flow->check->messages;
	result->first_ns = flow->stats->first_sent;
	result->last_ns = flow->stats->last_arrival;
	result_write(r->json, result, flow->check, flow->stats);
	r->failed |= result->status != STATUS_OK;
	r->finished++;

	close_flow(r, flow);
	while (*link != flow)
		link = &(*link)->next;
	*link = flow->next;
	assoc_snapshot_free(&result->end);
	check_free(flow->check);
	free(flow->stats);
	free(flow);
}

static void note_message(struct receiver *r, struct flow *flow, int64_t arrival)
{
	const struct header *h = &flow->check->header;

	flow_stats_add(flow->stats, h->sent_ns, arrival, h->length, r->o->series_ns);
	if (!r->o->messages_log)
		return;
	json_event(r->json, "message");
	json_integer(r->json, "association", flow->result.association);
	json_integer(r->json, "n", h->seq);
	json_seconds(r->json, "sent", h->sent_ns);
	json_seconds(r->json, "received", arrival);
	json_integer(r->json, "delay_us", (arrival - h->sent_ns) / 1000);
	json_integer(r->json, "size", h->length);
	json_event_end(r->json);
}

/* How much has arrived so far. Data that arrives together with the end is in the result. */
static void note_progress(struct receiver *r, const struct flow *flow, int64_t arrival)
{
	json_event(r->json, "progress");
	json_integer(r->json, "association", flow->result.association);
	json_seconds(r->json, "t", arrival);
	json_integer(r->json, "bytes", flow->check->bytes);
	json_event_end(r->json);
}

static void take_bytes(struct receiver *r, struct flow *flow, const struct piece *piece, int64_t arrival)
{
	const uint8_t *data = piece->data;
	size_t len = piece->len;
	bool complete;

	while (len > 0) {
		size_t used = check_feed(flow->check, data, len, &complete);

		if (flow->check->broken)
			return;
		if (complete)
			note_message(r, flow, arrival);
		data += used;
		len -= used;
	}
}

static void take_message(struct receiver *r, struct flow *flow, const struct piece *piece, int64_t arrival)
{
	flow->check->stream = piece->stream;
	flow->check->unordered = piece->unordered;
	take_bytes(r, flow, piece, arrival);
	if (piece->end_of_message && !flow->check->broken)
		check_boundary(flow->check);
	/* Now, since the sender's SHUTDOWN may already be here. */
	if (check_all_arrived(flow->check) && !flow->result.end.path)
		assoc_snapshot(flow->fd, &flow->result.end);
}

static void take_end(struct receiver *r, struct flow *flow)
{
	if (flow->check->ended)
		end_flow(r, flow, STATUS_OK, "");
	else
		end_flow(r, flow, STATUS_ABORTED, "the sender closed before the end of the transfer");
}

/* False: the flow has ended. */
static bool take_piece(struct receiver *r, struct flow *flow, const struct piece *piece, int64_t arrival)
{
	if (piece->len == 0) {
		take_end(r, flow);
		return false;
	}
	if (piece->notification) {
		int association = flow->result.association;

		if (assoc_note(r->json, piece->data, piece->len, ROLE_RECV, association) != NOTE_LOST)
			return true;
		end_flow(r, flow, STATUS_ABORTED, "association lost");
		return false;
	}
	if (r->o->proto == PROTO_SCTP)
		take_message(r, flow, piece, arrival);
	else
		take_bytes(r, flow, piece, arrival);
	if (!flow->check->broken)
		return true;
	end_flow(r, flow, STATUS_FAILED, flow->check->content);
	return false;
}

/* @wait: for something to arrive, unless that takes too long. */
static void receive(struct receiver *r, struct flow *flow, bool wait)
{
	int count = inbox_receive(&r->inbox, flow->fd, r->o->proto, wait);
	uint64_t before = flow->check->bytes;
	int64_t arrival;

	if (count < 0 && errno == EAGAIN)
		r->reads = LOOK_EVERY;
	else if (count < 0 && errno != EINTR)
		end_flow(r, flow, STATUS_ABORTED, strerror(errno));
	if (count < 0)
		return;
	arrival = wall_ns();
	for (int i = 0; i < count; i++)
		if (!take_piece(r, flow, &r->inbox.piece[i], arrival))
			return;
	if (r->o->progress_log && flow->check->bytes > before)
		note_progress(r, flow, arrival);
}

/* End what has not ended yet. */
static void give_up(struct receiver *r, enum status status, const char *reason)
{
	struct result nobody = { .role = ROLE_RECV, .proto = r->o->proto, .association = r->accepted };
	char text[100];

	r->failed = true;
	while (r->flows)
		end_flow(r, r->flows, status, reason);
	if (r->accepted == r->o->count)
		return;
	snprintf(text, sizeof(text), "%s, %d of %d senders have come", reason, r->accepted, (int)r->o->count);
	result_set(&nobody, status, text);
	result_write(r->json, &nobody, NULL, NULL);
}

static void write_ready(struct receiver *r)
{
	json_event(r->json, "ready");
	json_seconds(r->json, "t", wall_ns());
	json_string(r->json, "proto", proto_names[r->o->proto]);
	json_integer(r->json, "port", r->o->port);
	json_event_end(r->json);
	json_flush(r->json);
}

/* Sleep until something happens. One event at a time: ending a flow may make others stale. False: give up. */
static bool wait_event(struct receiver *r)
{
	struct epoll_event event;
	int n = epoll_wait(r->epoll, &event, 1, timeout_ms(r->deadline));

	r->reads = 0;
	if (has_passed(r->deadline)) {
		give_up(r, STATUS_TIMEOUT, "--timeout has passed");
		return false;
	}
	if (n <= 0)
		return true;
	if (event.data.ptr == &r->stop) {
		give_up(r, STATUS_ABORTED, STOPPED);
		return false;
	}
	if (event.data.ptr)
		receive(r, event.data.ptr, false);
	else
		accept_flows(r);
	return true;
}

/* Until all transfers have ended. When only one is left, a read that blocks is as good as two calls. */
static void serve(struct receiver *r)
{
	while (r->finished < r->o->count) {
		bool one_left = r->finished == r->o->count - 1 && r->flows;

		if (one_left && r->reads++ < LOOK_EVERY)
			receive(r, r->flows, true);
		else if (!wait_event(r))
			return;
	}
}

enum exit_code recv_run(struct options *o, struct json *j)
{
	struct receiver *r = calloc(1, sizeof(*r));
	enum exit_code code;

	if (!r)
		fail(EXIT_TRANSFER, "out of memory");
	r->o = o;
	r->json = j;
	r->deadline = o->timeout_ns == NOT_GIVEN ? NEVER : steady_ns() + o->timeout_ns;
	r->closing = calloc(o->count, sizeof(*r->closing));
	r->listeners = calloc(o->bind.count, sizeof(*r->listeners));
	if (!r->closing || !r->listeners)
		fail(EXIT_TRANSFER, "out of memory");
	inbox_open(&r->inbox, INBOX_MAX, PIECE_SIZE);
	r->listener_count = transport_listen(o, r->listeners);
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	r->stop = stop_open();
	watch(r, r->stop, &r->stop);
	for (size_t i = 0; i < r->listener_count; i++)
		watch(r, r->listeners[i], NULL);
	write_ready(r);
	serve(r);
	code = r->failed ? EXIT_TRANSFER : EXIT_OK;
	for (size_t i = 0; i < r->closing_count; i++)
		transport_close(r->closing[i]);
	close(r->epoll);
	free(r->closing);
	free(r->listeners);
	free(r->inbox.data);
	free(r);
	return code;
}
