// SPDX-License-Identifier: GPL-2.0
#include "burst.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"

static uint8_t *allocate(size_t size)
{
	uint8_t *data = malloc(size);

	if (!data)
		fail(EXIT_TRANSFER, "out of memory");
	return data;
}

void burst_open(struct burst *b, size_t room)
{
	memset(b, 0, sizeof(*b));
	b->data = allocate(room);
	b->room = room;
}

void burst_empty(struct burst *b)
{
	b->count = 0;
	b->bytes = 0;
}

bool burst_has_room(const struct burst *b, size_t len)
{
	return b->count < BURST_MAX && len <= b->room - b->bytes;
}

/* Where to write a message of @len bytes, if there is room. @flags: SCTP_UNORDERED, SCTP_SACK_IMMEDIATELY. */
uint8_t *burst_add(struct burst *b, size_t len, uint16_t stream, uint16_t flags)
{
	struct sctp_sndinfo info = { .snd_sid = stream, .snd_flags = flags };
	union send_control *control = &b->control[b->count];
	struct iovec *iov = &b->iov[b->count];

	*iov = (struct iovec){ b->data + b->bytes, len };
	control->header.cmsg_level = IPPROTO_SCTP;
	control->header.cmsg_type = SCTP_SNDINFO;
	control->header.cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(&control->header), &info, sizeof(info));
	b->message[b->count].msg_hdr = (struct msghdr){
		.msg_iov = iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(*control),
	};
	b->count++;
	b->bytes += len;
	return iov->iov_base;
}

/* The length in the unit of burst_send: messages, or bytes for protocols without messages. */
size_t burst_length(const struct burst *b, enum proto proto)
{
	return proto == PROTO_SCTP ? b->count : b->bytes;
}

/* Hand over what follows the first @done; returns how much of it was taken, or -1 and errno for none. */
ssize_t burst_send(const struct burst *b, int fd, enum proto proto, size_t done, bool wait)
{
	int flags = MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT);

	if (proto == PROTO_SCTP)
		return sendmmsg(fd, (struct mmsghdr *)&b->message[done], b->count - done, flags);
	return send(fd, b->data + done, b->bytes - done, flags);
}

/* @slots: how many messages to take at once, INBOX_MAX at most. */
void inbox_open(struct inbox *in, size_t slots, size_t slot_size)
{
	memset(in, 0, sizeof(*in));
	in->data = allocate(slots * slot_size);
	in->slots = slots;
	in->slot_size = slot_size;
	for (size_t i = 0; i < slots; i++)
		in->iov[i] = (struct iovec){ in->data + i * slot_size, slot_size };
}

static struct piece read_piece(struct inbox *in, size_t i)
{
	struct msghdr *msg = &in->message[i].msg_hdr;
	struct sctp_rcvinfo info = { 0 };

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_RCVINFO)
			memcpy(&info, CMSG_DATA(c), sizeof(info));
	return (struct piece){
		.data = in->iov[i].iov_base,
		.len = in->message[i].msg_len,
		.notification = msg->msg_flags & MSG_NOTIFICATION,
		.end_of_message = msg->msg_flags & MSG_EOR,
		.unordered = info.rcv_flags & SCTP_UNORDERED,
		.stream = info.rcv_sid,
	};
}

static int receive_messages(struct inbox *in, int fd, bool wait)
{
	int count;

	for (size_t i = 0; i < in->slots; i++)
		in->message[i].msg_hdr = (struct msghdr){
			.msg_iov = &in->iov[i], .msg_iovlen = 1,
			.msg_control = &in->control[i], .msg_controllen = sizeof(in->control[i]),
		};
	count = recvmmsg(fd, in->message, in->slots, wait ? MSG_WAITFORONE : MSG_DONTWAIT, NULL);
	for (int i = 0; i < count; i++)
		in->piece[i] = read_piece(in, i);
	return count;
}

/*
 * Fill in->piece with what is there; returns how many pieces, or -1 and errno. Fewer
 * than in->slots: there was no more. @wait: for the first one.
 */
int inbox_receive(struct inbox *in, int fd, enum proto proto, bool wait)
{
	ssize_t len;

	if (proto == PROTO_SCTP)
		return receive_messages(in, fd, wait);
	len = recv(fd, in->data, in->slots * in->slot_size, wait ? 0 : MSG_DONTWAIT);
	if (len < 0)
		return -1;
	in->piece[0] = (struct piece){ .data = in->data, .len = len };
	return 1;
}
