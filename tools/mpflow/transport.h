/* SPDX-License-Identifier: GPL-2.0 */
/* Sockets of any of the three protocols: made, bound, connected. */
#ifndef MPFLOW_TRANSPORT_H
#define MPFLOW_TRANSPORT_H

#include <sys/socket.h>

#include "assoc.h"
#include "json.h"
#include "options.h"

size_t transport_listen(struct options *o, int *listeners);
int transport_open(struct options *o);
int transport_connect(int fd, const struct options *o, int64_t deadline);
int transport_accept(int listener);
void transport_nodelay(int fd, enum proto proto);
void transport_close(int fd);
void transport_abort(int fd);

void transport_write_connected(struct json *j, int fd, const struct options *o, int association);

#endif
