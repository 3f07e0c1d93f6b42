// SPDX-License-Identifier: GPL-2.0
/*
 * The library that `sctp-multipath run` preloads: socket() sets the options that SCTPMP_RUN_OPTIONS lists on each
 * SCTP socket, and with SCTPMP_RUN_CONVERT=1 makes stream sockets of TCP SCTP's. Errors are told once, on stderr;
 * the program goes on.
 *
 * SCTPMP_RUN_OPTIONS: NUMBER:HEX, separated by commas; the bytes of HEX are those of the option.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define OPTIONS_MAX 64
#define BYTES_MAX 192
#define SCTP_NODELAY_NUMBER 3
/* No message may be larger than the send buffer. A half of it lets one be filled while the other is sent. */
#define PIECE_MIN 4096

struct option {
	int number;
	socklen_t size;
	unsigned char bytes[BYTES_MAX];
};

static struct option options[OPTIONS_MAX];
static size_t count;
static bool convert;

static int (*real_socket)(int, int, int);
static int (*real_setsockopt)(int, int, int, const void *, socklen_t);
static int (*real_getsockopt)(int, int, int, void *, socklen_t *);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_send)(int, const void *, size_t, int);
static ssize_t (*real_sendto)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static ssize_t (*real_writev)(int, const struct iovec *, int);

static void *find(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found) {
		fprintf(stderr, "sctp-multipath run: %s: not in this C library\n", name);
		_exit(127);
	}
	return found;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* One NUMBER:HEX; false where it is none. */
static bool read_option(const char *word, struct option *into)
{
	char *rest;
	long number = strtol(word, &rest, 10);

	if (rest == word || *rest++ != ':' || number < 0 || number > INT_MAX)
		return false;
	into->number = (int)number;
	for (into->size = 0; rest[0]; rest += 2) {
		int high = digit(rest[0]), low = high < 0 ? -1 : digit(rest[1]);

		if (low < 0 || into->size == BYTES_MAX)
			return false;
		into->bytes[into->size++] = (unsigned char)(high << 4 | low);
	}
	return into->size > 0;
}

static void read_options(const char *text)
{
	char *copy = strdup(text), *place = NULL;

	for (char *word = copy ? strtok_r(copy, ",", &place) : NULL; word; word = strtok_r(NULL, ",", &place)) {
		if (count == OPTIONS_MAX || !read_option(word, &options[count])) {
			fprintf(stderr, "sctp-multipath run: SCTPMP_RUN_OPTIONS: got '%s', expected NUMBER:HEX, at most %d\n",
				word, OPTIONS_MAX);
			_exit(127);
		}
		count++;
	}
	free(copy);
}

/* dlsym() gives a pointer to an object; POSIX lets it be that of a function. */
#define FIND(name) (*(void **)&real_##name = find(#name))

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("SCTPMP_RUN_OPTIONS"), *asked = getenv("SCTPMP_RUN_CONVERT");

	FIND(socket);
	FIND(setsockopt);
	FIND(getsockopt);
	FIND(write);
	FIND(send);
	FIND(sendto);
	FIND(sendmsg);
	FIND(writev);
	convert = asked && !strcmp(asked, "1");
	if (text)
		read_options(text);
}

static void set_options(int fd)
{
	static bool told;
	int before = errno;

	for (size_t i = 0; i < count; i++) {
		if (!real_setsockopt(fd, IPPROTO_SCTP, options[i].number, options[i].bytes, options[i].size) || told)
			continue;
		told = true;
		fprintf(stderr, "sctp-multipath run: SCTP option %d refused: %s\n", options[i].number, strerror(errno));
	}
	errno = before;
}

static bool is_inet(int domain)
{
	return domain == AF_INET || domain == AF_INET6;
}

/* Whether this is what a program asks for that wants TCP. */
static bool wants_tcp(int domain, int type, int protocol)
{
	return is_inet(domain) && (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM &&
	       (!protocol || protocol == IPPROTO_TCP);
}

int socket(int domain, int type, int protocol)
{
	int fd;

	if (convert && wants_tcp(domain, type, protocol))
		protocol = IPPROTO_SCTP;
	fd = real_socket(domain, type, protocol);
	if (fd >= 0 && is_inet(domain) && protocol == IPPROTO_SCTP)
		set_options(fd);
	return fd;
}

static bool is_converted(int fd)
{
	int protocol = 0, before = errno;
	socklen_t size = sizeof(protocol);
	bool found;

	if (!convert)
		return false;
	found = !real_getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) && protocol == IPPROTO_SCTP;
	errno = before;
	return found;
}

/* TCP's options: Nagle's algorithm is SCTP's as well, HEARTBEATs replace TCP_KEEP*, others mean nothing. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	if (level != IPPROTO_TCP || !is_converted(fd))
		return real_setsockopt(fd, level, name, value, size);
	if (name == TCP_NODELAY)
		return real_setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY_NUMBER, value, size);
	return 0;
}

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict size)
{
	if (level == IPPROTO_TCP && name == TCP_NODELAY && is_converted(fd))
		return real_getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY_NUMBER, value, size);
	return real_getsockopt(fd, level, name, value, size);
}

/* TCP takes a part of what is more than the buffer; SCTP takes none. How much to offer it, 0: it is not that. */
static size_t piece(int fd, ssize_t done)
{
	int room = 0;
	socklen_t size = sizeof(room);

	if (done >= 0 || errno != EMSGSIZE || !is_converted(fd))
		return 0;
	if (real_getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size) || room < 2 * PIECE_MIN)
		return PIECE_MIN;
	return (size_t)room / 2;
}

ssize_t write(int fd, const void *data, size_t size)
{
	ssize_t done = real_write(fd, data, size);
	size_t most = piece(fd, done);

	return most && most < size ? real_write(fd, data, most) : done;
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
	ssize_t done = real_send(fd, data, size, flags);
	size_t most = piece(fd, done);

	return most && most < size ? real_send(fd, data, most, flags) : done;
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
	ssize_t done = real_sendto(fd, data, size, flags, to, length);
	size_t most = piece(fd, done);

	return most && most < size ? real_sendto(fd, data, most, flags, to, length) : done;
}

/* The first of the pieces that has anything, cut. */
static struct iovec first_of(const struct iovec *pieces, size_t number, size_t most)
{
	struct iovec one = { 0 };

	for (size_t i = 0; i < number && !one.iov_len; i++)
		one = pieces[i];
	if (one.iov_len > most)
		one.iov_len = most;
	return one;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t done = real_sendmsg(fd, message, flags);
	size_t most = piece(fd, done);
	struct msghdr part;
	struct iovec one;

	if (!most)
		return done;
	one = first_of(message->msg_iov, message->msg_iovlen, most);
	part = *message;
	part.msg_iov = &one;
	part.msg_iovlen = 1;
	return real_sendmsg(fd, &part, flags);
}

ssize_t writev(int fd, const struct iovec *pieces, int number)
{
	ssize_t done = real_writev(fd, pieces, number);
	size_t most = piece(fd, done);
	struct iovec one;

	if (!most)
		return done;
	one = first_of(pieces, (size_t)number, most);
	return real_write(fd, one.iov_base, one.iov_len);
}
