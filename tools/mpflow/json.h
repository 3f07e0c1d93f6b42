/* SPDX-License-Identifier: GPL-2.0 */
/* JSON lines: one event, one line. A key of NULL writes an element of an array. */
#ifndef MPFLOW_JSON_H
#define MPFLOW_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	bool comma;	/* the next member needs one before it */
};

void json_event(struct json *j, const char *event);
void json_event_end(struct json *j);
void json_flush(struct json *j);

void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_string(struct json *j, const char *key, const char *value);
void json_integer(struct json *j, const char *key, int64_t value);
void json_bool(struct json *j, const char *key, bool value);
void json_seconds(struct json *j, const char *key, int64_t ns);
void json_number(struct json *j, const char *key, double value);

#endif
