// SPDX-License-Identifier: GPL-2.0
/*
 * tcpap.bpf.c - TCP-AP, adaptive pacing.
 *
 * S. ElRakabawy, A. Klemm and C. Lindemann, "TCP with Adaptive Pacing for
 * Multihop Wireless Networks", MobiHoc 2005. Two consecutive segments interfere until
 * the first is four hops away. In a round trip over h hops, a data packet of s_data
 * bits and an ACK of s_ack bits are sent at the rate b and wait t_q at every hop:
 *
 *   t_q = (RTT / h - (s_data + s_ack) / b) / 2
 *   FHD = 4 * (t_q + s_data / b)                   four-hop propagation delay
 *
 * averaged with `weight` for the old value. cov is the standard deviation of the last
 * `history` RTTs divided by their mean. Segments leave FHD * (1 + 2 cov) apart.
 * Window and recovery are those of NewReno (RFC 6582).
 *
 * Departures from the paper:
 *  - On paths of fewer than four hops, FHD is the delay over the whole path.
 *  - The kernel paces with a timer, and does not pace the first ten segments. After a
 *    late segment the next one follows sooner, by the lateness but at most by half an
 *    interval (tcp_update_skb_after_send()).
 *  - Nothing is paced while the hops are unknown (hops=0, and neither the settings nor
 *    a daemon has them).
 */
#include "common.bpf.h"
#include "socket.bpf.h"
#include "hops_map.h"

TUNABLE(weight, 7 / 10., 0, 1, 1000);
TUNABLE(history, 50, 2, 50, 1);
TUNABLE(hops, 0, 0, 64, 1);
TUNABLE(rate_kbps, 2000, 1, 1000000, 1000);

#define MAX_HISTORY 50
#define MAX_RTT_US 60000000	/* the square of a sum of 50 must fit into 64 bits */
#define DISTURBED_HOPS 4	/* the paper's */
#define TCP_HEADER 20		/* bytes, without options */
#define SK_PACING_NONE 0	/* enum sk_pacing, include/net/sock.h */
#define SK_PACING_NEEDED 1
#define PARTS 1000		/* of cov */

struct tcpap {
	__u32 counted;
	__u32 acked;		/* segments, by this ACK */
	__u32 round_ends;	/* known hops are read again at the ACK after this */
	__u32 hops;		/* 0: unknown */
	__u64 fhd_us;		/* 0: no sample yet */
	__u32 known_state;	/* catch_up() */
	__u32 segments;		/* the window after the last ACK that found no loss */
};

struct round_trips {
	__u32 us[MAX_HISTORY];
	__u32 next, count;
	__u64 sum, squares;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct round_trips);
} round_trips SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, HOPS_ENTRIES);
	__type(key, struct hops_key);
	__type(value, __u32);
} hops_to SEC(".maps");

/* ---- the variation of round trips ---- */

static void remember(struct round_trips *trips, __u32 rtt_us)
{
	__u32 at = trips->next;
	__u64 old;

	if (at >= MAX_HISTORY)	/* for the verifier */
		return;
	old = trips->us[at];
	if (trips->count == history.value) {
		trips->sum -= old;
		trips->squares -= old * old;
	} else {
		trips->count++;
	}
	trips->us[at] = rtt_us;
	trips->sum += rtt_us;
	trips->squares += (__u64)rtt_us * rtt_us;
	trips->next = at + 1 < history.value ? at + 1 : 0;
}

static __u64 square_root(__u64 x)
{
	__u64 root = 0;

	for (int bit = 31; bit >= 0; bit--) {
		__u64 larger = root | 1ULL << bit;

		if (larger * larger <= x)
			root = larger;
	}
	return root;
}

/* The coefficient of variation, in thousandths. */
static __u64 variation(const struct round_trips *trips)
{
	__u64 n = trips->count, mean, variance;

	if (n < 2 || !trips->sum)
		return 0;
	mean = trips->sum * trips->sum / n;
	variance = trips->squares > mean ? (trips->squares - mean) / (n - 1) : 0;
	return square_root(variance) * n * PARTS / trips->sum;
}

/* ---- the four-hop propagation delay ---- */

static __u64 on_air_us(__u32 bytes)
{
	return (__u64)bytes * 8 * 1000000 / max(rate_kbps.value, 1);
}

/* Bytes of IPv4 or IPv6 and TCP, without options. */
static __u32 headers_of(const struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)tp;

	return BPF_CORE_READ(icsk, icsk_af_ops, net_header_len) + TCP_HEADER;
}

static __u64 four_hop_delay(const struct tcp_sock *tp, __u32 h, __u32 rtt_us)
{
	__u32 headers = headers_of(tp);
	__u64 data = on_air_us(tp->mss_cache + headers), ack = on_air_us(headers);
	__u64 hop = rtt_us / h, queued = 0;

	if (hop > data + ack)
		queued = (hop - data - ack) / 2;
	return min(h, DISTURBED_HOPS) * (queued + data);
}

static void read_remote(__u8 *to, struct sock *sk)
{
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6)
		bpf_core_read(to, 16, &sk->__sk_common.skc_v6_daddr);
	else
		map_ipv4(to, BPF_CORE_READ(sk, __sk_common.skc_daddr));
}

static __u32 hops_of(struct sock *sk)
{
	struct hops_key key = { .netns_cookie = netns_cookie(sk) };
	__u32 *known;

	if (hops.value)
		return hops.value;
	read_remote(key.remote, sk);
	known = bpf_map_lookup_elem(&hops_to, &key);
	return known ? *known : 0;
}

static void pace(struct sock *sk, __u64 interval_us)
{
	__u64 rate = (__u64)tcp_sk(sk)->mss_cache * 1000000 / (interval_us | 1);

	sk->sk_pacing_rate = rate ? rate : 1;
}

static void measure(struct sock *sk, struct tcpap *own, __u32 rtt_us)
{
	struct round_trips *trips;
	__u64 delay;

	trips = bpf_sk_storage_get(&round_trips, sk, NULL,
				   BPF_SK_STORAGE_GET_F_CREATE);
	if (!trips || !own->hops)
		return;
	remember(trips, rtt_us);
	delay = four_hop_delay(tcp_sk(sk), own->hops, rtt_us);
	if (own->fhd_us)
		delay = (weight.value * own->fhd_us +
			 (weight.scale - weight.value) * delay) / weight.scale;
	own->fhd_us = delay;
	pace(sk, delay * (PARTS + 2 * variation(trips)) / PARTS);
}

/* ---- operations ---- */

SEC("struct_ops")
void BPF_PROG(tcpap_init, struct sock *sk)
{
	struct tcpap *own = own_memory(sk);

	own->hops = own->fhd_us = 0;
	own->known_state = ca_state(sk);
	own->segments = tcp_sk(sk)->snd_cwnd;
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	count_connection(&own->counted);
}

SEC("struct_ops")
void BPF_PROG(tcpap_release, struct sock *sk)
{
	struct tcpap *own = own_memory(sk);

	forget_connection(&own->counted);
}

SEC("struct_ops")
void BPF_PROG(tcpap_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcpap *own = own_memory(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	own->acked = sample->pkts_acked;
	if ((__s32)(tp->snd_una - own->round_ends) > 0 || !own->hops) {
		own->round_ends = tp->snd_nxt;
		own->hops = hops_of(sk);
	}
	if (sample->rtt_us > 0)
		measure(sk, own, min(sample->rtt_us, MAX_RTT_US));
}

SEC("struct_ops")
void BPF_PROG(tcpap_cong_control, struct sock *sk)
{
	struct tcpap *own = own_memory(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u8 state = ca_state(sk);

	catch_up_window(tp, own->segments);
	catch_up(sk, &own->known_state, own->segments / 2);
	if (state == TCP_CA_Recovery || state == TCP_CA_CWR)
		tp->snd_cwnd = recovery_window(tp, tp->snd_ssthresh);
	else if (own->acked)
		tcp_reno_cong_avoid(sk, tp->snd_una, own->acked);
	if (state < TCP_CA_CWR)
		own->segments = tp->snd_cwnd;
	own->acked = 0;
}

SEC("struct_ops")
void BPF_PROG(tcpap_set_state, struct sock *sk, __u8 new_state)
{
	struct tcpap *own = own_memory(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u8 state = ca_state(sk);

	own->known_state = new_state;
	if (new_state == TCP_CA_Open &&
	    (state == TCP_CA_Recovery || state == TCP_CA_CWR))
		tp->snd_cwnd = min(tp->snd_cwnd, tp->snd_ssthresh);
}

/* One segment per buffer: two in one buffer would leave together. */
SEC("struct_ops")
__u32 BPF_PROG(tcpap_min_tso_segs, struct sock *sk)
{
	return 1;
}

SEC("struct_ops")
__u32 BPF_PROG(tcpap_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(tcpap_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops tcpap = {
	.init = (void *)tcpap_init,
	.release = (void *)tcpap_release,
	.ssthresh = (void *)tcpap_ssthresh,
	.cong_control = (void *)tcpap_cong_control,
	.pkts_acked = (void *)tcpap_pkts_acked,
	.set_state = (void *)tcpap_set_state,
	.min_tso_segs = (void *)tcpap_min_tso_segs,
	.undo_cwnd = (void *)tcpap_undo_cwnd,
	.name = "tcpap",
};
