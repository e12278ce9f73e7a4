// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * added.c - settings of ports that were added to tcp-settings.json while `run` works.
 *
 * A view starts flows with a TCP of their own during a run. A flow that could not start
 * leaves the file again, and its port may get another TCP. Only ports are taken: the
 * stations are those of the start. Layers and hops are followed from the start or not at
 * all, because their programs are attached, and their sockets opened, once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include "added.h"
#include "kernel.h"

static int same_stations(const char *path, const struct run_settings *was,
			 const struct run_settings *now)
{
	bool same = was->station_count == now->station_count;

	for (size_t i = 0; same && i < was->station_count; i++)
		same = was->stations[i].netns_cookie == now->stations[i].netns_cookie;
	return same ? 0 : complain("%s: the stations are others than at the start; run it again",
				   path);
}

static bool has(int map, const struct station *station, __u16 port)
{
	struct settings_key key = { .netns_cookie = station->netns_cookie, .port = port };
	struct station_settings value;

	return !bpf_map_lookup_elem(map, &key, &value);
}

/* Leaves the new ports only: everything else was registered at the start. */
static int keep_new(const char *path, struct run_settings *now, int map)
{
	for (size_t i = 0; i < now->station_count; i++) {
		struct station *station = &now->stations[i];
		size_t kept = 0;

		station->own.algorithm[0] = 0;
		for (size_t port = 0; port < station->port_count; port++) {
			if (has(map, station, station->ports[port].port))
				continue;
			if (station->ports[port].settings.layered)
				return complain("%s: station %s: port %u: layers are taken at the start only; take a TCP without layers",
						path, station->name,
						station->ports[port].port);
			station->ports[kept++] = station->ports[port];
		}
		station->port_count = kept;
	}
	return 0;
}

/* Only while this number is not 0 do the programs look for settings of the station's ports. */
static int change_port_count(const struct station *station, int map, int change)
{
	struct settings_key key = { .netns_cookie = station->netns_cookie };
	struct station_settings own;

	if (!change)
		return 0;
	if (bpf_map_lookup_elem(map, &key, &own))
		return complain("station %s: %s", station->name, strerror(errno));
	own.ports += change;
	return bpf_map_update_elem(map, &key, &own, BPF_EXIST) ?
		       complain("station %s: %s", station->name, strerror(errno)) : 0;
}

static void delete_ports(const struct station *station, int map, size_t count)
{
	struct settings_key key = { .netns_cookie = station->netns_cookie };

	for (size_t port = 0; port < count; port++) {
		key.port = station->ports[port].port;
		bpf_map_delete_elem(map, &key);
	}
}

static int fill(const struct station *station, int map)
{
	struct settings_key key = { .netns_cookie = station->netns_cookie };

	for (size_t port = 0; port < station->port_count; port++) {
		key.port = station->ports[port].port;
		if (bpf_map_update_elem(map, &key, &station->ports[port].settings,
					BPF_NOEXIST)) {
			complain("station %s: port %u: cannot be registered: %s",
				 station->name, key.port, strerror(errno));
			delete_ports(station, map, port);
			return -1;
		}
	}
	if (change_port_count(station, map, station->port_count)) {
		delete_ports(station, map, station->port_count);
		return -1;
	}
	return 0;
}

/* All of the stations, or none. */
static int fill_stations(const struct run_settings *settings, int map)
{
	for (size_t i = 0; i < settings->station_count; i++) {
		if (!fill(&settings->stations[i], map))
			continue;
		while (i--) {
			const struct station *filled = &settings->stations[i];

			change_port_count(filled, map, -(int)filled->port_count);
			delete_ports(filled, map, filled->port_count);
		}
		return -1;
	}
	return 0;
}

static bool in_file(const struct station *station, __u16 port)
{
	for (size_t i = 0; i < station->port_count; i++)
		if (station->ports[i].port == port)
			return true;
	return false;
}

/* Ports that an earlier reading took, and that the file has no longer. */
static int forget(struct added *earlier, const struct run_settings *now, int map)
{
	for (size_t i = 0; i < earlier->settings.station_count; i++) {
		struct station *station = &earlier->settings.stations[i];

		for (size_t port = station->port_count; port--;) {
			struct connections gone = station->ports[port];

			if (in_file(&now->stations[i], gone.port))
				continue;
			if (change_port_count(station, map, -1))
				return -1;
			station->ports[port] = station->ports[--station->port_count];
			delete_ports(&(struct station){ .netns_cookie = station->netns_cookie,
							.ports = &gone }, map, 1);
		}
	}
	return 0;
}

static int forget_all(struct added *earlier, const struct run_settings *now, int map)
{
	for (; earlier; earlier = earlier->next)
		if (earlier->taken && forget(earlier, now, map))
			return -1;
	return 0;
}

static int take(struct added *own, const char *path, const struct run_settings *run, int map)
{
	if (settings_load(path, &own->settings) ||
	    settings_resolve(path, &own->settings) ||
	    same_stations(path, run, &own->settings) ||
	    forget_all(own->next, &own->settings, map) ||
	    keep_new(path, &own->settings, map) ||
	    copies_register(&own->copies, path, &own->settings))
		return -1;
	if (own->copies.hops)
		return complain("%s: an algorithm that paces by hops is taken at the start only; take another",
				path);
	if (fill_stations(&own->settings, map))
		return -1;
	own->taken = true;
	return 0;
}

int added_take(struct added **all, const char *path, const struct run_settings *run, int map)
{
	struct added *own = calloc(1, sizeof(*own));

	if (!own)
		return complain("out of memory");
	own->next = *all;
	*all = own;
	return take(own, path, run, map);
}

void added_free(struct added *all)
{
	while (all) {
		struct added *next = all->next;

		copies_close(&all->copies);
		settings_free(&all->settings);
		free(all);
		all = next;
	}
}
