// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "payload.h"

#define VERSION	"1.0"
#define BOTH	(ROLE_SEND | ROLE_RECV)
#define LARGE	((int64_t)1 << 53)
#define OFFSET_MAX	1000000000000LL

enum kind { NUMBER, SECONDS, MOMENTS, FLAG, NAME, ADDRESSES, RAW };

/* One row per option: what it may be, where it goes, what `mpflow --help` says. */
struct option_row {
	const char *name, *argument;
	enum kind kind;
	int roles;
	bool sctp_only;
	size_t offset;
	int64_t min, max;		/* NUMBER: the value; SECONDS, MOMENTS: whole seconds */
	const char *const *names;	/* NAME: the value is the index */
	const char *help;
};

const char *const proto_names[] = { "sctp", "tcp", "mptcp", NULL };
const char *const rtx_policy_names[] = {
	"kernel", "same", "alternate", "fr-same-rto-alt", "ssthresh", "cwnd", "asap", "lossrate", NULL,
};
const char *const dormant_policy_names[] = { "kernel", "hop", "primary", "last", NULL };
/* FreeBSD's values; Linux knows the first two. */
const char *const cmt_names[] = { "off", "base", "rpv1", "rpv2", NULL };
const char *const cmt_sack_names[] = { "standard", "delayed", "per-path", NULL };

#define AT(member)	offsetof(struct options, member)

static const struct option_row rows[] = {
	{ "--bind", "A[,B...]", ADDRESSES, BOTH, false, AT(bind), 0, 0, NULL,
	  "local addresses; no others are announced to the peer" },
	{ "--to", "A[,B...]", ADDRESSES, ROLE_SEND, false, AT(to), 0, 0, NULL, "the receiver's addresses" },
	{ "--port", "P", NUMBER, BOTH, false, AT(port), 1, 65535, NULL, "the receiver's port" },
	{ "--proto", "NAME", NAME, BOTH, false, AT(proto), 0, 0, proto_names,
	  "sctp (default), tcp or mptcp" },
	{ "--bytes", "N", NUMBER, ROLE_SEND, false, AT(bytes), 1, LARGE, NULL,
	  "send N bytes as fast as possible" },
	{ "--messages", "N", NUMBER, ROLE_SEND, false, AT(messages), 1, LARGE, NULL, "send N messages" },
	{ "--duration", "S", SECONDS, ROLE_SEND, false, AT(duration_ns), 0, 1000000, NULL,
	  "send for S seconds" },
	{ "--at", "T[,T...]", MOMENTS, ROLE_SEND, false, 0, 0, 1000000, NULL,
	  "one message at each of these times, in seconds after the connection is up" },
	{ "--size", "BYTES", NUMBER, ROLE_SEND, false, AT(size), HEADER_SIZE, MESSAGE_MAX, NULL,
	  "message size (1400)" },
	{ "--interval-us", "N", NUMBER, ROLE_SEND, false, AT(interval_us), 1, 3600000000LL, NULL,
	  "one message every N microseconds" },
	{ "--streams", "N", NUMBER, ROLE_SEND, true, AT(streams), 1, 65535, NULL,
	  "use N streams in turn (1)" },
	{ "--unordered", NULL, FLAG, ROLE_SEND, true, AT(unordered), 0, 0, NULL, "unordered delivery" },
	{ "--seed", "N", NUMBER, ROLE_SEND, false, AT(seed), 0, INT64_MAX, NULL,
	  "seed of the messages' content (1)" },
	{ "--primary", "A", ADDRESSES, ROLE_SEND, true, AT(primary), 0, 0, NULL,
	  "peer address to make the primary path" },
	{ "--count", "N", NUMBER, ROLE_RECV, false, AT(count), 1, 1024, NULL,
	  "end after N transfers, at once or in turn (1)" },
	{ "--messages-log", NULL, FLAG, ROLE_RECV, false, AT(messages_log), 0, 0, NULL,
	  "one line per message" },
	{ "--progress-log", NULL, FLAG, ROLE_RECV, false, AT(progress_log), 0, 0, NULL,
	  "one line per arrival: bytes so far" },
	{ "--series", "S", SECONDS, ROLE_RECV, false, AT(series_ns), 0, 1000000, NULL,
	  "delay and goodput per S seconds in the result, 500 points at most" },
	{ "--sleep", "S", SECONDS, ROLE_RECV, false, AT(sleep_ns), 0, 1000000, NULL,
	  "read nothing for S seconds after a connection is up" },
	{ "--timeout", "S", SECONDS, BOTH, false, AT(timeout_ns), 0, 10000000, NULL,
	  "give up after S seconds" },
	{ "--clock-offset-us", "N", NUMBER, BOTH, false, AT(clock_offset_us), -OFFSET_MAX, OFFSET_MAX, NULL,
	  "add this to the clock: N is the lead of the peer's clock" },
	{ "--sndbuf", "BYTES", NUMBER, BOTH, false, AT(sndbuf), 1, INT32_MAX / 2, NULL, "send buffer" },
	{ "--rcvbuf", "BYTES", NUMBER, BOTH, false, AT(rcvbuf), 1, INT32_MAX / 2, NULL, "receive buffer" },
	{ "--nodelay", NULL, FLAG, BOTH, false, AT(nodelay), 0, 0, NULL, "turn Nagle's algorithm off" },
	{ "--rto-initial", "MS", NUMBER, BOTH, true, AT(rto_initial), 1, 86400000, NULL,
	  "first retransmission timeout" },
	{ "--rto-min", "MS", NUMBER, BOTH, true, AT(rto_min), 1, 86400000, NULL, "its lower bound" },
	{ "--rto-max", "MS", NUMBER, BOTH, true, AT(rto_max), 1, 86400000, NULL, "its upper bound" },
	{ "--pmr", "N", NUMBER, BOTH, true, AT(pmr), 0, 65535, NULL,
	  "Path.Max.Retrans; 0: with the sctp-multipath patches" },
	{ "--hb-interval", "MS", NUMBER, BOTH, true, AT(hb_interval), 0, 86400000, NULL,
	  "heartbeat interval" },
	{ "--sack-delay", "MS", NUMBER, BOTH, true, AT(sack_delay), 0, 500, NULL,
	  "delayed SACK; 0: SACK every packet" },
	{ "--sack-freq", "N", NUMBER, BOTH, true, AT(sack_freq), 1, 65535, NULL,
	  "SACK after N packets at the latest" },
	{ "--max-burst", "N", NUMBER, BOTH, true, AT(max_burst), 0, 65535, NULL, "Max.Burst" },
	{ "--rtx-policy", "NAME", NAME, BOTH, true, AT(rtx_policy), 0, 0, rtx_policy_names,
	  "path of retransmissions: kernel, same, alternate, fr-same-rto-alt, ssthresh..." },
	{ "--failover-heartbeat", "0|1", NUMBER, BOTH, true, AT(failover_heartbeat), 0, 1, NULL,
	  "1: probe a failed path at once, then once per RTO" },
	{ "--dormant-policy", "NAME", NAME, BOTH, true, AT(dormant_policy), 0, 0, dormant_policy_names,
	  "path for data when all paths have failed: kernel, hop, primary or last" },
	{ "--cmt", "NAME", NAME, BOTH, true, AT(cmt), 0, 0, cmt_names,
	  "new data over all paths at once: off or base; usrsctp: also rpv1, rpv2" },
	{ "--cmt-sack", "NAME", NAME, BOTH, true, AT(cmt_sack), 0, 0, cmt_sack_names,
	  "SACKs for data over several paths: standard, delayed or per-path" },
	{ "--sockopt", "LEVEL:OPTION:HEX", RAW, BOTH, false, 0, 0, 0, NULL,
	  "any socket option, before connect or listen; repeatable" },
};

#define ROWS	(sizeof(rows) / sizeof(rows[0]))

static noreturn void help(void)
{
	puts("usage: mpflow send --bind A[,B...] --to A[,B...] --port P\n"
	     "                   (--bytes N | --messages N | --duration S | --at T[,T...]) [option...]\n"
	     "       mpflow recv --bind A[,B...] --port P [option...]\n"
	     "Sends messages over SCTP, TCP or MPTCP, verifies their content and reports delivery times, as JSON lines.\n");
	for (size_t i = 0; i < ROWS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "%s %s", rows[i].name, rows[i].argument ? rows[i].argument : "");
		printf("  %-28s %s%s\n", left, rows[i].help,
		       rows[i].roles == BOTH ? "" : rows[i].roles == ROLE_SEND ? " [send]" : " [recv]");
	}
	puts("\nExit status: 0 success, 1 transfer failed or content wrong, 2 bad usage. See mpflow(1).");
	exit(EXIT_OK);
}

static int64_t parse_number(const struct option_row *row, const char *text)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (!isdigit((unsigned char)text[text[0] == '-' && row->min < 0]) || *end || errno || value < row->min || value > row->max)
		fail(EXIT_USAGE, "%s: '%s' is invalid; expected a whole number from %" PRId64 " to %" PRId64,
		     row->name, text, row->min, row->max);
	return value;
}

/* Nanoseconds, rounded to a microsecond; ends the program unless @least (seconds) <= @text <= row->max. */
static int64_t parse_time(const struct option_row *row, const char *text, double least)
{
	char *end;
	double value = strtod(text, &end);

	if (!(isdigit((unsigned char)text[0]) || text[0] == '.') || *end || !(value >= least && value <= row->max))
		fail(EXIT_USAGE, "%s: '%s' is invalid; expected seconds from %g to %" PRId64,
		     row->name, text, least, row->max);
	return (int64_t)(value * 1e6 + 0.5) * 1000;
}

static void parse_moments(const struct option_row *row, const char *text, struct options *o)
{
	char *copy = strdup(text), *rest = copy, *one;

	while ((one = strsep(&rest, ",")) != NULL) {
		int64_t moment = parse_time(row, one, 0);

		if (o->moments == MOMENTS_MAX)
			fail(EXIT_USAGE, "%s: expected %d at most", row->name, MOMENTS_MAX);
		if (o->moments > 0 && moment < o->moment_ns[o->moments - 1])
			fail(EXIT_USAGE, "%s: %s is out of order; expected times in ascending order", row->name, one);
		o->moment_ns[o->moments++] = moment;
	}
	free(copy);
}

static int parse_name(const struct option_row *row, const char *text)
{
	char all[128] = "";

	for (int i = 0; row->names[i]; i++) {
		if (strcmp(text, row->names[i]) == 0)
			return i;
		strcat(strcat(all, i ? ", " : ""), row->names[i]);
	}
	fail(EXIT_USAGE, "%s: '%s' is unknown; expected one of %s", row->name, text, all);
}

static int parse_level(const char *text)
{
	static const struct { const char *name; int level; } levels[] = {
		{ "socket", SOL_SOCKET }, { "ip", IPPROTO_IP }, { "ipv6", IPPROTO_IPV6 },
		{ "tcp", IPPROTO_TCP }, { "sctp", IPPROTO_SCTP }, { "mptcp", 284 },
	};
	char *end;
	long level = strtol(text, &end, 0);

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(text, levels[i].name) == 0)
			return levels[i].level;
	return *text && !*end && level >= 0 && level <= INT32_MAX ? (int)level : -1;
}

static bool parse_hex(const char *text, struct raw_option *raw)
{
	size_t digits = strlen(text);

	if (digits == 0 || digits % 2 || digits / 2 > RAW_VALUE_MAX || strspn(text, "0123456789abcdefABCDEF") != digits)
		return false;
	raw->len = digits / 2;
	for (size_t i = 0; i < raw->len; i++) {
		char pair[3] = { text[2 * i], text[2 * i + 1], 0 };

		raw->value[i] = strtoul(pair, NULL, 16);
	}
	return true;
}

static void parse_raw(const struct option_row *row, const char *text, struct options *o)
{
	char *copy = strdup(text), *rest = copy;
	const char *level = strsep(&rest, ":"), *name = strsep(&rest, ":");
	struct raw_option *raw = &o->raw[o->raw_count];
	char *end = NULL;

	if (o->raw_count == RAW_OPTIONS_MAX)
		fail(EXIT_USAGE, "%s: given more than %d times", row->name, RAW_OPTIONS_MAX);
	raw->text = text;
	raw->level = parse_level(level);
	raw->name = name && *name ? strtol(name, &end, 0) : -1;
	if (raw->level < 0 || raw->name < 0 || *end || !rest || !parse_hex(rest, raw))
		fail(EXIT_USAGE, "%s: '%s' is invalid; expected LEVEL:OPTION:HEX, e.g. sctp:20:0000000008000000 "
		     "(level: number, socket, ip, ipv6, tcp, sctp or mptcp; HEX: the bytes of the value in memory)",
		     row->name, text);
	o->raw_count++;
	free(copy);
}

static void store(const struct option_row *row, const char *text, struct options *o)
{
	void *where = (char *)o + row->offset;

	switch (row->kind) {
	case NUMBER:
		*(int64_t *)where = parse_number(row, text);
		break;
	case SECONDS:
		*(int64_t *)where = parse_time(row, text, 1e-6);
		break;
	case MOMENTS:
		parse_moments(row, text, o);
		break;
	case FLAG:
		*(bool *)where = true;
		break;
	case NAME:
		if (row->names == proto_names)
			o->proto = parse_name(row, text);
		else
			*(int64_t *)where = parse_name(row, text);
		break;
	case ADDRESSES:
		addresses_parse(row->name, text, where);
		break;
	case RAW:
		parse_raw(row, text, o);
		break;
	}
}

static const struct option_row *find_row(const char *text, size_t len, enum role role)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (strlen(rows[i].name) != len || strncmp(rows[i].name, text, len) != 0)
			continue;
		if (!(rows[i].roles & role))
			fail(EXIT_USAGE, "%s: only for 'mpflow %s'", rows[i].name,
			     rows[i].roles == ROLE_SEND ? "send" : "recv");
		return &rows[i];
	}
	if (strncmp(text, "--", 2) == 0)
		fail(EXIT_USAGE, "%.*s: unknown option; 'mpflow --help' lists all", (int)len, text);
	fail(EXIT_USAGE, "'%s': expected an option that begins with '--'; 'mpflow --help' lists all", text);
}

static void set_defaults(struct options *o)
{
	memset(o, 0, sizeof(*o));
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].kind == NUMBER || rows[i].kind == SECONDS ||
		    (rows[i].kind == NAME && rows[i].names != proto_names))
			*(int64_t *)((char *)o + rows[i].offset) = NOT_GIVEN;
	o->size = 1400;
	o->streams = 1;
	o->seed = 1;
	o->count = 1;
	o->clock_offset_us = 0;
}

/* Checks that concern more than one option. @given: one per row. */
static void check_together(const struct options *o, const bool *given)
{
	int amounts = (o->bytes != NOT_GIVEN) + (o->messages != NOT_GIVEN) + (o->duration_ns != NOT_GIVEN) +
		      (o->moments > 0);

	if (o->bind.count == 0)
		fail(EXIT_USAGE, "--bind: missing; expected the local addresses to use, e.g. 192.0.2.1,198.51.100.1");
	if (o->role == ROLE_SEND && o->to.count == 0)
		fail(EXIT_USAGE, "--to: missing; expected the receiver's addresses");
	if (o->port == NOT_GIVEN)
		fail(EXIT_USAGE, "--port: missing; expected the receiver's port, 1 to 65535");
	if (o->role == ROLE_SEND && amounts != 1)
		fail(EXIT_USAGE, "--bytes, --messages, --duration, --at: expected exactly one of them, got %d", amounts);
	if (o->moments > 0 && o->interval_us != NOT_GIVEN)
		fail(EXIT_USAGE, "--interval-us: expected none with --at, which sets the time of each message");
	for (size_t i = 0; i < o->to.count; i++)
		if (!addresses_have(o->bind.item, o->bind.count, o->to.item[i].sock.ss_family))
			fail(EXIT_USAGE, "--to: %s cannot be reached; expected a local address of its family in --bind",
			     o->to.item[i].text);
	if (o->primary.count > 1)
		fail(EXIT_USAGE, "--primary: expected one address, got %zu", o->primary.count);
	for (size_t i = 0; i < ROWS && o->proto != PROTO_SCTP; i++)
		if (given[i] && rows[i].sctp_only)
			fail(EXIT_USAGE, "%s: only with --proto sctp", rows[i].name);
	if (o->proto != PROTO_SCTP && o->role == ROLE_SEND && (o->bind.count > 1 || o->to.count > 1))
		fail(EXIT_USAGE, "%s: %s takes one address%s", o->bind.count > 1 ? "--bind" : "--to",
		     proto_names[o->proto], o->proto == PROTO_MPTCP ? "; the others are set by 'ip mptcp endpoint'" : "");
	for (size_t i = 0; i < o->bind.count; i++)
		if (o->proto == PROTO_SCTP && address_is_any(&o->bind.item[i]))
			fail(EXIT_USAGE, "--bind: %s would announce every address to the peer; expected the addresses to use",
			     o->bind.item[i].text);
}

/* Ends the program on bad usage (exit 2) and after --help and --version. */
void options_parse(int argc, char **argv, struct options *o)
{
	bool given[ROWS] = { false };

	set_defaults(o);
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		help();
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		puts("mpflow " VERSION);
		exit(EXIT_OK);
	}
	if (argc > 1 && strcmp(argv[1], "send") == 0)
		o->role = ROLE_SEND;
	else if (argc > 1 && strcmp(argv[1], "recv") == 0)
		o->role = ROLE_RECV;
	else
		fail(EXIT_USAGE, "expected 'send' or 'recv' first, got '%s'", argc > 1 ? argv[1] : "nothing");

	for (int i = 2; i < argc; i++) {
		size_t len = strcspn(argv[i], "=");
		const struct option_row *row;
		const char *value = argv[i][len] ? argv[i] + len + 1 : NULL;

		if (strcmp(argv[i], "--help") == 0)
			help();
		row = find_row(argv[i], len, o->role);
		if (given[row - rows] && row->kind != RAW)
			fail(EXIT_USAGE, "%s: given twice", row->name);
		given[row - rows] = true;
		if (row->kind == FLAG && value)
			fail(EXIT_USAGE, "%s: takes no value", row->name);
		if (row->kind != FLAG && !value && ++i == argc)
			fail(EXIT_USAGE, "%s: value missing; expected %s", row->name, row->argument);
		store(row, value ? value : row->kind == FLAG ? NULL : argv[i], o);
	}
	check_together(o, given);
}
