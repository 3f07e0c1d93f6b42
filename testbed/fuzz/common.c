// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"

#define NOTED_LINES	40
#define NOTED_COLUMNS	400

static uint64_t state;
static char noted[NOTED_LINES][NOTED_COLUMNS];
static int noted_lines;

void draw_start(uint64_t seed, unsigned int part)
{
	state = (seed + 1) * 0x9e3779b97f4a7c15ULL + part * 0xd1342543de82ef95ULL;
	for (int i = 0; i < 10; i++)
		draw();
}

/* splitmix64 */
uint32_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ULL;

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

int report(const char *file, uint64_t seed, const char *unit, uint64_t count, const char *outcome,
	   const char *failure)
{
	FILE *out = fopen(file, "w");

	if (!out)
		die(file);
	fprintf(out, "{\"seed\": %llu, \"%s\": %llu, \"outcome\": \"%s\", \"failure\": \"%s\", \"state\": [",
		(unsigned long long)seed, unit, (unsigned long long)count, outcome, failure);
	for (int i = 0; i < noted_lines; i++)
		fprintf(out, "%s\"%s\"", i ? ", " : "", noted[i]);
	fprintf(out, "]}\n");
	if (fclose(out))
		die(file);
	return *failure ? 1 : 0;
}
