/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The gate (decides what may leave) and the watch (sees incoming ACKs); part of
 * layers.bpf.c.
 *
 * Both run for the socket's cgroup and see the IP packet. The gate runs with the socket
 * locked. The watch may run without the lock, but no other program writes its fields.
 */
#ifndef GATE_BPF_H
#define GATE_BPF_H

/* Return values of a cgroup_skb/egress program (__cgroup_bpf_run_filter_skb()). DROP
 * only makes the sender's call fail (-EPERM). DROP_CONGESTED means local congestion:
 * tcp_retransmit_timer() then does not back off, but a new segment would shrink the
 * window. So only the timer's retransmissions get it. */
#define DROP 0
#define PASS 1
#define DROP_CONGESTED 2

#define IPPROTO_TCP 6
#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

struct segment {
	__u32 seq, ack;
	__u32 end;		/* after data and FIN */
	__u16 window;		/* not scaled */
	__u8 flags;
};

/* Header offsets: RFC 791 3.1, RFC 9293 3.1. False if it is not TCP over IPv4. */
static bool read_segment(struct __sk_buff *skb, struct segment *segment)
{
	__u8 ip[20], tcp[20];
	__u32 ip_bytes, tcp_bytes;

	if (bpf_skb_load_bytes(skb, 0, ip, sizeof(ip)))
		return false;
	ip_bytes = (ip[0] & 15) * 4;
	if (ip[0] >> 4 != 4 || ip[9] != IPPROTO_TCP || ip_bytes < sizeof(ip) ||
	    bpf_skb_load_bytes(skb, ip_bytes, tcp, sizeof(tcp)))
		return false;
	tcp_bytes = (tcp[12] >> 4) * 4;
	if (tcp_bytes < sizeof(tcp) || ip_bytes + tcp_bytes > skb->len)
		return false;
	segment->seq = bpf_ntohl(*(__be32 *)(tcp + 4));
	segment->ack = bpf_ntohl(*(__be32 *)(tcp + 8));
	segment->flags = tcp[13];
	segment->window = bpf_ntohs(*(__be16 *)(tcp + 14));
	segment->end = segment->seq + skb->len - ip_bytes - tcp_bytes +
		       (segment->flags & FIN ? 1 : 0);
	return true;
}

static __u32 *slot_of(struct __sk_buff *skb)
{
	__u64 cookie = bpf_get_socket_cookie(skb);

	return bpf_map_lookup_elem(&slots, &cookie);
}

static void keep(struct __sk_buff *skb, const struct connection *own,
		 struct kept *copy, const struct segment *segment)
{
	__u32 bytes = skb->len;

	if (bytes < 40 || bytes > COPY_BYTES) {
		__sync_fetch_and_add(&counters.uncopied, 1);
		return;
	}
	copy->bytes = 0;	/* the agent may be reading */
	if (bpf_skb_load_bytes(skb, 0, copy->packet, bytes))
		return;
	copy->cookie = own->cookie;
	copy->seq = segment->seq;
	copy->end = segment->end;
	copy->sent_ns = bpf_ktime_get_ns();
	copy->bytes = bytes;
}

/* Uses a place whose segment is acknowledged. If there is none, the window is larger
 * than the ring, and this segment has no copy. */
static void keep_new(struct __sk_buff *skb, struct connection *own,
		     struct kept_window *all, const struct segment *segment)
{
	struct kept *copy = &all->ring[own->copied % COPIES];

	if (own->copied >= COPIES && before(own->snd_una, copy->end))
		return;
	own->copied++;
	keep(skb, own, copy, segment);
}

static int refuse(struct __sk_buff *skb, struct connection *own,
		  struct kept_window *all, const struct segment *segment)
{
	bool timer = own->refuse_timer;

	own->refuse_timer = 0;
	__sync_fetch_and_add(&counters.refused_packets, 1);
	if (timer)
		keep(skb, own, &all->refused, segment);
	return timer ? DROP_CONGESTED : DROP;
}

SEC("cgroup_skb/egress")
int gate(struct __sk_buff *skb)
{
	__u32 *slot = slot_of(skb);
	struct segment segment;
	struct connection *own;
	struct kept_window *all;

	if (!slot)
		return PASS;
	own = bpf_map_lookup_elem(&connections, slot);
	all = bpf_map_lookup_elem(&kept, slot);
	if (!own || !all || !read_segment(skb, &segment))
		return PASS;
	if (segment.seq == segment.end || segment.flags & (SYN | RST))
		return PASS;
	if (in_stand_by(own) || own->fixed_rto || own->refuse_timer)
		return refuse(skb, own, all, &segment);
	own->timer_ns = bpf_ktime_get_ns();
	if (before(segment.seq, own->snd_nxt))
		return PASS;	/* a retransmission */
	keep_new(skb, own, all, &segment);
	own->snd_nxt = segment.end;
	return PASS;
}

/* Whether TCP would accept it, as tcp_sequence(), net/ipv4/tcp_input.c. */
static bool acceptable(struct tcp_sock *tp, const struct segment *segment)
{
	__u32 end = BPF_CORE_READ(tp, rcv_nxt) + BPF_CORE_READ(tp, rcv_wnd);

	return !before(segment->end, BPF_CORE_READ(tp, rcv_wup)) &&
	       !before(end, segment->seq);
}

static void end_stand_by(struct tcp_sock *tp, struct connection *own)
{
	if (own->settings.mechanisms & MECHANISM_REPAIR &&
	    own->settings.repair == REPAIR_INITIAL) {
		own->initial_until = own->snd_nxt;
		own->initial = 1;
	}
	own->restore = 1;
	own->ended = own->ordered;
	emit(tp, own, EVENT_REPAIR, 0);
}

static __u32 rto_jiffies(struct tcp_sock *tp)
{
	return BPF_CORE_READ((struct inet_connection_sock *)tp, icsk_rto);
}

/* tcp_sock has eight times the value. */
static __u32 smoothed_rtt_us(struct tcp_sock *tp)
{
	return BPF_CORE_READ(tp, srtt_us) >> 3;
}

/* ACKs of segments that got through before the break arrive after the notice and prove
 * nothing about the route. A probe with data that had already arrived is answered with
 * the same ACK again. */
static bool ends_stand_by(const struct connection *own, __u32 ack, bool new)
{
	if (own->probed == own->ordered)
		return true;
	if (own->settings.leave == LEAVE_ANY_ACK)
		return new;
	return own->reported_for == own->ordered && before(own->reported, ack);
}

static void ack_received(struct tcp_sock *tp, struct connection *own, __u32 ack)
{
	bool new = before(own->snd_una, ack);

	if (before(ack, own->snd_una) || before(own->snd_nxt, ack))
		return;
	if (new) {
		own->snd_una = ack;
		own->timer_ns = bpf_ktime_get_ns();
		own->timeouts = own->fixed_rto = own->refuse_timer = 0;
		own->rto_jiffies = rto_jiffies(tp);
		own->srtt_us = smoothed_rtt_us(tp);
	}
	if (in_stand_by(own) && ends_stand_by(own, ack, new))
		end_stand_by(tp, own);
}

/* tcpbus: segments held by the node on the path arrive before those that the source
 * resends over the longer path. The receiver's duplicate ACKs (RFC 5681 2) ask for
 * segments in flight, and TCP would send these once more. Only until a timeout: then
 * they may be lost. */
static bool asks_for_resent(const struct connection *own, const struct segment *segment)
{
	return own->resent_order && own->resent_order == own->ordered && !in_stand_by(own) &&
	       !own->timeouts && before(own->snd_una, own->resent_until) &&
	       segment->ack == own->snd_una && segment->seq == segment->end &&
	       segment->window == own->window;
}

SEC("cgroup_skb/ingress")
int watch(struct __sk_buff *skb)
{
	__u32 *slot = slot_of(skb);
	struct segment segment;
	struct connection *own;
	struct bpf_sock *sk;
	struct tcp_sock *tp;

	if (!slot)
		return PASS;
	own = bpf_map_lookup_elem(&connections, slot);
	sk = skb->sk;
	if (!own || !sk || !read_segment(skb, &segment))
		return PASS;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || !(segment.flags & ACK) || segment.flags & (SYN | RST) ||
	    !acceptable(tp, &segment))
		return PASS;
	if (asks_for_resent(own, &segment)) {
		__sync_fetch_and_add(&counters.duplicates, 1);
		return DROP;
	}
	own->window = segment.window;
	ack_received(tp, own, segment.ack);
	return PASS;
}

#endif
