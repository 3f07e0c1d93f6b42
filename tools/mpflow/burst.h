/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Several messages per system call: a burst goes out, an inbox is filled. Where a
 * system call is dear (User Mode Linux), their number decides how fast a transfer
 * runs. SCTP has messages; TCP and MPTCP see the same bytes as one piece.
 */
#ifndef MPFLOW_BURST_H
#define MPFLOW_BURST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <netinet/in.h>	/* must come before sctp.h */
#include <netinet/sctp.h>

#include "options.h"

#define BURST_MAX	64
#define INBOX_MAX	16

union send_control {
	struct cmsghdr header;
	uint8_t space[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
};

union receive_control {
	struct cmsghdr header;
	uint8_t space[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
};

/* Messages to send, one behind the other in @data. */
struct burst {
	uint8_t *data;			/* [room] */
	size_t room, bytes, count;
	struct mmsghdr message[BURST_MAX];
	struct iovec iov[BURST_MAX];
	union send_control control[BURST_MAX];
};

/* A message that has arrived, or a part of it. Nothing (len 0): the peer has closed. */
struct piece {
	const uint8_t *data;
	size_t len;
	bool notification, end_of_message, unordered;	/* SCTP only */
	uint16_t stream;
};

struct inbox {
	uint8_t *data;			/* [slots * slot_size] */
	size_t slots, slot_size;
	struct piece piece[INBOX_MAX];
	struct mmsghdr message[INBOX_MAX];
	struct iovec iov[INBOX_MAX];
	union receive_control control[INBOX_MAX];
};

void burst_open(struct burst *b, size_t room);
void burst_empty(struct burst *b);
bool burst_has_room(const struct burst *b, size_t len);
uint8_t *burst_add(struct burst *b, size_t len, uint16_t stream, uint16_t flags);
ssize_t burst_send(const struct burst *b, int fd, enum proto proto, size_t done, bool wait);
size_t burst_length(const struct burst *b, enum proto proto);

void inbox_open(struct inbox *in, size_t slots, size_t slot_size);
int inbox_receive(struct inbox *in, int fd, enum proto proto, bool wait);

#endif
