// SPDX-License-Identifier: GPL-2.0
#include "address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

static void parse_one(const char *option, const char *text, struct address *out)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *found;

	if (getaddrinfo(text, NULL, &hints, &found) != 0)
		fail(EXIT_USAGE, "%s: '%s' is not an address; expected numeric IPv4 or IPv6 addresses, separated by commas",
		     option, text);
	memset(out, 0, sizeof(*out));
	memcpy(&out->sock, found->ai_addr, found->ai_addrlen);
	snprintf(out->text, sizeof(out->text), "%s", text);
	freeaddrinfo(found);
}

/* "A,B,C" for @option; none twice. */
void addresses_parse(const char *option, const char *list, struct addresses *out)
{
	char *copy = strdup(list), *rest = copy, *one;

	free(out->item);
	out->count = 0;
	out->item = NULL;
	while ((one = strsep(&rest, ",")) != NULL) {
		struct address *grown = realloc(out->item, (out->count + 1) * sizeof(*grown));

		if (!grown)
			fail(EXIT_TRANSFER, "out of memory");
		out->item = grown;
		parse_one(option, one, &grown[out->count]);
		for (size_t i = 0; i < out->count; i++)
			if (memcmp(&grown[i].sock, &grown[out->count].sock, sizeof(grown[i].sock)) == 0)
				fail(EXIT_USAGE, "%s: %s is given twice", option, one);
		out->count++;
	}
	free(copy);
}

static void set_port(struct sockaddr_storage *sock, uint16_t port)
{
	if (sock->ss_family == AF_INET)
		((struct sockaddr_in *)sock)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)sock)->sin6_port = htons(port);
}

void addresses_set_port(struct addresses *list, uint16_t port)
{
	for (size_t i = 0; i < list->count; i++)
		set_port(&list->item[i].sock, port);
}

socklen_t address_size(const struct sockaddr *sock)
{
	return sock->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

bool addresses_have(const struct address *item, size_t count, sa_family_t family)
{
	for (size_t i = 0; i < count; i++)
		if (item[i].sock.ss_family == family)
			return true;
	return false;
}

bool address_is_any(const struct address *a)
{
	if (a->sock.ss_family == AF_INET)
		return ((const struct sockaddr_in *)&a->sock)->sin_addr.s_addr == INADDR_ANY;
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)&a->sock)->sin6_addr);
}

/* The kernel names an interface with every IPv6 address of an incoming packet; only link-local ones need it. */
void address_text(const struct sockaddr *sock, char out[ADDRESS_TEXT])
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sock;
	const char *text = NULL;

	if (sock->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		text = inet_ntop(AF_INET6, &in6->sin6_addr, out, ADDRESS_TEXT);
	else if (getnameinfo(sock, address_size(sock), out, ADDRESS_TEXT, NULL, 0, NI_NUMERICHOST) == 0)
		text = out;
	if (!text)
		snprintf(out, ADDRESS_TEXT, "unknown");
}
