/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The state of the user space side of the layers, its clock, and its events in the
 * samples' file. programs.c loads, agent.c waits and checks notices, stand_by.c and the
 * modules of the layers (layer.h) act, daemon.c follows the routing daemons of the
 * stations.
 */
#ifndef STATE_H
#define STATE_H

#include <stdbool.h>
#include <stddef.h>
#include "copy.h"
#include "csv.h"
#include "settings.h"
#include "layers/layers.h"
#include "layers/notices.h"

struct layers;		/* the skeleton of layers.bpf.c */

/* Why the agent sends in place of the connection. */
enum reason {
	REASON_NONE,
	REASON_UNREACHABLE,
	REASON_ROUTE_ERROR,
	REASON_HELD,
	REASON_LOST_ROUTE,
	REASON_TIMEOUT,
};

/* The stand-by of the connection in the same slot of `connections`. */
struct stand_by {
	enum reason reason;
	__u64 cookie;
	__u32 order;		/* of struct connection; 0 for REASON_TIMEOUT */
	__u64 next_ns;		/* when the next segment is sent; 0 = none is */
	__u64 interval_ns;
	__u64 until_ns;		/* when the stand-by ends by itself; 0 = never */
	__u64 searched_ns;	/* freeze.c: when a segment last made a daemon search */
	__u32 lost;		/* lowest sequence number reported */
	__u32 sent;
};

/* The sockets of a station with layers. */
struct listener {
	const struct station *station;
	size_t index;		/* of the station in the settings */
	int icmp, raw;
	int daemon;		/* -1 = not connected */
	size_t line_bytes;
	char line[4096];	/* the daemon's next line, as far as received */
	__u64 second;		/* of the monotonic clock */
	unsigned taken;		/* notices read in that second */
};

struct notice_counters {
	__u64 believed, no_such_connection, wrong_sequence, malformed, too_many;
	__u64 not_answered;	/* no layer of the connection answers notices */
};

struct agent {
	const struct run_settings *settings;
	struct layers *programs;
	struct copy hold;
	struct connection *connections;		/* MAX_LAYERED of each */
	struct kept_window *kept;
	struct stand_by stand_bys[MAX_LAYERED];
	struct listener *listeners;
	size_t listener_count;
	int epoll, timer;
	struct csv *csv;			/* NULL = no samples */
	void (*drain)(void *);
	void *drain_context;
	struct notice_counters notices;
	__u64 stand_by_count, probe_count;
};

/* CLOCK_MONOTONIC, ns. */
__u64 agent_now_ns(void);

/* The instant of an event that agent_record_at writes later: what the eBPF programs see from
 * now on comes after it in the file. */
__u64 agent_begin_record(struct agent *agent);
/* Writes an event of a connection, of the instant from agent_begin_record. */
void agent_record_at(struct agent *agent, __u64 at_ns, const struct connection *own,
		     const char *event, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* Writes an event of a connection that happens now. */
#define agent_record(agent, ...) \
	agent_record_at(agent, agent_begin_record(agent), __VA_ARGS__)

/* The earlier of two instants, of which 0 is never. */
static inline __u64 earlier(__u64 a, __u64 b)
{
	return !a || (b && b < a) ? b : a;
}

#endif
