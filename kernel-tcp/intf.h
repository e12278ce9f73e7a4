/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Shared by the eBPF programs and the loader: the settings of a station, a sample, and
 * the counters of refused settings.
 */
#ifndef INTF_H
#define INTF_H

#define ALGORITHM_BYTES 16	/* TCP_CA_NAME_MAX, include/net/tcp.h */
#define MAX_SEGMENTS 65535	/* of a window: 95 MB */
#define MAX_STATIONS 4096
#define MAX_SETTINGS 16384	/* of stations and their ports */

/* The settings are for all connections of a station, or for those with the port at
 * either end. */
struct settings_key {
	__u64 netns_cookie;
	__u32 port;			/* 0: the station */
	__u32 zero;
};

/* A parameter of an algorithm: a `const volatile` variable of its object. The loader
 * finds it by name and sets it before the kernel sees the program. */
struct tunable {
	__u32 value;
	__u32 min, max;
	__u32 scale;		/* `value` is the user's number times this */
};

/* One station's or port's settings; 0 or "" = leave the kernel's own. */
struct station_settings {
	__u32 station;			/* index into the loader's table of names */
	__u32 ports;			/* number of ports with settings of their own */
	__u32 window_segments;
	__u32 initial_window_segments;
	__u32 mss;
	__u32 rto_min_us;
	__u32 rto_max_ms;
	__u32 rto_initial_jiffies;
	__u32 delack_max_us;
	__u32 layered;			/* layers/layers.bpf.c reports its timeouts */
	char algorithm[ALGORITHM_BYTES];
};

/* Settings that the kernel may refuse; their names: setting_names[] in run.c. */
enum setting {
	SETTING_ALGORITHM,
	SETTING_WINDOW,
	SETTING_RECEIVE_WINDOW,
	SETTING_INITIAL_WINDOW,
	SETTING_MSS,
	SETTING_RTO_MIN,
	SETTING_RTO_MAX,
	SETTING_DELAYED_ACK,
	SETTINGS,
};

struct counters {
	__u64 connections;		/* that reached ESTABLISHED */
	__u64 samples;
	__u64 lost_samples;		/* ring buffer was full */
	__u64 refused[SETTINGS];
	__s32 refused_error[SETTINGS];	/* the last -errno */
};

/* The kind of a row; csv.c writes the rows. */
enum event {
	EVENT_NONE,		/* a sample */
	EVENT_ALGORITHM,	/* the connection has been made */
	EVENT_TIMEOUT,		/* value: how many in a row */
	EVENT_REPAIR,
	EVENT_WINDOW,
	EVENT_FIXED_RTO,	/* for the agent only: second timeout with a fixed RTO */
};

/* One hit of tcp_probe, or an event. Addresses are IPv6 or v4-mapped, network order. */
struct sample {
	__u64 monotonic_ns;
	__u64 socket_cookie;
	__u8 local[16];
	__u8 remote[16];
	__u32 station;
	__u32 data_bytes;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 snd_cwnd;
	__u32 ssthresh;
	__u32 snd_wnd;
	__u32 srtt_us;
	__u32 rto_jiffies;
	__u32 rcv_wnd;
	__u16 local_port;		/* host order */
	__u16 remote_port;
	__u8 ca_state;
	__u8 event;
	__u16 value;
};

#endif
