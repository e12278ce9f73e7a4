// SPDX-License-Identifier: GPL-2.0
/*
 * vegas.bpf.c - TCP Vegas.
 *
 * L. Brakmo and L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a
 * Global Internet", IEEE JSAC 13(8), 1995. Once per round trip
 *
 *   diff = (cwnd / baseRTT - cwnd / RTT) * baseRTT = cwnd * (RTT - baseRTT) / RTT
 *
 * is the number of our segments that wait in queues (Little). The window grows by one
 * if diff < alpha and shrinks by one if diff > beta; slow start ends if diff > gamma.
 * Defaults as ns-2.35 (v_alpha_ 1, v_beta_ 3, v_gamma_ 1); Linux has 2, 4, 1.
 *
 * As tcp_vegas.c of Linux, unlike the paper:
 *  - RTT is the minimum of the last round trip, not the mean: delayed ACKs and retries
 *    on the air say nothing about queues.
 *  - Slow start doubles every round trip, not every other.
 *  - The kernel's NewReno detects and repairs losses; the paper also retransmits at
 *    the first duplicate ACK after a fine-grained timeout.
 *  - baseRTT is measured again after a timeout and after an idle period (the path in
 *    a MANET may have changed).
 * Linux divides by baseRTT, not RTT, and truncates diff to whole segments.
 */
#include "common.bpf.h"

TUNABLE(alpha, 1, 0, 64, 1000);	/* segments */
TUNABLE(beta, 3, 0, 64, 1000);	/* segments */
TUNABLE(gamma, 1, 0, 64, 1000);	/* segments */

#define NO_RTT 0x7fffffff
#define MIN_CWND 2	/* segments */
#define MIN_SAMPLES 3	/* one or two may come from delayed ACKs */

struct vegas {
	__u32 counted;
	__u32 in_round;		/* `round_ends` is known */
	__u32 round_ends;	/* the ACK after this ends a round trip */
	__u32 samples;		/* in this round trip */
	__u32 min_rtt_us;	/* of this round trip */
	__u32 base_rtt_us;	/* of the connection */
	__u32 active;		/* not while the kernel repairs a loss */
	__u32 known_state;	/* catch_up() */
	__u32 segments;		/* the window before the last ACK that found no loss */
};

static void next_round(const struct tcp_sock *tp, struct vegas *own)
{
	own->in_round = 1;
	own->round_ends = tp->snd_nxt;
	own->samples = 0;
	own->min_rtt_us = NO_RTT;
}

SEC("struct_ops")
void BPF_PROG(vegas_init, struct sock *sk)
{
	struct vegas *own = own_memory(sk);

	own->base_rtt_us = NO_RTT;
	own->active = 1;
	own->in_round = 0;
	own->samples = 0;
	own->known_state = ca_state(sk);
	own->segments = tcp_sk(sk)->snd_cwnd;
	count_connection(&own->counted);
}

SEC("struct_ops")
void BPF_PROG(vegas_release, struct sock *sk)
{
	struct vegas *own = own_memory(sk);

	forget_connection(&own->counted);
}

static void in_state(struct sock *sk, struct vegas *own, __u8 state)
{
	bool active = state == TCP_CA_Open || state == TCP_CA_Disorder;

	if (active && !own->active)
		next_round(tcp_sk(sk), own);
	if (state == TCP_CA_Loss)
		own->base_rtt_us = NO_RTT;
	own->active = active;
	own->known_state = state;
}

/* The first of the operations on every ACK. */
SEC("struct_ops")
void BPF_PROG(vegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct vegas *own = own_memory(sk);
	__s32 rtt_us = sample->rtt_us;

	catch_up_window(tcp_sk(sk), own->segments);
	if (catch_up(sk, &own->known_state, own->segments / 2))
		in_state(sk, own, own->known_state);
	if (own->active)
		own->segments = tcp_sk(sk)->snd_cwnd;
	if (rtt_us < 0)
		return;
	rtt_us++;	/* never 0: a divisor */
	own->base_rtt_us = min(own->base_rtt_us, rtt_us);
	own->min_rtt_us = min(own->min_rtt_us, rtt_us);
	own->samples++;
}

SEC("struct_ops")
void BPF_PROG(vegas_set_state, struct sock *sk, __u8 new_state)
{
	struct vegas *own = own_memory(sk);

	in_state(sk, own, new_state);
}

SEC("struct_ops")
void BPF_PROG(vegas_cwnd_event, struct sock *sk, int event)
{
	struct vegas *own = own_memory(sk);

	if (event != CA_EVENT_CWND_RESTART)
		return;
	own->base_rtt_us = NO_RTT;
	next_round(tcp_sk(sk), own);
}

static void leave_slow_start(struct tcp_sock *tp, __u32 target)
{
	tp->snd_cwnd = max(min(tp->snd_cwnd, target + 1), MIN_CWND);
	tp->snd_ssthresh = max(min(tp->snd_ssthresh, tp->snd_cwnd - 1), MIN_CWND);
}

static void once_a_round(struct tcp_sock *tp, const struct vegas *own, __u32 acked)
{
	__u64 rtt = max(own->min_rtt_us, 1), cwnd = tp->snd_cwnd;
	__u64 diff = cwnd * (rtt - own->base_rtt_us) * alpha.scale / rtt;

	if (in_slow_start(tp) && diff > gamma.value) {
		leave_slow_start(tp, cwnd * own->base_rtt_us / rtt);
	} else if (in_slow_start(tp)) {
		tcp_slow_start(tp, acked);
	} else if (diff > beta.value) {
		tp->snd_cwnd = max(cwnd - 1, MIN_CWND);
		tp->snd_ssthresh = max(min(tp->snd_ssthresh, tp->snd_cwnd - 1),
					MIN_CWND);
	} else if (diff < alpha.value) {
		tp->snd_cwnd = min(cwnd + 1, tp->snd_cwnd_clamp);
	}
}

SEC("struct_ops")
void BPF_PROG(vegas_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct vegas *own = own_memory(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!own->active) {
		tcp_reno_cong_avoid(sk, ack, acked);
	} else if (!own->in_round || (__s32)(ack - own->round_ends) > 0) {
		if (own->samples < MIN_SAMPLES)
			tcp_reno_cong_avoid(sk, ack, acked);
		else
			once_a_round(tp, own, acked);
		next_round(tp, own);
	} else if (in_slow_start(tp)) {
		tcp_slow_start(tp, acked);
	}
}

SEC("struct_ops")
__u32 BPF_PROG(vegas_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(vegas_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops vegas = {
	.init = (void *)vegas_init,
	.release = (void *)vegas_release,
	.ssthresh = (void *)vegas_ssthresh,
	.cong_avoid = (void *)vegas_cong_avoid,
	.pkts_acked = (void *)vegas_pkts_acked,
	.set_state = (void *)vegas_set_state,
	.cwnd_event = (void *)vegas_cwnd_event,
	.undo_cwnd = (void *)vegas_undo_cwnd,
	.name = "vegas",
};
