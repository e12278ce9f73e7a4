// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * hops.c - gives TCP-AP the length of its paths.
 *
 * For each station with our own routing daemon (`status` in the settings) it requests
 * the routes (`status`), follows the notes `route` and `lost` (formats/routing.md), and
 * writes the hops of each destination into the map of algorithms/hops_map.h. It tries a
 * missing daemon again every second. Routes to networks (a prefix below 32) are
 * ignored. For static routes the settings have the hops (`hops`).
 *
 * A path to a wired host is a hop longer than the one to the nearest of its gateways
 * (`gateways` in the settings). A wired host has the paths of its gateway's daemon
 * (`gateway_status`), a hop longer each.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "algorithms/hops_map.h"
#include "hops.h"
#include "kernel.h"

#define LINE_BYTES (1 << 20)	/* the answer to `status` is all routes in one line */

static const char requests[] = "{\"op\":\"status\"}\n{\"op\":\"follow\"}\n";

struct source {
	const struct station *station;
	json_t *distances;	/* of gateways and their hosts, from the daemon */
	int fd;			/* -1: not connected */
	size_t used;
	char *line;		/* the next line, as far as received */
};

struct hops {
	int map, epoll;
	time_t last_attempt;	/* to connect to missing daemons */
	size_t count;
	struct source sources[];
};

/* ---- the map ---- */

static int set(const struct hops *hops, const struct station *station,
		const char *destination, __u32 distance)
{
	struct hops_key key = { .netns_cookie = station->netns_cookie };

	if (inet_pton(AF_INET, destination, key.remote + 12) == 1)
		key.remote[10] = key.remote[11] = 0xff;
	else if (inet_pton(AF_INET6, destination, key.remote) != 1)
		return 0;
	if (distance)
		return bpf_map_update_elem(hops->map, &key, &distance, BPF_ANY);
	bpf_map_delete_elem(hops->map, &key);
	return 0;
}

/* Hops between the sender and the station whose daemon reports. */
static int wires_before(const struct source *source)
{
	return source->station->gateway_status[0] != 0;
}

static json_int_t reported(const struct source *source, const char *address)
{
	return json_integer_value(json_object_get(source->distances, address));
}

/* The distance to a wired host: over its nearest gateway, or, of a daemon that reports
 * no gateways, as for an Internet address that it routes itself. 0: no path. */
static __u32 distance_to_host(const struct source *source, const char *host,
			      json_t *gateways)
{
	json_int_t nearest = 0;
	json_t *gateway;
	size_t index;

	json_array_foreach(gateways, index, gateway) {
		json_int_t one = reported(source, json_string_value(gateway));

		if (one && (!nearest || one < nearest))
			nearest = one;
	}
	if (!nearest)
		nearest = reported(source, host);
	return nearest ? nearest + 1 + wires_before(source) : 0;
}

static void set_distance(const struct hops *hops, const struct source *source,
			 json_t *destination, json_t *prefix, __u32 distance)
{
	const char *text = json_string_value(destination), *host;
	json_t *gateways;

	if (!text || (json_is_integer(prefix) && json_integer_value(prefix) != 32))
		return;
	json_object_set_new(source->distances, text, json_integer(distance));
	if (!json_object_get(source->station->gateways, text))
		set(hops, source->station, text,
		    distance ? distance + wires_before(source) : 0);
	json_object_foreach(source->station->gateways, host, gateways)
		set(hops, source->station, host, distance_to_host(source, host, gateways));
}

/* Sets the hops of all stations from the settings; false if there are none. */
static bool set_known(const struct hops *hops, const struct run_settings *settings)
{
	const char *destination;
	json_t *distance;
	size_t known = 0, without_room = 0;

	for (size_t i = 0; i < settings->station_count; i++) {
		const struct station *station = &settings->stations[i];

		json_object_foreach(station->hops, destination, distance) {
			known++;
			without_room += set(hops, station, destination,
					    json_integer_value(distance)) != 0;
		}
	}
	if (without_room)
		complain("tcpap: no room for the hops of %zu of %zu pairs of stations: nothing is paced between these; set its parameter hops",
			 without_room, known);
	return known;
}

static __u32 distance_of(json_t *number)
{
	json_int_t distance = json_integer_value(number);

	return distance > 0 && distance <= MAX_HOPS ? distance : 0;
}

static void read_line(const struct hops *hops, const struct source *source,
		      const char *line)
{
	json_t *object = json_loads(line, 0, NULL), *route;
	const char *event = json_string_value(json_object_get(object, "event"));
	size_t index;

	if (event && (!strcmp(event, "route") || !strcmp(event, "lost")))
		set_distance(hops, source, json_object_get(object, "about"),
		     json_object_get(object, "prefix"),
		     *event == 'r' ? distance_of(json_object_get(object, "value")) : 0);
	json_array_foreach(json_object_get(object, "routes"), index, route)
		set_distance(hops, source, json_object_get(route, "destination"),
		     json_object_get(route, "prefix"),
		     distance_of(json_object_get(route, "hops")));
	json_decref(object);
}

/* ---- the daemons ---- */

static void watch(struct hops *hops, struct source *source)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s",
		 wires_before(source) ? source->station->gateway_status :
					source->station->status);
	if (fd < 0)
		return;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    write(fd, requests, sizeof(requests) - 1) != sizeof(requests) - 1 ||
	    epoll_ctl(hops->epoll, EPOLL_CTL_ADD, fd, &event)) {
		close(fd);
		return;
	}
	source->fd = fd;
	source->used = 0;
}

static void connect_daemons(struct hops *hops)
{
	time_t now = time(NULL);

	if (now == hops->last_attempt)
		return;
	hops->last_attempt = now;
	for (size_t i = 0; i < hops->count; i++)
		if (hops->sources[i].fd < 0)
			watch(hops, &hops->sources[i]);
}

static void read_source(struct hops *hops, struct source *source)
{
	ssize_t bytes = read(source->fd, source->line + source->used,
			     LINE_BYTES - source->used);
	char *end;

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes <= 0) {
		close(source->fd);	/* epoll forgets it too */
		source->fd = -1;
		return;
	}
	source->used += bytes;
	while ((end = memchr(source->line, '\n', source->used))) {
		size_t used = end + 1 - source->line;

		*end = 0;
		read_line(hops, source, source->line);
		memmove(source->line, end + 1, source->used - used);
		source->used -= used;
	}
	if (source->used == LINE_BYTES)
		source->used = 0;
}

void hops_work(struct hops *hops)
{
	struct epoll_event events[64];
	int count = epoll_wait(hops->epoll, events, 64, 0);

	for (int i = 0; i < count; i++)
		read_source(hops, events[i].data.ptr);
	connect_daemons(hops);
}

int hops_descriptor(const struct hops *hops)
{
	return hops->epoll;
}

static bool needs_hops(const struct connections *own)
{
	return !strcmp(own->algorithm, "tcpap") &&
	       json_number_value(json_object_get(own->parameters, "hops")) == 0;
}

/* Without hops this TCP-AP is NewReno: the user must know. */
static void warn_if_unknown(const struct run_settings *settings)
{
	for (size_t i = 0; i < settings->station_count; i++) {
		const struct station *station = &settings->stations[i];
		bool needed = needs_hops(&station->own);

		for (size_t port = 0; port < station->port_count; port++)
			needed |= needs_hops(&station->ports[port]);
		if (!needed)
			continue;
		complain("tcpap: nothing is paced: no station has a routing daemon that knows the hops; set its parameter hops");
		return;
	}
}

struct hops *hops_new(const struct run_settings *settings, int map)
{
	struct hops *hops = calloc(1, sizeof(*hops) + settings->station_count *
					   sizeof(hops->sources[0]));

	if (hops)
		hops->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!hops || hops->epoll < 0) {
		complain("hops: %s", strerror(errno));
		free(hops);
		return NULL;
	}
	hops->map = map;
	for (size_t i = 0; i < settings->station_count; i++) {
		struct source *source = &hops->sources[hops->count];

		if (!settings->stations[i].status[0] &&
		    !settings->stations[i].gateway_status[0])
			continue;
		source->station = &settings->stations[i];
		source->fd = -1;
		source->line = malloc(LINE_BYTES);
		source->distances = json_object();
		hops->count += source->line && source->distances;
	}
	if (!set_known(hops, settings) && !hops->count)
		warn_if_unknown(settings);
	connect_daemons(hops);
	return hops;
}

void hops_free(struct hops *hops)
{
	if (!hops)
		return;
	for (size_t i = 0; i < hops->count; i++) {
		if (hops->sources[i].fd >= 0)
			close(hops->sources[i].fd);
		free(hops->sources[i].line);
		json_decref(hops->sources[i].distances);
	}
	close(hops->epoll);
	free(hops);
}
