// SPDX-License-Identifier: GPL-2.0
/*
 * layers.bpf.c - the eBPF programs of the layers above congestion control. They are
 * loaded only if a connection of the run has a layer.
 *
 *  - layers (sockops): tracks connections, their timeouts and their windows. Only a
 *    congestion control may write snd_cwnd. So the connection changes to `hold`
 *    (hold.bpf.c), which writes the windows of `struct connection`, and back.
 *  - gate (cgroup_skb/egress, gate.bpf.h): decides what may leave. In stand-by no data
 *    leaves. The timer's retransmission is refused with 2 (drop, congestion):
 *    tcp_retransmit_timer() then tries again every half second
 *    (TCP_RESOURCE_PROBE_INTERVAL) and does not double its timeout.
 *  - watch (cgroup_skb/ingress, gate.bpf.h): sees each ACK before TCP acts on it, in
 *    every state (tcp_probe is silent after the program has closed the socket).
 *
 * The agent (agent.c) in user space makes the decisions and sends the probes.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include "kernel_types.h"
#include "intf.h"
#include "socket.bpf.h"
#include "layers/layers.h"

char LICENSE[] SEC("license") = "GPL";

#define SOL_TCP 6
#define TCP_CONGESTION 13
#define BPF_TCP_CLOSE 7
#define MIN_SSTHRESH 2		/* segments, RFC 5681 (4) */
#define SSTHRESH_NONE 0x7fffffff	/* TCP_INFINITE_SSTHRESH, net/tcp.h */

/* The name under which this run registered `hold`; set before anything is attached. */
char hold_name[ALGORITHM_BYTES] = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_SETTINGS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct settings_key);
	__type(value, struct layer_settings);
} layer_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_LAYERED);
	__type(key, __u64);	/* socket cookie */
	__type(value, __u32);	/* slot in `connections` and `kept` */
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, MAX_LAYERED);
	__uint(value_size, sizeof(__u32));
} free_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_LAYERED);
	__type(key, __u32);
	__type(value, struct connection);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_LAYERED);
	__type(key, __u32);
	__type(value, struct kept_window);
} kept SEC(".maps");

/* The loader makes this the same map as in manet_tcp.bpf.c. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} samples SEC(".maps");

struct layer_counters counters = {};

static __always_inline bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

static __always_inline bool in_stand_by(const struct connection *own)
{
	return own->ordered != own->ended;
}

/* An event wakes the agent, unlike a sample. */
static void emit(struct tcp_sock *tp, const struct connection *own,
		 enum event event, __u16 value)
{
	struct sample *row = bpf_ringbuf_reserve(&samples, sizeof(*row), 0);

	if (!row)
		return;
	begin_row(row, (struct sock *)tp, own->cookie, own->settings.station, event);
	row->value = value;
	bpf_ringbuf_submit(row, BPF_RB_FORCE_WAKEUP);
}

#include "gate.bpf.h"

/* ---- connections ---- */

static struct connection *connection_of(struct bpf_sock_ops *ctx)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);
	__u32 *slot = bpf_map_lookup_elem(&slots, &cookie);

	return slot ? bpf_map_lookup_elem(&connections, slot) : NULL;
}

static struct tcp_sock *tcp_of(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk ? bpf_skc_to_tcp_sock(sk) : NULL;
}

/* Settings of a port come before those of the station. */
static const struct layer_settings *settings_for(struct bpf_sock_ops *ctx)
{
	struct settings_key key = { .netns_cookie = bpf_get_netns_cookie(ctx) };
	const struct layer_settings *found;

	key.port = ctx->local_port;
	found = bpf_map_lookup_elem(&layer_settings, &key);
	if (found)
		return found;
	key.port = bpf_ntohl(ctx->remote_port);
	found = bpf_map_lookup_elem(&layer_settings, &key);
	if (found)
		return found;
	key.port = 0;
	return bpf_map_lookup_elem(&layer_settings, &key);
}

static void fill(struct connection *own, struct tcp_sock *tp, __u64 cookie,
		 const struct layer_settings *settings)
{
	struct sample row = {};

	read_addresses(&row, (struct sock *)tp);
	own->settings = *settings;
	__builtin_memcpy(own->local, row.local, sizeof(own->local));
	__builtin_memcpy(own->remote, row.remote, sizeof(own->remote));
	own->local_port = row.local_port;
	own->remote_port = row.remote_port;
	own->snd_una = own->snd_nxt = BPF_CORE_READ(tp, snd_nxt);
	own->copied = own->timeouts = own->fixed_rto = own->refuse_timer = 0;
	own->ordered = own->probed = own->ended = own->resent_order = own->reported_for = 0;
	own->held = own->restore = own->initial = own->half = own->before_timeout = 0;
	own->rto_jiffies = rto_jiffies(tp);
	own->srtt_us = smoothed_rtt_us(tp);
	own->timer_ns = bpf_ktime_get_ns();
	own->cookie = cookie;
}

static void begin(struct bpf_sock_ops *ctx)
{
	const struct layer_settings *settings = settings_for(ctx);
	struct tcp_sock *tp = tcp_of(ctx);
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct connection *own;
	__u32 slot = 0;

	if (!settings || !settings->mechanisms || !tp)
		return;
	if (bpf_map_pop_elem(&free_slots, &slot)) {
		__sync_fetch_and_add(&counters.without_room, 1);
		return;
	}
	own = bpf_map_lookup_elem(&connections, &slot);
	if (!own)
		return;
	fill(own, tp, cookie, settings);
	bpf_map_update_elem(&slots, &cookie, &slot, BPF_ANY);
	__sync_fetch_and_add(&counters.connections, 1);
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags |
				  BPF_SOCK_OPS_RTO_CB_FLAG |
				  BPF_SOCK_OPS_STATE_CB_FLAG |
				  BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

static void finish(struct bpf_sock_ops *ctx)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);
	__u32 *slot = bpf_map_lookup_elem(&slots, &cookie);
	struct connection *own;
	__u32 free;

	if (!slot)
		return;
	free = *slot;
	own = bpf_map_lookup_elem(&connections, &free);
	if (!own)
		return;
	own->cookie = 0;
	bpf_map_delete_elem(&slots, &cookie);
	bpf_map_push_elem(&free_slots, &free, BPF_ANY);
}

/* ---- windows ---- */

static bool change_algorithm(struct bpf_sock_ops *ctx, const char *to)
{
	char name[ALGORITHM_BYTES];

	__builtin_memcpy(name, to, sizeof(name));
	if (!bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		return true;
	__sync_fetch_and_add(&counters.switches_failed, 1);
	return false;
}

static bool change_to_hold(struct bpf_sock_ops *ctx, struct connection *own)
{
	char name[ALGORITHM_BYTES];

	for (int i = 0; i < ALGORITHM_BYTES; i++)
		name[i] = hold_name[i];
	if (bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, own->inner,
			   sizeof(own->inner)))
		return false;
	own->held = 1;
	if (change_algorithm(ctx, name))
		return true;
	own->held = 0;
	return false;
}

static bool restores_earlier(const struct connection *own)
{
	return own->before_timeout && own->before_timeout == own->ordered;
}

/* The algorithm's ssthresh() may have been skipped at the timeout before the stand-by
 * (docs/timelines.md), without an ACK since to catch up. */
static void note_windows(struct bpf_sock_ops *ctx, struct connection *own)
{
	__u32 ssthresh = ctx->snd_ssthresh;

	if (restores_earlier(own)) {
		own->cwnd = own->timeout_cwnd;
		own->ssthresh = own->timeout_ssthresh;
		return;
	}
	if (ssthresh > MAX_SEGMENTS && ssthresh != SSTHRESH_NONE)
		ssthresh = own->half;
	own->cwnd = ctx->snd_cwnd;
	own->ssthresh = ssthresh;
}

/* Before tcp_enter_loss(), which would set cwnd to 1 and lower ssthresh. */
static void hold(struct bpf_sock_ops *ctx, struct connection *own)
{
	if (own->held)
		return;
	note_windows(ctx, own);
	change_to_hold(ctx, own);
}

/* After a repair, before the first packet: returns the connection from `hold` to its
 * algorithm, with the windows that the layer asks for. */
static void restore_windows(struct bpf_sock_ops *ctx, struct connection *own)
{
	struct tcp_sock *tp = tcp_of(ctx);
	bool one = own->settings.mechanisms & MECHANISM_REPAIR &&
		   own->settings.repair != REPAIR_UNCHANGED;

	own->restore = 0;
	if (!own->held) {
		if (!one && !restores_earlier(own))
			return;
		note_windows(ctx, own);
	}
	if (one)
		own->cwnd = 1;
	/* `hold` writes when a connection changes to it. */
	if (own->held && (ctx->snd_cwnd != own->cwnd ||
			  ctx->snd_ssthresh != own->ssthresh)) {
		change_algorithm(ctx, own->inner);
		own->held = 0;
	}
	if (own->held || change_to_hold(ctx, own))
		change_algorithm(ctx, own->inner);
	own->held = 0;
	if (tp)
		emit(tp, own, EVENT_WINDOW, 0);
}

/* ---- timeouts ---- */

/* repair=initial: the kernel's RTO cannot be set. An earlier timeout is delayed as in
 * stand-by, in steps of half a second. */
static bool too_early(struct connection *own)
{
	if (!own->initial)
		return false;
	if (!before(own->snd_una, own->initial_until)) {
		own->initial = 0;
		return false;
	}
	return bpf_ktime_get_ns() - own->timer_ns <
	       own->settings.rto_initial_us * 1000ULL;
}

/* The first timeout in a row, before it changes anything. */
static void note_timeout(struct bpf_sock_ops *ctx, struct connection *own)
{
	own->timeout_cwnd = ctx->snd_cwnd;
	own->timeout_ssthresh = ctx->snd_ssthresh;
	own->half = own->timeout_cwnd / 2 > MIN_SSTHRESH ?
		    own->timeout_cwnd / 2 : MIN_SSTHRESH;
}

/* The timer has expired; tcp_enter_loss() and the retransmission follow. */
static void timeout(struct bpf_sock_ops *ctx, struct connection *own)
{
	struct tcp_sock *tp = tcp_of(ctx);

	if (!tp)
		return;
	if (in_stand_by(own) || too_early(own)) {
		own->refuse_timer = 1;
		hold(ctx, own);
		return;
	}
	if (own->fixed_rto) {
		own->refuse_timer = 1;
		return;
	}
	if (!own->timeouts++)
		note_timeout(ctx, own);
	emit(tp, own, EVENT_TIMEOUT, own->timeouts);
	if (own->settings.mechanisms & MECHANISM_FIXED_RTO && own->timeouts >= 2) {
		own->fixed_rto = own->refuse_timer = 1;
		emit(tp, own, EVENT_FIXED_RTO, own->timeouts);
	}
}

SEC("sockops")
int layers(struct bpf_sock_ops *ctx)
{
	struct connection *own;

	switch (ctx->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		begin(ctx);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ctx->args[1] == BPF_TCP_CLOSE)
			finish(ctx);
		break;
	case BPF_SOCK_OPS_RTO_CB:
		own = connection_of(ctx);
		if (own)
			timeout(ctx, own);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		own = connection_of(ctx);
		if (own && own->restore && !in_stand_by(own))
			restore_windows(ctx, own);
		break;
	}
	return 1;
}
