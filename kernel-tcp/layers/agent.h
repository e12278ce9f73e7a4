/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The user space side of the layers: programs.c loads, agent.c waits and judges,
 * stand_by.c and the layers' modules (layer.h) act, daemon.c listens to the stations'
 * routing daemons.
 */
#ifndef AGENT_H
#define AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "copy.h"
#include "csv.h"
#include "settings.h"
#include "layers/layers.h"
#include "layers/notices.h"

struct layers;		/* the skeleton of layers.bpf.c */

/* Why a connection sends nothing but what the agent sends for it. */
enum reason {
	REASON_NONE,
	REASON_UNREACHABLE,
	REASON_HELD,
	REASON_LOST_ROUTE,
	REASON_TIMEOUT,
};

/* What goes on with the connection in the same slot of `connections`. */
struct stand_by {
	enum reason reason;
	__u64 cookie;
	__u32 order;		/* of struct connection; 0 for REASON_TIMEOUT */
	__u64 next_ns;		/* when something is to be sent; 0 = nothing is */
	__u64 interval_ns;
	__u64 until_ns;		/* tcpf: the failure timer; 0 = none */
	__u64 searched_ns;	/* tcpf: when a segment was last sent to make a daemon search */
	__u32 lost;		/* lowest sequence number reported */
	__u32 sent;
};

/* What a station with layers listens to. */
struct listener {
	const struct station *station;
	size_t index;		/* of the station in the settings */
	int icmp, raw;
	int daemon;		/* -1 = not connected */
	size_t line_bytes;
	char line[4096];	/* what has come of the daemon's next line */
	__u64 second;		/* of the monotonic clock; what was taken in it: */
	unsigned taken;
};

struct notice_counters {
	__u64 believed, no_such_connection, wrong_sequence, malformed, too_many;
	__u64 not_answered;	/* of the layers that the connection has, none wants it */
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
	struct csv *csv;			/* NULL = no samples wanted */
	void (*drain)(void *);
	void *drain_context;
	struct notice_counters notices;
	__u64 stand_by_count, probe_count;
};

bool agent_wanted(const struct run_settings *settings);

/* `samples`: the descriptor of the ring's map. One line and -1 on failure. */
struct agent *agent_new(const struct run_settings *settings, int samples, int cgroup);
void agent_free(struct agent *agent);

/* `ring`: the descriptor that says when an event has come; `drain` takes it. */
int agent_listen(struct agent *agent, struct csv *csv, int ring,
		 void (*drain)(void *), void *context);
/* To poll. */
int agent_descriptor(const struct agent *agent);
void agent_work(struct agent *agent);
/* An event, out of the ring. */
void agent_event(struct agent *agent, const struct sample *row);
json_t *agent_report(const struct agent *agent);

/* ---- among the files here ---- */

__u64 agent_now_ns(void);
/* Loads and attaches; 0, or one line and -1. */
int programs_start(struct agent *agent, int samples, int cgroup);
void programs_stop(struct agent *agent);
const struct layer_counters *programs_counters(const struct agent *agent);

/* Writes an event of a connection. */
void agent_record(struct agent *agent, const struct connection *own, const char *event,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));

void stand_by_notice(struct agent *agent, __u32 slot, const struct notice *notice);
void stand_by_event(struct agent *agent, const struct sample *row);
/* Sends what is due; returns when next, 0 = never. */
__u64 stand_by_due(struct agent *agent, __u64 now_ns);
bool connection_stands_by(const struct connection *own);

/* Reads what the daemon says; connects, where it is not. */
void daemon_read(struct agent *agent, struct listener *listener);
void daemon_connect(struct agent *agent, struct listener *listener);
#define DAEMON_RETRY_NS 1000000000ULL

#endif
