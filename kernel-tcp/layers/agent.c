// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * agent.c - waits for notices, checks them, and keeps the timers of probes.
 *
 * A notice is ICMP to a station, or a note of the station's own routing daemon. ICMP
 * may be forged. It is believed if it quotes an outstanding segment of a connection
 * with a layer at that station (RFC 5927, 4.1), and lists nothing that was never sent.
 * All other notices are counted and ignored; beyond MAX_NOTICES_PER_S at a station they
 * are not read.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <linux/icmp.h>
#include "kernel.h"
#include "layers/agent.h"
#include "layers/daemon.h"
#include "layers/probes.h"
#include "layers/programs.h"
#include "layers/stand_by.h"

#define MAX_NOTICES_PER_S 1000
#define MAX_READS 64		/* then the timers run */
#define NICE (-10)		/* a probe may be 50 ms late */

enum source { SOURCE_RING, SOURCE_TIMER, SOURCE_ICMP, SOURCE_DAEMON };

/* ---- checking notices ---- */

static bool is_outstanding(const struct connection *own, __u32 seq)
{
	return seq - own->snd_una < own->snd_nxt - own->snd_una;
}

/* A list contains the quoted segment and nothing beyond what was sent. It may contain
 * data that has been acknowledged meanwhile; this has no effect. */
static bool may_be_held(const struct connection *own, const struct notice *notice)
{
	if (!notice->range_count)
		return true;
	for (__u32 i = 0; i < notice->range_count; i++)
		if ((__s32)(own->snd_nxt - notice->ranges[i].end) < 0)
			return false;
	return notice_range_of(notice, notice->seq);
}

static bool is_about(const struct connection *own, const struct listener *listener,
		     const struct notice *notice)
{
	return own->cookie && own->settings.station == listener->index &&
	       own->local_port == notice->local_port &&
	       own->remote_port == notice->remote_port &&
	       !memcmp(own->local, notice->local, sizeof(own->local)) &&
	       !memcmp(own->remote, notice->remote, sizeof(own->remote));
}

static void check(struct agent *agent, struct listener *listener,
		  const struct notice *notice)
{
	for (__u32 slot = 0; slot < MAX_LAYERED; slot++) {
		struct connection *own = &agent->connections[slot];

		if (!is_about(own, listener, notice))
			continue;
		if (!is_outstanding(own, notice->seq) || !may_be_held(own, notice)) {
			agent->notices.wrong_sequence++;
			return;
		}
		stand_by_notice(agent, slot, notice);
		return;
	}
	agent->notices.no_such_connection++;
}

static bool over_limit(struct agent *agent, struct listener *listener)
{
	__u64 second = agent_now_ns() / 1000000000;

	if (listener->second != second) {
		listener->second = second;
		listener->taken = 0;
	}
	if (listener->taken++ < MAX_NOTICES_PER_S)
		return false;
	agent->notices.too_many++;
	return true;
}

static void read_icmp(struct agent *agent, struct listener *listener)
{
	__u8 packet[2048];
	struct notice notice;

	for (int i = 0; i < MAX_READS; i++) {
		ssize_t bytes = recv(listener->icmp, packet, sizeof(packet), MSG_DONTWAIT);

		if (bytes < 0)
			return;
		if (over_limit(agent, listener))
			continue;
		switch (notice_read(packet, bytes, &notice)) {
		case NOTICE_TAKEN:
			check(agent, listener, &notice);
			break;
		case NOTICE_MALFORMED:
			agent->notices.malformed++;
			break;
		case NOTICE_OTHER:
			break;
		}
	}
}

/* ---- waiting ---- */

static int watch(struct agent *agent, int fd, enum source source, size_t index)
{
	struct epoll_event event = { .events = EPOLLIN };

	event.data.u64 = (__u64)source << 32 | index;
	return epoll_ctl(agent->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void set_timer(struct agent *agent, __u64 at_ns)
{
	struct itimerspec when = {};

	when.it_value.tv_sec = at_ns / 1000000000;
	when.it_value.tv_nsec = at_ns % 1000000000;
	timerfd_settime(agent->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* A daemon may start, or restart, at any time. */
static __u64 connect_daemons(struct agent *agent, __u64 now_ns)
{
	bool missing = false;

	for (size_t i = 0; i < agent->listener_count; i++) {
		struct listener *listener = &agent->listeners[i];

		if (!listener->station->status[0] || listener->daemon >= 0)
			continue;
		daemon_connect(listener);
		if (listener->daemon < 0 || watch(agent, listener->daemon, SOURCE_DAEMON, i))
			missing = true;
	}
	return missing ? now_ns + DAEMON_RETRY_NS : 0;
}

static void run_due(struct agent *agent)
{
	__u64 now_ns = agent_now_ns();
	__u64 next_ns = stand_by_due(agent, now_ns);

	set_timer(agent, earlier(next_ns, connect_daemons(agent, now_ns)));
}

int agent_descriptor(const struct agent *agent)
{
	return agent->epoll;
}

static void handle(struct agent *agent, enum source source, struct listener *listener)
{
	__u64 expired;

	switch (source) {
	case SOURCE_RING:
		agent->drain(agent->drain_context);
		break;
	case SOURCE_TIMER:
		(void)!read(agent->timer, &expired, sizeof(expired));
		break;
	case SOURCE_ICMP:
		read_icmp(agent, listener);
		break;
	case SOURCE_DAEMON:
		daemon_read(agent, listener);
		break;
	}
}

void agent_work(struct agent *agent)
{
	struct epoll_event events[16];
	int count = epoll_wait(agent->epoll, events, 16, 0);

	for (int i = 0; i < count; i++) {
		__u32 index = events[i].data.u64;

		handle(agent, events[i].data.u64 >> 32,
		       index < agent->listener_count ? &agent->listeners[index] : NULL);
	}
	run_due(agent);
}

void agent_event(struct agent *agent, const struct sample *row)
{
	stand_by_event(agent, row);
}

/* ---- start and end ---- */

static __u32 mechanisms_of(const struct station *station)
{
	__u32 mechanisms = station->own.layers.settings.mechanisms;

	for (size_t i = 0; i < station->port_count; i++)
		mechanisms |= station->ports[i].layers.settings.mechanisms;
	return mechanisms;
}

bool agent_wanted(const struct run_settings *settings)
{
	__u32 mechanisms = 0;

	for (size_t i = 0; i < settings->station_count; i++)
		mechanisms |= mechanisms_of(&settings->stations[i]);
	return mechanisms;
}

/* Of the types below 32 only destination unreachable; the filter has no other types. */
static int open_icmp(const char *netns)
{
	struct icmp_filter filter = { .data = ~(1U << ICMP_DEST_UNREACH) };
	int fd = raw_socket_in(netns, IPPROTO_ICMP);

	if (fd >= 0)
		setsockopt(fd, SOL_RAW, ICMP_FILTER, &filter, sizeof(filter));
	return fd;
}

static int open_listener(struct agent *agent, size_t index)
{
	const struct station *station = &agent->settings->stations[index];
	struct listener *listener = &agent->listeners[agent->listener_count];

	listener->station = station;
	listener->index = index;
	listener->daemon = -1;
	listener->icmp = open_icmp(station->netns);
	listener->raw = listener->icmp < 0 ? -1 : raw_socket_in(station->netns, IPPROTO_RAW);
	if (listener->raw < 0 ||
	    watch(agent, listener->icmp, SOURCE_ICMP, agent->listener_count))
		return complain("station %s: no raw socket for layers: %s", station->name,
				strerror(errno));
	agent->listener_count++;
	return 0;
}

static int open_listeners(struct agent *agent)
{
	size_t count = agent->settings->station_count;

	agent->listeners = calloc(count, sizeof(*agent->listeners));
	if (!agent->listeners)
		return complain("out of memory");
	for (size_t i = 0; i < count; i++)
		if (mechanisms_of(&agent->settings->stations[i]) && open_listener(agent, i))
			return -1;
	return 0;
}

struct agent *agent_new(const struct run_settings *settings, int samples, int cgroup)
{
	struct agent *agent = calloc(1, sizeof(*agent));

	if (!agent) {
		complain("out of memory");
		return NULL;
	}
	agent->settings = settings;
	agent->epoll = epoll_create1(EPOLL_CLOEXEC);
	agent->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (open_listeners(agent) || programs_start(agent, samples, cgroup)) {
		agent_free(agent);
		return NULL;
	}
	/* May be refused: probes are then late on a loaded machine. */
	setpriority(PRIO_PROCESS, 0, NICE);
	return agent;
}

int agent_listen(struct agent *agent, struct csv *csv, int ring,
		 void (*drain)(void *), void *context)
{
	agent->csv = csv;
	agent->drain = drain;
	agent->drain_context = context;
	if (watch(agent, ring, SOURCE_RING, -1U) ||
	    watch(agent, agent->timer, SOURCE_TIMER, -1U))
		return complain("layers: epoll: %s", strerror(errno));
	run_due(agent);
	return 0;
}

void agent_free(struct agent *agent)
{
	if (!agent)
		return;
	programs_stop(agent);
	for (size_t i = 0; i < agent->listener_count; i++) {
		close(agent->listeners[i].icmp);
		close(agent->listeners[i].raw);
		if (agent->listeners[i].daemon >= 0)
			close(agent->listeners[i].daemon);
	}
	free(agent->listeners);
	close(agent->epoll);
	close(agent->timer);
	free(agent);
}

static void put(json_t *all, const char *key, __u64 count)
{
	json_object_set_new(all, key, json_integer(count));
}

json_t *agent_report(const struct agent *agent)
{
	const struct layer_counters *counted = programs_counters(agent);
	json_t *all = json_object();

	put(all, "connections", counted->connections);
	put(all, "connections-without-room", counted->without_room);
	put(all, "believed", agent->notices.believed);
	put(all, "no-such-connection", agent->notices.no_such_connection);
	put(all, "wrong-sequence", agent->notices.wrong_sequence);
	put(all, "malformed", agent->notices.malformed);
	put(all, "too-many", agent->notices.too_many);
	put(all, "not-answered", agent->notices.not_answered);
	put(all, "stand-bys", agent->stand_by_count);
	put(all, "probes", agent->probe_count);
	put(all, "uncopied-segments", counted->uncopied);
	put(all, "refused-segments", counted->refused_packets);
	put(all, "duplicate-acks-answered", counted->duplicates);
	put(all, "switches-failed", counted->switches_failed);
	return all;
}
