// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * freeze.c - what tcpf and tcpbus share.
 *
 * unreachable, held, or our own daemon's loss of the route begin the stand-by. Nothing
 * is sent but one segment that makes a daemon search. `restored` or the daemon's new
 * route end it. The only acknowledgement that ends it is that of the very segment that
 * ICMP reported: a notice may arrive after the route is back, and then no other notice
 * follows.
 */
#include "layers/freeze.h"
#include "layers/stand_by.h"

#define MIN_SEARCH_INTERVAL_NS 500000000ULL	/* between two searches that we cause */

/* A daemon searches only for a route with traffic. The answer does not end the freeze:
 * it looks like that of a segment which got through before the break. */
static void cause_search(struct agent *agent, __u32 slot)
{
	struct stand_by *now = &agent->stand_bys[slot];
	__u64 now_ns = agent_now_ns();

	if (now->searched_ns && now_ns - now->searched_ns < MIN_SEARCH_INTERVAL_NS)
		return;
	now->searched_ns = now_ns;
	stand_by_send(agent, slot, agent->connections[slot].snd_una);
}

/* What our own daemon knows goes before what ICMP reported. */
static void extend(struct connection *own, struct stand_by *now, enum reason reason,
		   __u32 seq)
{
	bool reported = own->reported_for && reason != REASON_LOST_ROUTE;

	stand_by_lower(now, seq);
	stand_by_set_reported(own, now->lost, reported ? now->order : 0);
}

static void freeze(struct agent *agent, __u32 slot, enum reason reason, __u32 seq,
		   const struct freeze *layer)
{
	struct connection *own = &agent->connections[slot];
	struct stand_by *now = &agent->stand_bys[slot];

	if (connection_stands_by(own)) {
		extend(own, now, reason, seq);
	} else {
		now = stand_by_begin(agent, slot, reason, seq,
				     reason == REASON_LOST_ROUTE ? 0 : REPORTED_ACK_ENDS);
		layer->begin(own, now);
	}
	/* The ACK came while the notice was read. */
	if (own->reported_for && before(now->lost, own->snd_una)) {
		stand_by_end(agent, slot, "ack");
		return;
	}
	/* A node that holds a packet is searching already. */
	if (reason != REASON_HELD)
		cause_search(agent, slot);
}

static void thaw(struct agent *agent, __u32 slot, const struct notice *notice,
		 const struct freeze *layer)
{
	if (connection_stands_by(&agent->connections[slot]))
		layer->thaw(agent, slot, notice);
}

void freeze_notice(struct agent *agent, __u32 slot, const struct notice *notice,
		   const struct freeze *layer)
{
	switch (notice->kind) {
	case NOTICE_UNREACHABLE:
		freeze(agent, slot, REASON_UNREACHABLE, notice->seq, layer);
		break;
	case NOTICE_HELD:
		freeze(agent, slot, REASON_HELD, notice->seq, layer);
		break;
	case NOTICE_LOST_ROUTE:
		freeze(agent, slot, REASON_LOST_ROUTE, notice->seq, layer);
		break;
	case NOTICE_NO_ROUTE:
		if (!connection_stands_by(&agent->connections[slot]))
			break;
		agent->connections[slot].reported_for = 0;
		cause_search(agent, slot);
		break;
	case NOTICE_RESTORED:
	case NOTICE_ROUTE:
		thaw(agent, slot, notice, layer);
		break;
	default:
		break;
	}
}
