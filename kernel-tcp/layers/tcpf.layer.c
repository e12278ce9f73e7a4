// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * tcpf - Chandran, Raghunathan, Venkatesan and Prakash, "A Feedback-Based Scheme for
 * Improving TCP Performance in Ad Hoc Wireless Networks", IEEE Personal Communications
 * 8 (1), 2001.
 *
 * Freezes (freeze.c) until `restored` or the own daemon's new route, and then sends all
 * that is outstanding again. The failure timer ends the freeze too, without.
 */
#include "layer_table.h"
#include "layers/freeze.h"
#include "layers/stand_by.h"

static void start_failure_timer(const struct connection *own, struct stand_by *now)
{
	now->until_ns = agent_now_ns() + own->settings.values[TCPF_FAILURE_US] * 1000ULL;
}

static void resend_all(struct agent *agent, __u32 slot, const struct notice *notice)
{
	__u32 end = agent->connections[slot].snd_nxt;

	stand_by_end(agent, slot, notice_names[notice->kind]);
	resend_until(agent, slot, end);
}

static void answer(struct agent *agent, __u32 slot, const struct notice *notice)
{
	static const struct freeze tcpf = { start_failure_timer, resend_all };

	freeze_notice(agent, slot, notice, &tcpf);
}

const struct layer tcpf_layer = {
	.leave = LEAVE_PROBE_ACK,
	.notice = answer,
};
