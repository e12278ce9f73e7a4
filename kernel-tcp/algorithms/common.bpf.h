/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the congestion controls: the kernel's functions and constants, and the
 * private memory of a connection. Each algorithm is one file, which ends with its
 * table of operations (struct tcp_congestion_ops); algorithms.c registers it.
 *
 * tahoe and reno use cong_control() instead of cong_avoid(). With cong_avoid() the
 * kernel sets the window in recovery itself (proportional rate reduction, RFC 6937,
 * tcp_cwnd_reduction()). With cong_control() it leaves every ACK to the program; it
 * only detects losses and sends what the window allows. The arguments changed in
 * Linux 6.10; the programs use only the first, the socket.
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

/* net/ipv4/tcp_cong.c. tcp_reno_cong_avoid() does slow start or congestion avoidance
 * for `acked` segments, if the window was in use, up to snd_cwnd_clamp. */
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

/* As tcp_packets_in_flight(): without SACK every duplicate ACK subtracts one segment.
 * This has the effect of "inflating the window" (RFC 2581, 3.2). */
static __always_inline __u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* A segment is marked lost and has not been retransmitted. */
static __always_inline bool owes_retransmission(const struct tcp_sock *tp)
{
	return tp->lost_out > tp->retrans_out;
}

static __always_inline bool in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* The cwnd with which the kernel sends in recovery: `segments` in the network, and
 * a lost segment in any case. */
static __always_inline __u32 recovery_window(const struct tcp_sock *tp,
					     __u32 segments)
{
	return max(segments, in_flight(tp) + owes_retransmission(tp));
}

/* Half of the used part of `window`; BSD: min(snd_wnd, snd_cwnd) / 2. */
static __always_inline __u32 half_window(const struct tcp_sock *tp, __u32 window)
{
	return max(min(window, tp->packets_out) / 2, MIN_SSTHRESH);
}

/* ---- skipped operations ---- */

/* A kernel may skip a BPF congestion control for the length of an interrupt
 * (docs/timelines.md, at the end): an ACK or a timeout then passes without any of the
 * operations, and ssthresh() "returns" what was on the stack. `known_state` is the
 * state that set_state() saw last, or that was found here since. The threshold becomes
 * `instead` if the kernel entered a state that begins with ssthresh() unseen, or if
 * the threshold is larger than any window. An ACK calls this first. True if a state
 * was missed. */
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

/* The same for what undo_cwnd() "returned". */
static __always_inline void catch_up_window(struct tcp_sock *tp, __u32 segments)
{
	if (tp->snd_cwnd > MAX_SEGMENTS)
		tp->snd_cwnd = max(segments, 1);
}

/* For init(). sockops may set the algorithm before the SYN of an outgoing connection:
 * there are no sequence numbers yet, and init() may run twice. */
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

/* A parameter: its default and its bounds in the user's unit, and the scale: the
 * programs, which have no floating point, read `NAME.value` as value times scale. */
#define TUNABLE(name, default_, min_, max_, scale_) \
	const volatile struct tunable name = { (default_) * (scale_), \
		(min_) * (scale_), (max_) * (scale_), scale_ }

#endif
