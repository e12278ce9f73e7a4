// SPDX-License-Identifier: GPL-2.0
/*
 * tahoe.bpf.c - TCP Tahoe.
 *
 * V. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988; K. Fall and
 * S. Floyd, "Simulation-based Comparisons of Tahoe, Reno, and SACK TCP", CCR
 * 26(3), 1996, 2. At the third duplicate ACK: ssthresh = half the window, window =
 * one segment, the lost segment is retransmitted, slow start. No fast recovery.
 *
 * The kernel differs in ways that a congestion control cannot change:
 *  - Tahoe goes back N: its next segment always follows the last acknowledged one, so
 *    that after a loss it also resends segments that had arrived. The kernel
 *    retransmits only segments that it marks lost: after a loss the first hole, then
 *    the next one at every partial ACK. After a timeout it does go back N.
 *  - Duplicate ACKs after the third: both send nothing.
 */
#include "window.bpf.h"

struct tahoe {
	struct window window;
	__u32 recovering;	/* since the third duplicate ACK */
};

SEC("struct_ops")
void BPF_PROG(tahoe_init, struct sock *sk)
{
	struct tahoe *own = own_memory(sk);

	own->recovering = 0;
	window_init(sk, &own->window);
}

SEC("struct_ops")
void BPF_PROG(tahoe_release, struct sock *sk)
{
	struct tahoe *own = own_memory(sk);

	forget_connection(&own->window.counted);
}

SEC("struct_ops")
__u32 BPF_PROG(tahoe_ssthresh, struct sock *sk)
{
	return half_window(tcp_sk(sk), tcp_sk(sk)->snd_cwnd);
}

SEC("struct_ops")
void BPF_PROG(tahoe_cong_control, struct sock *sk)
{
	struct tahoe *own = own_memory(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool advanced = window_advanced(sk, &own->window);
	__u8 state = ca_state(sk);

	if (window_missed_timeout(sk, &own->window))
		own->recovering = 0;
	if (!own->recovering)
		own->window.segments = tp->snd_cwnd;
	if ((state == TCP_CA_Recovery || state == TCP_CA_CWR) && !own->recovering) {
		own->recovering = 1;
		own->window.segments = 1;
	} else if (advanced) {
		window_grow(sk, &own->window);
	}
	if (state != TCP_CA_Recovery && state != TCP_CA_CWR)
		own->recovering = 0;
	tp->snd_cwnd = own->recovering ? recovery_window(tp, own->window.segments) :
					 own->window.segments;
}

SEC("struct_ops")
void BPF_PROG(tahoe_set_state, struct sock *sk, __u8 new_state)
{
	struct tahoe *own = own_memory(sk);

	window_set_state(sk, &own->window, new_state);
	if (new_state == TCP_CA_Loss)
		own->recovering = 0;
}

SEC("struct_ops")
void BPF_PROG(tahoe_cwnd_event, struct sock *sk, int event)
{
	struct tahoe *own = own_memory(sk);

	window_event(sk, &own->window, event);
}

SEC("struct_ops")
__u32 BPF_PROG(tahoe_undo_cwnd, struct sock *sk)
{
	struct tahoe *own = own_memory(sk);

	own->recovering = 0;
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops tahoe = {
	.init = (void *)tahoe_init,
	.release = (void *)tahoe_release,
	.ssthresh = (void *)tahoe_ssthresh,
	.cong_control = (void *)tahoe_cong_control,
	.set_state = (void *)tahoe_set_state,
	.cwnd_event = (void *)tahoe_cwnd_event,
	.undo_cwnd = (void *)tahoe_undo_cwnd,
	.name = "tahoe",
};
