// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * programs.c - loads and attaches the eBPF programs of the layers, and maps the memory
 * that they share with the agent.
 *
 * Nothing is pinned: links hold the programs, the registration (copy.c) holds `hold`,
 * and both hold the maps. All of it ends with the process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "algorithms.h"
#include "kernel.h"
#include "layers/programs.h"
#include "layers.skel.h"

#define RTO_INITIAL_US 1000000	/* the kernel's, RFC 6298 2.1 */
#define MAX_ATTEMPTS 64		/* to find a free name */

asm(".pushsection .rodata\n.balign 8\n"
    "object_hold:\n.incbin \"" OBJECTS "/hold.bpf.o\"\n"
    "object_hold_end:\n.popsection");
extern const char object_hold[], object_hold_end[];

/* ---- hold ---- */

static int share(struct bpf_object *object, const char *name, int fd)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__reuse_fd(map, fd) : -ENOENT;
}

static int register_hold(struct agent *agent)
{
	const struct object object = { "hold", object_hold,
				       object_hold_end - object_hold, NULL };
	const char *where = "layers: algorithm \"hold\"";
	unsigned number = getpid();
	int error = -EEXIST;

	for (int i = 0; i < MAX_ATTEMPTS && error == -EEXIST; i++) {
		struct copy *hold = &agent->hold;

		snprintf(hold->name, sizeof(hold->name), "hold.%x", number++ & 0xffff);
		if (copy_open(hold, &object, NULL, where))
			return -1;
		if (share(hold->programs, "slots", bpf_map__fd(agent->programs->maps.slots)) ||
		    share(hold->programs, "connections",
			  bpf_map__fd(agent->programs->maps.connections)))
			return complain("%s: the maps cannot be shared", where);
		error = copy_register(hold, where);
		if (error)
			copy_close(hold);
	}
	if (error == -EEXIST)
		return complain("%s: no free name in the kernel after %d", where, MAX_ATTEMPTS);
	return error ? -1 : guard_copies(&(struct copies){ .copies = &agent->hold, .count = 1 });
}

/* ---- maps ---- */

static int fill(struct agent *agent, const struct station *station,
		const struct connections *own)
{
	struct settings_key key = { .netns_cookie = station->netns_cookie,
				    .port = own->port };
	struct layer_settings settings = own->layers.settings;

	settings.rto_initial_us = own->settings.rto_initial_jiffies ?
		own->settings.rto_initial_jiffies * (1000000 / jiffies_per_second()) :
		RTO_INITIAL_US;
	if (!bpf_map_update_elem(bpf_map__fd(agent->programs->maps.layer_settings),
				 &key, &settings, BPF_ANY))
		return 0;
	return complain("station %s: layers cannot be registered: %s", station->name,
			strerror(errno));
}

static int fill_maps(struct agent *agent)
{
	int free_slots = bpf_map__fd(agent->programs->maps.free_slots);

	for (size_t i = 0; i < agent->settings->station_count; i++) {
		const struct station *station = &agent->settings->stations[i];

		if (fill(agent, station, &station->own))
			return -1;
		for (size_t port = 0; port < station->port_count; port++)
			if (fill(agent, station, &station->ports[port]))
				return -1;
	}
	for (__u32 slot = 0; slot < MAX_LAYERED; slot++)
		if (bpf_map_update_elem(free_slots, NULL, &slot, BPF_ANY))
			return complain("layers: no room for connections: %s",
					strerror(errno));
	return 0;
}

static size_t pages(size_t bytes)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

#define CONNECTIONS_BYTES pages(MAX_LAYERED * sizeof(struct connection))
#define KEPT_BYTES pages(MAX_LAYERED * sizeof(struct kept_window))

static int map_memory(struct agent *agent)
{
	agent->connections = mmap(NULL, CONNECTIONS_BYTES, PROT_READ | PROT_WRITE,
				  MAP_SHARED,
				  bpf_map__fd(agent->programs->maps.connections), 0);
	agent->kept = mmap(NULL, KEPT_BYTES, PROT_READ, MAP_SHARED,
			   bpf_map__fd(agent->programs->maps.kept), 0);
	if (agent->connections != MAP_FAILED && agent->kept != MAP_FAILED)
		return 0;
	return complain("layers: the programs' memory cannot be mapped: %s",
			strerror(errno));
}

/* ---- programs ---- */

static int load(struct agent *agent, int samples)
{
	int error;

	agent->programs = layers__open();
	if (!agent->programs)
		return complain("layers: the programs cannot be opened: %s",
				strerror(errno));
	error = bpf_map__reuse_fd(agent->programs->maps.samples, samples);
	if (!error)
		error = layers__load(agent->programs);
	if (error)
		return complain("layers: the kernel refuses the programs: %s; `--debug` shows the messages of libbpf",
				strerror(-error));
	return 0;
}

static int attach(struct agent *agent, int cgroup)
{
	struct layers *programs = agent->programs;

	programs->links.gate = bpf_program__attach_cgroup(programs->progs.gate, cgroup);
	programs->links.watch = bpf_program__attach_cgroup(programs->progs.watch, cgroup);
	programs->links.layers = bpf_program__attach_cgroup(programs->progs.layers, cgroup);
	if (programs->links.gate && programs->links.watch && programs->links.layers)
		return 0;
	return complain("cgroup %s: cannot attach layers: %s", agent->settings->cgroup,
			strerror(errno));
}

int programs_start(struct agent *agent, int samples, int cgroup)
{
	if (load(agent, samples) || register_hold(agent))
		return -1;
	memcpy(agent->programs->bss->hold_name, agent->hold.name,
	       sizeof(agent->programs->bss->hold_name));
	return map_memory(agent) || fill_maps(agent) || attach(agent, cgroup) ? -1 : 0;
}

void programs_stop(struct agent *agent)
{
	if (agent->connections && agent->connections != MAP_FAILED)
		munmap(agent->connections, CONNECTIONS_BYTES);
	if (agent->kept && agent->kept != MAP_FAILED)
		munmap(agent->kept, KEPT_BYTES);
	layers__destroy(agent->programs);
	copy_close(&agent->hold);
}

const struct layer_counters *programs_counters(const struct agent *agent)
{
	return &agent->programs->bss->counters;
}
