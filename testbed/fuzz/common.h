/* SPDX-License-Identifier: GPL-2.0 */
/* Common to both fuzzers: random numbers drawn from the seed, time, and the result. */
#ifndef FUZZ_COMMON_H
#define FUZZ_COMMON_H

#include <stdbool.h>
#include <stdint.h>

/* The case that is drawn, SEED[@K:SEED]...: the stream of a seed, and from draw K on, counted from 0, that of another.
 * Each stream goes on where it would be by then, so 17@40:991@50:17 is 17 but for ten draws. A kernel that notes
 * edges of net/sctp starts to note them.
 */
void fuzz_start(const char *text);
/* The stream of random numbers of this process; PART keeps processes of a case apart. */
void draw_start(unsigned int part);
uint32_t draw(void);
uint32_t below(uint32_t limit);		/* 0 to limit - 1; 0 for limit 0 */
bool chance(unsigned int percent);
uint32_t extreme(void);			/* a number that programs get wrong */

double now_s(void);
void sleep_s(double seconds);
_Noreturn void die(const char *what);	/* with errno; exit 2: the fuzzer is at fault */

/* Keep what the kernel says of associations and paths for report(). */
void note_state(void);
/* One JSON object into FILE; "" as FAILURE: none. Returns the exit code. */
int report(const char *file, const char *unit, uint64_t count, const char *outcome, const char *failure);

#endif
