// SPDX-License-Identifier: GPL-2.0
#include "json.h"

#include <inttypes.h>

static void quote(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void key_before(struct json *j, const char *key)
{
	if (j->comma)
		fputs(", ", j->out);
	if (key) {
		quote(j->out, key);
		fputs(": ", j->out);
	}
	j->comma = true;
}

void json_event(struct json *j, const char *event)
{
	fputc('{', j->out);
	j->comma = false;
	json_string(j, "event", event);
}

void json_event_end(struct json *j)
{
	fputs("}\n", j->out);
}

/* Whoever started us may be waiting for this line. */
void json_flush(struct json *j)
{
	fflush(j->out);
}

void json_open(struct json *j, const char *key, char bracket)
{
	key_before(j, key);
	fputc(bracket, j->out);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->out);
	j->comma = true;
}

void json_string(struct json *j, const char *key, const char *value)
{
	key_before(j, key);
	quote(j->out, value);
}

void json_integer(struct json *j, const char *key, int64_t value)
{
	key_before(j, key);
	fprintf(j->out, "%" PRId64, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	key_before(j, key);
	fputs(value ? "true" : "false", j->out);
}

/* Seconds with microseconds; in integers, since a double cannot hold today's ns. */
void json_seconds(struct json *j, const char *key, int64_t ns)
{
	int64_t us = (ns >= 0 ? ns + 500 : ns - 500) / 1000;

	key_before(j, key);
	fprintf(j->out, "%s%" PRId64 ".%06" PRId64, us < 0 ? "-" : "", (us < 0 ? -us : us) / 1000000,
		(us < 0 ? -us : us) % 1000000);
}

void json_number(struct json *j, const char *key, double value)
{
	key_before(j, key);
	fprintf(j->out, "%.6f", value);
}
