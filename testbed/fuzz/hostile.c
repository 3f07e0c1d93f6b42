// SPDX-License-Identifier: GPL-2.0
/* Chunks that are well formed for the most part, and mean what no honest peer means. */
#include <string.h>

#include "wire.h"

static struct packet said;

static int any_address(void)
{
	return (int)below((uint32_t)shared->addresses);
}

static int from_address(void)
{
	int any = any_address(), home = peer_home(any);

	return peer.with_restart && home >= 0 ? home : any;
}

static bool lethally(unsigned int percent)
{
	return peer.lethal && chance(percent);
}

static uint32_t window(void)
{
	static const uint32_t values[] = { 0, 1, 1500, 3000, 0x7fffffff, 0xffffffff };

	if (peer.mild && chance(97))
		return 3000000;
	return chance(50) ? values[below(6)] : chance(10) ? draw() : 200000;
}

static int counts(void)		/* flags of a SACK: the bits in which some stacks say how many packets came */
{
	return (chance(60) ? (int)below(4) << 6 : 0) | (chance(5) ? (int)below(64) : 0);
}

static uint32_t cumulative(uint32_t span)
{
	switch (below(9)) {
	case 0:
		return peer.cum - below(50);
	case 1:
		return peer.cum + below(span + 1);
	case 2:
		return peer.cum_told;
	case 3:
		return peer.cum - 1;
	case 4:
		return lethally(5) ? draw() : peer.cum;
	default:
		return peer.cum;
	}
}

/* Gap blocks: at random, beyond everything, upside down, overlapping, in order, all there is. */
static void put_block(uint8_t *at, uint32_t style, uint32_t span, uint32_t *from)
{
	uint32_t start = *from, end = *from + below(4);

	switch (style) {
	case 0:
		start = below(span + 2);
		end = start + below(4);
		break;
	case 1:
		start = draw();
		end = draw();
		break;
	case 2:
		start = 2 + below(span + 1);
		end = start - below(2);
		break;
	case 3:
		end = start + below(10);
		*from += below(4);
		break;
	case 4:
		start = chance(50) ? 0 : 65535;
		end = chance(50) ? 65535 : below(span + 5);
		break;
	default:
		*from = end + 2 + below(3);
	}
	put16(at, start);
	put16(at + 2, end);
}

void hostile_sack(struct packet *p)
{
	static const uint32_t sizes[] = { 0, 4, 4, 16, 350, 1500 };
	uint32_t span = peer.highest - peer.cum, style = below(6), from = 1 + below(3);
	uint32_t blocks = below(sizes[below(6)] + 1), doubles = chance(30) ? below(chance(20) ? 300 : 10) : 0;
	uint32_t cum = cumulative(span);
	uint8_t *at;

	if (chance(peer.mild ? 85 : 45)) {
		honest_sack(p, window(), counts(), chance(50) ? 16 : 350);
		return;
	}
	at = chunk(p, 3, counts(), 12 + 4 * (size_t)(blocks + doubles));
	if (!at)
		return;
	put32(at, cum);
	put32(at + 4, window());
	put16(at + 8, blocks);
	put16(at + 10, doubles);
	at += 12;
	for (uint32_t i = 0; i < blocks; i++, at += 4)
		put_block(at, style, span, &from);
	for (uint32_t i = 0; i < doubles; i++, at += 4)
		put32(at, peer.cum - below(100) + below(10));
	if ((int32_t)(cum - peer.cum_told) > 0 && (int32_t)(peer.highest - cum) >= 0)
		peer.cum_told = cum;
}

static void hostile_data(void)
{
	bool interleaved = peer.interleaving != lethally(2);
	uint32_t tsn = peer.next_tsn, stream = below(10), length = chance(90) ? 1 + below(1300) : 1 + below(40);
	int flags = chance(60) ? 3 : (int)below(16);
	uint8_t *at;

	switch (below(8)) {
	case 0:
		tsn += below(3000);		/* far ahead */
		break;
	case 1:
		tsn = peer.acked - below(100);	/* known */
		break;
	case 2:
		tsn = peer.acked + 1 + below(tsn - peer.acked);
		break;
	case 3:
		tsn = chance(10) ? draw() : tsn;
		break;
	default:
		peer.next_tsn++;
	}
	if (!peer.lethal)
		flags |= 4;	/* unordered: no two messages contradict each other */
	at = chunk(&said, interleaved ? 64 : 0, flags, (interleaved ? 16 : 12) + length);
	if (!at)
		return;
	put32(at, tsn);
	put16(at + 4, stream);
	put16(at + 6, peer.ssn[stream]);
	if (!(flags & 4) && (flags & 1))
		peer.ssn[stream]++;
	put32(at + 8, draw());
}

static void hostile_forward(void)
{
	uint32_t streams = below(5), to[] = { peer.acked + below(10), peer.next_tsn - 1, peer.acked - below(10),
					      lethally(5) ? draw() : peer.acked + below(300) };
	uint32_t tsn = to[below(4)];
	size_t each = peer.interleaving ? 8 : 4;
	uint8_t *at = chunk(&said, peer.interleaving ? 0xc2 : 192, 0, 4 + each * streams);

	if (!at)
		return;
	put32(at, tsn);
	for (uint32_t i = 0; i < streams; i++) {
		put16(at + 4 + each * i, below(10));
		put16(at + 6 + each * i, chance(90) ? peer.ssn[below(10)] : draw());
	}
	if ((int32_t)(tsn - peer.next_tsn) >= 0 && tsn - peer.next_tsn < 5000)
		peer.next_tsn = tsn + 1;
}

static void hostile_heartbeat(void)
{
	uint32_t length = 4 + below(chance(80) ? 60 : 1200);
	uint8_t *at = chunk(&said, 4, 0, length);

	if (!at)
		return;
	put16(at, 1);
	put16(at + 2, length);
	for (uint32_t i = 4; i < length; i++)
		at[i] = (uint8_t)draw();
}

/* The ACK of an old HEARTBEAT, as it was or with some of its bytes forged: address, time, nonce. */
static void hostile_heartbeat_ack(void)
{
	uint32_t i = below(peer.heartbeat_count < 32 ? peer.heartbeat_count : 32);
	size_t length = peer.heartbeat_length[i];
	uint8_t *at = length ? chunk(&said, 5, 0, length) : NULL;

	if (!at)
		return;
	memcpy(at, peer.heartbeats[i], length);
	if (length > 8 && chance(50)) {
		size_t forged = 4 + below((uint32_t)length - 4);

		for (uint32_t n = 1 + below(8); n && forged < length; n--)
			at[forged++] = (uint8_t)draw();
	}
}

static void hostile_asconf(void)
{
	uint32_t serial = chance(85) ? peer.asconf_serial : peer.asconf_serial - 1 + below(4), count = 1 + below(4);
	uint8_t *at = chunk(&said, 0xc1, 0, 12 + 16 * (size_t)count);

	if (!at)
		return;
	put32(at, serial);
	put16(at + 4, 5);
	put16(at + 6, 8);
	put32(at + 8, peer_address(any_address()));
	at += 12;
	for (uint32_t i = 0; i < count; i++, at += 16) {
		static const uint32_t types[] = { 0xc001, 0xc001, 0xc002, 0xc002, 0xc004 };	/* add, remove, primary */
		uint32_t type = types[below(5)];
		int number;

		put16(at, type);
		put16(at + 2, 16);
		put32(at + 4, draw());
		put16(at + 8, 5);
		put16(at + 10, 8);
		number = chance(50) ? any_address() : (int)below(ADDRESSES);
		if (type == 0xc002 && lethally(3))	/* all of them */
			memset(peer.gone, true, sizeof(peer.gone));
		else
			put32(at + 12, peer_address(number));
		peer.gone[number] |= type == 0xc002;
	}
	peer.asconf_serial += serial == peer.asconf_serial;
}

static void hostile_reconfig(void)
{
	static const uint32_t types[] = { 13, 14, 15, 17, 18, 16 };
	uint32_t type = types[below(6)], length = type == 13 ? 16 : type == 15 ? 8 : 12;
	uint8_t *at = chunk(&said, 130, 0, length);

	if (!at)
		return;
	put16(at, type);
	put16(at + 2, length);
	put32(at + 4, peer.reconf_serial - 1 + below(3));
	if (length > 8)
		put32(at + 8, type > 16 ? below(5) << 16 : draw());
	if (type == 13)
		put32(at + 12, peer.next_tsn - 1);
}

/* A chunk that ends an association; few seeds send one, and rarely. */
static void lethal_chunk(void)
{
	static const int types[] = { 6, 7, 8, 14 };	/* ABORT, SHUTDOWN, its ACK, SHUTDOWN COMPLETE */
	int type = types[below(4)];
	uint8_t *at = chunk(&said, type, (int)below(2), type == 7 ? 4 : 0);

	if (at && type == 7)
		put32(at, peer.cum);
}

static void small_chunk(void)
{
	uint8_t *at;

	switch (below(5)) {
	case 0:		/* ECNE */
		at = chunk(&said, 12, 0, 4);
		if (at)
			put32(at, chance(50) ? peer.cum - below(20) : peer.highest + below(3));
		break;
	case 1:		/* CWR */
		at = chunk(&said, 13, 0, 4);
		if (at)
			put32(at, peer.acked - below(20));
		break;
	case 2:		/* ASCONF ACK */
		at = chunk(&said, 128, 0, 4);
		if (at)
			put32(at, peer.victim_serial - below(2));
		break;
	case 3:		/* COOKIE ECHO of old */
		at = NULL;
		if (peer.with_restart && peer.cookie_length && peer_home(0) >= 0)
			at = chunk(&said, 10, 0, peer.cookie_length);
		if (at)
			memcpy(at, peer.cookie, peer.cookie_length);
		break;
	default:	/* of no known type: skipped */
		at = chunk(&said, 0x90 + (int)below(0x20), (int)below(256), 8);
	}
}

static void any_chunk(void)
{
	switch (below(18)) {
	case 0 ... 4:
		hostile_sack(&said);
		break;
	case 5 ... 7:
		hostile_data();
		break;
	case 8:
		hostile_forward();
		break;
	case 9:
		hostile_heartbeat();
		break;
	case 10:
		hostile_heartbeat_ack();
		break;
	case 11:
		if (peer.with_asconf)
			hostile_asconf();
		break;
	case 12:
		if (chance(20))
			hostile_reconfig();
		break;
	case 13 ... 14:
		small_chunk();
		break;
	case 15:
		if (lethally(4))
			lethal_chunk();
		break;
	default:
		honest_sack(&said, window(), counts(), chance(50) ? 16 : 350);
	}
}

void hostile_packet(void)
{
	if (chance(1))
		peer.silent_until[below(PATHS)] = now_s() + below(4000) / 1000.0;
	if (below(200) == 0)
		peer.lost_pct[below(PATHS)] = chance(50) ? 0 : below(peer.mild ? 5 : 60);
	if (peer.with_restart && below(3000) == 0) {
		peer_send_init(any_address());
		return;
	}
	if (chance(8)) {
		int from = from_address();

		packet_replay(from, peer_home(from), (int)below(PATHS));
		return;
	}
	packet_start(&said, lethally(1) ? draw() : peer.victim_tag);
	for (uint32_t n = chance(70) ? 1 : 1 + below(6); n && said.length < 1300; n--)
		any_chunk();
	packet_send(&said, from_address(), (int)below(PATHS));
}
