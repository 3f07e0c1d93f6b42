// SPDX-License-Identifier: GPL-2.0
#include "assoc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fail.h"
#include "sockopt.h"

/* Of the sctp-multipath patches; the options take a struct sctp_assoc_value, names in options.c. */
#ifndef SCTP_RTX_POLICY
#define SCTP_RTX_POLICY		0x1280
#define SCTP_FAILOVER_HEARTBEAT	0x1281
#define SCTP_DORMANT_POLICY	0x1282
#define SCTP_CMT_ON_OFF		0x1200		/* FreeBSD's, as the next one */
#define SCTP_CMT_USE_DAC	0x1201
#define SCTP_PATHMAXRXT_ZERO	0x1284		/* the next one counts */
#define SPP_PATHMAXRXT_ZERO	(1 << 10)	/* an spp_pathmaxrxt of 0 is not "unchanged" */
#endif
#define NEEDS_PATCHES	"expected one with the sctp-multipath patches"
/* Kernel's own name; its uapi header leaves the values out. */
#define PF_EXPOSE_ENABLE	2

static void set(int fd, int name, const void *value, socklen_t len, const char *option)
{
	sockopt_set(fd, IPPROTO_SCTP, name, value, len, option);
}

static uint32_t or_unchanged(int64_t value)
{
	return value == NOT_GIVEN ? 0 : (uint32_t)value;
}

static void set_rto(int fd, const struct options *o)
{
	struct sctp_rtoinfo rto = {
		.srto_initial = or_unchanged(o->rto_initial),
		.srto_min = or_unchanged(o->rto_min),
		.srto_max = or_unchanged(o->rto_max),
	};

	if (rto.srto_initial || rto.srto_min || rto.srto_max)
		set(fd, SCTP_RTOINFO, &rto, sizeof(rto), "--rto-initial, --rto-min, --rto-max");
}

/* An option of the patches. */
static void set_multipath(int fd, int name, int64_t value, const char *option)
{
	struct sctp_assoc_value setting = { .assoc_value = or_unchanged(value) };

	if (value == NOT_GIVEN || setsockopt(fd, IPPROTO_SCTP, name, &setting, sizeof(setting)) == 0)
		return;
	if (errno == ENOPROTOOPT)
		fail(EXIT_USAGE, "%s: not supported by this kernel; " NEEDS_PATCHES, option);
	fail(EXIT_USAGE, "%s: refused by the kernel: %s", option, strerror(errno));
}

static void set_path_parameters(int fd, const struct options *o)
{
	struct sctp_paddrparams path = { .spp_pathmaxrxt = or_unchanged(o->pmr) };

	if (o->hb_interval != NOT_GIVEN) {
		path.spp_flags = SPP_HB_ENABLE | (o->hb_interval == 0 ? SPP_HB_TIME_IS_ZERO : 0);
		path.spp_hbinterval = o->hb_interval;
	}
	if (o->pmr == 0) {
		set_multipath(fd, SCTP_PATHMAXRXT_ZERO, 1, "--pmr 0");
		path.spp_flags |= SPP_PATHMAXRXT_ZERO;
	}
	if (o->pmr != NOT_GIVEN || o->hb_interval != NOT_GIVEN)
		set(fd, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path), "--pmr, --hb-interval");
}

static void set_sack(int fd, const struct options *o)
{
	struct sctp_sack_info sack = {
		.sack_delay = or_unchanged(o->sack_delay),
		.sack_freq = or_unchanged(o->sack_freq),
	};

	if (o->sack_delay == 0)
		sack.sack_freq = 1;	/* a delay of 0 would mean "unchanged" */
	if (sack.sack_delay || sack.sack_freq)
		set(fd, SCTP_DELAYED_SACK, &sack, sizeof(sack), "--sack-delay, --sack-freq");
}

static void subscribe(int fd, uint16_t type)
{
	struct sctp_event event = { .se_type = type, .se_on = 1 };

	set(fd, SCTP_EVENT, &event, sizeof(event), "SCTP_EVENT");
}

static void set_events(int fd)
{
	struct sctp_assoc_value expose = { .assoc_value = PF_EXPOSE_ENABLE };
	int on = 1;

	set(fd, SCTP_RECVRCVINFO, &on, sizeof(on), "SCTP_RECVRCVINFO");
	subscribe(fd, SCTP_ASSOC_CHANGE);
	subscribe(fd, SCTP_PEER_ADDR_CHANGE);
	set(fd, SCTP_EXPOSE_PF_STATE, &expose, sizeof(expose), "SCTP_EXPOSE_PF_STATE");
}

/* Before connect or listen: the association takes them from the socket. */
void assoc_set_options(int fd, const struct options *o)
{
	struct sctp_initmsg init = { .sinit_num_ostreams = o->streams };
	struct sctp_assoc_value burst = { .assoc_value = or_unchanged(o->max_burst) };
	int on = 1;

	set_events(fd);
	set_rto(fd, o);
	set_path_parameters(fd, o);
	set_sack(fd, o);
	set_multipath(fd, SCTP_RTX_POLICY, o->rtx_policy, "--rtx-policy");
	set_multipath(fd, SCTP_FAILOVER_HEARTBEAT, o->failover_heartbeat, "--failover-heartbeat");
	set_multipath(fd, SCTP_DORMANT_POLICY, o->dormant_policy, "--dormant-policy");
	set_multipath(fd, SCTP_CMT_ON_OFF, o->cmt, "--cmt");
	set_multipath(fd, SCTP_CMT_USE_DAC, o->cmt_sack, "--cmt-sack");
	if (o->role == ROLE_SEND && o->streams > 1)
		set(fd, SCTP_INITMSG, &init, sizeof(init), "--streams");
	if (o->max_burst != NOT_GIVEN)
		set(fd, SCTP_MAX_BURST, &burst, sizeof(burst), "--max-burst");
	if (o->nodelay)
		set(fd, SCTP_NODELAY, &on, sizeof(on), "--nodelay");
}

void assoc_set_primary(int fd, const struct address *primary)
{
	struct sctp_setprim prim = { 0 };

	memcpy(&prim.ssp_addr, &primary->sock, sizeof(primary->sock));
	if (setsockopt(fd, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &prim, sizeof(prim)) != 0)
		fail(EXIT_USAGE, "--primary: %s refused by the kernel: %s; expected an address of the receiver",
		     primary->text, strerror(errno));
}

unsigned int assoc_streams_out(int fd)
{
	struct sctp_status status = { 0 };
	socklen_t len = sizeof(status);

	if (getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &len) != 0)
		return 0;
	return status.sstat_outstrms;
}

/* Ask for one NOTE_DRY; it comes at once when nothing is outstanding. */
void assoc_want_dry(int fd)
{
	subscribe(fd, SCTP_SENDER_DRY_EVENT);
}

static const char *change_name(int state)
{
	static const char *const names[] = {
		[SCTP_ADDR_AVAILABLE] = "available",
		[SCTP_ADDR_UNREACHABLE] = "unreachable",
		[SCTP_ADDR_REMOVED] = "removed",
		[SCTP_ADDR_ADDED] = "added",
		[SCTP_ADDR_MADE_PRIM] = "made-primary",
		[SCTP_ADDR_CONFIRMED] = "confirmed",
		[SCTP_ADDR_POTENTIALLY_FAILED] = "potentially-failed",
	};

	if (state < 0 || (size_t)state >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	return names[state];
}

static void write_path_event(struct json *j, const struct sctp_paddr_change *change, enum role role, int association)
{
	struct sockaddr_storage sock;
	char text[ADDRESS_TEXT];

	memcpy(&sock, &change->spc_aaddr, sizeof(sock));
	address_text((struct sockaddr *)&sock, text);
	json_event(j, "path");
	json_seconds(j, "t", wall_ns());
	json_string(j, "role", role == ROLE_SEND ? "send" : "recv");
	json_integer(j, "association", association);
	json_string(j, "address", text);
	json_string(j, "state", change_name(change->spc_state));
	json_event_end(j);
	json_flush(j);
}

/* Report a notification that is news, and say what it means for the transfer. */
enum note assoc_note(struct json *j, const void *buf, size_t len, enum role role, int association)
{
	union sctp_notification note = { 0 };

	memcpy(&note, buf, len < sizeof(note) ? len : sizeof(note));
	switch (note.sn_header.sn_type) {
	case SCTP_PEER_ADDR_CHANGE:
		write_path_event(j, &note.sn_paddr_change, role, association);
		return NOTE_NONE;
	case SCTP_SENDER_DRY_EVENT:
		return NOTE_DRY;
	case SCTP_ASSOC_CHANGE:
		if (note.sn_assoc_change.sac_state == SCTP_COMM_LOST ||
		    note.sn_assoc_change.sac_state == SCTP_CANT_STR_ASSOC)
			return NOTE_LOST;
		if (note.sn_assoc_change.sac_state == SCTP_SHUTDOWN_COMP)
			return NOTE_CLOSED;
		return NOTE_NONE;
	default:
		return NOTE_NONE;
	}
}

static bool is_primary(int fd, const struct sockaddr *peer)
{
	struct sctp_prim prim = { 0 };
	struct sockaddr_storage sock;
	socklen_t len = sizeof(prim);
	char a[ADDRESS_TEXT], b[ADDRESS_TEXT];

	if (getsockopt(fd, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &prim, &len) != 0)
		return false;
	memcpy(&sock, &prim.ssp_addr, sizeof(sock));
	address_text((struct sockaddr *)&sock, a);
	address_text(peer, b);
	return strcmp(a, b) == 0;
}

static void snapshot_path(int fd, const struct sockaddr *peer, struct path *path)
{
	socklen_t len = sizeof(path->info);

	memset(path, 0, sizeof(*path));
	memcpy(&path->info.spinfo_address, peer, address_size(peer));
	path->info.spinfo_state = SCTP_UNKNOWN;
	getsockopt(fd, IPPROTO_SCTP, SCTP_GET_PEER_ADDR_INFO, &path->info, &len);
	path->primary = is_primary(fd, peer);
	address_text(peer, path->address);
}

/* Empty when the association is gone already. */
void assoc_snapshot(int fd, struct snapshot *s)
{
	struct sockaddr *list;
	socklen_t len = sizeof(s->stats);
	int count = sctp_getpaddrs(fd, 0, &list);
	const char *at = (const char *)list;

	assoc_snapshot_free(s);
	s->has_stats = getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &s->stats, &len) == 0;
	if (count <= 0)
		return;
	s->path = calloc(count, sizeof(*s->path));
	for (int i = 0; s->path && i < count; i++) {
		const struct sockaddr *peer = (const struct sockaddr *)at;

		snapshot_path(fd, peer, &s->path[s->count++]);
		at += address_size(peer);
	}
	sctp_freepaddrs(list);
}

void assoc_snapshot_free(struct snapshot *s)
{
	free(s->path);
	memset(s, 0, sizeof(*s));
}

static const char *state_name(int state)
{
	switch (state) {
	case SCTP_INACTIVE:
		return "inactive";
	case SCTP_PF:
		return "potentially-failed";
	case SCTP_ACTIVE:
		return "active";
	case SCTP_UNCONFIRMED:
		return "unconfirmed";
	default:
		return "unknown";
	}
}

/* Two figures come out of the kernel in jiffies, whose length it does not tell. */
static void write_stats(struct json *j, const struct sctp_assoc_stats *s)
{
	json_open(j, "association_stats", '{');
	json_integer(j, "data_chunks_out", s->sas_oodchunks + s->sas_ouodchunks);
	json_integer(j, "rtx_chunks", s->sas_rtxchunks);
	json_integer(j, "max_rto_jiffies", s->sas_maxrto);
	json_integer(j, "sacks_in", s->sas_isacks);
	json_integer(j, "sacks_out", s->sas_osacks);
	json_integer(j, "gap_acks_in", s->sas_gapcnt);
	json_integer(j, "duplicate_chunks_in", s->sas_idupchunks);
	json_integer(j, "packets_in", s->sas_ipackets);
	json_integer(j, "packets_out", s->sas_opackets);
	json_close(j, '}');
}

void assoc_write_snapshot(struct json *j, const struct snapshot *s)
{
	json_open(j, "paths", '[');
	for (size_t i = 0; i < s->count; i++) {
		const struct path *path = &s->path[i];

		json_open(j, NULL, '{');
		json_string(j, "address", path->address);
		json_string(j, "state", state_name(path->info.spinfo_state));
		json_bool(j, "primary", path->primary);
		json_integer(j, "mtu", path->info.spinfo_mtu);
		json_integer(j, "rto_ms", path->info.spinfo_rto);
		json_integer(j, "srtt_jiffies", path->info.spinfo_srtt);
		json_integer(j, "cwnd", path->info.spinfo_cwnd);
		json_close(j, '}');
	}
	json_close(j, ']');
	if (s->has_stats)
		write_stats(j, &s->stats);
}

/*
 * An option of the patches, in @value. Not even asked for unless it was set: where
 * virtual time runs, a call that fails costs some, and a kernel without the patches
 * would send what follows at other times.
 */
static bool get_multipath(int fd, int name, int64_t wanted, uint32_t *value)
{
	struct sctp_assoc_value setting = { 0 };

	if (wanted == NOT_GIVEN || !sockopt_get(fd, IPPROTO_SCTP, name, &setting, sizeof(setting)))
		return false;
	*value = setting.assoc_value;
	return true;
}

/* The name of number @value, NULL where there is none. */
static const char *name_of(const char *const *names, uint32_t value)
{
	while (*names && value > 0) {
		names++;
		value--;
	}
	return *names;
}

static void write_multipath(struct json *j, int fd, const struct options *o)
{
	const struct {
		const char *key;
		int name;
		int64_t wanted;
		const char *const *names;
	} named[] = {
		{ "rtx_policy", SCTP_RTX_POLICY, o->rtx_policy, rtx_policy_names },
		{ "dormant_policy", SCTP_DORMANT_POLICY, o->dormant_policy, dormant_policy_names },
		{ "cmt", SCTP_CMT_ON_OFF, o->cmt, cmt_names },
		{ "cmt_sack", SCTP_CMT_USE_DAC, o->cmt_sack, cmt_sack_names },
	};
	uint32_t value;

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (get_multipath(fd, named[i].name, named[i].wanted, &value) && name_of(named[i].names, value))
			json_string(j, named[i].key, name_of(named[i].names, value));
	if (get_multipath(fd, SCTP_FAILOVER_HEARTBEAT, o->failover_heartbeat, &value))
		json_integer(j, "failover_heartbeat", value);
}

/* A value the kernel does not know is left out. */
void assoc_write_options(struct json *j, int fd, const struct options *o)
{
	struct sctp_rtoinfo rto = { 0 };
	struct sctp_paddrparams path = { 0 };
	struct sctp_sack_info sack = { 0 };
	struct sctp_assoc_value burst = { 0 };
	int nodelay = 0;

	if (sockopt_get(fd, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof(rto))) {
		json_integer(j, "rto_initial_ms", rto.srto_initial);
		json_integer(j, "rto_min_ms", rto.srto_min);
		json_integer(j, "rto_max_ms", rto.srto_max);
	}
	if (sockopt_get(fd, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path))) {
		json_integer(j, "pmr", path.spp_pathmaxrxt);
		json_integer(j, "hb_interval_ms", path.spp_hbinterval);
	}
	if (sockopt_get(fd, IPPROTO_SCTP, SCTP_DELAYED_SACK, &sack, sizeof(sack))) {
		json_integer(j, "sack_delay_ms", sack.sack_delay);
		json_integer(j, "sack_freq", sack.sack_freq);
	}
	if (sockopt_get(fd, IPPROTO_SCTP, SCTP_MAX_BURST, &burst, sizeof(burst)))
		json_integer(j, "max_burst", burst.assoc_value);
	if (sockopt_get(fd, IPPROTO_SCTP, SCTP_NODELAY, &nodelay, sizeof(nodelay)))
		json_bool(j, "nodelay", nodelay);
	write_multipath(j, fd, o);
}
