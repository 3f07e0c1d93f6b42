/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The format of a message: a 24-byte header, then bytes that both ends can
 * work out for themselves. Pure functions; nothing here knows about sockets.
 *
 *   0  u16  magic
 *   2  u16  key: what --seed was folded into; the same in all messages of a transfer
 *   4  u32  length of the whole message, header included; END_LENGTH: end marker
 *   8  u64  sequence number from 0; in the end marker the number of messages sent
 *  16  u64  time the message was due, or was handed to the socket (ns since the epoch)
 *
 * All in network byte order.
 */
#ifndef MPFLOW_PAYLOAD_H
#define MPFLOW_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEADER_SIZE	24
#define MESSAGE_MAX	(16 * 1024 * 1024)
#define END_LENGTH	UINT32_MAX

struct header {
	uint16_t key;
	uint32_t length;
	uint64_t seq;
	int64_t sent_ns;
};

uint16_t payload_key(uint64_t seed);
void payload_fill(void *buf, uint16_t key, uint64_t seq, uint64_t offset, size_t len);

void header_write(uint8_t out[HEADER_SIZE], const struct header *h);
bool header_read(const uint8_t in[HEADER_SIZE], struct header *h);

#endif
