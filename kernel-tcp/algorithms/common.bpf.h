/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the congestion controls share: the kernel's functions and constants, and
 * the connection's own memory. One algorithm, one file; each ends with its table
 * of operations (struct tcp_congestion_ops), registered by algorithms.c.
 *
 * Why cong_control() and not cong_avoid() in tahoe and reno: with the latter the
 * kernel sets the window in recovery by itself (proportional rate reduction,
 * RFC 6937, tcp_cwnd_reduction()). With the former it leaves every ACK to the
 * program, and only finds out what is lost and sends what the window allows.
 * Its arguments changed in Linux 6.10; only the first, the socket, is used here.
 */
#ifndef ALGORITHMS_COMMON_BPF_H
#define ALGORITHMS_COMMON_BPF_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "kernel_types.h"
#include "intf.h"

char LICENSE[] SEC("license") = "GPL";

/* enum tcp_ca_state and enum tcp_ca_event, include/{uapi/linux/tcp.h,net/tcp.h} */
#define TCP_CA_Open 0
#define TCP_CA_Disorder 1
#define TCP_CA_CWR 2
#define TCP_CA_Recovery 3
#define TCP_CA_Loss 4
#define CA_EVENT_TX_START 0
#define CA_EVENT_CWND_RESTART 1

#define MIN_SSTHRESH 2	/* segments, RFC 5681 (4) */
#define SSTHRESH_NONE 0x7fffffff	/* TCP_INFINITE_SSTHRESH, net/tcp.h */

/* tcp_cong.c. The first: slow start or congestion avoidance for so many segments
 * acknowledged, if the window was in use, up to snd_cwnd_clamp. */
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* How many connections use this copy, for `manet-tcp list` and `unload`. */
__u64 connections;

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline void *own_memory(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline __u8 ca_state(struct sock *sk)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;

	return BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
}

static __always_inline __u32 min(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __always_inline __u32 max(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

/* As tcp_packets_in_flight(): without SACK every duplicate ACK takes one away,
 * which is what "inflating the window" (RFC 2581, 3.2) does. */
static __always_inline __u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* A segment is held to be lost and has not been sent again. */
static __always_inline bool owes_retransmission(const struct tcp_sock *tp)
{
	return tp->lost_out > tp->retrans_out;
}

static __always_inline bool in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* What lets the kernel send in recovery: `segments` in the network, and in any
 * case what is lost. */
static __always_inline __u32 recovery_window(const struct tcp_sock *tp,
					     __u32 segments)
{
	return max(segments, in_flight(tp) + owes_retransmission(tp));
}

/* Half of what is used of `window`; BSD: min(snd_wnd, snd_cwnd) / 2. */
static __always_inline __u32 half_window(const struct tcp_sock *tp, __u32 window)
{
	return max(min(window, tp->packets_out) / 2, MIN_SSTHRESH);
}

/* ---- operations that were not run ---- */

/* A kernel may leave out a congestion control in BPF for the length of an
 * interrupt (docs/timelines.md, at its end): an ACK or a timeout then passes
 * without any of the operations, and what ssthresh() "returns" is what was on the
 * stack. `told` is the state that set_state() was told last, or that was found
 * here since. If the kernel has gone into one that begins with ssthresh(), and
 * we know nothing of it, or if no window is so large, the threshold is `instead`.
 * First thing in what an ACK calls; true if the state had not been told. */
static __always_inline bool catch_up(struct sock *sk, __u32 *known_state, __u32 instead)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 state = ca_state(sk), before = *known_state;
	bool reduces = state >= TCP_CA_CWR && before < TCP_CA_CWR;

	if (reduces || (tp->snd_ssthresh > MAX_SEGMENTS &&
			tp->snd_ssthresh != SSTHRESH_NONE))
		tp->snd_ssthresh = max(instead, MIN_SSTHRESH);
	*known_state = state;
	return state != before;
}

/* What undo_cwnd() "returned". */
static __always_inline void catch_up_window(struct tcp_sock *tp, __u32 segments)
{
	if (tp->snd_cwnd > MAX_SEGMENTS)
		tp->snd_cwnd = max(segments, 1);
}

/* In init(). That may be before the SYN of a connection that we open, when sockops
 * sets the algorithm: there are no sequence numbers yet. It may come twice. */
static __always_inline void count_connection(__u32 *counted)
{
	if (*counted)
		return;
	*counted = 1;
	__sync_fetch_and_add(&connections, 1);
}

static __always_inline void forget_connection(__u32 *counted)
{
	if (!*counted)
		return;
	*counted = 0;
	__sync_fetch_and_add(&connections, -1);
}

/* A parameter: its default, and its bounds, in the units users write. */
#define TUNABLE(name, default_, min_, max_, scale_) \
	const volatile struct tunable name = { (default_) * (scale_), \
		(min_) * (scale_), (max_) * (scale_), scale_ }

#endif
