/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of fuzz-wire: a victim that uses the kernel's SCTP and a peer that makes its packets itself. */
#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common.h"
#include "net.h"

#define TAIL_MESSAGES	100	/* sent when the peer behaves: all have to arrive */
#define TAIL_MARK	"tail of fuzz"
#define VICTIM_PORT	5000
#define PEER_PORT	6000
#define PACKET_MAX	9000

/* State that victim and peer, two processes, share. */
struct shared {
	volatile bool behave, done, established, tail_sent;
	volatile bool tail_seen[TAIL_MESSAGES];
	volatile uint64_t packets;
	volatile uint32_t aborts, abort_cause;	/* the victim's; its first cause, with its words */
	char abort_text[64];
	volatile uint32_t rebirths;		/* handshakes after the first */
	volatile bool victim_lost;		/* the association ended before it should */
	int addresses;
	bool peer_connects;
	double hostile_s;
	/* While it is hostile the peer answers all, or only the copies of DATA, or on all paths but the last only
	 * HEARTBEATs.
	 */
	enum { ALL, COPIES, HEARTBEATS } answers;
	uint32_t changes;			/* of the state of a path, as the program was told */
};

extern struct shared *shared;

/* --- packets: packet.c --- */
struct packet {
	uint32_t tag;
	size_t length;
	uint8_t data[PACKET_MAX];
};

void put16(uint8_t *to, uint32_t value);
void put32(uint8_t *to, uint32_t value);
uint32_t get16(const uint8_t *from);
uint32_t get32(const uint8_t *from);
void packet_start(struct packet *p, uint32_t tag);
/* Room for a chunk with a body of LENGTH bytes; NULL when it does not fit any more. */
uint8_t *chunk(struct packet *p, int type, int flags, size_t length);
void packet_sockets(void);
void packet_send(struct packet *p, int address, int victim_path);
/* One of the last ones, once more; from the address HOME if it is of a handshake, not at all if that is -1. */
void packet_replay(int address, int home, int victim_path);
/* Wait up to MS and call TAKE with each SCTP packet and the number of the peer's address that it came to. */
void packets_receive(int ms, void (*take)(const uint8_t *sctp, size_t length, int address));

/* --- the peer: peer.c --- */
#define SEEN 65536		/* TSNs that are remembered */

struct peer {
	enum { CLOSED, INIT_SENT, COOKIE_SENT, OPEN } state;
	uint32_t victim_tag, own_tag;
	uint32_t first_tsn, next_tsn, acked;	/* of ours */
	uint32_t cum, highest, cum_told;	/* of the victim's; the highest cum that was told */
	uint32_t seen[SEEN];			/* tsn + 1 where it has been received */
	uint32_t sent[SEEN];			/* likewise where it came, but for COPIES was not taken */
	uint32_t asconf_serial, victim_serial, reconf_serial;
	uint16_t ssn[16];
	uint8_t heartbeats[32][512];
	size_t heartbeat_length[32];
	uint32_t heartbeat_count;
	uint8_t cookie[8000];
	size_t cookie_length;
	bool lethal;				/* sends what ends an association */
	bool mild;				/* mostly tells the truth */
	bool with_asconf, with_restart;
	bool interleaving;			/* I-DATA, as the victim wants */
	unsigned int lost_pct[PATHS];
	double silent_until[PATHS];
	bool gone[ADDRESSES];			/* was asked to be removed, at any time */
};

extern struct peer peer;

void peer_live(void);
void peer_send_init(int address);
/* NUMBER, or one after it that was never asked to be removed, -1 if there is none left: from an address that its
 * association has lost the peer would set up another one beside it.
 */
int peer_home(int number);
bool peer_has(uint32_t tsn);
void honest_sack(struct packet *p, uint32_t window, int flags, size_t blocks_max);

/* --- what a hostile peer says: hostile.c --- */
void hostile_sack(struct packet *p);
void hostile_packet(void);

/* --- the program: victim.c --- */
const char *victim_live(void);		/* how it ended */

#endif
