// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * algorithms.c - the built-in algorithms (algorithms/NAME.bpf.c), and the copies of a run.
 *
 * The objects are part of the program: make writes algorithms.inc with a line
 * OBJECT(name) for each of them. A run registers copies of its own, with their own
 * name, parameters and counters; they end with the process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "algorithms.h"
#include "algorithms/hops_map.h"
#include "kernel.h"
#include "settings.h"

#define MAX_ATTEMPTS 64	/* to find a free name */

#define OBJECT(id) \
	asm(".pushsection .rodata\n.balign 8\n" \
	    "object_" #id ":\n.incbin \"" OBJECTS "/" #id ".bpf.o\"\n" \
	    "object_" #id "_end:\n.popsection"); \
	extern const char object_##id[], object_##id##_end[];
#include "algorithms.inc"
#undef OBJECT

static struct object objects[] = {
#define OBJECT(id) { #id, object_##id, 0, NULL },
#include "algorithms.inc"
#undef OBJECT
};

static const char *const ends[] = {
#define OBJECT(id) object_##id##_end,
#include "algorithms.inc"
#undef OBJECT
};

const struct object *algorithm_objects(size_t *count)
{
	*count = sizeof(objects) / sizeof(objects[0]);
	for (size_t i = 0; i < *count; i++)
		objects[i].size = ends[i] - (const char *)objects[i].bytes;
	return objects;
}

const struct object *algorithm_object(const char *name)
{
	size_t count;
	const struct object *all = algorithm_objects(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, name))
			return &all[i];
	return NULL;
}

bool algorithm_is_builtin(const char *name)
{
	return algorithm_object(name) != NULL;
}

int algorithm_check(const char *name, json_t *parameters, const char *where)
{
	struct copy copy = { .name = "check" };
	int error = copy_open(&copy, algorithm_object(name), parameters, where);

	copy_close(&copy);
	return error;
}

/* All copies of a run share one map of hops, that of the first copy. */
static int share_hops(struct copies *copies, struct copy *copy, const char *where)
{
	struct bpf_map *map = bpf_object__find_map_by_name(copy->programs, HOPS_MAP);

	if (map && copies->hops && bpf_map__reuse_fd(map, copies->hops))
		return complain("%s: the map of hops cannot be shared: %s", where,
				strerror(errno));
	return 0;
}

static void keep_hops(struct copies *copies, const struct copy *copy)
{
	struct bpf_map *map = bpf_object__find_map_by_name(copy->programs, HOPS_MAP);

	if (map && !copies->hops)
		copies->hops = bpf_map__fd(map);
}

/* Tries names such as `tahoe.1f3a` until one is free. */
static int register_under_free_name(struct copies *copies, const struct object *object,
			    json_t *parameters, const char *where)
{
	struct copy *copy = &copies->copies[copies->count];
	static unsigned number;
	int error = -EEXIST;

	if (!number)
		number = getpid();
	for (int i = 0; i < MAX_ATTEMPTS && error == -EEXIST; i++) {
		snprintf(copy->name, sizeof(copy->name), "%.10s.%x", object->name,
			 number++ & 0xffff);
		error = copy_open(copy, object, parameters, where);
		if (!error)
			error = share_hops(copies, copy, where);
		if (!error)
			error = copy_register(copy, where);
		if (error)
			copy_close(copy);
		else
			keep_hops(copies, copy);
	}
	if (error == -EEXIST)
		complain("%s: no free name in the kernel after %d; is something left registered? (/proc/sys/net/ipv4/tcp_available_congestion_control)",
			 where, MAX_ATTEMPTS);
	return error ? -1 : 0;
}

/* A copy registered before with the same parameters. */
static const char *registered(const struct copies *copies,
			      const struct connections *own,
			      const struct connections *const *users)
{
	for (size_t i = 0; i < copies->count; i++)
		if (!strcmp(users[i]->algorithm, own->algorithm) &&
		    (users[i]->parameters == own->parameters ||
		     (users[i]->parameters && own->parameters &&
		      json_equal(users[i]->parameters, own->parameters))))
			return copies->copies[i].name;
	return NULL;
}

struct registering {
	const char *path, *station;
	struct copies *copies;
	const struct connections **users;	/* the first user of each copy */
};

static int register_for(struct registering *job, struct connections *own)
{
	const struct object *object = algorithm_object(own->algorithm);
	struct copies *copies = job->copies;
	char where[PATH_MAX + STATION_NAME_BYTES + NAME_BYTES + 32];
	const char *name;

	if (!object)
		return 0;
	name = registered(copies, own, job->users);
	if (!name) {
		snprintf(where, sizeof(where), "%s: station %s: algorithm \"%s\"",
			 job->path, job->station, own->algorithm);
		if (register_under_free_name(copies, object, own->parameters, where))
			return -1;
		job->users[copies->count] = own;
		name = copies->copies[copies->count++].name;
	}
	strcpy(own->settings.algorithm, name);
	return 0;
}

static int register_all(struct registering *job, struct run_settings *run)
{
	for (size_t i = 0; i < run->station_count; i++) {
		struct station *station = &run->stations[i];

		job->station = station->name;
		if (register_for(job, &station->own))
			return -1;
		for (size_t port = 0; port < station->port_count; port++)
			if (register_for(job, &station->ports[port]))
				return -1;
	}
	return 0;
}

int copies_register(struct copies *copies, const char *path, struct run_settings *run)
{
	struct registering job = { .path = path, .copies = copies };
	size_t max_copies = run->station_count;
	int result;

	for (size_t i = 0; i < run->station_count; i++)
		max_copies += run->stations[i].port_count;
	copies->copies = calloc(max_copies, sizeof(*copies->copies));
	job.users = calloc(max_copies, sizeof(*job.users));
	result = copies->copies && job.users ? register_all(&job, run) :
					       complain("out of memory");
	free(job.users);
	return result ? result : guard_copies(copies);
}

void copies_close(struct copies *copies)
{
	for (size_t i = 0; i < copies->count; i++)
		copy_close(&copies->copies[i]);
	free(copies->copies);
	copies->copies = NULL;
	copies->count = 0;
}
