// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"

#define NOTED_LINES	40
#define NOTED_COLUMNS	400
#define STREAMS		16
#define STEP		0x9e3779b97f4a7c15ULL
#define EDGES		"/proc/sctp_edges"

static const char *name;	/* of the case */
static struct {
	uint64_t from, seed;
} streams[STREAMS];
static int all_streams, next_stream;
static unsigned int own_part;
static uint64_t state, drawn;
static char noted[NOTED_LINES][NOTED_COLUMNS];
static int noted_lines;

static uint64_t number(const char **at)
{
	char *end;
	uint64_t value = strtoull(*at, &end, 10);

	errno = EINVAL;
	if (end == *at)
		die(name);
	*at = end;
	return value;
}

static void forget_edges(void)
{
	FILE *out = fopen(EDGES, "w");

	if (out) {
		fputs("forget", out);
		fclose(out);
	}
}

void fuzz_start(const char *text)
{
	const char *at = name = text;

	streams[all_streams++].seed = number(&at);
	while (*at) {
		if (all_streams == STREAMS)
			die("too many streams");
		at += *at == '@';
		streams[all_streams].from = number(&at);
		at += *at == ':';
		streams[all_streams++].seed = number(&at);
	}
	forget_edges();
}

void draw_start(unsigned int part)
{
	own_part = part;
	drawn = 0;
	next_stream = 0;
}

/* splitmix64 */
uint32_t draw(void)
{
	uint64_t z;

	for (; next_stream < all_streams && streams[next_stream].from <= drawn; next_stream++)
		state = (streams[next_stream].seed + 11 + drawn) * STEP + own_part * 0xd1342543de82ef95ULL;
	drawn++;
	z = state += STEP;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (uint32_t)((z ^ (z >> 31)) >> 16);
}

uint32_t below(uint32_t limit)
{
	return limit ? draw() % limit : 0;
}

bool chance(unsigned int percent)
{
	return below(100) < percent;
}

uint32_t extreme(void)
{
	static const uint32_t values[] = {
		0, 1, 2, 3, 5, 10, 100, 200, 511, 512, 1000, 1500, 5000, 30000, 65535, 65536, 1 << 20, 1 << 24,
		86400000, 0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff,
	};

	return chance(80) ? values[below(sizeof(values) / sizeof(*values))] : draw();
}

double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void sleep_s(double seconds)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&t, NULL);
}

void die(const char *what)
{
	fprintf(stderr, "fuzz: %s: %s\n", what, strerror(errno));
	exit(2);
}

void note_state(void)
{
	static const char *const files[] = { "/proc/net/sctp/assocs", "/proc/net/sctp/remaddr" };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		FILE *in = fopen(files[i], "r");

		while (in && noted_lines < NOTED_LINES && fgets(noted[noted_lines], NOTED_COLUMNS, in)) {
			char *line = noted[noted_lines++];

			line[strcspn(line, "\n")] = 0;
			for (char *tab = line; (tab = strchr(tab, '\t'));)
				*tab = ' ';
		}
		if (in)
			fclose(in);
	}
}

/* Pairs of blocks that the kernel has noted, as the words of a string. */
static void put_edges(FILE *out)
{
	FILE *in = fopen(EDGES, "r");

	if (!in)
		return;
	fprintf(out, ", \"edges\": \"");
	for (int c; (c = fgetc(in)) != EOF;)
		fputc(c == '\n' ? ' ' : c, out);
	fputc('"', out);
	fclose(in);
}

int report(const char *file, const char *unit, uint64_t count, const char *outcome, const char *failure)
{
	FILE *out = fopen(file, "w");

	if (!out)
		die(file);
	fprintf(out, "{\"seed\": \"%s\", \"%s\": %llu, \"outcome\": \"%s\", \"failure\": \"%s\", \"state\": [",
		name, unit, (unsigned long long)count, outcome, failure);
	for (int i = 0; i < noted_lines; i++)
		fprintf(out, "%s\"%s\"", i ? ", " : "", noted[i]);
	fprintf(out, "]");
	put_edges(out);
	fprintf(out, "}\n");
	if (fclose(out))
		die(file);
	return *failure ? 1 : 0;
}
