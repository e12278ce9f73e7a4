/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Stand-by, for the agent and the layers' modules: the kernel's TCP sends no data (gate.bpf.h), its
 * timer does not back off, its windows stay (hold.bpf.c). Whatever is sent meanwhile, a
 * module sends with these functions.
 */
#ifndef STAND_BY_H
#define STAND_BY_H

#include "layers/layer.h"

/* As in the samples' file (formats/tcp.md), by enum notice_kind. */
extern const char *const notice_names[NOTICE_KINDS];

#define MAX_PERSIST_NS 60000000000ULL	/* RFC 9293 3.8.6.1 */

enum stand_by_option {
	/* The ACK of the reported segment proves that there is a route again. */
	REPORTED_ACK_ENDS = 1 << 0,
	/* Restore the windows of before the first timeout, if one came earlier. */
	WINDOWS_BEFORE_TIMEOUT = 1 << 1,
};

/* Whether the connection stands by. */
bool connection_stands_by(const struct connection *own);
/* Gives a believed notice to the layer of the connection. */
void stand_by_notice(struct agent *agent, __u32 slot, const struct notice *notice);
/* Handles an event of a connection. */
void stand_by_event(struct agent *agent, const struct sample *row);
/* Sends what is due. Returns when something is due next (CLOCK_MONOTONIC, ns), 0 = never. */
__u64 stand_by_due(struct agent *agent, __u64 now_ns);

/* Begins a stand-by; `seq` is the sequence number that was reported lost. */
struct stand_by *stand_by_begin(struct agent *agent, __u32 slot, enum reason reason,
				__u32 seq, unsigned options);
/* Whether the ACK of the reported segment ends this stand-by (REPORTED_ACK_ENDS). */
void stand_by_set_reported(struct connection *own, __u32 seq, __u32 order);
/* Another notice during the stand-by: keeps the lowest sequence number reported. */
void stand_by_lower(struct stand_by *now, __u32 seq);
/* Ends it; `cause` is for the samples' file. */
void stand_by_end(struct agent *agent, __u32 slot, const char *cause);

/* Begins a stand-by at unreachable, a Route Error or the loss of our own daemon's route,
 * with a probe every `interval_us`; a second notice does not restart the interval. Ignores other
 * notices. */
void stand_by_probe_every(struct agent *agent, __u32 slot, const struct notice *notice,
			  __u32 interval_us, unsigned options);
/* Twice the interval, MAX_PERSIST_NS at most. */
__u64 doubled_ns(__u64 interval_ns);

/* Sends one segment whose answer ends nothing; false if the gate has no copy. */
bool stand_by_send(struct agent *agent, __u32 slot, __u32 seq);
/* Sends a copy of the segment at `seq`: the end of it, or `seq` without a copy. */
__u32 resend(struct agent *agent, __u32 slot, __u32 seq);
/* Sends all from the first outstanding segment up to `end`. */
void resend_until(struct agent *agent, __u32 slot, __u32 end);

/* Comparison of sequence numbers (RFC 9293 3.4). */
static inline bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

#endif
