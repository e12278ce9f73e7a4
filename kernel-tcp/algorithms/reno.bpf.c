// SPDX-License-Identifier: GPL-2.0
/*
 * reno.bpf.c - classic TCP Reno: leaves fast recovery at the first new ACK.
 *
 * RFC 2581, 3.2; K. Fall and S. Floyd, "Simulation-based Comparisons of Tahoe,
 * Reno, and SACK TCP", CCR 26(3), 1996, 3. At the third duplicate ACK: ssthresh =
 * half the window, the lost segment is retransmitted, window = ssthresh, inflated by
 * the duplicate ACKs. The first ACK of new data ends this, even a partial one (the
 * next segment is lost too). A segment that is still missing then waits for three
 * more duplicate ACKs, which halve the window again, or, more often, for the timeout.
 * The kernel's own `reno` is NewReno (RFC 6582): it retransmits the next hole at every
 * partial ACK.
 *
 * A congestion control cannot change this: after a partial ACK the kernel sends the
 * segment that it knows to be lost before any new data, so no new data is sent until
 * then. Reno would send new data if its halved window had room; the duplicate ACKs
 * for it could avoid the timeout. With windows of up to 8 segments there is room only
 * if the window was nearly empty anyway.
 */
#include "window.bpf.h"

#define DUPLICATE_ACKS 3	/* RFC 2581, 3.2 */

enum phase {
	NO_LOSS,
	FAST_RECOVERY,
	AFTER_NEW_ACK,	/* the kernel is still in recovery, Reno is not */
};

struct reno {
	struct window window;
	__u32 phase;
	__u32 sacked_out;	/* at the last ACK */
	__u32 duplicates;	/* since the last new ACK */
};

SEC("struct_ops")
void BPF_PROG(reno_init, struct sock *sk)
{
	struct reno *own = own_memory(sk);

	own->phase = NO_LOSS;
	window_init(sk, &own->window);
}

SEC("struct_ops")
void BPF_PROG(reno_release, struct sock *sk)
{
	struct reno *own = own_memory(sk);

	forget_connection(&own->window.counted);
}

SEC("struct_ops")
__u32 BPF_PROG(reno_ssthresh, struct sock *sk)
{
	return half_window(tcp_sk(sk), tcp_sk(sk)->snd_cwnd);
}

static void fast_recovery(struct tcp_sock *tp, struct reno *own)
{
	own->phase = FAST_RECOVERY;
	own->window.segments = tp->snd_ssthresh;
}

/* The kernel counts duplicate ACKs in sacked_out. */
static void duplicate_ack(struct tcp_sock *tp, struct reno *own)
{
	if (tp->sacked_out > own->sacked_out)
		own->duplicates += tp->sacked_out - own->sacked_out;
	if (own->phase != AFTER_NEW_ACK || own->duplicates < DUPLICATE_ACKS)
		return;
	tp->snd_ssthresh = half_window(tp, own->window.segments);
	fast_recovery(tp, own);
}

static void new_ack(struct sock *sk, struct reno *own)
{
	if (own->phase == FAST_RECOVERY) {
		own->phase = AFTER_NEW_ACK;
		own->window.segments = tcp_sk(sk)->snd_ssthresh;
	}
	own->duplicates = 0;
	window_grow(sk, &own->window);
}

/* For the kernel's recovery, where it may send snd_cwnd - in_flight(). Reno may have
 * its window outstanding, and one segment for each duplicate ACK. Duplicates before a
 * partial ACK do not count, although the kernel still counts them as segments that
 * have left the network. */
static __u32 kernel_window(const struct tcp_sock *tp, const struct reno *own)
{
	__u32 inflated = own->window.segments + own->duplicates;

	if (own->phase == FAST_RECOVERY)
		return in_flight(tp) +
		       max(inflated - min(inflated, tp->packets_out),
			    owes_retransmission(tp));
	if (owes_retransmission(tp))
		return in_flight(tp);
	return own->window.segments;
}

SEC("struct_ops")
void BPF_PROG(reno_cong_control, struct sock *sk)
{
	struct reno *own = own_memory(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool advanced = window_advanced(sk, &own->window);
	__u8 state = ca_state(sk);

	if (window_missed_timeout(sk, &own->window))
		own->phase = NO_LOSS;
	if (own->phase == NO_LOSS) {
		own->window.segments = tp->snd_cwnd;
		own->duplicates = tp->sacked_out;
	}
	if (state != TCP_CA_Recovery && state != TCP_CA_CWR)
		own->phase = NO_LOSS;
	else if (own->phase == NO_LOSS)
		fast_recovery(tp, own);
	else if (!advanced)
		duplicate_ack(tp, own);
	if (advanced)
		new_ack(sk, own);
	own->sacked_out = tp->sacked_out;
	tp->snd_cwnd = own->phase == NO_LOSS ? own->window.segments :
					       kernel_window(tp, own);
}

SEC("struct_ops")
void BPF_PROG(reno_set_state, struct sock *sk, __u8 new_state)
{
	struct reno *own = own_memory(sk);

	window_set_state(sk, &own->window, new_state);
	if (new_state == TCP_CA_Loss)
		own->phase = NO_LOSS;
}

SEC("struct_ops")
void BPF_PROG(reno_cwnd_event, struct sock *sk, int event)
{
	struct reno *own = own_memory(sk);

	window_event(sk, &own->window, event);
}

SEC("struct_ops")
__u32 BPF_PROG(reno_undo_cwnd, struct sock *sk)
{
	struct reno *own = own_memory(sk);

	own->phase = NO_LOSS;
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops reno = {
	.init = (void *)reno_init,
	.release = (void *)reno_release,
	.ssthresh = (void *)reno_ssthresh,
	.cong_control = (void *)reno_cong_control,
	.set_state = (void *)reno_set_state,
	.cwnd_event = (void *)reno_cwnd_event,
	.undo_cwnd = (void *)reno_undo_cwnd,
	.name = "reno",
};
