/* SPDX-License-Identifier: GPL-2.0 */
/* Figures about a flow of messages, in constant memory however long it is. */
#ifndef MPFLOW_STATS_H
#define MPFLOW_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Exact below 2048, then 1024 steps per power of two (0.1 %), up to 2^44. */
#define HISTOGRAM_EXACT		2048
#define HISTOGRAM_STEPS		1024
#define HISTOGRAM_TOP_BIT	43
#define HISTOGRAM_BUCKETS	(HISTOGRAM_EXACT + (HISTOGRAM_TOP_BIT - 10) * HISTOGRAM_STEPS)

struct histogram {
	uint64_t count;
	uint64_t bucket[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t value);
uint64_t histogram_percentile(const struct histogram *h, unsigned int percent);

/*
 * Values over time, one per interval. When the intervals are used up, neighbours
 * are joined and the interval doubles, so the length of the run need not be known.
 */
#define SERIES_POINTS	500

enum series_kind { SERIES_SUM, SERIES_MAX };

struct series {
	enum series_kind kind;
	int64_t start_ns, width_ns;
	size_t used;
	int64_t value[SERIES_POINTS];
};

#define SERIES_EMPTY	INT64_MIN	/* a maximum of nothing */

void series_init(struct series *s, enum series_kind kind, int64_t start_ns, int64_t width_ns);
void series_add(struct series *s, int64_t t_ns, int64_t value);

/* The receiver's figures on the arrival of messages. Times in ns. */
struct flow_stats {
	int64_t first_sent, last_arrival;
	int64_t min_delay, max_delay, max_delay_sent;
	double sum_delay;
	int64_t max_gap, max_gap_start;
	uint64_t messages;
	struct histogram delay_us;
	struct series delay, bytes;
};

void flow_stats_add(struct flow_stats *f, int64_t sent, int64_t arrival, uint32_t bytes, int64_t series_width);

#endif
