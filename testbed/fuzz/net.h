/* SPDX-License-Identifier: GPL-2.0 */
/* Two namespaces joined by paths, 10.10.0.0/16 and the next ones, and the settings in them.
 *
 * The caller's namespace is the victim's: interface vA0 has 10.10.0.1, vA1 10.11.0.1, and so on. The others end in
 * pB0, pB1, ... in the namespace of the process PEER.
 */
#ifndef FUZZ_NET_H
#define FUZZ_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PATHS		3
#define ADDRESSES	500

uint32_t victim_address(int path);
uint32_t peer_address(int number);	/* on path number % PATHS */
int peer_number(uint32_t address, int path);	/* the reverse; PATH if it is none of the peer's */

void own_namespace(void);
void join(pid_t peer, bool peer_has_stack);
bool setting(const char *name, const char *value);
bool setting_number(const char *name, uint32_t value);
void sane_settings(void);
void draw_settings(void);		/* on top of the sane ones; nothing that delays for minutes */
void wild_setting(void);		/* one key, any value */
bool associations_left(void);

#endif
