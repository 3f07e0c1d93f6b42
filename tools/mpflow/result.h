/* SPDX-License-Identifier: GPL-2.0 */
/* The event "result": one per association and side, whatever became of the transfer. */
#ifndef MPFLOW_RESULT_H
#define MPFLOW_RESULT_H

#include "assoc.h"
#include "check.h"
#include "json.h"
#include "options.h"
#include "stats.h"

enum status { STATUS_OK, STATUS_FAILED, STATUS_ABORTED, STATUS_TIMEOUT };

struct result {
	enum role role;
	enum proto proto;
	int association;
	enum status status;
	char reason[200];		/* one line when not ok */
	uint64_t bytes, messages;
	int64_t first_ns, last_ns;	/* 0: never */
	struct snapshot end;		/* SCTP: the paths when all was acknowledged or had arrived */
};

void result_set(struct result *r, enum status status, const char *reason);

/* @check, @stats: NULL for the sender. */
void result_write(struct json *j, const struct result *r, const struct check *check, const struct flow_stats *stats);

#endif
