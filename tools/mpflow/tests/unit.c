// SPDX-License-Identifier: GPL-2.0
/* Payload, judge, figures and JSON, without a socket. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "json.h"
#include "stats.h"

static int failures;

#define EXPECT(condition) do {									\
	if (!(condition)) {									\
		fprintf(stderr, "%s:%d: %s: expected %s\n", __FILE__, __LINE__, __func__, #condition);	\
		failures++;									\
	}											\
} while (0)

#define EXPECT_TEXT(got, wanted) do {								\
	if (strcmp(got, wanted)) {								\
		fprintf(stderr, "%s:%d: %s:\n", __FILE__, __LINE__, __func__);			\
		fprintf(stderr, "     got %s\nexpected %s\n", got, wanted);			\
		failures++;									\
	}											\
} while (0)

/* Message @seq of @size bytes into @out. */
static void make_message(uint8_t *out, uint16_t key, uint64_t seq, uint32_t size)
{
	struct header h = { .key = key, .length = size, .seq = seq, .sent_ns = 1000 + (int64_t)seq };

	header_write(out, &h);
	if (size != END_LENGTH)
		payload_fill(out + HEADER_SIZE, key, seq, 0, size - HEADER_SIZE);
}

static int feed_all(struct check *c, const uint8_t *data, size_t len, size_t piece)
{
	int messages = 0;

	while (len > 0) {
		size_t n = len < piece ? len : piece, left = n;

		while (left > 0) {
			bool complete;
			size_t used = check_feed(c, data, left, &complete);

			if (c->broken)
				return messages;
			messages += complete;
			data += used;
			left -= used;
		}
		len -= n;
	}
	return messages;
}

static struct check *fed(const uint64_t *order, size_t count, uint64_t announced)
{
	struct check *c = check_new();
	uint8_t message[100];

	for (size_t i = 0; i < count; i++) {
		make_message(message, 7, order[i], sizeof(message));
		feed_all(c, message, sizeof(message), sizeof(message));
	}
	make_message(message, 7, announced, END_LENGTH);
	feed_all(c, message, HEADER_SIZE, HEADER_SIZE);
	return c;
}

static void test_fill_depends_on_place_only(void)
{
	uint8_t whole[101], piece[101];

	payload_fill(whole, 3, 9, 0, sizeof(whole));
	for (size_t from = 0; from < 20; from++)
		for (size_t len = 0; from + len <= 40; len++) {
			payload_fill(piece, 3, 9, from, len);
			EXPECT(memcmp(piece, whole + from, len) == 0);
		}
	payload_fill(piece, 3, 10, 0, sizeof(piece));
	EXPECT(memcmp(piece, whole, 8) != 0);
	payload_fill(piece, 4, 9, 0, sizeof(piece));
	EXPECT(memcmp(piece, whole, 8) != 0);
}

/* The format on the wire must not change unnoticed: two versions could not talk to each other. */
static void test_wire_format(void)
{
	static const uint8_t expected[HEADER_SIZE + 8] = {
		0x4d, 0x46, 0x12, 0x34, 0x00, 0x00, 0x00, 0x20, 0, 0, 0, 0, 0, 0, 0, 5,
		0x17, 0x97, 0x9c, 0xfe, 0x36, 0x2a, 0x00, 0x00,
		0x1a, 0x98, 0xce, 0x3c, 0x38, 0x30, 0xe9, 0x06,
	};
	struct header in = { .key = 0x1234, .length = 32, .seq = 5, .sent_ns = 1700000000000000000 }, out;
	uint8_t wire[HEADER_SIZE + 8];

	header_write(wire, &in);
	payload_fill(wire + HEADER_SIZE, 0x1234, 5, 0, 8);
	EXPECT(memcmp(wire, expected, sizeof(wire)) == 0);
	EXPECT(header_read(wire, &out));
	EXPECT(out.key == in.key && out.length == in.length && out.seq == in.seq && out.sent_ns == in.sent_ns);
	wire[0] ^= 1;
	EXPECT(!header_read(wire, &out));
}

static void test_pieces_of_any_size(void)
{
	uint8_t data[3 * 1000 + HEADER_SIZE];

	for (uint64_t i = 0; i < 3; i++)
		make_message(data + i * 1000, 7, i, 1000);
	make_message(data + 3000, 7, 3, END_LENGTH);
	for (size_t piece = 1; piece < 1100; piece += 7) {
		struct check *c = check_new();

		EXPECT(feed_all(c, data, sizeof(data), piece) == 3);
		EXPECT(check_all_arrived(c));
		check_finish(c);
		EXPECT(check_passed(c));
		EXPECT(c->bytes == 3000);
		check_free(c);
	}
}

/* Longer than the scratch buffer, so that the comparison goes in steps. */
static void test_wrong_byte_is_named(void)
{
	uint32_t size = 3 * SCRATCH_SIZE;
	uint8_t *data = malloc(size);
	struct check *c = check_new();

	make_message(data, 7, 0, size);
	feed_all(c, data, size, size);
	EXPECT(check_passed(c));
	make_message(data, 7, 1, size);
	data[150000] ^= 0xff;
	feed_all(c, data, size, size);
	EXPECT(!check_passed(c));
	EXPECT(strstr(c->content, "wrong at offset 346608: byte 150000 of message 1 is 0x") == c->content);
	EXPECT(!c->broken);
	check_free(c);
	free(data);
}

static void test_lost_boundaries(void)
{
	struct check *c = check_new();
	uint8_t data[200];

	make_message(data, 7, 0, 100);
	memset(data + 100, 0, 100);
	EXPECT(feed_all(c, data, sizeof(data), 200) == 1);
	EXPECT(c->broken);
	EXPECT_TEXT(c->content, "wrong at offset 100: no message header there");
	check_free(c);

	c = check_new();
	make_message(data, 7, 0, 100);
	feed_all(c, data, 60, 60);
	check_boundary(c);
	EXPECT_TEXT(c->content, "wrong at offset 60: message ends after 60 bytes");
	check_free(c);

	c = check_new();
	make_message(data + 100, 8, 1, 100);
	feed_all(c, data, 200, 200);
	EXPECT_TEXT(c->content, "wrong at offset 100: message 1 has key 8 instead of 7");
	check_free(c);
}

static void test_order(void)
{
	static const struct {
		uint64_t order[4];
		size_t count;
		uint64_t announced;
		const char *fault;
	} cases[] = {
		{ { 0, 1, 2, 3 }, 4, 4, "" },
		{ { 0, 2, 1, 3 }, 4, 4, "message 1 arrived after 2 on stream 0" },
		{ { 0, 1, 1, 2 }, 4, 4, "message 1 arrived twice" },
		{ { 0, 1, 3 }, 3, 4, "1 of 4 messages missing, the first is 2" },
		{ { 0, 1, 2 }, 3, 2, "3 messages arrived, only 2 were sent" },
		{ { 0, 1 + WINDOW_MESSAGES }, 2, 2, "message 1048577 arrived while 1 is still missing" },
		{ { 0 }, 0, 0, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct check *c = fed(cases[i].order, cases[i].count, cases[i].announced);

		check_finish(c);
		EXPECT_TEXT(c->order, cases[i].fault);
		EXPECT_TEXT(c->content, "");
		check_free(c);
	}
}

static void test_unordered_and_streams(void)
{
	static const uint64_t order[] = { 3, 0, 2, 1 };
	struct check *c = check_new();
	uint8_t message[100];

	c->unordered = true;
	for (int i = 0; i < 4; i++) {
		make_message(message, 7, order[i], sizeof(message));
		feed_all(c, message, sizeof(message), sizeof(message));
	}
	EXPECT(check_passed(c));
	EXPECT(c->oldest == 4);
	check_free(c);

	c = check_new();
	for (int i = 0; i < 4; i++) {	/* odd ones on stream 1: 3 before 0 is right, 3 before 1 is not */
		c->stream = order[i] % 2;
		make_message(message, 7, order[i], sizeof(message));
		feed_all(c, message, sizeof(message), sizeof(message));
	}
	EXPECT_TEXT(c->order, "message 1 arrived after 3 on stream 1");
	check_free(c);
}

static void test_transfer_cut_short(void)
{
	struct check *c = check_new();
	uint8_t data[100];

	make_message(data, 7, 0, 100);
	feed_all(c, data, 100, 100);
	check_finish(c);
	EXPECT_TEXT(c->content, "wrong at offset 100: transfer ends without its end marker");
	check_free(c);
}

static void test_percentiles(void)
{
	struct histogram *h = calloc(1, sizeof(*h));

	EXPECT(histogram_percentile(h, 50) == 0);
	for (uint64_t i = 1; i <= 1000; i++)
		histogram_add(h, i);
	EXPECT(histogram_percentile(h, 50) == 500);
	EXPECT(histogram_percentile(h, 99) == 990);
	EXPECT(histogram_percentile(h, 100) == 1000);
	for (uint64_t value = 2048; value < (uint64_t)1 << 44; value = value * 3 / 2) {
		double error;

		memset(h, 0, sizeof(*h));
		histogram_add(h, value);
		error = (double)histogram_percentile(h, 50) / value - 1;
		EXPECT(error < 0.001 && error > -0.001);
	}
	histogram_add(h, UINT64_MAX);
	free(h);
}

static void test_series_is_thinned(void)
{
	struct series sum, max;
	int64_t total = 0;

	series_init(&sum, SERIES_SUM, 1000, 10);
	series_init(&max, SERIES_MAX, 1000, 10);
	series_add(&sum, 0, 0);			/* before the start: counted as the start */
	for (int64_t t = 1000; t < 101000; t += 5) {
		series_add(&sum, t, 1);
		series_add(&max, t, t == 50000 ? 99 : 1);
	}
	EXPECT(sum.used <= SERIES_POINTS && sum.width_ns == 320);
	for (size_t i = 0; i < sum.used; i++)
		total += sum.value[i];
	EXPECT(total == 20000);
	EXPECT(max.value[(50000 - 1000) / max.width_ns] == 99);
	EXPECT(max.value[0] == 1);
}

static void test_series_has_gaps(void)
{
	struct series max;

	series_init(&max, SERIES_MAX, 0, 10);
	series_add(&max, 0, 1);
	series_add(&max, 35, 2);
	EXPECT(max.used == 4 && max.value[1] == SERIES_EMPTY && max.value[3] == 2);
}

static void test_flow_stats(void)
{
	struct flow_stats *f = calloc(1, sizeof(*f));

	flow_stats_add(f, 100, 150, 10, 0);
	flow_stats_add(f, 200, 450, 10, 0);
	flow_stats_add(f, 300, 460, 10, 0);
	EXPECT(f->first_sent == 100 && f->last_arrival == 460);
	EXPECT(f->min_delay == 50 && f->max_delay == 250 && f->max_delay_sent == 200);
	EXPECT(f->max_gap == 300 && f->max_gap_start == 150);
	EXPECT(f->messages == 3 && f->delay.used == 0);
	free(f);
}

static void test_json(void)
{
	char *text = NULL;
	size_t size;
	struct json j = { .out = open_memstream(&text, &size) };

	json_event(&j, "x");
	json_string(&j, "text", "a\"b\\c\n");
	json_open(&j, "list", '[');
	json_open(&j, NULL, '[');
	json_seconds(&j, NULL, 1700000000123456789);
	json_seconds(&j, NULL, -1500);
	json_close(&j, ']');
	json_integer(&j, NULL, -3);
	json_close(&j, ']');
	json_open(&j, "empty", '{');
	json_close(&j, '}');
	json_bool(&j, "yes", true);
	json_number(&j, "number", 0.5);
	json_event_end(&j);
	fclose(j.out);
	EXPECT_TEXT(text, "{\"event\": \"x\", \"text\": \"a\\\"b\\\\c\\u000a\", \"list\": "
		    "[[1700000000.123457, -0.000002], -3], \"empty\": {}, \"yes\": true, \"number\": 0.500000}\n");
	free(text);
}

int main(void)
{
	static void (*const tests[])(void) = {
		test_fill_depends_on_place_only, test_wire_format, test_pieces_of_any_size, test_wrong_byte_is_named,
		test_lost_boundaries, test_order, test_unordered_and_streams, test_transfer_cut_short,
		test_percentiles, test_series_is_thinned, test_series_has_gaps, test_flow_stats, test_json,
	};
	size_t count = sizeof(tests) / sizeof(tests[0]);

	for (size_t i = 0; i < count; i++)
		tests[i]();
	printf("%zu tests, %d failures\n", count, failures);
	return failures != 0;
}
