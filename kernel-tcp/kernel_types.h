/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The few fields of the kernel's TCP structures that the eBPF programs use.
 *
 * There is no vmlinux.h, since it would come from the machine that builds, and the build
 * must work on kernels without BTF. preserve_access_index makes every access a CO-RE
 * relocation: libbpf finds the field by name in the BTF of the running kernel, so order
 * and offsets here have no meaning.
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
	atomic64_t skc_cookie;	/* 0 until it is first read */
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	__u32 sk_pacing_status;		/* enum sk_pacing */
	unsigned long sk_pacing_rate;	/* bytes per second */
};

struct inet_connection_sock_af_ops {
	__u16 net_header_len;	/* of the packets: 20 over IPv4, 40 over IPv6 */
};

struct inet_connection_sock {
	const struct inet_connection_sock_af_ops *icsk_af_ops;
	__u32 icsk_rto;		/* jiffies */
	__u8 icsk_ca_state:5;
	__u8 icsk_retransmits;	/* timeouts in a row */
	__u64 icsk_ca_priv[13];	/* private memory of the congestion control */
};

struct tcp_sock {
	__u32 packets_out;	/* segments from snd_una to snd_nxt */
	__u32 sacked_out;	/* of these, arrived: by SACK, or by duplicate ACKs */
	__u32 lost_out;		/* of these, marked lost */
	__u32 retrans_out;	/* of these, retransmitted and in flight */
	__u32 snd_cwnd_cnt;	/* segments acknowledged towards the next increase */
	__u32 snd_cwnd_clamp;	/* segments */
	__u32 mss_cache;	/* bytes */
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 snd_cwnd;		/* segments */
	__u32 snd_ssthresh;	/* segments */
	__u32 snd_wnd;		/* bytes */
	__u32 srtt_us;		/* microseconds, times 8 */
	__u32 rcv_nxt;
	__u32 rcv_wup;		/* rcv_nxt when the window was last offered */
	__u32 rcv_wnd;		/* bytes */
};

struct ack_sample {
	__u32 pkts_acked;	/* segments */
	__s32 rtt_us;		/* negative: no sample, or the segment was sent twice */
};

struct sk_buff {
	unsigned int len;
	unsigned char *data;
};

#pragma clang attribute pop

/* The operations that our congestion controls implement. libbpf finds each by name in
 * the kernel's structure. */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, int event);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk);
	__u32 (*min_tso_segs)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];		/* TCP_CA_NAME_MAX */
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#endif
