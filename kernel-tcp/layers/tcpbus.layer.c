// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * tcpbus - Kim, Toh and Choi, "TCP-BuS: Improving TCP Performance in Wireless Ad Hoc
 * Networks", Journal of Communications and Networks 3 (2), 2001.
 *
 * Freezes (freeze.c). The node that found the break keeps its packets and lists them in
 * `restored`. Outstanding segments that are not in the list are sent again, once each;
 * duplicate ACKs that ask for them are dropped meanwhile (gate.bpf.h). There is no
 * failure timer: the source's own timer continues, longer by a factor. It sends the first
 * segment again, doubles, and leaves the windows alone; an ACK after that ends the
 * stand-by too. Departures from the paper: README.md.
 */
#include "kernel.h"
#include "layer_table.h"
#include "layers/freeze.h"
#include "layers/probes.h"
#include "layers/stand_by.h"

static void start_longer_timer(const struct connection *own, struct stand_by *now)
{
	__u64 rto_ns = own->rto_jiffies * (1000000000ULL / jiffies_per_second());

	now->interval_ns = rto_ns * own->settings.values[TCPBUS_FACTOR] / NUMBER_SCALE;
	now->next_ns = agent_now_ns() + now->interval_ns;
}

/* Which outstanding segments the node on the path lacks. Where the gate has no copy,
 * the kernel's timer repairs the rest. */
static int find_missing(struct agent *agent, __u32 slot, const struct notice *notice,
			struct range *missing)
{
	const struct connection *own = &agent->connections[slot];
	__u32 seq = own->snd_una;
	struct kept segment;
	int count = 0;

	while (before(seq, own->snd_nxt) && count < COPIES) {
		const struct range *held = notice_range_of(notice, seq);

		if (held) {
			seq = held->end;
			continue;
		}
		if (!kept_find(&agent->kept[slot], own->cookie, seq, &segment) ||
		    !before(seq, segment.end))
			break;
		missing[count++] = (struct range){ seq, segment.end };
		seq = segment.end;
	}
	return count;
}

static void resend_missing(struct agent *agent, __u32 slot, const struct notice *notice)
{
	struct connection *own = &agent->connections[slot];
	struct range missing[COPIES];
	int count = find_missing(agent, slot, notice, missing);

	/* Before anything is sent: a duplicate ACK may come at once. */
	if (count) {
		own->resent_until = missing[count - 1].end;
		__atomic_store_n(&own->resent_order, own->ordered, __ATOMIC_RELEASE);
	}
	stand_by_end(agent, slot, notice_names[notice->kind]);
	for (int i = 0; i < count; i++) {
		__u64 at_ns = agent_begin_record(agent);

		if (resend(agent, slot, missing[i].first) != missing[i].first)
			agent_record_at(agent, at_ns, own, "retransmit", "seq=%u",
					missing[i].first);
	}
}

static void thaw(struct agent *agent, __u32 slot, const struct notice *notice)
{
	__u32 end = agent->connections[slot].snd_nxt;

	if (notice->range_count) {
		resend_missing(agent, slot, notice);
		return;
	}
	/* Without a list: the node on the path continues with what it quotes. */
	if (notice->kind == NOTICE_RESTORED)
		end = notice->seq;
	stand_by_end(agent, slot, notice_names[notice->kind]);
	resend_until(agent, slot, end);
}

static void answer(struct agent *agent, __u32 slot, const struct notice *notice)
{
	static const struct freeze tcpbus = { start_longer_timer, thaw };

	freeze_notice(agent, slot, notice, &tcpbus);
}

static __u64 next_interval_ns(const struct stand_by *now)
{
	return doubled_ns(now->interval_ns);
}

const struct layer tcpbus_layer = {
	.leave = LEAVE_PROBE_ACK,
	.notice = answer,
	.next_interval_ns = next_interval_ns,
};
