// SPDX-License-Identifier: GPL-2.0
/*
 * hold.bpf.c - the congestion control of a connection in stand-by: keeps the windows
 * of `struct connection`.
 *
 * Among BPF programs only a congestion control may write snd_cwnd and snd_ssthresh.
 * sockops (layers.bpf.c) changes a connection to `hold` before the kernel's timer sets
 * its window to 1, and back to its own algorithm with the first packet after the
 * repair. A change to `hold` and straight back sets a window.
 *
 * The cost: the algorithm's private memory (icsk_ca_priv) is reset. Reno has none;
 * Vegas measures its base RTT again, on the new route.
 *
 * The operations of a timeout may be skipped (docs/timelines.md, at the end). If only
 * set_state() was, cwnd_event() catches up before the retransmission; otherwise
 * hold_cong_avoid() does, or the change back.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "kernel_types.h"
#include "intf.h"
#include "layers/layers.h"

char LICENSE[] SEC("license") = "GPL";

#define TCP_CA_Loss 4

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_LAYERED);
	__type(key, __u64);
	__type(value, __u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_LAYERED);
	__type(key, __u32);
	__type(value, struct connection);
} connections SEC(".maps");

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

static __always_inline struct connection *connection_of(struct sock *sk)
{
	__u64 cookie = sk->__sk_common.skc_cookie.counter;
	__u32 *slot = bpf_map_lookup_elem(&slots, &cookie);

	return slot ? bpf_map_lookup_elem(&connections, slot) : NULL;
}

static __always_inline void write_windows(struct sock *sk)
{
	struct connection *own = connection_of(sk);
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (!own || !own->held || !own->cwnd)
		return;
	tp->snd_cwnd = own->cwnd;
	tp->snd_ssthresh = own->ssthresh;
}

SEC("struct_ops")
void BPF_PROG(hold_init, struct sock *sk)
{
	write_windows(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(hold_ssthresh, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

/* At the ACK that ended the stand-by: the packet that follows restores the windows. A
 * connection that outlived its run, and so has no layers, continues as Reno. */
SEC("struct_ops")
void BPF_PROG(hold_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct connection *own = connection_of(sk);

	if (own && own->held && (own->restore || own->ordered != own->ended))
		write_windows(sk);
	else
		tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(hold_set_state, struct sock *sk, __u8 new_state)
{
	if (new_state == TCP_CA_Loss)
		write_windows(sk);
}

SEC("struct_ops")
void BPF_PROG(hold_cwnd_event, struct sock *sk, int event)
{
	write_windows(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(hold_undo_cwnd, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops hold = {
	.init = (void *)hold_init,
	.ssthresh = (void *)hold_ssthresh,
	.cong_avoid = (void *)hold_cong_avoid,
	.set_state = (void *)hold_set_state,
	.cwnd_event = (void *)hold_cwnd_event,
	.undo_cwnd = (void *)hold_undo_cwnd,
	.name = "hold__",
};
