// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "net.h"

static const char *const rtx_policies[] = {
	"kernel", "same", "alternate", "fr-same-rto-alt", "ssthresh", "cwnd", "asap", "lossrate",
};
static const char *const schedulers[] = { "round-robin", "primary-first", "lowest-rtt", "redundant" };
static const char *const dormant_policies[] = { "kernel", "hop", "primary", "last" };
static const char *const sacks[] = { "standard", "delayed", "per-path" };
static const char *const detections[] = { "rack", "missing-reports" };

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define ONE_OF(array) ((array)[below(COUNT(array))])

uint32_t victim_address(int path)
{
	return 10U << 24 | (uint32_t)(10 + path) << 16 | 1;
}

uint32_t peer_address(int number)
{
	return 10U << 24 | (uint32_t)(10 + number % PATHS) << 16 | (uint32_t)(256 + number / PATHS);
}

int peer_number(uint32_t address, int path)
{
	int number = ((int)(address & 0xffff) - 256) * PATHS + path;

	return number >= 0 && number < ADDRESSES && peer_address(number) == address ? number : path;
}

void own_namespace(void)
{
	if (unshare(CLONE_NEWNET))
		die("unshare");
}

void join(pid_t peer, bool peer_has_stack)
{
	FILE *ip = popen("ip -batch - >&2", "w");

	if (!ip)
		die("ip");
	fprintf(ip, "link set lo up\n");
	for (int i = 0; i < PATHS; i++) {
		fprintf(ip, "link add vA%d address 02:00:00:00:0%d:01 type veth"
			" peer name pB%d address 02:00:00:00:0%d:02 netns %d\n", i, i, i, i, (int)peer);
		fprintf(ip, "addr add 10.%d.0.1/16 dev vA%d\nlink set vA%d%s up\n", 10 + i, i, i,
			peer_has_stack ? "" : " arp off");
	}
	if (pclose(ip))
		die("ip -batch");
	for (int i = 0; i < PATHS; i++) {
		char command[128];

		snprintf(command, sizeof(command), "tc qdisc add dev vA%d root netem delay %d5ms limit 5000", i, i);
		if (system(command))
			die("tc");
	}
}

bool setting(const char *name, const char *value)
{
	char path[128];
	int file;
	bool done;

	snprintf(path, sizeof(path), "/proc/sys/net/sctp/%s", name);
	file = open(path, O_WRONLY);
	if (file < 0)
		return false;	/* a stock kernel */
	done = write(file, value, strlen(value)) >= 0;
	close(file);
	return done;
}

bool setting_number(const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	return setting(name, text);
}

void sane_settings(void)
{
	static const struct {
		const char *name;
		uint32_t value;
	} sane[] = {
		{ "rto_min", 200 }, { "rto_max", 5000 }, { "rto_min", 200 }, { "rto_initial", 1000 },
		{ "hb_interval", 5000 }, { "association_max_retrans", 1000 }, { "max_init_retransmits", 8 },
		{ "path_max_retrans", 5 }, { "pf_retrans", 0 }, { "pf_enable", 1 }, { "max_burst", 4 },
		{ "sack_timeout", 200 }, { "valid_cookie_life", 60000 }, { "addip_enable", 1 },
		{ "addip_noauth_enable", 1 }, { "prsctp_enable", 1 }, { "reconf_enable", 1 }, { "ecn_enable", 1 },
		{ "cookie_preserve_enable", 1 }, { "sndbuf_policy", 0 }, { "rcvbuf_policy", 0 },
		{ "rwnd_update_shift", 4 }, { "default_auto_asconf", 0 }, { "ps_retrans", 65535 },
	};

	for (size_t i = 0; i < COUNT(sane); i++)
		setting_number(sane[i].name, sane[i].value);
}

void draw_settings(void)
{
	sane_settings();
	setting_number("rto_min", 20 + below(1000));
	setting_number("hb_interval", 500 + below(5000));
	setting_number("path_max_retrans", chance(50) ? 0 : below(6));
	setting_number("pf_enable", chance(60));
	setting_number("pf_retrans", below(3));
	setting_number("max_burst", below(6));
	setting_number("sack_timeout", 10 + below(490));
	setting_number("sndbuf_policy", below(2));
	setting_number("rcvbuf_policy", below(2));
	setting_number("intl_enable", chance(30));
	setting_number("plpmtud_probe_interval", chance(20) ? 5000 : 0);
	setting("rtx_policy", ONE_OF(rtx_policies));
	setting("cmt_scheduler", ONE_OF(schedulers));
	setting("dormant_policy", ONE_OF(dormant_policies));
	setting("cmt_sack", ONE_OF(sacks));
	setting("cmt_loss_detection", ONE_OF(detections));
	setting_number("multiple_fast_rtx", chance(70));
	setting_number("failover_heartbeat", chance(70));
	setting_number("failover_suspect", chance(60));
	setting_number("failover_link", chance(70));
	setting_number("failover_return", chance(70));
	setting_number("failover_useless", chance(50));
	setting_number("redundant_bytes", chance(40) ? below(2000) : 0);
	setting_number("redundant_pct", chance(40) ? below(101) : 0);
	setting_number("init_alternate", chance(50));
	setting_number("cmt_split_fast_rtx", chance(50));
	setting_number("cmt", chance(75));
	setting_number("autocork", chance(50));
	setting_number("unread_waits", chance(50));
}

void wild_setting(void)
{
	static const char *const numbers[] = {
		"rto_min", "rto_max", "rto_initial", "hb_interval", "association_max_retrans", "path_max_retrans",
		"pf_retrans", "ps_retrans", "pf_enable", "pf_expose", "max_burst", "sack_timeout", "sndbuf_policy",
		"rcvbuf_policy", "rwnd_update_shift", "max_autoclose", "addip_enable", "prsctp_enable",
		"reconf_enable", "ecn_enable", "intl_enable", "plpmtud_probe_interval", "multiple_fast_rtx",
		"failover_heartbeat", "failover_suspect", "failover_link", "failover_return", "failover_useless",
		"init_alternate", "cmt", "cmt_split_fast_rtx", "valid_cookie_life", "default_auto_asconf",
		"redundant_bytes", "redundant_pct", "autocork", "unread_waits",
	};
	char text[300];

	switch (below(8)) {
	case 0:
		setting("rtx_policy", ONE_OF(rtx_policies));
		break;
	case 1:
		setting("cmt_scheduler", ONE_OF(schedulers));
		break;
	case 2:
		setting("dormant_policy", ONE_OF(dormant_policies));
		break;
	case 3:
		memset(text, 'a' + (int)below(26), sizeof(text));
		text[below(sizeof(text))] = 0;
		text[sizeof(text) - 1] = 0;
		setting(chance(50) ? "rtx_policy" : chance(50) ? "cmt_sack" : "cmt_scheduler", text);
		break;
	case 4:
		setting("cmt_sack", ONE_OF(sacks));
		break;
	case 5:
		setting("cmt_loss_detection", ONE_OF(detections));
		break;
	default:
		setting_number(ONE_OF(numbers), chance(50) ? below(10) : extreme());
	}
}

bool associations_left(void)
{
	FILE *in = fopen("/proc/net/sctp/assocs", "r");
	char line[65536];
	int lines = 0;

	while (in && fgets(line, sizeof(line), in))
		lines++;
	if (in)
		fclose(in);
	return lines > 1;
}
