// SPDX-License-Identifier: GPL-2.0
/* SCTP packets out of raw Ethernet frames: nothing of the peer's kernel looks at them. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "wire.h"

#define ETHERNET	14
#define IP		20
#define SCTP		12
#define MTU		1500
#define KEPT		64

static int sockets[PATHS], interfaces[PATHS];
static struct packet kept[KEPT];
static uint32_t kept_count;

void put16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

void put32(uint8_t *to, uint32_t value)
{
	put16(to, value >> 16);
	put16(to + 2, value);
}

uint32_t get16(const uint8_t *from)
{
	return (uint32_t)from[0] << 8 | from[1];
}

uint32_t get32(const uint8_t *from)
{
	return get16(from) << 16 | get16(from + 2);
}

static uint32_t crc32c(const uint8_t *data, size_t length)
{
	static uint32_t table[256];
	uint32_t crc = ~0U;

	for (uint32_t i = 0; !table[255] && i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0x82f63b78 : c >> 1;
		table[i] = c;
	}
	while (length--)
		crc = table[(crc ^ *data++) & 255] ^ crc >> 8;
	return ~crc;
}

static uint32_t ip_checksum(const uint8_t *data, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i += 2)
		sum += get16(data + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

void packet_start(struct packet *p, uint32_t tag)
{
	p->tag = tag;
	p->length = SCTP;
}

uint8_t *chunk(struct packet *p, int type, int flags, size_t length)
{
	uint8_t *at = p->data + p->length;
	size_t padded = (4 + length + 3) & ~(size_t)3;

	if (p->length + padded > PACKET_MAX)
		return NULL;
	memset(at, 0, padded);
	at[0] = (uint8_t)type;
	at[1] = (uint8_t)flags;
	put16(at + 2, (uint32_t)(4 + length));
	p->length += padded;
	return at + 4;
}

void packet_sockets(void)
{
	for (int i = 0; i < PATHS; i++) {
		struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
		int size = 8 << 20, ignored = 1;
		char name[16];

		snprintf(name, sizeof(name), "pB%d", i);
		interfaces[i] = to.sll_ifindex = (int)if_nametoindex(name);
		sockets[i] = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));
		if (sockets[i] < 0 || bind(sockets[i], (struct sockaddr *)&to, sizeof(to)))
			die("packet socket");
		setsockopt(sockets[i], SOL_PACKET, PACKET_IGNORE_OUTGOING, &ignored, sizeof(ignored));
		setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	}
}

/* IPv4, in fragments where it is longer than the MTU. */
static void send_ip(const uint8_t *data, size_t length, int address, int victim_path)
{
	static uint16_t id;
	int path = address % PATHS;
	size_t most = MTU - IP;
	uint8_t frame[ETHERNET + MTU];

	id++;
	most &= ~(size_t)7;
	for (size_t at = 0; at < length; at += most) {
		size_t part = length - at < most ? length - at : most;
		uint8_t *ip = frame + ETHERNET;
		struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = interfaces[path] };

		memset(frame, 0, ETHERNET + IP);
		frame[0] = frame[6] = 2;
		frame[4] = frame[10] = (uint8_t)path;
		frame[5] = 1;
		frame[11] = 2;
		put16(frame + 12, ETH_P_IP);
		ip[0] = 0x45;
		ip[1] = !shared->behave && chance(2) ? 3 : 0;	/* ECN: congestion experienced */
		put16(ip + 2, (uint32_t)(IP + part));
		put16(ip + 4, id);
		put16(ip + 6, (uint32_t)(at / 8) | (at + part < length ? 0x2000 : 0));
		ip[8] = 64;
		ip[9] = IPPROTO_SCTP;
		put32(ip + 12, peer_address(address));
		put32(ip + 16, victim_address(victim_path));
		put16(ip + 10, ip_checksum(ip, IP));
		memcpy(ip + IP, data + at, part);
		sendto(sockets[path], frame, ETHERNET + IP + part, 0, (struct sockaddr *)&to, sizeof(to));
	}
	shared->packets++;
}

void packet_send(struct packet *p, int address, int victim_path)
{
	uint32_t crc;

	if (p->length <= SCTP)
		return;
	put16(p->data, PEER_PORT);
	put16(p->data + 2, VICTIM_PORT);
	put32(p->data + 4, p->tag);
	memset(p->data + 8, 0, 4);
	crc = crc32c(p->data, p->length);
	memcpy(p->data + 8, &crc, sizeof(crc));	/* little endian, as this machine is */
	kept[kept_count++ % KEPT] = *p;
	send_ip(p->data, p->length, address, victim_path);
}

void packet_replay(int address, int home, int victim_path)
{
	const struct packet *p = &kept[below(kept_count < KEPT ? kept_count : KEPT)];

	if (p->data[SCTP] == 1 || p->data[SCTP] == 10)	/* INIT, COOKIE ECHO */
		address = home;
	if (kept_count && address >= 0)
		send_ip(p->data, p->length, address, victim_path);
}

void packets_receive(int ms, void (*take)(const uint8_t *sctp, size_t length, int address))
{
	static uint8_t frame[70000];
	struct pollfd waiting[PATHS];

	for (int i = 0; i < PATHS; i++)
		waiting[i] = (struct pollfd){ .fd = sockets[i], .events = POLLIN };
	if (poll(waiting, PATHS, ms) <= 0)
		return;
	for (int i = 0; i < PATHS; i++) {
		for (int k = 0; k < 64; k++) {
			struct sockaddr_ll from;
			socklen_t size = sizeof(from);
			ssize_t got = recvfrom(sockets[i], frame, sizeof(frame), MSG_DONTWAIT,
					       (struct sockaddr *)&from, &size);

			if (got < 0)
				break;
			if (from.sll_pkttype == PACKET_OUTGOING || got < ETHERNET + IP + SCTP ||
			    frame[ETHERNET + 9] != IPPROTO_SCTP || (get16(frame + ETHERNET + 6) & 0x3fff))
				continue;
			take(frame + ETHERNET + IP, get16(frame + ETHERNET + 2) - IP,
			     peer_number(get32(frame + ETHERNET + 16), i));
		}
	}
}
