/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receiver's judge: takes bytes as they arrive, in pieces of any size, and
 * says whether content, length and order are what the sender sent.
 */
#ifndef MPFLOW_CHECK_H
#define MPFLOW_CHECK_H

#include "payload.h"

/* How far a message may run ahead of the oldest one still missing. */
#define WINDOW_MESSAGES	(1U << 20)
#define STREAMS_MAX	65536
#define SCRATCH_SIZE	65536

struct check {
	/* the message being received */
	uint8_t head[HEADER_SIZE];
	struct header header;
	uint32_t have;			/* its bytes so far, header included */
	uint16_t stream;
	bool unordered;

	/* the transfer so far */
	uint64_t messages, bytes;	/* complete messages, header included */
	bool started;			/* the key is known */
	uint16_t key;
	bool ended;			/* the end marker has been seen */
	uint64_t announced;		/* number of messages it named */
	bool broken;			/* boundaries lost: nothing more can be read */
	char content[160], order[160];	/* first fault each; "" = none */

	/* which messages have been seen */
	uint64_t oldest;		/* all below have been received */
	uint64_t *next_on_stream;	/* [STREAMS_MAX] last sequence number + 1 */
	uint8_t seen[WINDOW_MESSAGES / 8];

	uint8_t scratch[SCRATCH_SIZE];
};

struct check *check_new(void);
void check_free(struct check *c);

size_t check_feed(struct check *c, const uint8_t *data, size_t len, bool *complete);
void check_boundary(struct check *c);
bool check_all_arrived(const struct check *c);
void check_finish(struct check *c);
bool check_passed(const struct check *c);

#endif
