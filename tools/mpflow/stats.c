// SPDX-License-Identifier: GPL-2.0
#include "stats.h"

static size_t bucket_of(uint64_t value)
{
	unsigned int top;

	if (value < HISTOGRAM_EXACT)
		return value;
	if (value >> (HISTOGRAM_TOP_BIT + 1))
		return HISTOGRAM_BUCKETS - 1;
	top = 63 - __builtin_clzll(value);
	return HISTOGRAM_EXACT + (top - 11) * HISTOGRAM_STEPS + (value >> (top - 10)) - HISTOGRAM_STEPS;
}

/* The middle of a bucket. */
static uint64_t value_of(size_t bucket)
{
	unsigned int shift;
	uint64_t step;

	if (bucket < HISTOGRAM_EXACT)
		return bucket;
	shift = (bucket - HISTOGRAM_EXACT) / HISTOGRAM_STEPS + 1;
	step = (bucket - HISTOGRAM_EXACT) % HISTOGRAM_STEPS + HISTOGRAM_STEPS;
	return (step << shift) + (1ULL << shift) / 2;
}

void histogram_add(struct histogram *h, uint64_t value)
{
	h->bucket[bucket_of(value)]++;
	h->count++;
}

/* The value that @percent of all values do not exceed (nearest rank); 0 when there are none. */
uint64_t histogram_percentile(const struct histogram *h, unsigned int percent)
{
	uint64_t rank = (h->count * percent + 99) / 100, below = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += h->bucket[i];
		if (below >= rank && below > 0)
			return value_of(i);
	}
	return 0;
}

void series_init(struct series *s, enum series_kind kind, int64_t start_ns, int64_t width_ns)
{
	s->kind = kind;
	s->start_ns = start_ns;
	s->width_ns = width_ns;
	s->used = 0;
}

static int64_t join(enum series_kind kind, int64_t a, int64_t b)
{
	if (kind == SERIES_SUM)
		return a + b;
	return a > b ? a : b;
}

static int64_t nothing(enum series_kind kind)
{
	return kind == SERIES_SUM ? 0 : SERIES_EMPTY;
}

static void halve(struct series *s)
{
	size_t half = (s->used + 1) / 2;

	for (size_t i = 0; i < half; i++) {
		int64_t second = 2 * i + 1 < s->used ? s->value[2 * i + 1] : nothing(s->kind);

		s->value[i] = join(s->kind, s->value[2 * i], second);
	}
	s->used = half;
	s->width_ns *= 2;
}

void series_add(struct series *s, int64_t t_ns, int64_t value)
{
	size_t i;

	if (t_ns < s->start_ns)
		t_ns = s->start_ns;
	while ((t_ns - s->start_ns) / s->width_ns >= SERIES_POINTS)
		halve(s);
	i = (t_ns - s->start_ns) / s->width_ns;
	while (s->used <= i)
		s->value[s->used++] = nothing(s->kind);
	s->value[i] = join(s->kind, s->value[i], value);
}

/* A message sent at @sent has arrived; @series_width 0 keeps no time series. */
void flow_stats_add(struct flow_stats *f, int64_t sent, int64_t arrival, uint32_t bytes, int64_t series_width)
{
	int64_t delay = arrival - sent;

	if (f->messages == 0) {
		f->first_sent = sent;
		f->min_delay = delay;
		f->max_delay = delay;
		f->max_delay_sent = sent;
		if (series_width > 0) {
			series_init(&f->delay, SERIES_MAX, sent, series_width);
			series_init(&f->bytes, SERIES_SUM, sent, series_width);
		}
	} else if (arrival - f->last_arrival > f->max_gap) {
		f->max_gap = arrival - f->last_arrival;
		f->max_gap_start = f->last_arrival;
	}
	if (sent < f->first_sent)
		f->first_sent = sent;
	if (delay < f->min_delay)
		f->min_delay = delay;
	if (delay > f->max_delay) {
		f->max_delay = delay;
		f->max_delay_sent = sent;
	}
	f->last_arrival = arrival;
	f->sum_delay += delay;
	f->messages++;
	histogram_add(&f->delay_us, delay > 0 ? delay / 1000 : 0);
	if (series_width > 0) {
		series_add(&f->delay, sent, delay);
		series_add(&f->bytes, arrival, bytes);
	}
}
