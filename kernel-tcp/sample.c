// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sample.c - `manet-tcp sample settings.json`: tcp.csv without eBPF, for a run without
 * root.
 *
 * The state of each connection (struct tcp_info, by sock_diag(7)) is read every
 * INTERVAL_MS, at a station that has one or has seen a SYN lately. A row is written when
 * the state has changed, and one with the state before if that was unchanged for longer:
 * a value holds from the row before it. A timeout is a rise of tcpi_retransmits, which
 * the next new acknowledgement sets to 0; its time is that of the last transmission.
 *
 * tcp_info counts bytes and has no sequence numbers. They follow from the initial one,
 * which a packet socket in the station's namespace reads from the SYN or SYN-ACK; for a
 * connection that is older than this process they are left out.
 *
 * Nothing is set: metrics of routes and sysctls do that (testbed/stages/route_tcp.py).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "csv.h"
#include "kernel.h"
#include "run.h"
#include "settings.h"

#define INTERVAL_MS 20		/* a tenth of the period profile's minimum RTO */
#define AWAITED_ROUNDS (2000 / INTERVAL_MS)	/* after each SYN and SYN-ACK */
#define ANSWER_BYTES (1 << 16)
#define SYN_BYTES 128		/* of a packet: headers of IPv6 and TCP */
/* States of include/net/tcp_states.h in which a connection has a sender. */
#define SAMPLED_STATES (1 << 1 | 1 << 4 | 1 << 8) /* ESTABLISHED, FIN_WAIT1, CLOSE_WAIT */
#define TCP_PROTOCOL 6
#define SYN 0x02
#define ACK 0x10

/* The head of struct tcp_info (include/uapi/linux/tcp.h), which only grows: the C
 * library's header may be older than the kernel. */
struct state {
	__u8 state, ca_state, retransmits, probes, backoff, options, scales, flags;
	__u32 rto_us, ato_us, snd_mss, rcv_mss, unacked, sacked, lost, retrans, fackets;
	__u32 last_data_sent, last_ack_sent, last_data_recv, last_ack_recv;
	__u32 pmtu, rcv_ssthresh, rtt_us, rttvar_us, snd_ssthresh, snd_cwnd, advmss;
	__u32 reordering, rcv_rtt_us, rcv_space, total_retrans;
	__u64 pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
	__u32 segs_out, segs_in, notsent_bytes, min_rtt_us, data_segs_in, data_segs_out;
	__u64 delivery_rate, busy_time, rwnd_limited, sndbuf_limited;
	__u32 delivered, delivered_ce;
	__u64 bytes_sent, bytes_retrans;
	__u32 dsack_dups, reord_seen, rcv_ooopack, snd_wnd, rcv_wnd;
};

/* The initial sequence number of one end of a connection. */
struct opened {
	struct opened *next;
	__u8 local[16], remote[16];
	__u16 local_port, remote_port;
	__u32 first;		/* of the data: that of the SYN, plus 1 */
	bool active;		/* sent the SYN, which bytes_acked counts too */
};

struct sampled {
	struct sampled *next;
	__u64 cookie;
	const struct opened *opened;
	struct sample last;	/* as it was read last */
	__u8 timeouts;		/* tcpi_retransmits then */
	__u64 bytes_received;	/* then */
	bool written;		/* `last` is in the file */
	bool seen;		/* in this round */
};

struct watched {
	int diag, packets;
	int awaited;		/* rounds in which a connection may begin: a SYN was there */
	struct sampled *connections;
	struct opened *opened;
};

struct sampler {
	struct run_settings settings;
	struct watched *stations;
	struct csv csv;
	__u64 connections, samples;
	int signals;
};

/* ---- initial sequence numbers ---- */

/* Accepts TCP over IPv4 (no later fragment) and IPv6 (no extension header) with SYN. */
static struct sock_filter with_syn[] = {
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
	BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 8, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 4, 0, 11),
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCP_PROTOCOL, 0, 9),
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 7, 0),
	BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
	BPF_STMT(BPF_LD | BPF_B | BPF_IND, 13),
	BPF_JUMP(BPF_JMP | BPF_JA, 3, 0, 0),
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCP_PROTOCOL, 0, 2),
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 40 + 13),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SYN, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, 0),
	BPF_STMT(BPF_RET | BPF_K, SYN_BYTES),
};

static void map_ipv4(__u8 *to, const __u8 *address)
{
	static const __u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(to, mapped, sizeof(mapped));
	memcpy(to + 12, address, 4);
}

static struct opened *known(const struct watched *station, const struct opened *end)
{
	struct opened *found = station->opened;

	while (found && (found->local_port != end->local_port ||
			 found->remote_port != end->remote_port ||
			 memcmp(found->local, end->local, 16) ||
			 memcmp(found->remote, end->remote, 16)))
		found = found->next;
	return found;
}

/* Takes the sender of a SYN as the local end: of a relayed one nobody asks. */
static void take_syn(struct watched *station, const __u8 *packet, size_t bytes)
{
	bool ip6 = bytes && packet[0] >> 4 == 6;
	size_t header = ip6 ? 40 : (packet[0] & 15) * 4;
	const __u8 *tcp = packet + header;
	struct opened end = { 0 }, *old;
	__u32 number;

	if (bytes < header + 20)
		return;
	if (ip6) {
		memcpy(end.local, packet + 8, 16);
		memcpy(end.remote, packet + 24, 16);
	} else {
		map_ipv4(end.local, packet + 12);
		map_ipv4(end.remote, packet + 16);
	}
	end.local_port = tcp[0] << 8 | tcp[1];
	end.remote_port = tcp[2] << 8 | tcp[3];
	memcpy(&number, tcp + 4, sizeof(number));
	end.first = ntohl(number) + 1;
	end.active = !(tcp[13] & ACK);
	old = known(station, &end);
	if (old) {
		old->first = end.first;
		old->active = end.active;
		return;
	}
	old = malloc(sizeof(*old));
	if (!old)
		return;
	*old = end;
	old->next = station->opened;
	station->opened = old;
}

static void read_syns(struct watched *station)
{
	__u8 packet[SYN_BYTES];
	ssize_t bytes;

	station->awaited -= station->awaited > 0;
	while ((bytes = recv(station->packets, packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
		take_syn(station, packet, bytes);
		station->awaited = AWAITED_ROUNDS;
	}
}

/* ---- connections ---- */

static struct sampled *find(struct sampler *all, struct watched *station, __u64 cookie)
{
	struct sampled *found = station->connections;

	while (found && found->cookie != cookie)
		found = found->next;
	if (found)
		return found;
	found = calloc(1, sizeof(*found));
	if (!found)
		return NULL;
	found->cookie = cookie;
	found->next = station->connections;
	station->connections = found;
	all->connections++;
	return found;
}

static void add_row(struct sampler *all, struct sampled *of, const struct sample *row,
		    enum event event, __u16 value)
{
	struct sample now = *row;

	now.event = event;
	now.value = value;
	if (of->opened)
		csv_add_event(&all->csv, &now);
	else
		csv_add_unnumbered(&all->csv, &now);
	all->samples += event == EVENT_NONE;
}

static void read_addresses(struct sample *row, const struct inet_diag_msg *message)
{
	const struct inet_diag_sockid *id = &message->id;

	if (message->idiag_family == AF_INET6) {
		memcpy(row->local, id->idiag_src, 16);
		memcpy(row->remote, id->idiag_dst, 16);
	} else {
		map_ipv4(row->local, (const __u8 *)id->idiag_src);
		map_ipv4(row->remote, (const __u8 *)id->idiag_dst);
	}
	row->local_port = ntohs(id->idiag_sport);
	row->remote_port = ntohs(id->idiag_dport);
}

static const struct opened *opened_of(const struct watched *station,
				      const struct sample *row)
{
	struct opened end = { .local_port = row->local_port,
			      .remote_port = row->remote_port };

	memcpy(end.local, row->local, 16);
	memcpy(end.remote, row->remote, 16);
	return known(station, &end);
}

static void read_state(struct sampler *all, struct sampled *of, struct sample *row,
		       const struct state *state)
{
	if (of->opened) {
		row->snd_una = of->opened->first + (__u32)state->bytes_acked -
			       of->opened->active;
		row->snd_nxt = of->opened->first +
			       (__u32)(state->bytes_sent - state->bytes_retrans);
	}
	row->snd_cwnd = state->snd_cwnd;
	row->ssthresh = state->snd_ssthresh;
	row->snd_wnd = state->snd_wnd;
	row->srtt_us = state->rtt_us;
	row->rto_jiffies = state->rto_us / all->csv.us_per_jiffy;
	row->rcv_wnd = state->rcv_wnd;
	row->ca_state = state->ca_state;
	row->data_bytes = state->bytes_received - of->bytes_received;
}

static bool same_state(const struct sample *one, const struct sample *other)
{
	return one->snd_nxt == other->snd_nxt && one->snd_una == other->snd_una &&
	       one->snd_cwnd == other->snd_cwnd && one->ssthresh == other->ssthresh &&
	       one->snd_wnd == other->snd_wnd && one->srtt_us == other->srtt_us &&
	       one->rto_jiffies == other->rto_jiffies &&
	       one->rcv_wnd == other->rcv_wnd && one->ca_state == other->ca_state &&
	       !other->data_bytes;
}

/* With the state before them, at the time of the last transmission, which they caused:
 * tcp_info has it in ticks of the kernel's clock, so one tick earlier. */
static void add_timeouts(struct sampler *all, struct sampled *of,
			 const struct state *state, __u64 now_ns)
{
	__u64 ago_ns = state->last_data_sent * 1000000ULL + all->csv.us_per_jiffy * 1000;
	struct sample before = of->last;

	if (now_ns - ago_ns > before.monotonic_ns)
		before.monotonic_ns = now_ns - ago_ns;
	for (__u16 n = of->timeouts + 1; n <= state->retransmits; n++)
		add_row(all, of, &before, EVENT_TIMEOUT, n);
}

static void take(struct sampler *all, size_t index, const struct inet_diag_msg *message,
		 const struct state *state, __u64 now_ns)
{
	struct watched *station = &all->stations[index];
	__u64 cookie = (__u64)message->id.idiag_cookie[1] << 32 |
		       message->id.idiag_cookie[0];
	struct sampled *of = find(all, station, cookie);
	struct sample row = { .monotonic_ns = now_ns, .socket_cookie = cookie,
			      .station = index };
	bool is_new;

	if (!of)
		return;
	is_new = !of->last.monotonic_ns;
	read_addresses(&row, message);
	if (is_new)
		of->opened = opened_of(station, &row);
	read_state(all, of, &row, state);
	of->seen = true;
	if (is_new) {
		add_row(all, of, &row, EVENT_ALGORITHM, 0);
		of->last = row;
		of->written = true;
	}
	if (!is_new && state->retransmits <= of->timeouts && same_state(&of->last, &row)) {
		of->last.monotonic_ns = now_ns;
		of->written = false;
	} else {
		if (!of->written)
			add_row(all, of, &of->last, EVENT_NONE, 0);
		add_timeouts(all, of, state, now_ns);
		add_row(all, of, &row, EVENT_NONE, 0);
		of->last = row;
		of->last.data_bytes = 0;
		of->written = true;
	}
	of->timeouts = state->retransmits;
	of->bytes_received = state->bytes_received;
}

static void take_message(struct sampler *all, size_t index,
			 const struct nlmsghdr *header, __u64 now_ns)
{
	const struct inet_diag_msg *message = NLMSG_DATA(header);
	const struct nlattr *attribute = (const void *)(message + 1);
	const char *end = (const char *)header + header->nlmsg_len;
	struct state state = { 0 };

	while ((const char *)(attribute + 1) <= end &&
	       attribute->nla_len >= sizeof(*attribute) &&
	       (const char *)attribute + attribute->nla_len <= end) {
		size_t bytes = attribute->nla_len - sizeof(*attribute);

		if (attribute->nla_type == INET_DIAG_INFO) {
			memcpy(&state, attribute + 1,
			       bytes < sizeof(state) ? bytes : sizeof(state));
			take(all, index, message, &state, now_ns);
			return;
		}
		attribute = (const void *)((const char *)attribute +
					   NLMSG_ALIGN(attribute->nla_len));
	}
}

static int ask(int diag, int family)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} message = {
		.header = { .nlmsg_len = sizeof(message),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.request = { .sdiag_family = family, .sdiag_protocol = TCP_PROTOCOL,
			     .idiag_ext = 1 << (INET_DIAG_INFO - 1),
			     .idiag_states = SAMPLED_STATES },
	};

	return send(diag, &message, sizeof(message), 0) < 0 ? -1 : 0;
}

static void read_answers(struct sampler *all, size_t index)
{
	static char answer[ANSWER_BYTES] __attribute__((aligned(8)));

	for (;;) {
		int bytes = recv(all->stations[index].diag, answer, sizeof(answer), 0);
		const struct nlmsghdr *header = (const void *)answer;
		__u64 at_ns = clock_ns(CLOCK_MONOTONIC);

		if (bytes <= 0)
			return;
		for (; NLMSG_OK(header, bytes); header = NLMSG_NEXT(header, bytes)) {
			if (header->nlmsg_type == NLMSG_DONE ||
			    header->nlmsg_type == NLMSG_ERROR)
				return;
			take_message(all, index, header, at_ns);
		}
	}
}

/* The last state of a connection that has ended stays in the file. */
static void forget_ended(struct sampler *all, struct watched *station)
{
	struct sampled **place = &station->connections;

	while (*place) {
		struct sampled *one = *place;

		if (one->seen) {
			one->seen = false;
			place = &one->next;
			continue;
		}
		if (!one->written)
			add_row(all, one, &one->last, EVENT_NONE, 0);
		*place = one->next;
		free(one);
	}
}

static void sample_all(struct sampler *all)
{
	csv_update_clock(&all->csv);
	for (size_t i = 0; i < all->settings.station_count; i++) {
		struct watched *station = &all->stations[i];

		read_syns(station);
		if (!station->connections && !station->awaited)
			continue;
		for (int round = 0; round < 2; round++)
			if (!ask(station->diag, round ? AF_INET6 : AF_INET))
				read_answers(all, i);
		forget_ended(all, station);
	}
}

/* ---- the program ---- */

static int open_here(void *context, const char **step)
{
	struct sock_fprog program = { sizeof(with_syn) / sizeof(with_syn[0]), with_syn };
	struct watched *station = context;

	*step = "make a sock_diag socket in";
	station->diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (station->diag < 0)
		return errno;
	/* Without a protocol it receives nothing before it has its filter. */
	*step = "make a packet socket in";
	station->packets = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (station->packets < 0 ||
	    setsockopt(station->packets, SOL_SOCKET, SO_ATTACH_FILTER, &program,
		       sizeof(program)) ||
	    bind(station->packets, (struct sockaddr *)&(struct sockaddr_ll){
			 .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) },
		 sizeof(struct sockaddr_ll)))
		return errno;
	return 0;
}

static int open_station(const char *path, const struct station *station,
			struct watched *watched)
{
	const char *step;
	int error = in_netns(station->netns, open_here, watched, &step);

	return !error ? 0 :
	       complain("%s: station %s: cannot %s netns %s: %s; is the station running?",
			path, station->name, step, station->netns, strerror(error));
}

static int open_stations(const char *path, struct sampler *all)
{
	int result = 0;

	all->stations = calloc(all->settings.station_count, sizeof(*all->stations));
	if (!all->stations)
		return complain("%s: %s", path, strerror(errno));
	for (size_t i = 0; i < all->settings.station_count; i++)
		all->stations[i] = (struct watched){ .diag = -1, .packets = -1,
						     .awaited = AWAITED_ROUNDS };
	for (size_t i = 0; i < all->settings.station_count && !result; i++)
		result = open_station(path, &all->settings.stations[i],
				      &all->stations[i]);
	return result;
}

static void report(const struct sampler *all)
{
	json_t *line = json_pack("{s:s, s:I, s:I, s:I, s:I, s:{}}",
				 "format", "manet-tcp-report/1",
				 "connections", (json_int_t)all->connections,
				 "samples", (json_int_t)(all->samples - all->csv.unwritten),
				 "lost_samples", (json_int_t)0,
				 "unwritten_samples", (json_int_t)all->csv.unwritten,
				 "refused");

	if (!all->csv.broken)
		json_object_set_new(line, "wrote", csv_written(&all->csv));
	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(line);
}

static void close_stations(struct sampler *all)
{
	for (size_t i = 0; all->stations && i < all->settings.station_count; i++) {
		struct watched *station = &all->stations[i];

		while (station->connections) {
			struct sampled *next = station->connections->next;

			free(station->connections);
			station->connections = next;
		}
		while (station->opened) {
			struct opened *next = station->opened->next;

			free(station->opened);
			station->opened = next;
		}
		if (station->diag >= 0)
			close(station->diag);
		if (station->packets >= 0)
			close(station->packets);
	}
	free(all->stations);
}

int sample_command(const char *path)
{
	static struct sampler all = { .signals = -1 };
	int code = EXIT_SETTINGS;

	all.csv.fd = -1;
	if (settings_load(path, &all.settings) || watch_signals(&all.signals))
		goto out;
	if (!all.settings.samples[0]) {
		complain("%s: \"samples\" is missing; name the file", path);
		goto out;
	}
	code = EXIT_RUNTIME;
	if (open_stations(path, &all) || csv_open(&all.csv, &all.settings))
		goto out;
	puts("ready");
	fflush(stdout);
	while (!poll(&(struct pollfd){ .fd = all.signals, .events = POLLIN }, 1,
		     INTERVAL_MS)) {
		sample_all(&all);
		csv_flush(&all.csv);
	}
	sample_all(&all);
	for (size_t i = 0; i < all.settings.station_count; i++)
		forget_ended(&all, &all.stations[i]);
	csv_close(&all.csv);
	report(&all);
	code = 0;
out:
	close_stations(&all);
	csv_close(&all.csv);
	if (all.signals >= 0)
		close(all.signals);
	settings_free(&all.settings);
	return code;
}
