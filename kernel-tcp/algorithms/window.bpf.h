/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The window of an algorithm older than NewReno (tahoe, reno). It is separate from
 * snd_cwnd while the kernel is in recovery: there, snd_cwnd is set to make the kernel
 * send what the algorithm would send now.
 *
 * Timeouts follow BSD and ns-2: each one sets ssthresh to half the window, so that the
 * second in a row leaves the minimum. The kernel calls ssthresh() only at the first
 * timeout of a window (tcp_enter_loss()), and never in recovery.
 */
#ifndef WINDOW_BPF_H
#define WINDOW_BPF_H

#include "common.bpf.h"

struct window {
	__u32 counted;
	__u32 segments;		/* the algorithm's cwnd, as of the last ACK */
	__u32 una;		/* snd_una at the last ACK */
	__u32 timeout;		/* icsk_retransmits after the last timeout seen */
	__u32 known_state;	/* catch_up() */
};

static __always_inline void window_init(struct sock *sk, struct window *own)
{
	own->segments = tcp_sk(sk)->snd_cwnd;
	own->una = tcp_sk(sk)->snd_una;
	own->known_state = ca_state(sk);
	count_connection(&own->counted);
}

/* Whether this ACK acknowledges new data. If so, it also ends the series of timeouts:
 * the next one is the first again (icsk_retransmits). */
static __always_inline bool window_advanced(struct sock *sk, struct window *own)
{
	bool advanced = tcp_sk(sk)->snd_una != own->una;

	own->una = tcp_sk(sk)->snd_una;
	if (advanced)
		own->timeout = 0;
	return advanced;
}

/* Growth per ACK: one segment in slow start, otherwise 1/cwnd, however much the ACK
 * acknowledges (RFC 2001). */
static __always_inline void window_grow(struct sock *sk, struct window *own)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_cwnd = max(own->segments, 1);
	tcp_reno_cong_avoid(sk, 0, 1);
	own->segments = tp->snd_cwnd;
}

static __always_inline void window_timeout(struct sock *sk, struct window *own,
					   __u32 timeouts)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_ssthresh = half_window(tp, own->segments);
	own->segments = 1;
	own->timeout = timeouts;
	own->known_state = TCP_CA_Loss;
}

/* Called first on an ACK: true if a timeout passed unseen. How much of the window was
 * in use then is unknown. */
static __always_inline bool window_missed_timeout(struct sock *sk, struct window *own)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool missed = catch_up(sk, &own->known_state, half_window(tp, own->segments));

	catch_up_window(tp, own->segments);
	if (!missed || own->known_state != TCP_CA_Loss)
		return false;
	tp->snd_ssthresh = max(own->segments / 2, MIN_SSTHRESH);
	return true;
}

static __always_inline __u32 timeouts_in_a_row(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_retransmits;
}

/* For set_state(): the kernel has set cwnd to 1 and counts the timeout right after. */
static __always_inline void window_set_state(struct sock *sk, struct window *own,
					     __u8 new_state)
{
	own->known_state = new_state;
	if (new_state == TCP_CA_Loss)
		window_timeout(sk, own, timeouts_in_a_row(sk) + 1);
}

/* For cwnd_event(): set_state(Loss) may have been skipped; the retransmission that
 * follows finds nothing in flight. If this was skipped too, the next ACK catches up. */
static __always_inline void window_event(struct sock *sk, struct window *own,
					 int event)
{
	__u32 timeouts = timeouts_in_a_row(sk);

	if (event == CA_EVENT_TX_START && timeouts && ca_state(sk) == TCP_CA_Loss &&
	    timeouts != own->timeout)
		window_timeout(sk, own, timeouts);
}

#endif
