// SPDX-License-Identifier: GPL-2.0
#include "check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check *check_new(void)
{
	struct check *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->next_on_stream = calloc(STREAMS_MAX, sizeof(*c->next_on_stream));
	if (!c->next_on_stream) {
		free(c);
		return NULL;
	}
	return c;
}

void check_free(struct check *c)
{
	free(c->next_on_stream);
	free(c);
}

/* Keep the first fault only: those that follow are mostly its consequences. */
__attribute__((format(printf, 2, 3)))
static void fault(char text[160], const char *format, ...)
{
	va_list args;

	if (text[0])
		return;
	va_start(args, format);
	vsnprintf(text, 160, format, args);
	va_end(args);
}

/* The header is complete: may the message go on? */
static bool accept_header(struct check *c)
{
	if (!header_read(c->head, &c->header)) {
		fault(c->content, "wrong at offset %" PRIu64 ": no message header there", c->bytes);
		return false;
	}
	if (c->started && c->header.key != c->key) {
		fault(c->content, "wrong at offset %" PRIu64 ": message %" PRIu64 " has key %u instead of %u",
		      c->bytes, c->header.seq, c->header.key, c->key);
		return false;
	}
	c->started = true;
	c->key = c->header.key;
	return true;
}

/* Compare @len bytes of the body with what the sender must have written. */
static void compare_body(struct check *c, const uint8_t *data, size_t len)
{
	uint32_t have = c->have;

	if (c->content[0])
		return;
	while (len > 0) {
		size_t n = len < SCRATCH_SIZE ? len : SCRATCH_SIZE;

		payload_fill(c->scratch, c->key, c->header.seq, have - HEADER_SIZE, n);
		if (memcmp(data, c->scratch, n) != 0) {
			size_t i = 0;

			while (data[i] == c->scratch[i])
				i++;
			fault(c->content, "wrong at offset %" PRIu64 ": byte %zu of message %" PRIu64
			      " is 0x%02x instead of 0x%02x", c->bytes + have + i, have + i,
			      c->header.seq, data[i], c->scratch[i]);
			return;
		}
		data += n;
		have += n;
		len -= n;
	}
}

/* Exactly once: note @seq as received; fault when it was before, or cannot be. */
static void mark_seen(struct check *c, uint64_t seq)
{
	uint32_t slot = seq % WINDOW_MESSAGES;

	if (seq < c->oldest || (seq - c->oldest < WINDOW_MESSAGES && c->seen[slot / 8] & 1 << slot % 8)) {
		fault(c->order, "message %" PRIu64 " arrived twice", seq);
		return;
	}
	if (seq - c->oldest >= WINDOW_MESSAGES) {
		fault(c->order, "message %" PRIu64 " arrived while %" PRIu64 " is still missing", seq, c->oldest);
		return;
	}
	c->seen[slot / 8] |= 1 << slot % 8;
	for (slot = c->oldest % WINDOW_MESSAGES; c->seen[slot / 8] & 1 << slot % 8;
	     slot = c->oldest % WINDOW_MESSAGES) {
		c->seen[slot / 8] &= ~(1 << slot % 8);
		c->oldest++;
	}
}

static void finish_message(struct check *c)
{
	uint64_t seq = c->header.seq;

	c->messages++;
	c->bytes += c->header.length;
	c->have = 0;
	mark_seen(c, seq);
	if (c->unordered)
		return;
	if (seq < c->next_on_stream[c->stream])
		fault(c->order, "message %" PRIu64 " arrived after %" PRIu64 " on stream %u", seq,
		      c->next_on_stream[c->stream] - 1, c->stream);
	c->next_on_stream[c->stream] = seq + 1;
}

/*
 * Take bytes from @data up to the end of one message at most; returns how many.
 * *complete: a message (not the end marker) is complete; c->header describes it.
 * The caller sets c->stream and c->unordered before. 0 when c->broken.
 */
size_t check_feed(struct check *c, const uint8_t *data, size_t len, bool *complete)
{
	size_t used = 0, body;

	*complete = false;
	if (c->broken)
		return 0;
	if (c->have < HEADER_SIZE) {
		used = len < HEADER_SIZE - c->have ? len : HEADER_SIZE - c->have;
		memcpy(c->head + c->have, data, used);
		c->have += used;
		if (c->have < HEADER_SIZE)
			return used;
		if (!accept_header(c)) {
			c->broken = true;
			return 0;
		}
		if (c->header.length == END_LENGTH) {
			c->ended = true;
			c->announced = c->header.seq;
			c->have = 0;
			return used;
		}
	}
	body = c->header.length - c->have;
	if (body > len - used)
		body = len - used;
	compare_body(c, data + used, body);
	c->have += body;
	if (c->have == c->header.length) {
		finish_message(c);
		*complete = true;
	}
	return used + body;
}

/* The transport says that a message ends here (SCTP only); so must ours. */
void check_boundary(struct check *c)
{
	if (c->have == 0)
		return;
	fault(c->content, "wrong at offset %" PRIu64 ": message ends after %u bytes", c->bytes + c->have, c->have);
	c->broken = true;
}

bool check_all_arrived(const struct check *c)
{
	return c->ended && c->messages >= c->announced && c->have == 0;
}

/* The transfer is over: what should have come and did not? */
void check_finish(struct check *c)
{
	if (c->have > 0)
		fault(c->content, "wrong at offset %" PRIu64 ": transfer ends inside a message", c->bytes + c->have);
	if (!c->ended)
		fault(c->content, "wrong at offset %" PRIu64 ": transfer ends without its end marker", c->bytes);
	else if (c->messages < c->announced)
		fault(c->order, "%" PRIu64 " of %" PRIu64 " messages missing, the first is %" PRIu64,
		      c->announced - c->messages, c->announced, c->oldest);
	else if (c->messages > c->announced)
		fault(c->order, "%" PRIu64 " messages arrived, only %" PRIu64 " were sent", c->messages, c->announced);
}

bool check_passed(const struct check *c)
{
	return !c->content[0] && !c->order[0];
}
