// SPDX-License-Identifier: GPL-2.0
/* Parts of SCTP's structures that code outside sctp.ko reads; that code was not built with our headers. This file is built
 * with both, ours and the kernel's; the same machine code has to come out, else the build ends.
 *
 * Never linked into anything.
 */
#include <net/sctp/sctp.h>

#define NUMBER(name, value)		\
	size_t outside_##name(void);	\
	size_t outside_##name(void)	\
	{				\
		return value;		\
	}
#define PLACE(name, type, member)	NUMBER(name, offsetof(type, member))

/* all of the kernel: what a namespace has of SCTP, and behind it */
PLACE(net, struct net, sctp)
NUMBER(net_sctp, sizeof(struct netns_sctp))
NUMBER(net_all, sizeof(struct net))

/* fs/dlm: a bit, so not by offsetof() */
void outside_nodelay(struct sock *sk);
void outside_nodelay(struct sock *sk)
{
	sctp_sk(sk)->nodelay = true;
}

/* security/selinux */
PLACE(secid, struct sctp_association, secid)
PLACE(peer_secid, struct sctp_association, peer_secid)
PLACE(assoc_sk, struct sctp_association, base.sk)

/* sctp_diag of the kernel, where it meets our sctp.ko or the reverse: until the restart that follows a change. With
 * CONFIG_MODVERSIONS it is not loaded then.
 */
PLACE(assoc_dead, struct sctp_association, base.dead)
PLACE(assoc_addresses, struct sctp_association, base.bind_addr.address_list)
PLACE(assoc_port, struct sctp_association, base.bind_addr.port)
PLACE(assoc_ep, struct sctp_association, ep)
PLACE(assoc_asocs, struct sctp_association, asocs)
PLACE(assoc_state, struct sctp_association, state)
PLACE(assoc_rmem, struct sctp_association, rmem_alloc)
PLACE(assoc_rtx, struct sctp_association, rtx_data_chunks)
PLACE(assoc_sndbuf, struct sctp_association, sndbuf_used)
PLACE(peer_port, struct sctp_association, peer.port)
PLACE(peer_primary, struct sctp_association, peer.primary_path)
PLACE(peer_paths, struct sctp_association, peer.transport_addr_list)
PLACE(peer_count, struct sctp_association, peer.transport_count)
PLACE(path_assoc, struct sctp_transport, asoc)
PLACE(path_next, struct sctp_transport, transports)
PLACE(path_dst, struct sctp_transport, dst)
PLACE(path_address, struct sctp_transport, ipaddr)
PLACE(path_rto, struct sctp_transport, rto)
PLACE(path_timer, struct sctp_transport, T3_rtx_timer)
PLACE(ep_sk, struct sctp_endpoint, base.sk)
PLACE(ep_dead, struct sctp_endpoint, base.dead)
PLACE(ep_asocs, struct sctp_endpoint, asocs)
PLACE(ep_rcvbuf, struct sctp_endpoint, rcvbuf_policy)
PLACE(ep_sndbuf, struct sctp_endpoint, sndbuf_policy)
