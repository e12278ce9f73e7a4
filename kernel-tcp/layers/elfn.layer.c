// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * elfn - Holland and Vaidya, "Analysis of TCP Performance over Mobile Ad Hoc Networks",
 * MobiCom 1999, section 6.
 *
 * unreachable begins the stand-by (notice=icmp), or a Route Error about a packet of the
 * connection, dropped or salvaged, as in the paper (notice=route-error); or our own
 * daemon's loss of the route: a source sees its own broken link first, and may hold the
 * packets without any ICMP. It probes at a fixed interval, which may be a multiple of the
 * round-trip time before the failure (the paper's proposal for further study). Any acknowledgement of new data ends it; with leave=probe-ack only one
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

/* The other kind of notice is not this connection's. */
static bool is_unwanted(const __u32 *values, enum notice_kind kind)
{
	return kind == (values[ELFN_NOTICE] == ELFN_NOTICE_ICMP ? NOTICE_ROUTE_ERROR :
								  NOTICE_UNREACHABLE);
}

/* Without a sample of the round-trip time: the default of `probe`. */
static __u32 interval_us(const __u32 *values, __u32 srtt_us)
{
	__u64 us = (__u64)values[ELFN_PROBE_RTTS] * srtt_us / NUMBER_SCALE;

	if (!us)
		return values[ELFN_PROBE_US];
	if (us < ELFN_PROBE_US_MIN)
		return ELFN_PROBE_US_MIN;
	return us < ELFN_PROBE_US_MAX ? us : ELFN_PROBE_US_MAX;
}

static void answer(struct agent *agent, __u32 slot, const struct notice *notice)
{
	const struct connection *own = &agent->connections[slot];
	const __u32 *values = own->settings.values;

	if (is_unwanted(values, notice->kind))
		return;
	stand_by_probe_every(agent, slot, notice, interval_us(values, own->srtt_us),
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
