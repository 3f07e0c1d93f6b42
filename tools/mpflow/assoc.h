/* SPDX-License-Identifier: GPL-2.0 */
/* SCTP's side of a socket: options, notifications, paths (RFC 6458, one-to-one style). */
#ifndef MPFLOW_ASSOC_H
#define MPFLOW_ASSOC_H

#include <stdbool.h>
#include <stddef.h>

#include <netinet/in.h>	/* must come before sctp.h */
#include <netinet/sctp.h>

#include "address.h"
#include "json.h"
#include "options.h"

enum note {
	NOTE_NONE,		/* nothing that changes the course of the transfer */
	NOTE_LOST,		/* aborted, or given up after too many timeouts */
	NOTE_DRY,		/* all that was sent has been acknowledged */
	NOTE_CLOSED,		/* shutdown complete */
};

struct path {
	char address[ADDRESS_TEXT];
	struct sctp_paddrinfo info;
	bool primary;
};

/* The state of an association, kept because it is gone when the result is written. */
struct snapshot {
	size_t count;
	struct path *path;
	bool has_stats;
	struct sctp_assoc_stats stats;
};

void assoc_set_options(int fd, const struct options *o);
void assoc_set_primary(int fd, const struct address *primary);
unsigned int assoc_streams_out(int fd);
void assoc_want_dry(int fd);

enum note assoc_note(struct json *j, const void *buf, size_t len, enum role role, int association);

void assoc_snapshot(int fd, struct snapshot *s);
void assoc_snapshot_free(struct snapshot *s);
void assoc_write_snapshot(struct json *j, const struct snapshot *s);
void assoc_write_options(struct json *j, int fd, const struct options *o);

#endif
