// SPDX-License-Identifier: GPL-2.0
/*
 * manet_tcp.bpf.c - settings and samples of the TCP connections of stations.
 *
 * A station is a network namespace, identified by its cookie (Linux 5.14). There are
 * two programs:
 *
 *  - settings: BPF_PROG_TYPE_SOCK_OPS on the run's cgroup. It applies the settings of a
 *    station, or of a port that has its own, to every connection that the station's
 *    programs open or accept. The programs are unmodified.
 *  - sample: on the tcp_probe tracepoint (net/ipv4/tcp_input.c,
 *    tcp_rcv_established()). It runs for every segment that an established socket
 *    receives, BEFORE the segment is processed.
 *
 * How a window of N segments becomes exact. TCP_BPF_SNDCWND_CLAMP bounds cwnd. It also
 * sets ssthresh to N, so that slow start ends at the window, as in ns-2, where ssthresh
 * starts at window_. But cwnd counts segments *in the network*: in fast recovery Linux
 * sends new data for every duplicate ACK, up to N segments beyond N. In ns-2 and in a
 * TCP of 1999 the window is the receiver's and always bounds snd_nxt - snd_una. So the
 * receiver's window is N segments too: BPF_SOCK_OPS_RWND_INIT in the handshake,
 * TCP_WINDOW_CLAMP afterwards (rounded up to the unit of the window scale, which is
 * less than a segment). N = 1 is an exception: Linux would halve the segments
 * (tcp_bound_to_half_wnd()), and a window of one has no fast recovery anyway.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "kernel_types.h"
#include "intf.h"
#include "socket.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* From include/uapi/linux/{in,tcp}.h and include/linux/socket.h, whose other
 * definitions conflict with kernel_types.h. */
#define SOL_TCP 6
#define TCP_MAXSEG 2		/* in BPF since Linux 6.1 */
#define TCP_WINDOW_CLAMP 10
#define TCP_CONGESTION 13
#define TCP_RTO_MAX_MS 44	/* Linux 6.15 */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_SETTINGS);
	__type(key, struct settings_key);
	__type(value, struct station_settings);
} stations SEC(".maps");

/* 4 MiB: 40 000 samples, the ACKs of a fully loaded core in a third of a second. The
 * reader empties it ten times a second. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} samples SEC(".maps");

struct counters counters = {};

/* Whether the loader reads `samples`. */
const volatile bool events_wanted = false;

/* ---- settings ---- */

static void set_option(struct bpf_sock_ops *ctx, enum setting setting,
		       int option, int value)
{
	int error;

	if (!value)
		return;
	error = bpf_setsockopt(ctx, SOL_TCP, option, &value, sizeof(value));
	if (error) {
		__sync_fetch_and_add(&counters.refused[setting], 1);
		counters.refused_error[setting] = error;
	}
}

static void set_algorithm(struct bpf_sock_ops *ctx,
			  const struct station_settings *own)
{
	char name[ALGORITHM_BYTES];
	int error;

	if (!own->algorithm[0])
		return;
	__builtin_memcpy(name, own->algorithm, sizeof(name));
	error = bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
	if (error) {
		__sync_fetch_and_add(&counters.refused[SETTING_ALGORITHM], 1);
		counters.refused_error[SETTING_ALGORITHM] = error;
	}
}

/* Settings that apply from the SYN on, or may be set before it. */
static void before_handshake(struct bpf_sock_ops *ctx,
			     const struct station_settings *own)
{
	set_algorithm(ctx, own);
	set_option(ctx, SETTING_MSS, TCP_MAXSEG, own->mss);
	set_option(ctx, SETTING_RTO_MIN, TCP_BPF_RTO_MIN, own->rto_min_us);
	set_option(ctx, SETTING_RTO_MAX, TCP_RTO_MAX_MS, own->rto_max_ms);
	set_option(ctx, SETTING_DELAYED_ACK, TCP_BPF_DELACK_MAX,
		   own->delack_max_us);
}

/* Called before every packet, after the layout of its header and before the kernel
 * computes its window field. The kernel moves the clamp when it tunes the buffer
 * (tcp_rcv_space_adjust()) and when it learns how much memory a segment takes
 * (tcp_measure_rcv_mss(), since 6.10). An unchanged clamp costs one comparison. */
static void hold_receive_window(struct bpf_sock_ops *ctx,
				const struct station_settings *own)
{
	set_option(ctx, SETTING_RECEIVE_WINDOW, TCP_WINDOW_CLAMP,
		   own->window_segments * ctx->mss_cache);
}

/* ---- events ---- */

static void emit(struct bpf_sock_ops *ctx, const struct station_settings *own,
		 enum event event, __u16 value)
{
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	struct sample *row;

	if (!tp || !events_wanted)
		return;
	row = bpf_ringbuf_reserve(&samples, sizeof(*row), 0);
	if (!row) {
		__sync_fetch_and_add(&counters.lost_samples, 1);
		return;
	}
	begin_row(row, (struct sock *)tp, bpf_get_socket_cookie(ctx), own->station,
		  event);
	row->value = value;
	bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
}

/* ---- connections ---- */

/* Settings that need the connection: the kernel has just computed its own cwnd. */
static void after_handshake(struct bpf_sock_ops *ctx,
			    const struct station_settings *own)
{
	__u32 window = own->window_segments;
	__u32 initial = own->initial_window_segments;
	int flags = ctx->bpf_sock_ops_cb_flags;

	__sync_fetch_and_add(&counters.connections, 1);
	/* The clamp does not lower a cwnd that is already above it. */
	if (window && (initial ? initial : ctx->snd_cwnd) > window)
		initial = window;
	set_option(ctx, SETTING_INITIAL_WINDOW, TCP_BPF_IW, initial);
	set_option(ctx, SETTING_WINDOW, TCP_BPF_SNDCWND_CLAMP, window);
	if (window > 1) {
		hold_receive_window(ctx, own);
		flags |= BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
	}
	if (events_wanted)
		flags |= BPF_SOCK_OPS_RTO_CB_FLAG;
	bpf_sock_ops_cb_flags_set(ctx, flags);
	emit(ctx, own, EVENT_ALGORITHM, 0);
}

static const struct station_settings *settings_of(__u64 netns_cookie, __u32 port)
{
	struct settings_key key = { .netns_cookie = netns_cookie, .port = port };

	return bpf_map_lookup_elem(&stations, &key);
}

/* The settings of the connection: by local port, by remote port, of the station. */
static const struct station_settings *settings_for(struct bpf_sock_ops *ctx)
{
	__u64 cookie = bpf_get_netns_cookie(ctx);
	const struct station_settings *station = settings_of(cookie, 0), *own;

	if (!station || !station->ports)
		return station;
	own = settings_of(cookie, ctx->local_port);
	if (!own)
		own = settings_of(cookie, bpf_ntohl(ctx->remote_port));
	return own ? own : station;
}

SEC("sockops")
int settings(struct bpf_sock_ops *ctx)
{
	const struct station_settings *own = settings_for(ctx);

	if (!own)
		return 1;

	switch (ctx->op) {
	case BPF_SOCK_OPS_TIMEOUT_INIT:
		if (own->rto_initial_jiffies)
			ctx->reply = own->rto_initial_jiffies;
		break;
	case BPF_SOCK_OPS_RWND_INIT:
		if (own->window_segments > 1)
			ctx->reply = own->window_segments;
		break;
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		/* The SYN-ACK and its window come from the listening socket. */
		set_option(ctx, SETTING_MSS, TCP_MAXSEG, own->mss);
		break;
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		before_handshake(ctx, own);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		after_handshake(ctx, own);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		before_handshake(ctx, own);
		after_handshake(ctx, own);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		hold_receive_window(ctx, own);
		break;
	case BPF_SOCK_OPS_RTO_CB:
		if (!own->layered)
			emit(ctx, own, EVENT_TIMEOUT, ctx->args[0] + 1);
		break;
	}
	return 1;
}

/* ---- samples ---- */

/* skb->data is the TCP header in tcp_rcv_established(). */
static __u32 payload_bytes(struct sk_buff *skb)
{
	__u8 offset_words = 0;
	__u32 bytes = BPF_CORE_READ(skb, len), header;

	/* The data offset is the high half of octet 12, RFC 9293 3.1. */
	bpf_probe_read_kernel(&offset_words, 1, BPF_CORE_READ(skb, data) + 12);
	header = (offset_words >> 4) * 4;
	return bytes > header ? bytes - header : 0;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(sample, struct sock *sk, struct sk_buff *skb)
{
	const struct station_settings *own;
	__u64 cookie = netns_cookie(sk);
	struct sample *row;

	own = settings_of(cookie, 0);
	if (!own)
		return 0;
	row = bpf_ringbuf_reserve(&samples, sizeof(*row), 0);
	if (!row) {
		__sync_fetch_and_add(&counters.lost_samples, 1);
		return 0;
	}
	begin_row(row, sk, bpf_get_socket_cookie(sk), own->station, EVENT_NONE);
	row->data_bytes = payload_bytes(skb);
	/* No wake-up: the reader polls, so that sampling costs no context switch
	 * per ACK. */
	bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
	__sync_fetch_and_add(&counters.samples, 1);
	return 0;
}
