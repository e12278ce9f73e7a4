/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Shared by the eBPF programs of the layers and the agent: the state of a connection
 * and copies of its outstanding segments. Both are arrays that the agent maps into its
 * memory. Every field has one writer, named at the field or above its group, so that
 * neither side needs a lock.
 */
#ifndef LAYERS_H
#define LAYERS_H

#include <linux/types.h>

/* Simultaneous connections with a layer; further ones run without it and are counted. */
#define MAX_LAYERED 256
/* Segments kept for each, 13 MB in total: the papers use windows of 4 to 32. */
#define COPIES 32
#define COPY_BYTES 1500

/* What the eBPF programs do for the layers of a connection. */
enum mechanism {
	/* From the second timeout in a row the agent retransmits, and the RTO stays. */
	MECHANISM_FIXED_RTO = 1 << 0,
	/* After a stand-by the windows are those that `repair` names. */
	MECHANISM_REPAIR = 1 << 1,
	/* The agent may order a stand-by. */
	MECHANISM_STAND_BY = 1 << 2,
};

enum repair { REPAIR_UNCHANGED, REPAIR_WINDOW, REPAIR_INITIAL };
/* Which acknowledgement ends a stand-by: any of new data, or one after a probe. */
enum leave { LEAVE_ANY_ACK, LEAVE_PROBE_ACK };

#define LAYER_VALUES 7

struct layer_settings {
	__u32 station;
	__u16 mechanisms;	/* enum mechanism; 0 = none */
	__u16 answering;	/* agent: the layer that answers notices; names.c */
	__u32 repair;		/* enum repair */
	__u32 leave;		/* enum leave */
	__u32 rto_initial_us;
	__u32 values[LAYER_VALUES];	/* agent: that layer's parameters (layer.h) */
};

struct connection {
	__u64 cookie;		/* sockops; 0 = the slot is free */
	struct layer_settings settings;
	__u8 local[16];		/* IPv6, or IPv4-mapped */
	__u8 remote[16];
	__u16 local_port;	/* host order */
	__u16 remote_port;

	/* From the packets; the gate and the watch write it. */
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 copied;		/* new segments copied so far */
	__u32 rto_jiffies;	/* at the last ACK */
	__u32 srtt_us;		/* smoothed round-trip time before it; 0 = no sample */

	/* Stand-by: from the agent's order until either side ends it. */
	__u32 ordered;		/* agent: number of the last order */
	__u32 probed;		/* agent: the last order that a probe was sent for */
	__u32 ended;		/* both: the last order that has ended */
	/* tcpf, tcpbus: the ACK of the reported segment ends the order. */
	__u32 reported;		/* agent: the lowest sequence number reported ... */
	__u32 reported_for;	/* ... for this order; 0 = only a notice ends it */

	/* tcpbus: the missing segments were resent; duplicate ACKs may ask for them too. */
	__u32 resent_order;	/* agent: the last order that ended with a resend ... */
	__u32 resent_until;	/* ... and the sequence number after the resent data */
	__u32 window;		/* watch: of the last ACK, not scaled */

	/* Timeouts; sockops writes, the watch clears. */
	__u32 timeouts;		/* in a row, not counting those in stand-by */
	__u32 fixed_rto;	/* reno-f: the agent retransmits, not the kernel */
	__u32 refuse_timer;	/* the kernel's timer is retransmitting now */

	/* Windows; sockops writes. */
	__u32 held;		/* the algorithm is `hold` instead of `inner` */
	__u32 restore;		/* watch, agent: restore the windows before the next packet */
	__u32 cwnd;		/* segments; `hold` keeps it */
	__u32 ssthresh;
	__u32 half;		/* ssthresh after the first timeout in a row ... */
	__u32 timeout_cwnd;	/* ... and the windows before it */
	__u32 timeout_ssthresh;
	__u32 before_timeout;	/* agent: the order that restores these; 0 = none */
	__u32 initial;		/* repair=initial: the RTO is the initial one ... */
	__u32 initial_until;	/* ... until this sequence number is acknowledged */
	__u64 timer_ns;		/* when data was last sent or acknowledged */
	char inner[16];
};

struct kept {
	__u64 cookie;
	__u32 seq, end;		/* of its data */
	__u32 bytes;		/* of the packet; 0 = none, or being written */
	__u32 unused;
	__u64 sent_ns;		/* CLOCK_MONOTONIC */
	__u8 packet[COPY_BYTES + 4];	/* from the IP header */
};

struct kept_window {
	struct kept ring[COPIES];
	struct kept refused;	/* the kernel's own retransmission in stand-by */
};

/* Written by the eBPF programs; the agent counts notices (agent.h). */
struct layer_counters {
	__u64 connections;
	__u64 without_room;	/* connections beyond MAX_LAYERED */
	__u64 uncopied;		/* segments over COPY_BYTES: offloads are on */
	__u64 refused_packets;	/* in stand-by */
	__u64 duplicates;	/* ACKs that ask for segments already resent */
	__u64 switches_failed;	/* to `hold` or back */
};

#endif
