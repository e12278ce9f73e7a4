// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * settings.c - reads and checks tcp-settings.json (formats/tcp.md).
 *
 * settings_load() needs only the file. settings_resolve() queries the kernel
 * (algorithms, network namespaces, bounds that depend on the length of a jiffy). Every
 * error is one line with file, key and remedy, before anything is attached.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "algorithms.h"
#include "algorithms/hops_map.h"
#include "kernel.h"
#include "settings.h"

#define FORMAT "manet-tcp-settings/1"

/* Bounds of the kernel: TCP_RTO_MIN and TCP_RTO_MAX in include/net/tcp.h, and the
 * minimum of TCP_RTO_MAX_MS (net/ipv4/tcp.c, 6.15). */
#define MAX_RTO_MIN_US 200000
#define MIN_RTO_MAX_MS 1000
#define MAX_RTO_MS 120000
/* TCP_MIN_MSS in include/net/tcp.h, and MAX_TCP_WINDOW minus the headers. */
#define MIN_MSS 88
#define MAX_MSS 32727
#define MIN_DELACK_JIFFIES 2	/* TCP_TIMEOUT_MIN */

#define MAX_PORTS 256
/* Selects the kernel's algorithm if ours has the same name: kernel-vegas. */
#define KERNEL_PREFIX "kernel-"

struct number_key {
	const char *name;
	size_t offset;
	long min, max;
	const char *remedy;	/* for a value out of range */
};

#define NUMBER(key, min, max, remedy) \
	{ #key, offsetof(struct station_settings, key), min, max, remedy }

static const struct number_key number_keys[] = {
	NUMBER(window_segments, 1, 32767, "leave it out for the kernel's own"),
	NUMBER(initial_window_segments, 1, 32767, "leave it out for the kernel's own"),
	NUMBER(mss, MIN_MSS, MAX_MSS,
	       "the kernel takes no other"),
	NUMBER(rto_min_us, 1, MAX_RTO_MIN_US,
	       "for more, set sysctl net.ipv4.tcp_rto_min_us (Linux 6.11) or the routes' rto_min"),
	NUMBER(rto_max_ms, MIN_RTO_MAX_MS, MAX_RTO_MS,
	       "the kernel takes no other"),
	/* In milliseconds here, in jiffies once resolved. */
	{ "rto_initial_ms", offsetof(struct station_settings, rto_initial_jiffies),
	  10, MAX_RTO_MS, "the kernel takes no more" },
};
#define NUMBER_KEYS (sizeof(number_keys) / sizeof(number_keys[0]))

static bool one_of(const char *key, const char *const *known)
{
	for (; *known; known++)
		if (!strcmp(key, *known))
			return true;
	return false;
}

static int check_keys(const char *path, const char *where, json_t *object,
		      const char *const *known)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
		if (!one_of(key, known))
			return complain("%s: %s: unknown key \"%s\"; formats/tcp.md lists the keys",
					path, where, key);
	return 0;
}

static int copy_string(const char *path, const char *where, const char *key,
		       json_t *value, char *to, size_t bytes)
{
	if (!json_is_string(value) || !json_string_length(value))
		return complain("%s: %s: \"%s\" must be a string that is not empty",
				path, where, key);
	if (json_string_length(value) >= bytes)
		return complain("%s: %s: \"%s\" is longer than %zu bytes", path,
				where, key, bytes - 1);
	strcpy(to, json_string_value(value));
	return 0;
}

static bool is_null(json_t *value)
{
	return !value || json_is_null(value);
}

static int load_number(const char *path, const char *where, json_t *object,
		       const struct number_key *key, struct station_settings *own)
{
	json_t *value = json_object_get(object, key->name);
	json_int_t number;

	if (is_null(value))
		return 0;
	number = json_integer_value(value);
	if (!json_is_integer(value) || number < key->min || number > key->max)
		return complain("%s: %s: \"%s\" must be a whole number from %ld to %ld; %s",
				path, where, key->name, key->min, key->max,
				key->remedy);
	*(__u32 *)((char *)own + key->offset) = number;
	return 0;
}

static int load_algorithm(const char *path, const char *where, json_t *object,
			  struct connections *own)
{
	json_t *algorithm = json_object_get(object, "algorithm");
	json_t *parameters = json_object_get(object, "parameters");

	if (!is_null(algorithm) &&
	    copy_string(path, where, "algorithm", algorithm, own->algorithm,
			NAME_BYTES))
		return -1;
	if (is_null(parameters))
		return 0;
	if (!json_is_object(parameters))
		return complain("%s: %s: \"parameters\" must be an object", path, where);
	own->parameters = parameters;
	return 0;
}

/* A layer with an algorithm of the same name decides what a loss does to the window. It
 * goes around newreno only, and its algorithm replaces newreno. */
static int take_layers_algorithm(const char *path, const char *where,
				 struct connections *own)
{
	const char *layer = layer_with_algorithm(&own->layers);

	if (!layer)
		return 0;
	if (own->algorithm[0] && strcmp(own->algorithm, "newreno"))
		return complain("%s: %s: layer \"%s\" goes around newreno, not \"%s\"",
				path, where, layer, own->algorithm);
	snprintf(own->algorithm, sizeof(own->algorithm), "%s", layer);
	return 0;
}

static int load_connections(const char *path, const char *where, json_t *object,
			    struct connections *own)
{
	static const char *const known[] = {
		"algorithm", "parameters", "window_segments",
		"initial_window_segments", "mss", "rto_min_us", "rto_max_ms",
		"rto_initial_ms", "delayed_ack", "layers", NULL };
	json_t *delayed = json_object_get(object, "delayed_ack");

	if (!json_is_object(object))
		return complain("%s: %s: \"settings\" must be an object", path, where);
	if (check_keys(path, where, object, known) ||
	    load_algorithm(path, where, object, own))
		return -1;
	for (size_t i = 0; i < NUMBER_KEYS; i++)
		if (load_number(path, where, object, &number_keys[i],
				&own->settings))
			return -1;
	if (!is_null(delayed) && !json_is_boolean(delayed))
		return complain("%s: %s: \"delayed_ack\" must be true or false",
				path, where);
	if (layers_load(path, where, json_object_get(object, "layers"), &own->layers) ||
	    take_layers_algorithm(path, where, own))
		return -1;
	/* 1 means "as short as possible"; settings_resolve() sets the value. */
	own->settings.delack_max_us = json_is_false(delayed);
	own->settings.layered = own->layers.settings.mechanisms != 0;
	return 0;
}

static int load_port(const char *path, const char *where, const char *key,
		     json_t *object, struct connections *own)
{
	char here[STATION_NAME_BYTES + 32], *end;
	unsigned long port = strtoul(key, &end, 10);

	if (!*key || *end || key[0] < '1' || key[0] > '9' || port > 65535)
		return complain("%s: %s: \"ports\": \"%s\" is no port; use 1 to 65535",
				path, where, key);
	own->port = port;
	snprintf(here, sizeof(here), "%s: port %lu", where, port);
	return load_connections(path, here, object, own);
}

static int load_ports(const char *path, const char *where, json_t *ports,
		      struct station *station)
{
	const char *key;
	json_t *value;

	if (is_null(ports))
		return 0;
	if (!json_is_object(ports) || json_object_size(ports) > MAX_PORTS)
		return complain("%s: %s: \"ports\" must be an object of at most %d ports",
				path, where, MAX_PORTS);
	station->ports = calloc(json_object_size(ports) + 1, sizeof(*station->ports));
	if (!station->ports)
		return complain("%s: out of memory", path);
	json_object_foreach(ports, key, value)
		if (load_port(path, where, key, value,
			      &station->ports[station->port_count++]))
			return -1;
	station->own.settings.ports = station->port_count;
	return 0;
}

/* For algorithms/hops_map.h: distances from 1, by address. */
static int load_hops(const char *path, const char *where, json_t *hops,
		     struct station *station)
{
	const char *address;
	json_t *distance;
	__u8 bytes[16];

	if (is_null(hops))
		return 0;
	if (!json_is_object(hops))
		return complain("%s: %s: \"hops\" must be an object", path, where);
	json_object_foreach(hops, address, distance) {
		json_int_t number = json_integer_value(distance);

		if (inet_pton(AF_INET, address, bytes) != 1 &&
		    inet_pton(AF_INET6, address, bytes) != 1)
			return complain("%s: %s: \"hops\": \"%s\" is no address of IPv4 or IPv6",
					path, where, address);
		if (number < 1 || number > MAX_HOPS)
			return complain("%s: %s: \"hops\" of %s must be a whole number from 1 to %d",
					path, where, address, MAX_HOPS);
	}
	station->hops = hops;
	return 0;
}

/* By the address of a wired host, the addresses of its gateways (hops.c). */
static int load_gateways(const char *path, const char *where, json_t *gateways,
			 struct station *station)
{
	const char *host;
	json_t *list, *gateway;
	__u8 bytes[4];
	size_t index;

	if (is_null(gateways))
		return 0;
	if (!json_is_object(gateways))
		return complain("%s: %s: \"gateways\" must be an object", path, where);
	json_object_foreach(gateways, host, list) {
		if (inet_pton(AF_INET, host, bytes) != 1)
			return complain("%s: %s: \"gateways\": \"%s\" is no IPv4 address",
					path, where, host);
		if (!json_is_array(list))
			return complain("%s: %s: \"gateways\" of %s must be a list of IPv4 addresses",
					path, where, host);
		json_array_foreach(list, index, gateway)
			if (!json_is_string(gateway) ||
			    inet_pton(AF_INET, json_string_value(gateway), bytes) != 1)
				return complain("%s: %s: \"gateways\" of %s must be a list of IPv4 addresses",
						path, where, host);
	}
	station->gateways = gateways;
	return 0;
}

static int load_station(const char *path, json_t *object, size_t index,
			struct run_settings *run)
{
	static const char *const known[] = { "name", "netns", "settings", "ports",
					     "status", "hops", "gateways",
					     "gateway_status", NULL };
	json_t *status = json_object_get(object, "status");
	json_t *gateway_status = json_object_get(object, "gateway_status");
	struct station *station = &run->stations[index];
	char where[STATION_NAME_BYTES + 16];
	json_t *settings;

	snprintf(where, sizeof(where), "stations[%zu]", index);
	if (!json_is_object(object))
		return complain("%s: %s must be an object", path, where);
	if (check_keys(path, where, object, known) ||
	    copy_string(path, where, "name", json_object_get(object, "name"),
			station->name, sizeof(station->name)))
		return -1;
	snprintf(where, sizeof(where), "station %s", station->name);
	/* The CSV file has no quotes around names. */
	if (strpbrk(station->name, ",\"\n\r"))
		return complain("%s: %s: a name has no comma, quote or line end",
				path, where);
	for (size_t i = 0; i < index; i++)
		if (!strcmp(run->stations[i].name, station->name))
			return complain("%s: %s is there twice; rename one", path, where);
	if (copy_string(path, where, "netns", json_object_get(object, "netns"),
			station->netns, sizeof(station->netns)))
		return -1;
	if (!is_null(status) &&
	    copy_string(path, where, "status", status, station->status,
			sizeof(station->status)))
		return -1;
	if (load_hops(path, where, json_object_get(object, "hops"), station) ||
	    load_gateways(path, where, json_object_get(object, "gateways"), station))
		return -1;
	if (!is_null(gateway_status) &&
	    copy_string(path, where, "gateway_status", gateway_status,
			station->gateway_status, sizeof(station->gateway_status)))
		return -1;
	settings = json_object_get(object, "settings");
	if (!is_null(settings) &&
	    load_connections(path, where, settings, &station->own))
		return -1;
	if (load_ports(path, where, json_object_get(object, "ports"), station))
		return -1;
	station->own.settings.station = station->own.layers.settings.station = index;
	for (size_t i = 0; i < station->port_count; i++)
		station->ports[i].settings.station =
			station->ports[i].layers.settings.station = index;
	return 0;
}

/* A relative path starts at the folder of the settings file. */
static int resolve_samples(const char *path, json_t *value, char *to)
{
	char own_path[PATH_MAX], name[PATH_MAX];

	if (is_null(value))
		return 0;
	if (copy_string(path, "top level", "samples", value, name, sizeof(name)))
		return -1;
	snprintf(own_path, sizeof(own_path), "%s", path);
	if ((size_t)snprintf(to, PATH_MAX, "%s%s%s",
			     name[0] == '/' ? "" : dirname(own_path),
			     name[0] == '/' ? "" : "/", name) >= PATH_MAX)
		return complain("%s: \"samples\": path too long", path);
	return 0;
}

static int load_top(const char *path, json_t *top, struct run_settings *run)
{
	static const char *const known[] = { "format", "cgroup", "samples",
					     "stations", NULL };
	json_t *cgroup = json_object_get(top, "cgroup");
	const char *format;
	json_t *stations;

	if (!json_is_object(top))
		return complain("%s: must hold one JSON object", path);
	format = json_string_value(json_object_get(top, "format"));
	if (!format || strcmp(format, FORMAT))
		return complain("%s: \"format\" must be \"%s\"", path, FORMAT);
	if (check_keys(path, "top level", top, known) ||
	    (!is_null(cgroup) && copy_string(path, "top level", "cgroup", cgroup,
					     run->cgroup, sizeof(run->cgroup))) ||
	    resolve_samples(path, json_object_get(top, "samples"), run->samples))
		return -1;
	stations = json_object_get(top, "stations");
	if (!json_is_array(stations) || !json_array_size(stations) ||
	    json_array_size(stations) > MAX_STATIONS)
		return complain("%s: \"stations\" must be a list of 1 to %d stations",
				path, MAX_STATIONS);
	run->station_count = json_array_size(stations);
	run->stations = calloc(run->station_count, sizeof(*run->stations));
	if (!run->stations)
		return complain("%s: out of memory for %zu stations", path,
				run->station_count);
	for (size_t i = 0; i < run->station_count; i++)
		if (load_station(path, json_array_get(stations, i), i, run))
			return -1;
	return 0;
}

int settings_load(const char *path, struct run_settings *run)
{
	json_error_t error;
	json_t *top;
	int result;

	memset(run, 0, sizeof(*run));
	top = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!top && json_error_code(&error) == json_error_cannot_open_file)
		return complain("%s: cannot be read: %s", path, strerror(errno));
	if (!top)
		return complain("%s:%d: not JSON: %s", path, error.line, error.text);
	run->file = top;
	result = load_top(path, top, run);
	return result;
}

/* Finds the kernel's name of its own algorithms. Ours get their name when the run's
 * copy is registered (algorithms.c). */
static int resolve_algorithm(const char *path, const struct station *station,
			     struct connections *connections)
{
	const char *name = connections->algorithm;
	char where[PATH_MAX + STATION_NAME_BYTES + NAME_BYTES + 32];
	int error;

	if (!name[0])
		return 0;
	snprintf(where, sizeof(where), "%s: station %s: algorithm \"%s\"", path,
		 station->name, name);
	if (algorithm_is_builtin(name))
		return algorithm_check(name, connections->parameters, where);
	if (connections->parameters && json_object_size(connections->parameters))
		return complain("%s: the kernel's own takes no \"parameters\"; remove them",
				where);
	if (!strncmp(name, KERNEL_PREFIX, strlen(KERNEL_PREFIX)))
		name += strlen(KERNEL_PREFIX);
	/* The kernel's reno is NewReno (RFC 6582), and is called so in experiments. */
	if (!strcmp(name, "newreno"))
		name = "reno";
	error = strlen(name) < ALGORITHM_BYTES ? kernel_algorithm_error(name) : ENOENT;
	if (error)
		return complain("%s: %s; this kernel's are in /proc/sys/net/ipv4/tcp_available_congestion_control, ours in `manet-tcp list`",
				where, strerror(error));
	strcpy(connections->settings.algorithm, name);
	return 0;
}

static int resolve_connections(const char *path, const struct station *station,
			       struct connections *connections, long hz)
{
	struct station_settings *own = &connections->settings;
	long min_delack_us = MIN_DELACK_JIFFIES * 1000000L / hz;

	if (resolve_algorithm(path, station, connections))
		return -1;
	/* usecs_to_jiffies() rounds up; below two jiffies is refused. */
	if (own->rto_min_us && (long)own->rto_min_us <= min_delack_us / 2)
		return complain("%s: station %s: \"rto_min_us\" must be over %ld: two ticks of this kernel's clock (%ld Hz)",
				path, station->name, min_delack_us / 2, hz);
	if (own->rto_initial_jiffies)
		own->rto_initial_jiffies =
			(own->rto_initial_jiffies * hz + 999) / 1000;
	if (own->delack_max_us)
		own->delack_max_us = min_delack_us;
	return 0;
}

static int resolve_station(const char *path, struct run_settings *run,
			   size_t index, long hz)
{
	struct station *station = &run->stations[index];
	const char *step;
	int error;

	if (resolve_connections(path, station, &station->own, hz))
		return -1;
	for (size_t i = 0; i < station->port_count; i++)
		if (resolve_connections(path, station, &station->ports[i], hz))
			return -1;
	error = netns_cookie_of(station->netns, &station->netns_cookie, &step);
	if (error)
		return complain("%s: station %s: cannot %s netns %s: %s; is the station running, and are you root?",
				path, station->name, step, station->netns,
				strerror(error));
	for (size_t i = 0; i < index; i++)
		if (run->stations[i].netns_cookie == station->netns_cookie)
			return complain("%s: stations %s and %s are one network namespace (%s); give each its own",
					path, run->stations[i].name,
					station->name, station->netns);
	return 0;
}

static bool wants_rto_max(const struct station *station)
{
	bool wanted = station->own.settings.rto_max_ms != 0;

	for (size_t i = 0; i < station->port_count; i++)
		wanted |= station->ports[i].settings.rto_max_ms != 0;
	return wanted;
}

int settings_resolve(const char *path, struct run_settings *run)
{
	long hz = jiffies_per_second();
	bool rto_max_wanted = false;

	for (size_t i = 0; i < run->station_count; i++) {
		if (resolve_station(path, run, i, hz))
			return -1;
		rto_max_wanted |= wants_rto_max(&run->stations[i]);
	}
	if (!rto_max_wanted || kernel_has_rto_max())
		return 0;
	complain("%s: \"rto_max_ms\" is not supported by this kernel (Linux 6.15 is needed): it stays at 120 s",
		 path);
	for (size_t i = 0; i < run->station_count; i++) {
		struct station *station = &run->stations[i];

		station->own.settings.rto_max_ms = 0;
		for (size_t port = 0; port < station->port_count; port++)
			station->ports[port].settings.rto_max_ms = 0;
	}
	return 0;
}

void settings_free(struct run_settings *run)
{
	for (size_t i = 0; run->stations && i < run->station_count; i++)
		free(run->stations[i].ports);
	free(run->stations);
	run->stations = NULL;
	json_decref(run->file);
	run->file = NULL;
}
