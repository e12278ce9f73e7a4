/* SPDX-License-Identifier: GPL-2.0 */
/* Reads a socket's station, addresses and state into a row of tcp.csv. */
#ifndef SOCKET_BPF_H
#define SOCKET_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "kernel_types.h"
#include "intf.h"

#define AF_INET6 10	/* include/linux/socket.h */

static __always_inline __u64 netns_cookie(struct sock *sk)
{
	struct net *net = BPF_CORE_READ(sk, __sk_common.skc_net.net);

	/* Before 5.14 the cookie was an atomic64_t with another name. */
	if (!bpf_core_field_exists(net->net_cookie))
		return 0;
	return BPF_CORE_READ(net, net_cookie);
}

static void map_ipv4(__u8 *to, __be32 address)
{
	__builtin_memset(to, 0, 10);
	to[10] = 0xff;
	to[11] = 0xff;
	__builtin_memcpy(to + 12, &address, 4);
}

static void read_addresses(struct sample *row, struct sock *sk)
{
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6) {
		BPF_CORE_READ_INTO(&row->local, sk,
				   __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
		BPF_CORE_READ_INTO(&row->remote, sk,
				   __sk_common.skc_v6_daddr.in6_u.u6_addr8);
	} else {
		map_ipv4(row->local, BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr));
		map_ipv4(row->remote, BPF_CORE_READ(sk, __sk_common.skc_daddr));
	}
	row->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	row->remote_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
}

static void read_state(struct sample *row, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;

	row->snd_nxt = BPF_CORE_READ(tp, snd_nxt);
	row->snd_una = BPF_CORE_READ(tp, snd_una);
	row->snd_cwnd = BPF_CORE_READ(tp, snd_cwnd);
	row->ssthresh = BPF_CORE_READ(tp, snd_ssthresh);
	row->snd_wnd = BPF_CORE_READ(tp, snd_wnd);
	row->srtt_us = BPF_CORE_READ(tp, srtt_us) >> 3;
	row->rcv_wnd = BPF_CORE_READ(tp, rcv_wnd);
	row->rto_jiffies = BPF_CORE_READ(icsk, icsk_rto);
	row->ca_state = BPF_CORE_READ_BITFIELD_PROBED(icsk, icsk_ca_state);
}

/* Everything but data_bytes and value. */
static __always_inline void begin_row(struct sample *row, struct sock *sk,
				      __u64 cookie, __u32 station,
				      enum event event)
{
	row->monotonic_ns = bpf_ktime_get_ns();
	row->socket_cookie = cookie;
	row->station = station;
	row->event = event;
	row->value = 0;
	row->data_bytes = 0;
	read_addresses(row, sk);
	read_state(row, sk);
}

#endif
