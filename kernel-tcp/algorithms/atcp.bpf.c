// SPDX-License-Identifier: GPL-2.0
/*
 * atcp.bpf.c - the window of the layer `atcp`.
 *
 * J. Liu and S. Singh, "ATCP: TCP for Mobile Ad Hoc Networks", IEEE JSAC 19(7),
 * 2001, III: a loss without an ECN mark is a loss of the radio. Three duplicate ACKs
 * or a timeout then retransmit the missing segment, and the window stays. After a
 * mark, until the marked window is acknowledged, congestion control is that of
 * NewReno. The layer handles an unreachable destination (layers/atcp.layer.c).
 *
 * The sender sees a mark as ECE in ACKs (RFC 3168, 6.1.2). Marks exist only if both
 * ends have net.ipv4.tcp_ecn=1; otherwise no loss ever shrinks the window. The kernel
 * reduces the window for other reasons too (a packet dropped below TCP); without a
 * mark this algorithm does not.
 */
#include "common.bpf.h"

#define CA_ACK_ECE (1 << 2)	/* enum tcp_ca_ack_event_flags, net/tcp.h */

struct atcp {
	__u32 counted;
	__u32 segments;		/* the window at the last ACK; 0: no ACK yet */
	__u32 ssthresh;
	__u32 una;
	__u32 marked;		/* congested, until `congested_until` is acknowledged */
	__u32 congested_until;
	__u32 known_state;	/* catch_up() */
};

SEC("struct_ops")
void BPF_PROG(atcp_init, struct sock *sk)
{
	struct atcp *own = own_memory(sk);

	own->marked = 0;
	own->una = tcp_sk(sk)->snd_una;
	own->segments = 0;
	own->known_state = ca_state(sk);
	count_connection(&own->counted);
}

SEC("struct_ops")
void BPF_PROG(atcp_release, struct sock *sk)
{
	struct atcp *own = own_memory(sk);

	forget_connection(&own->counted);
}

/* Before the kernel acts on the ACK. */
SEC("struct_ops")
void BPF_PROG(atcp_in_ack_event, struct sock *sk, __u32 flags)
{
	struct atcp *own = own_memory(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (flags & CA_ACK_ECE) {
		own->marked = 1;
		own->congested_until = tp->snd_nxt;
	} else if (own->marked && (__s32)(tp->snd_una - own->congested_until) >= 0) {
		own->marked = 0;
	}
}

SEC("struct_ops")
__u32 BPF_PROG(atcp_ssthresh, struct sock *sk)
{
	struct atcp *own = own_memory(sk);

	return own->marked ? tcp_reno_ssthresh(sk) : tcp_sk(sk)->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(atcp_cong_control, struct sock *sk)
{
	struct atcp *own = own_memory(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool advanced = tp->snd_una != own->una;
	__u8 state = ca_state(sk);

	own->una = tp->snd_una;
	catch_up_window(tp, own->segments);
	catch_up(sk, &own->known_state, own->marked || !own->segments ?
				own->segments / 2 : own->ssthresh);
	if (state == TCP_CA_Recovery || state == TCP_CA_CWR) {
		if (own->marked)
			own->segments = tp->snd_ssthresh;
		tp->snd_cwnd = recovery_window(tp, max(own->segments, 1));
		return;
	}
	/* After a timeout the kernel has set cwnd to 1. If set_state() was skipped, the
	 * next ACK restores the window here. */
	if (state == TCP_CA_Loss && !own->marked && own->segments) {
		tp->snd_cwnd = own->segments;
		tp->snd_ssthresh = own->ssthresh;
	}
	if (advanced)
		tcp_reno_cong_avoid(sk, tp->snd_una, 1);
	own->segments = tp->snd_cwnd;
	own->ssthresh = tp->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(atcp_set_state, struct sock *sk, __u8 new_state)
{
	struct atcp *own = own_memory(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u8 state = ca_state(sk);

	own->known_state = new_state;
	if (new_state == TCP_CA_Loss && !own->marked && own->segments) {
		tp->snd_cwnd = own->segments;
		tp->snd_ssthresh = own->ssthresh;
	} else if (new_state == TCP_CA_Open && own->segments &&
		   (state == TCP_CA_Recovery || state == TCP_CA_CWR)) {
		tp->snd_cwnd = own->segments;
	}
}

SEC("struct_ops")
__u32 BPF_PROG(atcp_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops atcp = {
	.init = (void *)atcp_init,
	.release = (void *)atcp_release,
	.in_ack_event = (void *)atcp_in_ack_event,
	.ssthresh = (void *)atcp_ssthresh,
	.cong_control = (void *)atcp_cong_control,
	.set_state = (void *)atcp_set_state,
	.undo_cwnd = (void *)atcp_undo_cwnd,
	.name = "atcp",
};
