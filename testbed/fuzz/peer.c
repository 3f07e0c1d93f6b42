// SPDX-License-Identifier: GPL-2.0
/* The peer's state, its handshake, and what it answers. */
#include <string.h>

#include "wire.h"

#define HONEST_WINDOW	500000
#define HONEST_EVERY_S	0.2
#define INIT_EVERY_S	1.0

enum { INIT = 1, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT, SHUTDOWN, SHUTDOWN_ACK, COOKIE_ECHO = 10,
       COOKIE_ACK, ECNE, CWR, SHUTDOWN_COMPLETE, I_DATA = 64, ASCONF_ACK = 128, FORWARD_TSN = 192,
       ASCONF = 0xc1, I_FORWARD_TSN = 0xc2 };

struct peer peer;
static struct peer before;	/* what a restart would end; CLOSED: there is none under way */
static struct packet reply;
static int heard_on;		/* our address that the last packet came to */

static bool later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

bool peer_has(uint32_t tsn)
{
	return peer.seen[tsn % SEEN] == tsn + 1;
}

static void advance(void)
{
	while (peer_has(peer.cum + 1))
		peer.cum++;
	if (later(peer.cum, peer.highest))
		peer.highest = peer.cum;
}

static void note_cum(uint32_t cum)
{
	if (later(cum, peer.cum_told))
		peer.cum_told = cum;
}

void honest_sack(struct packet *p, uint32_t window, int flags, size_t blocks_max)
{
	uint8_t blocks[4 * 350];
	size_t n = 0;
	uint32_t tsn = peer.cum + 1;
	uint8_t *body;

	while (!later(tsn, peer.highest) && n < blocks_max && n < 350) {
		uint32_t first;

		while (!later(tsn, peer.highest) && !peer_has(tsn))
			tsn++;
		if (later(tsn, peer.highest))
			break;
		first = tsn;
		while (!later(tsn, peer.highest) && peer_has(tsn))
			tsn++;
		put16(blocks + 4 * n, first - peer.cum);
		put16(blocks + 4 * n + 2, tsn - 1 - peer.cum);
		n++;
	}
	body = chunk(p, SACK, flags, 12 + 4 * n);
	if (!body)
		return;
	put32(body, peer.cum);
	put32(body + 4, window);
	put16(body + 8, (uint32_t)n);
	memcpy(body + 12, blocks, 4 * n);
	note_cum(peer.cum);
}

static void forget_victim(uint32_t first_tsn)
{
	memset(peer.seen, 0, sizeof(peer.seen));
	peer.cum = peer.highest = peer.cum_told = first_tsn - 1;
	peer.victim_serial = first_tsn - 1;
}

static void forget_own(void)
{
	peer.own_tag = draw() | 1;
	peer.first_tsn = peer.next_tsn = peer.asconf_serial = draw();
	peer.reconf_serial = peer.first_tsn;
	peer.acked = peer.first_tsn - 1;
	memset(peer.ssn, 0, sizeof(peer.ssn));
}

/* An INIT or INIT ACK with all addresses and extensions. */
static void put_init(struct packet *p, int type)
{
	static const uint8_t extensions[] = { 0x80, 0x08, 0, 9, 0xc1, 0x80, 0xc0, 0x82, 0x40, 0, 0, 0 };
	size_t cookie = type == INIT_ACK ? 8 : 0;
	uint8_t *at = chunk(p, type, 0, 16 + cookie + 8 * (size_t)shared->addresses + 8 + sizeof(extensions));

	put32(at, peer.own_tag);
	put32(at + 4, HONEST_WINDOW);
	put16(at + 8, 10);
	put16(at + 10, 10);
	put32(at + 12, peer.first_tsn);
	at += 16;
	if (cookie) {
		put16(at, 7);
		put16(at + 2, 8);
		at += cookie;
	}
	for (int i = 0; i < shared->addresses; i++, at += 8) {
		put16(at, 5);
		put16(at + 2, 8);
		put32(at + 4, peer_address(i));
	}
	put16(at, 0x8000);	/* ECN */
	put16(at + 2, 4);
	put16(at + 4, 0xc000);	/* FORWARD-TSN */
	put16(at + 6, 4);
	memcpy(at + 8, extensions, sizeof(extensions));
}

int peer_home(int number)
{
	for (int i = 0; i < shared->addresses; i++) {
		int home = (number + i) % shared->addresses;

		if (!peer.gone[home])
			return home;
	}
	return -1;
}

void peer_send_init(int address)
{
	address = peer_home(address);
	if (address < 0)
		return;
	if (peer.state == OPEN) {
		shared->rebirths = shared->rebirths + 1;
		before = peer;
	}
	forget_own();
	packet_start(&reply, 0);
	put_init(&reply, INIT);
	peer.state = INIT_SENT;
	packet_send(&reply, address, address % PATHS);
}

static void send_reply(void)
{
	packet_send(&reply, heard_on, heard_on % PATHS);
}

static void echo(int type, const uint8_t *body, size_t length)
{
	uint8_t *at;

	packet_start(&reply, peer.victim_tag);
	at = chunk(&reply, type, 0, length);
	if (at && length)
		memcpy(at, body, length);
	send_reply();
}

/* Whether an INIT or INIT ACK lists this chunk as supported. */
static bool extension(const uint8_t *body, size_t length, int type)
{
	for (size_t at = 16; at + 4 <= length; at += (get16(body + at + 2) + 3) & ~3U) {
		size_t size = get16(body + at + 2);

		if (size < 4 || at + size > length)
			break;
		if (get16(body + at) == 0x8008 && memchr(body + at + 4, type, size - 4))
			return true;
	}
	return false;
}

static void take_init(const uint8_t *body, size_t length)
{
	if (peer.state == OPEN && !shared->behave && chance(50))
		return;
	if (peer.state == OPEN)
		shared->rebirths = shared->rebirths + 1;
	peer.victim_tag = get32(body);
	forget_own();
	forget_victim(get32(body + 12));
	peer.interleaving = extension(body, length, 64);
	packet_start(&reply, peer.victim_tag);
	put_init(&reply, INIT_ACK);
	send_reply();
}

static void take_init_ack(const uint8_t *body, size_t length)
{
	if (peer.state != INIT_SENT)
		return;
	peer.victim_tag = get32(body);
	forget_victim(get32(body + 12));
	peer.interleaving = extension(body, length, 64);
	for (size_t at = 16; at + 4 <= length; at += (get16(body + at + 2) + 3) & ~3U) {
		size_t size = get16(body + at + 2);

		if (size < 4 || at + size > length)
			break;
		if (get16(body + at) == 7 && size - 4 <= sizeof(peer.cookie)) {
			peer.cookie_length = size - 4;
			memcpy(peer.cookie, body + at + 4, size - 4);
		}
	}
	peer.state = COOKIE_SENT;
	echo(COOKIE_ECHO, peer.cookie, peer.cookie_length);
}

/* The victim refuses to restart, as when the INIT has addresses that it was asked to remove: all is as before. */
static void refused(void)
{
	peer = before;
	before.state = CLOSED;
}

static void opened(void)
{
	before.state = CLOSED;
	peer.state = OPEN;
	shared->established = true;
}

/* Is DATA passed over, since this peer answers only something else? */
static bool passes_over(uint32_t tsn, int path)
{
	uint32_t *sent = &peer.sent[tsn % SEEN];
	bool first = *sent != tsn + 1;

	if (shared->behave)
		return false;
	*sent = tsn + 1;
	return (shared->answers == COPIES && first) || (shared->answers == HEARTBEATS && path < PATHS - 1);
}

static void take_data(const uint8_t *body, size_t length, size_t header, int path)
{
	uint32_t tsn = get32(body);

	if (!shared->behave && chance(peer.lost_pct[path]))
		return;
	if (later(tsn, peer.cum) && tsn - peer.cum < SEEN - 1) {
		peer.seen[tsn % SEEN] = tsn + 1;
		if (later(tsn, peer.highest))
			peer.highest = tsn;
		advance();
	}
	if (length >= header + sizeof(TAIL_MARK) + 4 && !memcmp(body + header, TAIL_MARK, sizeof(TAIL_MARK))) {
		uint32_t number = get32(body + header + sizeof(TAIL_MARK));

		if (number < TAIL_MESSAGES)
			shared->tail_seen[number] = true;
	}
}

static void take_heartbeat(const uint8_t *body, size_t length)
{
	uint32_t i = peer.heartbeat_count++ % 32;

	if (length <= sizeof(peer.heartbeats[0])) {
		memcpy(peer.heartbeats[i], body, length);
		peer.heartbeat_length[i] = length;
	}
	if (shared->behave || shared->answers || chance(70))
		echo(HEARTBEAT_ACK, body, length);
}

/* Take every cumulatively acknowledged TSN as received: an honest receiver does not renege on a cumulative TSN. */
static void keep_word(void)
{
	while (later(peer.cum_told, peer.cum))
		peer.cum++;
	advance();
}

static void acknowledge(void)
{
	packet_start(&reply, peer.victim_tag);
	if (shared->behave) {
		keep_word();
		honest_sack(&reply, HONEST_WINDOW, 0, 350);
		send_reply();
		return;
	}
	if (!chance(peer.mild ? 95 : 50))
		return;
	if (chance(peer.mild ? 95 : 50))
		honest_sack(&reply, peer.mild ? 3000000 : 300000, (int)below(4) << 6, chance(50) ? 16 : 350);
	else
		hostile_sack(&reply);
	packet_send(&reply, chance(70) ? heard_on : (int)below((uint32_t)shared->addresses), (int)below(PATHS));
}

static void note_abort(const uint8_t *cause, size_t length)
{
	size_t n = 0;

	shared->abort_cause = get16(cause);
	for (size_t i = 4; i < length && n + 1 < sizeof(shared->abort_text); i++)
		if (cause[i] == ' ' || (cause[i] >= 'a' && cause[i] <= 'z'))
			shared->abort_text[n++] = (char)cause[i];
}

/* Returns whether the chunk asks for a SACK. */
static bool take_chunk(int type, int flags, const uint8_t *body, size_t length, int path, uint32_t tag)
{
	bool behave = shared->behave;

	switch (type) {
	case 0:
	case I_DATA:
		if (passes_over(get32(body), path))
			break;
		take_data(body, length, type ? 16 : 12, path);
		return true;
	case INIT:
		if (length >= 16)
			take_init(body, length);
		break;
	case INIT_ACK:
		take_init_ack(body, length);
		break;
	case COOKIE_ECHO:
		opened();
		echo(COOKIE_ACK, NULL, 0);
		break;
	case COOKIE_ACK:
		if (peer.state == COOKIE_SENT)
			opened();
		break;
	case SACK:
	case SHUTDOWN:
		if (later(get32(body), peer.acked) && !later(get32(body), peer.next_tsn))
			peer.acked = get32(body);
		if (type == SHUTDOWN && (behave || chance(30)))
			echo(SHUTDOWN_ACK, NULL, 0);
		break;
	case HEARTBEAT:
		take_heartbeat(body, length);
		break;
	case ABORT:
		if (before.state == OPEN && tag == peer.own_tag) {
			refused();
			break;
		}
		if (flags & 1 || tag != (before.state == OPEN ? before.own_tag : peer.own_tag))	/* one of ours reflected */
			break;
		if (!shared->aborts && length >= 4)
			note_abort(body, length);
		shared->aborts = shared->aborts + 1;
		peer.state = before.state = CLOSED;
		break;
	case SHUTDOWN_ACK:
		echo(SHUTDOWN_COMPLETE, NULL, 0);
		break;
	case ECNE:
		if (behave || chance(50))
			echo(CWR, body, 4);
		break;
	case FORWARD_TSN:
	case I_FORWARD_TSN:
		if (later(get32(body), peer.cum) && get32(body) - peer.cum < SEEN - 1) {
			peer.cum = get32(body);
			advance();
		}
		return true;
	case ASCONF:
		peer.victim_serial = get32(body);
		if (behave || chance(60))
			echo(ASCONF_ACK, body, 4);
		break;
	case 130:	/* RE-CONFIG: answered with "nothing to do" */
		if (length >= 8 && (behave || chance(60))) {
			uint8_t answer[12] = { 0, 16, 0, 12 };

			memcpy(answer + 4, body + 4, 4);
			echo(130, answer, sizeof(answer));
		}
		break;
	}
	return false;
}

static void take_packet(const uint8_t *sctp, size_t length, int address)
{
	int path = address % PATHS;
	bool sack = false;

	if (get16(sctp + 2) != PEER_PORT || (!shared->behave && now_s() < peer.silent_until[path]))
		return;
	/* Not an ABORT for what came from an address that the association has lost. */
	if (sctp[12] != ABORT)
		heard_on = address;
	for (size_t at = 12; at + 4 <= length;) {
		size_t size = get16(sctp + at + 2);

		if (size < 4 || at + size > length)
			break;
		sack |= take_chunk(sctp[at], sctp[at + 1], sctp + at + 4, size - 4, path, get32(sctp + 4));
		at += (size + 3) & ~(size_t)3;
	}
	if (sack && peer.state == OPEN)
		acknowledge();
}

/* Keep a well-behaved association going: SACKs now and then, FORWARD-TSN past our chunks that the victim misses. */
static void stay_honest(void)
{
	static double last;
	double now = now_s();

	if (now - last < HONEST_EVERY_S)
		return;
	last = now;
	if (peer.state == INIT_SENT)
		peer_send_init(0);
	else if (peer.state == COOKIE_SENT)
		echo(COOKIE_ECHO, peer.cookie, peer.cookie_length);
	if (peer.state != OPEN)
		return;
	acknowledge();
	packet_start(&reply, peer.victim_tag);
	if (later(peer.next_tsn, peer.acked + 1)) {	/* skip what is missing: FORWARD-TSN */
		uint8_t *body = chunk(&reply, peer.interleaving ? I_FORWARD_TSN : FORWARD_TSN, 0, 4);

		put32(body, peer.next_tsn - 1);
	}
	send_reply();
}

void peer_live(void)
{
	double start, last_init = 0, last_said = 0;

	draw_start(2);
	peer.lethal = chance(12);
	peer.mild = chance(45);
	peer.with_asconf = chance(40);
	peer.with_restart = chance(25);
	for (int i = 0; i < PATHS; i++)
		peer.lost_pct[i] = chance(50) ? 0 : below(peer.mild ? 5 : 30);
	if (shared->answers) {
		peer.lethal = peer.with_asconf = peer.with_restart = false;
		peer.mild = true;
		memset(peer.lost_pct, 0, sizeof(peer.lost_pct));
	}
	start = now_s();
	while (!shared->done) {
		double now = now_s();

		packets_receive(shared->behave ? 50 : 1 + (int)below(chance(80) ? 6 : 60), take_packet);
		if (shared->behave) {
			stay_honest();
			continue;
		}
		if (peer.state != OPEN && shared->peer_connects && now - last_init > INIT_EVERY_S &&
		    !shared->established && now - start < 20) {
			last_init = now;
			peer_send_init(0);
		}
		if (now - last_said < 0.001)	/* answers at once must not stop virtual time */
			continue;
		last_said = now;
		for (int n = (int)below(peer.mild ? 1 : 8); n >= 0 && peer.state == OPEN; n--)
			hostile_packet();
	}
}
