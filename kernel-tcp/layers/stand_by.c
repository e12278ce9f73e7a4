// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * stand_by.c - what each layer does with a believed notice, and what is sent while
 * a connection stands by.
 *
 * Stand-by means: the kernel's TCP sends no data (gate.bpf.h) and its timer does
 * not back off; its windows are as they were (hold.bpf.c). What is sent, this file
 * sends. Which acknowledgement ends it is decided in the kernel (gate.bpf.h: watch).
 *
 *  - elfn (Holland and Vaidya, MobiCom 1999, 6): unreachable begins it, or our own
 *    daemon's loss of the route (a source hears its own broken link first, and may
 *    hold the packets without a word by ICMP); a probe every `probe_us`. Any
 *    acknowledgement of new data ends it, or with leave=probe-ack one after a probe.
 *  - atcp (Liu and Singh, JSAC 19 (7), 2001): begins alike; probes by a
 *    persist timer that doubles, up to PERSIST_MOST_NS (RFC 9293 3.8.6.1). What the
 *    receiver answers a probe with ends it.
 *  - tcpf (Chandran et al., IEEE Pers. Comm. 8 (1), 2001): unreachable, held, or
 *    our own daemon's loss of the route begin it. Nothing is sent but one segment
 *    that makes a daemon search. `restored` or the daemon's new route end it, and
 *    all that is outstanding is sent again; so does the failure timer, without. No
 *    acknowledgement does, but that of the very segment that ICMP reported: a notice
 *    may come late, when there is a route again of which nobody will tell.
 *  - tcpbus (Kim, Toh and Choi, JCN 3 (2), 2001): as tcpf, but the node that found
 *    the break keeps what it has, and says so at `restored`: what is outstanding and
 *    not in its list is sent again, each segment once, and duplicate ACKs that ask
 *    for it are not heard meanwhile (gate.bpf.h). In place of a failure timer the
 *    source's own goes on, longer by a factor: it sends the first segment again,
 *    doubles, and leaves the windows; an acknowledgement after that ends it too.
 *    Departures: README.md.
 *  - reno-f (Dyer and Boppana, MobiHoc 2001, 3): the second timeout in a row begins
 *    it; the first segment is sent at once and every RTO, which stays what it is.
 */
#include <string.h>
#include "kernel.h"
#include "layers/agent.h"
#include "layers/probes.h"

#define PERSIST_MOST_NS 60000000000ULL
#define ASK_LEAST_NS 500000000ULL	/* between two searches that we cause */
#define RETRY_NS 20000000ULL		/* until the gate has a copy */

static const char *const whys[] = {
	[WHY_UNREACHABLE] = "unreachable",
	[WHY_HELD] = "held",
	[WHY_LOST_ROUTE] = "lost-route",
	[WHY_TIMEOUT] = "timeout",
};

static const char *const kinds[NOTICE_KINDS] = {
	[NOTICE_UNREACHABLE] = "unreachable",
	[NOTICE_HELD] = "held",
	[NOTICE_RESTORED] = "restored",
	[NOTICE_ROUTE] = "route",
	[NOTICE_LOST_ROUTE] = "lost-route",
	[NOTICE_NO_ROUTE] = "no-route",
};

static bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

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
	for (size_t i = 0; i < agent->post_count; i++)
		if (agent->posts[i].index == own->settings.station)
			return agent->posts[i].raw;
	return -1;
}

/* The end of what was sent, or `seq` itself if the gate has no copy. */
static __u32 send_again(struct agent *agent, __u32 slot, __u32 seq)
{
	const struct connection *own = &agent->connections[slot];
	struct kept segment;

	if (!kept_find(&agent->kept[slot], own->cookie, seq, &segment))
		return seq;
	/* An error is a packet lost on the way, as far as TCP is concerned. */
	kept_send(raw_socket_of(agent, own), &segment, agent_now_ns());
	return segment.end;
}

/* With nothing outstanding the last segment again, which is answered with the same
 * ACK (RFC 9293 3.10.7.4). */
static bool send_acknowledged(struct agent *agent, __u32 slot)
{
	const struct connection *own = &agent->connections[slot];
	struct kept segment;

	if (!kept_find_last(&agent->kept[slot], own->cookie, own->snd_una, &segment))
		return false;
	kept_send(raw_socket_of(agent, own), &segment, agent_now_ns());
	return true;
}

static bool send_question(struct agent *agent, __u32 slot, __u32 seq)
{
	struct connection *own = &agent->connections[slot];
	struct stand_by *now = &agent->stand_bys[slot];
	bool sent = seq == own->snd_nxt ? send_acknowledged(agent, slot) :
					  send_again(agent, slot, seq) != seq;

	if (!sent)
		return false;
	now->sent++;
	agent->probe_count++;
	agent_tell(agent, own, "probe", "seq=%u", seq);
	return true;
}

/* Its answer ends the stand-by. */
static bool probe(struct agent *agent, __u32 slot, __u32 seq)
{
	/* Before it is sent: the answer may be quick. */
	__atomic_store_n(&agent->connections[slot].probed, agent->stand_bys[slot].order,
			 __ATOMIC_RELEASE);
	return send_question(agent, slot, seq);
}

/* tcpbus: which of the outstanding segments the node on the way has not got. Where
 * there is no copy the kernel's timer has to find out. */
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

/* Segments from the first that is outstanding up to `end`. */
static void send_outstanding(struct agent *agent, __u32 slot, __u32 end)
{
	struct connection *own = &agent->connections[slot];
	__u32 seq = own->snd_una, next;

	/* The kernel sends what is new with the answer. */
	if (seq == own->snd_nxt)
		send_acknowledged(agent, slot);
	for (int i = 0; i < COPIES && before(seq, end); i++, seq = next) {
		next = send_again(agent, slot, seq);
		if (next == seq)
			return;
		agent_tell(agent, own, "retransmit", "seq=%u", seq);
	}
}

/* ---- beginning and ending ---- */

/* tcpf, tcpbus: whether that segment's ACK says that there is a route again. What our
 * own daemon knows goes before. */
static void set_reported(struct connection *own, enum why why, __u32 seq, __u32 order)
{
	bool reported = own->settings.layers & (LAYER_TCPF | LAYER_TCPBUS) &&
			why != WHY_LOST_ROUTE;

	own->reported = seq;
	__atomic_store_n(&own->reported_for, reported ? order : 0, __ATOMIC_RELEASE);
}

static struct stand_by *begin(struct agent *agent, __u32 slot, enum why why, __u32 seq)
{
	struct connection *own = &agent->connections[slot];
	struct stand_by *now = &agent->stand_bys[slot];

	memset(now, 0, sizeof(*now));
	now->why = why;
	now->cookie = own->cookie;
	now->order = own->ordered + 1;
	now->lost = seq;
	set_reported(own, why, seq, now->order);
	own->before_timeout = own->settings.restore == RESTORE_BEFORE_TIMEOUT &&
			      own->timeouts ? now->order : 0;
	__atomic_store_n(&own->ordered, now->order, __ATOMIC_RELEASE);
	agent->stand_by_count++;
	agent_tell(agent, own, "stand-by", "%s", whys[why]);
	return now;
}

static void resume(struct agent *agent, __u32 slot, const char *told)
{
	struct connection *own = &agent->connections[slot];

	own->restore = 1;
	__atomic_store_n(&own->ended, own->ordered, __ATOMIC_RELEASE);
	agent->stand_bys[slot].why = WHY_NOT;
	agent_tell(agent, own, "repair", "%s", told);
}

/* ---- the layers ---- */

/* elfn and atcp: from now on in steps of `probe_us`. */
static void probe_from_now(struct agent *agent, __u32 slot, const struct notice *notice)
{
	struct connection *own = &agent->connections[slot];
	struct stand_by *now = &agent->stand_bys[slot];

	if (notice->kind != NOTICE_UNREACHABLE && notice->kind != NOTICE_LOST_ROUTE)
		return;
	if (connection_stands_by(own)) {
		/* The clock goes on. */
		if (before(notice->seq, now->lost))
			now->lost = notice->seq;
		return;
	}
	now = begin(agent, slot, notice->kind == NOTICE_UNREACHABLE ?
			WHY_UNREACHABLE : WHY_LOST_ROUTE, notice->seq);
	now->interval_ns = own->settings.probe_us * 1000ULL;
	now->next_ns = agent_now_ns() + now->interval_ns;
}

/* Nobody looks for a route that nobody asks for. The answer ends nothing: it cannot be
 * told from that of a segment which got through before the break. */
static void ask(struct agent *agent, __u32 slot)
{
	struct stand_by *now = &agent->stand_bys[slot];
	__u64 now_ns = agent_now_ns();

	if (now->asked_ns && now_ns - now->asked_ns < ASK_LEAST_NS)
		return;
	now->asked_ns = now_ns;
	send_question(agent, slot, agent->connections[slot].snd_una);
}

/* tcpbus */
static void keep_longer_timer(const struct connection *own, struct stand_by *now)
{
	__u64 rto_ns = jiffies_ns(own->rto_jiffies);

	now->interval_ns = rto_ns * own->settings.factor_percent / 100;
	now->next_ns = agent_now_ns() + now->interval_ns;
}

static void freeze(struct agent *agent, __u32 slot, enum why why, __u32 seq)
{
	struct connection *own = &agent->connections[slot];
	struct stand_by *now = &agent->stand_bys[slot];

	if (!connection_stands_by(own)) {
		now = begin(agent, slot, why, seq);
		if (own->settings.layers & LAYER_TCPF)
			now->until_ns = agent_now_ns() +
					own->settings.failure_us * 1000ULL;
		else
			keep_longer_timer(own, now);
	} else {
		if (before(seq, now->lost))
			now->lost = seq;
		set_reported(own, own->reported_for ? why : WHY_LOST_ROUTE, now->lost,
			     now->order);
	}
	/* While the notice was read. */
	if (own->reported_for && before(now->lost, own->snd_una)) {
		resume(agent, slot, "ack");
		return;
	}
	/* A node that holds a packet is searching already. */
	if (why != WHY_HELD)
		ask(agent, slot);
}

static void send_missing(struct agent *agent, __u32 slot, const struct notice *notice)
{
	struct connection *own = &agent->connections[slot];
	struct range missing[COPIES];
	int count = find_missing(agent, slot, notice, missing);

	/* Before anything is sent: who asks for it may be quick. */
	if (count) {
		own->answered_until = missing[count - 1].end;
		__atomic_store_n(&own->answered, own->ordered, __ATOMIC_RELEASE);
	}
	resume(agent, slot, kinds[notice->kind]);
	for (int i = 0; i < count; i++) {
		if (send_again(agent, slot, missing[i].first) != missing[i].first)
			agent_tell(agent, own, "retransmit", "seq=%u", missing[i].first);
	}
}

static void thaw(struct agent *agent, __u32 slot, const struct notice *notice)
{
	struct connection *own = &agent->connections[slot];
	__u32 end = own->snd_nxt;

	if (!connection_stands_by(own))
		return;
	if (own->settings.layers & LAYER_TCPBUS && notice->range_count) {
		send_missing(agent, slot, notice);
		return;
	}
	/* Without a list: the node on the way sends on from what it quotes. */
	if (own->settings.layers & LAYER_TCPBUS && notice->kind == NOTICE_RESTORED)
		end = notice->seq;
	resume(agent, slot, kinds[notice->kind]);
	send_outstanding(agent, slot, end);
}

static void freeze_or_thaw(struct agent *agent, __u32 slot, const struct notice *notice)
{
	switch (notice->kind) {
	case NOTICE_UNREACHABLE:
		freeze(agent, slot, WHY_UNREACHABLE, notice->seq);
		break;
	case NOTICE_HELD:
		freeze(agent, slot, WHY_HELD, notice->seq);
		break;
	case NOTICE_LOST_ROUTE:
		freeze(agent, slot, WHY_LOST_ROUTE, notice->seq);
		break;
	case NOTICE_NO_ROUTE:
		if (!connection_stands_by(&agent->connections[slot]))
			break;
		agent->connections[slot].reported_for = 0;
		ask(agent, slot);
		break;
	case NOTICE_RESTORED:
	case NOTICE_ROUTE:
		thaw(agent, slot, notice);
		break;
	default:
		break;
	}
}

void stand_by_notice(struct agent *agent, __u32 slot, const struct notice *notice)
{
	struct connection *own = &agent->connections[slot];
	__u32 layers = own->settings.layers;

	if (!(layers & NOTICE_LAYERS)) {
		agent->notices.not_answered++;
		return;
	}
	agent->notices.believed++;
	if (notice->range_count)
		agent_tell(agent, own, "notice", "%s seq=%u ranges=%u",
			   kinds[notice->kind], notice->seq, notice->range_count);
	else
		agent_tell(agent, own, "notice", "%s seq=%u", kinds[notice->kind],
			   notice->seq);
	if (layers & (LAYER_ELFN | LAYER_ATCP))
		probe_from_now(agent, slot, notice);
	else
		freeze_or_thaw(agent, slot, notice);
}

/* ---- events and timers ---- */

/* reno-f: the kernel's second timeout in a row, which the gate has refused. */
static void keep_the_rto(struct agent *agent, __u32 slot, const struct sample *row)
{
	struct stand_by *now = &agent->stand_bys[slot];

	memset(now, 0, sizeof(*now));
	now->why = WHY_TIMEOUT;
	now->cookie = row->socket_cookie;
	now->interval_ns = jiffies_ns(row->rto_jiffies);
	now->next_ns = row->monotonic_ns;
}

void stand_by_event(struct agent *agent, const struct sample *row)
{
	for (__u32 slot = 0; slot < LAYERED; slot++) {
		if (agent->connections[slot].cookie != row->socket_cookie)
			continue;
		if (row->event == EVENT_FIXED)
			keep_the_rto(agent, slot, row);
		return;
	}
}

static bool goes_on(const struct connection *own, const struct stand_by *now)
{
	if (own->cookie != now->cookie)
		return false;
	return now->why == WHY_TIMEOUT ? own->fixed :
	       connection_stands_by(own) && own->ordered == now->order;
}

static bool send_what_is_due(struct agent *agent, __u32 slot)
{
	struct connection *own = &agent->connections[slot];
	struct stand_by *now = &agent->stand_bys[slot];
	__u32 seq = own->snd_una;

	if (now->why == WHY_TIMEOUT) {
		if (send_again(agent, slot, seq) == seq)
			return false;
		/* The kernel has told of the first. */
		if (now->sent++)
			agent_tell(agent, own, "timeout", "%u", own->timeouts + now->sent - 1);
		return true;
	}
	if (own->settings.packet == PROBE_LOST && !before(now->lost, seq))
		seq = now->lost;
	return probe(agent, slot, seq);
}

static void fire(struct agent *agent, __u32 slot, __u64 now_ns)
{
	struct connection *own = &agent->connections[slot];
	struct stand_by *now = &agent->stand_bys[slot];

	if (now->until_ns && now->until_ns <= now_ns) {
		resume(agent, slot, "timer");
		return;
	}
	if (!now->next_ns || now->next_ns > now_ns)
		return;
	if (!send_what_is_due(agent, slot)) {
		now->next_ns = now_ns + RETRY_NS;
		return;
	}
	/* A persist timer's first two intervals are alike: it doubles once it has fired. */
	if (now->why != WHY_TIMEOUT &&
	    (own->settings.layers & LAYER_TCPBUS ||
	     (own->settings.layers & LAYER_ATCP && now->sent > 1)))
		now->interval_ns = now->interval_ns * 2 < PERSIST_MOST_NS ?
				   now->interval_ns * 2 : PERSIST_MOST_NS;
	while (now->next_ns <= now_ns)
		now->next_ns += now->interval_ns;
}

static __u64 earlier(__u64 a, __u64 b)
{
	return !a || (b && b < a) ? b : a;
}

__u64 stand_by_due(struct agent *agent, __u64 now_ns)
{
	__u64 next_ns = 0;

	for (__u32 slot = 0; slot < LAYERED; slot++) {
		struct stand_by *now = &agent->stand_bys[slot];

		if (now->why == WHY_NOT)
			continue;
		if (goes_on(&agent->connections[slot], now))
			fire(agent, slot, now_ns);
		else
			now->why = WHY_NOT;
		if (now->why != WHY_NOT)
			next_ns = earlier(next_ns, earlier(now->next_ns, now->until_ns));
	}
	return next_ns;
}
