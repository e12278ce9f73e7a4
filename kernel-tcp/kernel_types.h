/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The few fields of the kernel's TCP structures that the programs here read.
 *
 * Why not vmlinux.h: it is made from the machine that builds, and the build
 * must work where the kernel has no BTF. preserve_access_index makes every
 * access a CO-RE relocation: libbpf looks the field up by name in the BTF of
 * the kernel that runs, so order and offsets here mean nothing.
 *
 * Names and types as in Linux 5.15 to 6.18 (include/net/sock.h,
 * include/net/inet_connection_sock.h, include/linux/tcp.h).
 */
#ifndef KERNEL_TYPES_H
#define KERNEL_TYPES_H

#pragma clang attribute push(__attribute__((preserve_access_index)), \
			     apply_to = record)

struct net {
	__u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};

typedef struct {
	__s64 counter;
} atomic64_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;	/* network byte order */
	__u16 skc_num;		/* host byte order */
	unsigned short skc_family;
	possible_net_t skc_net;
	atomic64_t skc_cookie;	/* 0 until somebody asks for it */
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
};

struct inet_connection_sock {
	__u32 icsk_rto;		/* jiffies */
	__u8 icsk_ca_state:5;
};

struct tcp_sock {
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 snd_cwnd;		/* segments */
	__u32 snd_ssthresh;	/* segments */
	__u32 snd_wnd;		/* bytes */
	__u32 srtt_us;		/* microseconds, times 8 */
	__u32 rcv_wnd;		/* bytes */
};

struct sk_buff {
	unsigned int len;
	unsigned char *data;
};

#pragma clang attribute pop

#endif
