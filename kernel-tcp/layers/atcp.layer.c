// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * atcp - Liu and Singh, "ATCP: TCP for Mobile Ad Hoc Networks", IEEE JSAC 19 (7), 2001.
 *
 * Stands by as elfn does. A persist timer sends the probes (RFC 9293 3.8.6.1); the
 * receiver's answer to a probe ends the stand-by. The window is that of the algorithm of
 * the same name (algorithms/atcp.bpf.c), which takes newreno's place.
 */
#include "layer_table.h"
#include "layers/stand_by.h"

static void answer(struct agent *agent, __u32 slot, const struct notice *notice)
{
	const __u32 *values = agent->connections[slot].settings.values;

	if (notice->kind == NOTICE_ROUTE_ERROR)	/* for elfn, in the same network */
		return;
	stand_by_probe_every(agent, slot, notice, values[ATCP_PROBE_US], 0);
}

/* A persist timer doubles once it has fired: its first two intervals are equal. */
static __u64 next_interval_ns(const struct stand_by *now)
{
	return now->sent > 1 ? doubled_ns(now->interval_ns) : now->interval_ns;
}

const struct layer atcp_layer = {
	.leave = LEAVE_PROBE_ACK,
	.notice = answer,
	.next_interval_ns = next_interval_ns,
};
