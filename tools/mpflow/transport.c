// SPDX-License-Identifier: GPL-2.0
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "clock.h"
#include "fail.h"
#include "sockopt.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP	262
#endif

#define BACKLOG	1024
/* Some RTOs of a path that works; a path that does not must not keep the program. */
#define LINGER_S	10
/* A call that blocks gives up after this long with nothing done: there are other things to wait for. */
#define PATIENCE_NS	(NS_PER_S / 5)

static const int proto_numbers[] = { IPPROTO_SCTP, IPPROTO_TCP, IPPROTO_MPTCP };

/* The FORCE variant may exceed net.core.[rw]mem_max, but needs CAP_NET_ADMIN. */
static void set_buffer(int fd, int force, int plain, int64_t bytes, const char *option)
{
	int value = (int)bytes;

	if (bytes == NOT_GIVEN)
		return;
	if (setsockopt(fd, SOL_SOCKET, force, &value, sizeof(value)) != 0)
		sockopt_set(fd, SOL_SOCKET, plain, &value, sizeof(value), option);
}

static void set_options(int fd, const struct options *o)
{
	set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, o->sndbuf, "--sndbuf");
	set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, o->rcvbuf, "--rcvbuf");
	if (o->proto == PROTO_SCTP)
		assoc_set_options(fd, o);
	else if (o->nodelay)
		transport_nodelay(fd, o->proto);
	for (size_t i = 0; i < o->raw_count; i++) {
		const struct raw_option *raw = &o->raw[i];

		if (setsockopt(fd, raw->level, raw->name, raw->value, raw->len) != 0)
			fail(EXIT_USAGE, "--sockopt %s: refused by the kernel: %s", raw->text, strerror(errno));
	}
}

/* Each address by itself, so that an error can name it. */
static void bind_all(int fd, const struct address *own, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct sockaddr_storage sock = own[i].sock;
		struct sockaddr *at = (struct sockaddr *)&sock;
		int failed = i == 0 ? bind(fd, at, address_size(at)) : sctp_bindx(fd, at, 1, SCTP_BINDX_ADD_ADDR);

		if (failed)
			fail(EXIT_USAGE, "--bind: %s: %s", own[i].text, strerror(errno));
	}
}

/* One socket for both families: IPv4 is to be let in, and to be called by its own name. */
static void mix_families(int fd)
{
	int off = 0;

	sockopt_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off), "IPV6_V6ONLY");
	sockopt_set(fd, IPPROTO_SCTP, SCTP_I_WANT_MAPPED_V4_ADDR, &off, sizeof(off), "SCTP_I_WANT_MAPPED_V4_ADDR");
}

/* A socket with all options, bound to @count of the own addresses; ends the program when that cannot be. */
static int open_bound(const struct options *o, const struct address *own, size_t count)
{
	bool ipv4 = addresses_have(own, count, AF_INET), ipv6 = addresses_have(own, count, AF_INET6);
	int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, proto_numbers[o->proto]);
	int on = 1;

	if (fd < 0)
		fail(EXIT_USAGE, "--proto: no %s here: %s%s", proto_names[o->proto], strerror(errno),
		     o->proto == PROTO_SCTP ? "; try 'modprobe sctp'" : "");
	if (ipv4 && ipv6)
		mix_families(fd);
	set_options(fd, o);
	if (o->role == ROLE_RECV && o->proto != PROTO_SCTP)
		sockopt_set(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on), "SO_REUSEADDR");
	bind_all(fd, own, count);
	return fd;
}

/* The sender's socket, not yet connected. */
int transport_open(struct options *o)
{
	addresses_set_port(&o->to, o->port);
	addresses_set_port(&o->primary, o->port);
	return open_bound(o, o->bind.item, o->bind.count);
}

/*
 * Fill @listeners, room for o->bind.count, and return how many there are: one for
 * all addresses with SCTP, else one for each. Non-blocking and listening.
 */
size_t transport_listen(struct options *o, int *listeners)
{
	size_t together = o->proto == PROTO_SCTP ? o->bind.count : 1;
	size_t count = 0;

	addresses_set_port(&o->bind, o->port);
	for (size_t i = 0; i < o->bind.count; i += together) {
		int fd = open_bound(o, &o->bind.item[i], together);

		if (listen(fd, BACKLOG) != 0)
			fail(EXIT_USAGE, "--port: cannot listen on %d: %s", (int)o->port, strerror(errno));
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
		listeners[count++] = fd;
	}
	return count;
}

/* @name: SO_SNDTIMEO or SO_RCVTIMEO. */
static void set_timeout(int fd, int name, int64_t ns)
{
	struct timeval t = { .tv_sec = ns / NS_PER_S, .tv_usec = ns % NS_PER_S / 1000 };

	setsockopt(fd, SOL_SOCKET, name, &t, sizeof(t));
}

static int connect_all(int fd, const struct addresses *to)
{
	uint8_t packed[to->count * sizeof(struct sockaddr_in6)], *at = packed;

	for (size_t i = 0; i < to->count; i++) {
		socklen_t len = address_size((struct sockaddr *)&to->item[i].sock);

		memcpy(at, &to->item[i].sock, len);
		at += len;
	}
	return sctp_connectx(fd, (struct sockaddr *)packed, to->count, NULL);
}

/* 0 or errno; ETIMEDOUT when @deadline (steady clock) passes. */
int transport_connect(int fd, const struct options *o, int64_t deadline)
{
	const struct sockaddr *first = (const struct sockaddr *)&o->to.item[0].sock;
	int failed, error;

	if (deadline != NEVER) {
		int64_t left = deadline - steady_ns();

		if (left < 1000)
			return ETIMEDOUT;
		set_timeout(fd, SO_SNDTIMEO, left);
	}
	failed = o->proto == PROTO_SCTP ? connect_all(fd, &o->to) : connect(fd, first, address_size(first));
	error = failed ? errno : 0;
	set_timeout(fd, SO_SNDTIMEO, PATIENCE_NS);
	return error == EINPROGRESS ? ETIMEDOUT : error;
}

/* The next connection, or -1 when there is none (any more). */
int transport_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0)
		set_timeout(fd, SO_RCVTIMEO, PATIENCE_NS);
	return fd;
}

void transport_nodelay(int fd, enum proto proto)
{
	int on = 1;

	if (proto == PROTO_SCTP)
		sockopt_set(fd, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof(on), "--nodelay");
	else
		sockopt_set(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on), "--nodelay");
}

/*
 * Close when the last packets of SCTP's closing have been exchanged (the receiver
 * waits for SHUTDOWN COMPLETE), so that the next run finds the port free.
 */
void transport_close(int fd)
{
	struct linger last = { .l_onoff = 1, .l_linger = LINGER_S };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &last, sizeof(last));
	close(fd);
}

/* Close so that the peer knows at once that nothing more will come (ABORT, RST). */
void transport_abort(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static void write_addresses(struct json *j, const char *key, struct sockaddr *list, int count)
{
	const char *at = (const char *)list;

	json_open(j, key, '[');
	for (int i = 0; i < count; i++) {
		const struct sockaddr *sock = (const struct sockaddr *)at;
		char text[ADDRESS_TEXT];

		address_text(sock, text);
		json_string(j, NULL, text);
		at += address_size(sock);
	}
	json_close(j, ']');
}

static void write_ends(struct json *j, int fd, enum proto proto)
{
	struct sockaddr_storage sock = { 0 };
	socklen_t len = sizeof(sock);
	struct sockaddr *list;
	int count;

	if (proto == PROTO_SCTP) {
		count = sctp_getladdrs(fd, 0, &list);
		if (count > 0) {
			write_addresses(j, "local", list, count);
			sctp_freeladdrs(list);
		}
		count = sctp_getpaddrs(fd, 0, &list);
		if (count > 0) {
			write_addresses(j, "peer", list, count);
			sctp_freepaddrs(list);
		}
		return;
	}
	if (getsockname(fd, (struct sockaddr *)&sock, &len) == 0)
		write_addresses(j, "local", (struct sockaddr *)&sock, 1);
	len = sizeof(sock);
	if (getpeername(fd, (struct sockaddr *)&sock, &len) == 0)
		write_addresses(j, "peer", (struct sockaddr *)&sock, 1);
}

/* The event "connected": both ends, every option as the kernel has it, every path. */
void transport_write_connected(struct json *j, int fd, const struct options *o, int association)
{
	struct snapshot snapshot = { 0 };
	int sndbuf = 0, rcvbuf = 0;

	json_event(j, "connected");
	json_seconds(j, "t", wall_ns());
	json_string(j, "role", o->role == ROLE_SEND ? "send" : "recv");
	json_string(j, "proto", proto_names[o->proto]);
	json_integer(j, "association", association);
	write_ends(j, fd, o->proto);
	json_open(j, "options", '{');
	if (sockopt_get(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf)))
		json_integer(j, "sndbuf", sndbuf);
	if (sockopt_get(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf)))
		json_integer(j, "rcvbuf", rcvbuf);
	if (o->proto == PROTO_SCTP)
		assoc_write_options(j, fd, o);
	json_close(j, '}');
	if (o->proto == PROTO_SCTP) {
		assoc_snapshot(fd, &snapshot);
		assoc_write_snapshot(j, &snapshot);
		assoc_snapshot_free(&snapshot);
	}
	json_event_end(j);
	json_flush(j);
}
