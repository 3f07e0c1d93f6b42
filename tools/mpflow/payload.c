// SPDX-License-Identifier: GPL-2.0
#include "payload.h"

#include <endian.h>
#include <string.h>

#define MAGIC	0x4d46		/* "MF" */
#define GOLDEN	0x9e3779b97f4a7c15ULL

/* Finaliser of splitmix64: spreads every input bit over all output bits. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

uint16_t payload_key(uint64_t seed)
{
	return (uint16_t)mix(seed + GOLDEN);
}

/*
 * Write the bytes [offset, offset + len) of the body of message @seq (offset 0 is
 * the first byte after the header). Each word depends only on its place, so a
 * receiver can check any piece as it arrives.
 */
void payload_fill(void *buf, uint16_t key, uint64_t seq, uint64_t offset, size_t len)
{
	uint64_t state = mix(seq * GOLDEN + key) + (offset / 8) * GOLDEN;
	size_t skip = offset % 8;
	uint8_t *out = buf;

	while (len > 0) {
		uint64_t word = htole64(mix(state));
		size_t n = 8 - skip < len ? 8 - skip : len;

		if (n == 8)
			memcpy(out, &word, 8);
		else
			memcpy(out, (uint8_t *)&word + skip, n);
		out += n;
		len -= n;
		skip = 0;
		state += GOLDEN;
	}
}

void header_write(uint8_t out[HEADER_SIZE], const struct header *h)
{
	uint16_t magic = htobe16(MAGIC), key = htobe16(h->key);
	uint32_t length = htobe32(h->length);
	uint64_t seq = htobe64(h->seq), sent = htobe64((uint64_t)h->sent_ns);

	memcpy(out, &magic, 2);
	memcpy(out + 2, &key, 2);
	memcpy(out + 4, &length, 4);
	memcpy(out + 8, &seq, 8);
	memcpy(out + 16, &sent, 8);
}

/* False when this is no header of ours; the caller has lost the message boundaries. */
bool header_read(const uint8_t in[HEADER_SIZE], struct header *h)
{
	uint16_t magic, key;
	uint32_t length;
	uint64_t seq, sent;

	memcpy(&magic, in, 2);
	memcpy(&key, in + 2, 2);
	memcpy(&length, in + 4, 4);
	memcpy(&seq, in + 8, 8);
	memcpy(&sent, in + 16, 8);
	h->key = be16toh(key);
	h->length = be32toh(length);
	h->seq = be64toh(seq);
	h->sent_ns = (int64_t)be64toh(sent);
	return be16toh(magic) == MAGIC &&
	       (h->length == END_LENGTH ||
		(h->length >= HEADER_SIZE && h->length <= MESSAGE_MAX));
}
