/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MPFLOW_ADDRESS_H
#define MPFLOW_ADDRESS_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT	(INET6_ADDRSTRLEN + IF_NAMESIZE)

struct address {
	struct sockaddr_storage sock;
	char text[ADDRESS_TEXT];
};

struct addresses {
	size_t count;
	struct address *item;
};

void addresses_parse(const char *option, const char *list, struct addresses *out);
void addresses_set_port(struct addresses *list, uint16_t port);
bool addresses_have(const struct address *item, size_t count, sa_family_t family);
bool address_is_any(const struct address *a);
void address_text(const struct sockaddr *sock, char out[ADDRESS_TEXT]);
socklen_t address_size(const struct sockaddr *sock);

#endif
