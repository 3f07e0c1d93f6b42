// SPDX-License-Identifier: GPL-2.0
#include "result.h"

#include <stdio.h>

#include "clock.h"
#include "fail.h"

static const char *const status_names[] = {
	[STATUS_OK] = "ok",
	[STATUS_FAILED] = "failed",
	[STATUS_ABORTED] = "aborted",
	[STATUS_TIMEOUT] = "timeout",
};

void result_set(struct result *r, enum status status, const char *reason)
{
	r->status = status;
	snprintf(r->reason, sizeof(r->reason), "%s", reason);
}

static void write_head(struct json *j, const struct result *r)
{
	int64_t elapsed = r->last_ns - r->first_ns;

	json_string(j, "role", r->role == ROLE_SEND ? "send" : "recv");
	json_string(j, "proto", proto_names[r->proto]);
	json_integer(j, "association", r->association);
	json_string(j, "status", status_names[r->status]);
	json_string(j, "reason", r->reason);
	json_integer(j, "bytes", r->bytes);
	json_integer(j, "messages", r->messages);
	if (r->first_ns == 0 || r->last_ns == 0)
		return;
	json_seconds(j, "first_t", r->first_ns);
	json_seconds(j, "last_t", r->last_ns);
	json_seconds(j, "elapsed_s", elapsed);
	if (elapsed > 0)
		json_number(j, "goodput_mbit", r->bytes * 8e3 / elapsed);
}

static void write_series(struct json *j, const struct series *delay, const struct series *bytes)
{
	json_open(j, "series", '{');
	json_seconds(j, "delay_interval_s", delay->width_ns);
	json_open(j, "delay", '[');
	for (size_t i = 0; i < delay->used; i++) {
		if (delay->value[i] == SERIES_EMPTY)
			continue;
		json_open(j, NULL, '[');
		json_seconds(j, NULL, delay->start_ns + (int64_t)i * delay->width_ns);
		json_seconds(j, NULL, delay->value[i]);
		json_close(j, ']');
	}
	json_close(j, ']');
	json_seconds(j, "goodput_interval_s", bytes->width_ns);
	json_open(j, "goodput_mbit", '[');
	for (size_t i = 0; i < bytes->used; i++) {
		json_open(j, NULL, '[');
		json_seconds(j, NULL, bytes->start_ns + (int64_t)i * bytes->width_ns);
		json_number(j, NULL, bytes->value[i] * 8e3 / bytes->width_ns);
		json_close(j, ']');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void write_stats(struct json *j, const struct flow_stats *f)
{
	int64_t max_us = f->max_delay / 1000;
	static const struct { unsigned int percent; const char *key; } wanted[] = {
		{ 50, "p50_message_delay_s" }, { 95, "p95_message_delay_s" }, { 99, "p99_message_delay_s" },
	};

	if (f->messages == 0)
		return;
	json_seconds(j, "min_message_delay_s", f->min_delay);
	json_seconds(j, "mean_message_delay_s", (int64_t)(f->sum_delay / f->messages));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		int64_t us = (int64_t)histogram_percentile(&f->delay_us, wanted[i].percent);

		json_seconds(j, wanted[i].key, (us < max_us ? us : max_us) * 1000);
	}
	json_seconds(j, "max_message_delay_s", f->max_delay);
	json_seconds(j, "max_message_delay_t", f->max_delay_sent);
	json_seconds(j, "max_gap_s", f->max_gap);
	if (f->max_gap > 0)
		json_seconds(j, "max_gap_t", f->max_gap_start);
	if (f->delay.used > 0)
		write_series(j, &f->delay, &f->bytes);
}

static void write_check(struct json *j, const struct check *c)
{
	json_string(j, "content", c->content[0] ? c->content : "ok");
	json_string(j, "order", c->order[0] ? c->order : "ok");
	if (c->ended)
		json_integer(j, "missing", c->announced > c->messages ? c->announced - c->messages : 0);
}

void result_write(struct json *j, const struct result *r, const struct check *check, const struct flow_stats *stats)
{
	json_event(j, "result");
	write_head(j, r);
	if (check)
		write_check(j, check);
	if (stats)
		write_stats(j, stats);
	if (r->proto == PROTO_SCTP)
		assoc_write_snapshot(j, &r->end);
	json_integer(j, "exit", r->status == STATUS_OK ? EXIT_OK : EXIT_TRANSFER);
	json_event_end(j);
	json_flush(j);
	if (r->status != STATUS_OK)
		fprintf(stderr, "mpflow: transfer %s: %s\n", status_names[r->status], r->reason);
}
