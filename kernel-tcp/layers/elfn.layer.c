// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * elfn - Holland and Vaidya, "Analysis of TCP Performance over Mobile Ad Hoc Networks",
 * MobiCom 1999, section 6.
 *
 * unreachable begins the stand-by, or our own daemon's loss of the route: a source sees
 * its own broken link first, and may hold the packets without any ICMP. It probes at a
 * fixed interval. Any acknowledgement of new data ends it; with leave=probe-ack only one
 * after a probe.
 */
#include "layer_table.h"
#include "layers/stand_by.h"

_Static_assert((int)ELFN_REPAIR_WINDOW == (int)REPAIR_WINDOW &&
	       (int)ELFN_REPAIR_INITIAL == (int)REPAIR_INITIAL &&
	       (int)ELFN_LEAVE_PROBE_ACK == (int)LEAVE_PROBE_ACK,
	       "names/elfn.toml lists the choices in the order of layers.h");

static void configure(const __u32 *values, struct layer_settings *settings)
{
	settings->repair = values[ELFN_REPAIR];
	settings->leave = values[ELFN_LEAVE];
}

static void answer(struct agent *agent, __u32 slot, const struct notice *notice)
{
	const __u32 *values = agent->connections[slot].settings.values;

	stand_by_probe_every(agent, slot, notice, values[ELFN_PROBE_US],
			     values[ELFN_RESTORE] == ELFN_RESTORE_BEFORE_TIMEOUT ?
			     WINDOWS_BEFORE_TIMEOUT : 0);
}

static __u32 probe_seq(const struct connection *own, const struct stand_by *now)
{
	if (own->settings.values[ELFN_PACKET] == ELFN_PACKET_LOST &&
	    !before(now->lost, own->snd_una))
		return now->lost;
	return own->snd_una;
}

const struct layer elfn_layer = {
	.mechanisms = MECHANISM_REPAIR,
	.configure = configure,
	.notice = answer,
	.probe_seq = probe_seq,
};
