/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MPFLOW_CLOCK_H
#define MPFLOW_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_S	1000000000LL
#define NEVER		INT64_MAX

static inline int64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* The value of --clock-offset-us, in ns. */
extern int64_t clock_offset_ns;

/* For what is reported and compared between hosts. */
static inline int64_t wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME) + clock_offset_ns;
}

/* For deadlines and schedules: nobody sets this clock. */
static inline int64_t steady_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* @deadline: on the steady clock. No call where there is none. */
static inline bool has_passed(int64_t deadline)
{
	return deadline != NEVER && steady_ns() >= deadline;
}

/* Argument of poll and its kin for a deadline on the steady clock: rounded up, so that it has passed afterwards. */
static inline int timeout_ms(int64_t deadline)
{
	int64_t left;

	if (deadline == NEVER)
		return -1;
	left = (deadline - steady_ns() + 999999) / 1000000;
	return left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

#endif
