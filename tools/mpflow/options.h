/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MPFLOW_OPTIONS_H
#define MPFLOW_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"

#define NOT_GIVEN	(-1)
#define RAW_OPTIONS_MAX	16
#define RAW_VALUE_MAX	256
#define MOMENTS_MAX	1000

enum role { ROLE_SEND = 1, ROLE_RECV = 2 };
enum proto { PROTO_SCTP, PROTO_TCP, PROTO_MPTCP };

/* --sockopt LEVEL:OPTION:HEX */
struct raw_option {
	const char *text;
	int level, name;
	size_t len;
	uint8_t value[RAW_VALUE_MAX];
};

/* Numbers are NOT_GIVEN (-1) where the kernel's own value is to stay. */
struct options {
	enum role role;
	enum proto proto;
	struct addresses bind, to, primary;
	int64_t port;

	/* what is sent, when; exactly one of bytes, messages, duration_ns, moments is given */
	int64_t bytes, messages, duration_ns;
	size_t moments;
	int64_t moment_ns[MOMENTS_MAX];	/* after the connection is up, ascending */
	int64_t size, interval_us, streams, seed;
	bool unordered;

	/* receiver */
	int64_t count, series_ns, sleep_ns;
	bool messages_log, progress_log;

	int64_t timeout_ns, clock_offset_us;

	/* socket options */
	int64_t sndbuf, rcvbuf;
	bool nodelay;
	int64_t rto_initial, rto_min, rto_max, pmr, hb_interval, sack_delay, sack_freq, max_burst;
	int64_t rtx_policy, failover_heartbeat, dormant_policy, cmt, cmt_sack;
	size_t raw_count;
	struct raw_option raw[RAW_OPTIONS_MAX];
};

extern const char *const proto_names[];
extern const char *const rtx_policy_names[];
extern const char *const dormant_policy_names[];
extern const char *const cmt_names[];
extern const char *const cmt_sack_names[];

void options_parse(int argc, char **argv, struct options *o);

#endif
