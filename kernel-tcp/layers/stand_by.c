// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * stand_by.c - begins and ends stand-bys, keeps their clock, and sends what is sent
 * meanwhile. When and how is the layer's decision (layer.h); which acknowledgement ends
 * a stand-by is decided in the kernel (gate.bpf.h: watch).
 *
 * The fixed RTO is here too (MECHANISM_FIXED_RTO): the kernel's second timeout in a row
 * begins it; the first segment is sent at once and every RTO, which stays what it is.
 */
#include <string.h>
#include "kernel.h"
#include "layers/layer.h"
#include "layers/probes.h"
#include "layers/stand_by.h"

#define RETRY_NS 20000000ULL	/* while the gate has no copy */

static const char *const reasons[] = {
	[REASON_UNREACHABLE] = "unreachable",
	[REASON_ROUTE_ERROR] = "route-error",
	[REASON_HELD] = "held",
	[REASON_LOST_ROUTE] = "lost-route",
	[REASON_TIMEOUT] = "timeout",
};

const char *const notice_names[NOTICE_KINDS] = {
	[NOTICE_UNREACHABLE] = "unreachable",
	[NOTICE_HELD] = "held",
	[NOTICE_RESTORED] = "restored",
	[NOTICE_ROUTE_ERROR] = "route-error",
	[NOTICE_ROUTE] = "route",
	[NOTICE_LOST_ROUTE] = "lost-route",
	[NOTICE_NO_ROUTE] = "no-route",
};

static __u64 jiffies_ns(__u32 jiffies)
{
	return jiffies * (1000000000ULL / jiffies_per_second());
}

bool connection_stands_by(const struct connection *own)
{
	return __atomic_load_n(&own->ordered, __ATOMIC_RELAXED) !=
	       __atomic_load_n(&own->ended, __ATOMIC_ACQUIRE);
}

/* ---- sending ---- */

static int raw_socket_of(const struct agent *agent, const struct connection *own)
{
	for (size_t i = 0; i < agent->listener_count; i++)
		if (agent->listeners[i].index == own->settings.station)
			return agent->listeners[i].raw;
	return -1;
}

__u32 resend(struct agent *agent, __u32 slot, __u32 seq)
{
	const struct connection *own = &agent->connections[slot];
	struct kept segment;

	if (!kept_find(&agent->kept[slot], own->cookie, seq, &segment))
		return seq;
	/* For TCP an error is a packet lost on the path. */
	kept_send(raw_socket_of(agent, own), &segment, agent_now_ns());
	return segment.end;
}

/* With nothing outstanding: the last segment again, which the receiver answers with the
 * same ACK (RFC 9293 3.10.7.4). */
static bool send_acknowledged(struct agent *agent, __u32 slot)
{
	const struct connection *own = &agent->connections[slot];
	struct kept segment;

	if (!kept_find_last(&agent->kept[slot], own->cookie, own->snd_una, &segment))
		return false;
	kept_send(raw_socket_of(agent, own), &segment, agent_now_ns());
	return true;
}

static bool send_at(struct agent *agent, __u64 at_ns, __u32 slot, __u32 seq)
{
	struct connection *own = &agent->connections[slot];
	struct stand_by *now = &agent->stand_bys[slot];
	bool sent = seq == own->snd_nxt ? send_acknowledged(agent, slot) :
					  resend(agent, slot, seq) != seq;

	if (!sent)
		return false;
	now->sent++;
	agent->probe_count++;
	agent_record_at(agent, at_ns, own, "probe", "seq=%u", seq);
	return true;
}

bool stand_by_send(struct agent *agent, __u32 slot, __u32 seq)
{
	return send_at(agent, agent_begin_record(agent), slot, seq);
}

/* Its answer ends the stand-by. */
static bool probe(struct agent *agent, __u32 slot, __u32 seq)
{
	/* Both before it is sent: the answer may come at once. */
	__u64 at_ns = agent_begin_record(agent);

	__atomic_store_n(&agent->connections[slot].probed, agent->stand_bys[slot].order,
			 __ATOMIC_RELEASE);
	return send_at(agent, at_ns, slot, seq);
}

void resend_until(struct agent *agent, __u32 slot, __u32 end)
{
	struct connection *own = &agent->connections[slot];
	__u32 seq = own->snd_una, next;

	/* The answer makes the kernel send new data. */
	if (seq == own->snd_nxt)
		send_acknowledged(agent, slot);
	for (int i = 0; i < COPIES && before(seq, end); i++, seq = next) {
		__u64 at_ns = agent_begin_record(agent);

		next = resend(agent, slot, seq);
		if (next == seq)
			return;
		agent_record_at(agent, at_ns, own, "retransmit", "seq=%u", seq);
	}
}

/* ---- begin and end ---- */

void stand_by_set_reported(struct connection *own, __u32 seq, __u32 order)
{
	own->reported = seq;
	__atomic_store_n(&own->reported_for, order, __ATOMIC_RELEASE);
}

void stand_by_lower(struct stand_by *now, __u32 seq)
{
	if (before(seq, now->lost))
		now->lost = seq;
}

struct stand_by *stand_by_begin(struct agent *agent, __u32 slot, enum reason reason,
				__u32 seq, unsigned options)
{
	struct connection *own = &agent->connections[slot];
	struct stand_by *now = &agent->stand_bys[slot];
	__u64 at_ns = agent_begin_record(agent);

	memset(now, 0, sizeof(*now));
	now->reason = reason;
	now->cookie = own->cookie;
	now->order = own->ordered + 1;
	now->lost = seq;
	stand_by_set_reported(own, seq, options & REPORTED_ACK_ENDS ? now->order : 0);
	own->before_timeout = options & WINDOWS_BEFORE_TIMEOUT && own->timeouts ?
			      now->order : 0;
	__atomic_store_n(&own->ordered, now->order, __ATOMIC_RELEASE);
	agent->stand_by_count++;
	agent_record_at(agent, at_ns, own, "stand-by", "%s", reasons[reason]);
	return now;
}

void stand_by_end(struct agent *agent, __u32 slot, const char *cause)
{
	struct connection *own = &agent->connections[slot];
	__u64 at_ns = agent_begin_record(agent);

	own->restore = 1;
	__atomic_store_n(&own->ended, own->ordered, __ATOMIC_RELEASE);
	agent->stand_bys[slot].reason = REASON_NONE;
	agent_record_at(agent, at_ns, own, "repair", "%s", cause);
}

/* ---- notices ---- */

static enum reason reason_of(enum notice_kind kind)
{
	switch (kind) {
	case NOTICE_UNREACHABLE:
		return REASON_UNREACHABLE;
	case NOTICE_ROUTE_ERROR:
		return REASON_ROUTE_ERROR;
	case NOTICE_LOST_ROUTE:
		return REASON_LOST_ROUTE;
	default:
		return REASON_NONE;
	}
}

void stand_by_probe_every(struct agent *agent, __u32 slot, const struct notice *notice,
			  __u32 interval_us, unsigned options)
{
	struct stand_by *now = &agent->stand_bys[slot];
	enum reason reason = reason_of(notice->kind);

	if (reason == REASON_NONE)
		return;
	if (connection_stands_by(&agent->connections[slot])) {
		stand_by_lower(now, notice->seq);
		return;
	}
	now = stand_by_begin(agent, slot, reason, notice->seq, options);
	now->interval_ns = interval_us * 1000ULL;
	now->next_ns = agent_now_ns() + now->interval_ns;
}

void stand_by_notice(struct agent *agent, __u32 slot, const struct notice *notice)
{
	struct connection *own = &agent->connections[slot];
	const struct layer *layer = answering_layer(own);

	if (!layer) {
		agent->notices.not_answered++;
		return;
	}
	agent->notices.believed++;
	if (notice->range_count)
		agent_record(agent, own, "notice", "%s seq=%u ranges=%u",
			     notice_names[notice->kind], notice->seq,
			     notice->range_count);
	else
		agent_record(agent, own, "notice", "%s seq=%u",
			     notice_names[notice->kind], notice->seq);
	layer->notice(agent, slot, notice);
}

/* ---- events and timers ---- */

/* At the kernel's second timeout in a row, which the gate has refused. */
static void begin_fixed_rto(struct agent *agent, __u32 slot, const struct sample *row)
{
	struct stand_by *now = &agent->stand_bys[slot];

	memset(now, 0, sizeof(*now));
	now->reason = REASON_TIMEOUT;
	now->cookie = row->socket_cookie;
	now->interval_ns = jiffies_ns(row->rto_jiffies);
	now->next_ns = row->monotonic_ns;
}

void stand_by_event(struct agent *agent, const struct sample *row)
{
	for (__u32 slot = 0; slot < MAX_LAYERED; slot++) {
		if (agent->connections[slot].cookie != row->socket_cookie)
			continue;
		if (row->event == EVENT_FIXED_RTO)
			begin_fixed_rto(agent, slot, row);
		return;
	}
}

static bool is_current(const struct connection *own, const struct stand_by *now)
{
	if (own->cookie != now->cookie)
		return false;
	return now->reason == REASON_TIMEOUT ? own->fixed_rto :
	       connection_stands_by(own) && own->ordered == now->order;
}

static bool send_due(struct agent *agent, __u32 slot)
{
	struct connection *own = &agent->connections[slot];
	struct stand_by *now = &agent->stand_bys[slot];
	const struct layer *layer = answering_layer(own);
	__u32 seq = own->snd_una;

	if (now->reason == REASON_TIMEOUT) {
		__u64 at_ns = agent_begin_record(agent);

		if (resend(agent, slot, seq) == seq)
			return false;
		/* The kernel's event was the first. */
		if (now->sent++)
			agent_record_at(agent, at_ns, own, "timeout", "%u",
					own->timeouts + now->sent - 1);
		return true;
	}
	if (layer && layer->probe_seq)
		seq = layer->probe_seq(own, now);
	return probe(agent, slot, seq);
}

static void fire(struct agent *agent, __u32 slot, __u64 now_ns)
{
	/* NULL if no layer answers notices (fixed RTO), or if a new connection has just
	 * taken the slot. */
	const struct layer *layer = answering_layer(&agent->connections[slot]);
	struct stand_by *now = &agent->stand_bys[slot];

	if (now->until_ns && now->until_ns <= now_ns) {
		stand_by_end(agent, slot, "timer");
		return;
	}
	if (!now->next_ns || now->next_ns > now_ns)
		return;
	if (!send_due(agent, slot)) {
		now->next_ns = now_ns + RETRY_NS;
		return;
	}
	if (now->reason != REASON_TIMEOUT && layer && layer->next_interval_ns)
		now->interval_ns = layer->next_interval_ns(now);
	while (now->next_ns <= now_ns)
		now->next_ns += now->interval_ns;
}

__u64 doubled_ns(__u64 interval_ns)
{
	return interval_ns * 2 < MAX_PERSIST_NS ? interval_ns * 2 : MAX_PERSIST_NS;
}

__u64 stand_by_due(struct agent *agent, __u64 now_ns)
{
	__u64 next_ns = 0;

	for (__u32 slot = 0; slot < MAX_LAYERED; slot++) {
		struct stand_by *now = &agent->stand_bys[slot];

		if (now->reason == REASON_NONE)
			continue;
		if (is_current(&agent->connections[slot], now))
			fire(agent, slot, now_ns);
		else
			now->reason = REASON_NONE;
		if (now->reason != REASON_NONE)
			next_ns = earlier(next_ns, earlier(now->next_ns, now->until_ns));
	}
	return next_ns;
}
