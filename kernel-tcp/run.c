// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * run.c - `manet-tcp run settings.json`: attach, sample, detach.
 *
 * SIGHUP: ports that the file gained are taken (added.c).
 *
 * Nothing is pinned: links held by this process's descriptors hold the eBPF programs,
 * so the programs end with the process, whatever ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "added.h"
#include "algorithms.h"
#include "csv.h"
#include "hops.h"
#include "kernel.h"
#include "run.h"
#include "manet_tcp.skel.h"
#include "layers/agent.h"

#define DRAIN_EVERY_MS 100	/* the ring holds at least a third of a second */

static const char *const setting_names[SETTINGS] = {
	[SETTING_ALGORITHM] = "algorithm",
	[SETTING_WINDOW] = "window_segments",
	[SETTING_RECEIVE_WINDOW] = "window_segments (receive side)",
	[SETTING_INITIAL_WINDOW] = "initial_window_segments",
	[SETTING_MSS] = "mss",
	[SETTING_RTO_MIN] = "rto_min_us",
	[SETTING_RTO_MAX] = "rto_max_ms",
	[SETTING_DELAYED_ACK] = "delayed_ack",
};

struct run {
	struct run_settings settings;
	struct copies copies;
	struct added *added;		/* by SIGHUP; NULL = nothing */
	struct hops *hops;		/* NULL = no algorithm needs them */
	struct manet_tcp *programs;
	struct ring_buffer *ring;
	struct csv *csv;
	struct agent *agent;		/* NULL if no connection has a layer */
	int signals;
};

static int open_cgroup(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs system;

	if (fd < 0)
		return complain("cgroup %s: %s; make it with mkdir in a cgroup v2 hierarchy",
				path, strerror(errno));
	if (!fstatfs(fd, &system) && system.f_type == CGROUP2_SUPER_MAGIC)
		return fd;
	close(fd);
	return complain("cgroup %s: not in a cgroup v2 hierarchy; `manet-tcp features` names the one that is mounted",
			path);
}

static int open_programs(struct run *run)
{
	int error;

	if (access(BTF_PATH, R_OK))
		return complain("%s: %s; the kernel needs CONFIG_DEBUG_INFO_BTF (see kernel-tcp/kernel.config)",
				BTF_PATH, strerror(errno));
	run->programs = manet_tcp__open();
	if (!run->programs)
		return complain("the programs cannot be opened: %s", strerror(errno));
	bpf_program__set_autoload(run->programs->progs.sample,
				  run->settings.samples[0]);
	run->programs->rodata->events_wanted = run->settings.samples[0];
	error = -manet_tcp__load(run->programs);
	if (error == EPERM || error == EACCES)
		return complain("the kernel refuses to load BPF: %s; run as root (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)",
				strerror(error));
	if (error)
		return complain("the kernel refuses the programs: %s; `manet-tcp features` lists what is missing, `--debug` shows the messages of libbpf",
				strerror(error));
	return 0;
}

static int fill(const struct run *run, const struct station *station,
		const struct connections *own)
{
	struct settings_key key = { .netns_cookie = station->netns_cookie,
				    .port = own->port };

	if (!bpf_map_update_elem(bpf_map__fd(run->programs->maps.stations), &key,
				 &own->settings, BPF_NOEXIST))
		return 0;
	return complain("station %s: cannot be registered: %s%s", station->name,
			strerror(errno), errno == E2BIG ?
			"; there are too many stations and ports" : "");
}

static int fill_stations(struct run *run)
{
	for (size_t i = 0; i < run->settings.station_count; i++) {
		struct station *station = &run->settings.stations[i];

		for (size_t port = 0; port < station->port_count; port++)
			if (fill(run, station, &station->ports[port]))
				return -1;
		if (fill(run, station, &station->own))
			return -1;
	}
	return 0;
}

static int attach_settings(struct run *run)
{
	struct manet_tcp *programs = run->programs;
	int cgroup = open_cgroup(run->settings.cgroup);

	if (cgroup < 0)
		return -1;
	programs->links.settings =
		bpf_program__attach_cgroup(programs->progs.settings, cgroup);
	close(cgroup);
	if (!programs->links.settings)
		return complain("cgroup %s: cannot attach: %s",
				run->settings.cgroup, strerror(errno));
	return 0;
}

static int take_sample(void *context, void *data, size_t bytes)
{
	const struct run *run = context;
	const struct sample *row = data;

	if (bytes < sizeof(*row))
		return 0;
	if (run->csv)
		csv_add_event(run->csv, row);
	if (run->agent && row->event != EVENT_NONE)
		agent_event(run->agent, row);
	return 0;
}

static int open_ring(struct run *run)
{
	run->ring = ring_buffer__new(bpf_map__fd(run->programs->maps.samples),
				     take_sample, run, NULL);
	return run->ring ? 0 : complain("no ring buffer: %s", strerror(errno));
}

static int attach_samples(struct run *run)
{
	struct manet_tcp *programs = run->programs;

	run->csv = malloc(sizeof(*run->csv));
	if (!run->csv)
		return complain("out of memory");
	run->csv->fd = -1;
	if (csv_open(run->csv, &run->settings))
		return -1;
	programs->links.sample = bpf_program__attach(programs->progs.sample);
	if (!programs->links.sample)
		return complain("tcp_probe: cannot attach: %s; `manet-tcp features` says whether this kernel has it",
				strerror(errno));
	return 0;
}

int watch_signals(int *descriptor)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	*descriptor = signalfd(-1, &set, SFD_CLOEXEC);
	return *descriptor < 0 ? complain("signalfd: %s", strerror(errno)) : 0;
}

static void drain(void *context)
{
	struct run *run = context;

	if (run->csv)
		csv_update_clock(run->csv);
	ring_buffer__consume(run->ring);
	if (run->csv)
		csv_flush(run->csv);
}

static int attach_layers(struct run *run)
{
	int cgroup = open_cgroup(run->settings.cgroup);

	if (cgroup < 0)
		return -1;
	run->agent = agent_new(&run->settings,
			       bpf_map__fd(run->programs->maps.samples), cgroup);
	close(cgroup);
	return run->agent && !agent_listen(run->agent, run->csv,
					   ring_buffer__epoll_fd(run->ring),
					   drain, run) ? 0 : -1;
}

static int follow_hops(struct run *run)
{
	run->hops = hops_new(&run->settings, run->copies.hops);
	return run->hops ? 0 : -1;
}

/* Whether the run ends. The answer to SIGHUP is a line on standard output. */
static bool read_signal(struct run *run, const char *path)
{
	struct signalfd_siginfo signal;

	if (read(run->signals, &signal, sizeof(signal)) != sizeof(signal))
		return false;
	if (signal.ssi_signo != SIGHUP)
		return true;
	puts(added_take(&run->added, path, &run->settings,
			bpf_map__fd(run->programs->maps.stations)) ? "refused" : "taken");
	fflush(stdout);
	return false;
}

static void wait_for_signal(struct run *run, const char *path)
{
	struct pollfd waited[] = {
		{ .fd = run->signals, .events = POLLIN },
		{ .fd = run->agent ? agent_descriptor(run->agent) : -1, .events = POLLIN },
		{ .fd = run->hops ? hops_descriptor(run->hops) : -1, .events = POLLIN },
	};
	int timeout_ms = run->ring || run->hops ? DRAIN_EVERY_MS : -1;

	while (poll(waited, 3, timeout_ms) <= 0 || !waited[0].revents ||
	       !read_signal(run, path)) {
		if (run->hops)
			hops_work(run->hops);
		if (run->agent)
			agent_work(run->agent);
		if (run->ring)
			drain(run);
	}
}

static json_t *refusals(const struct counters *counted)
{
	json_t *all = json_object();

	for (int i = 0; i < SETTINGS; i++) {
		if (!counted->refused[i])
			continue;
		complain("%s: refused by the kernel %llu times: %s",
			 setting_names[i], counted->refused[i],
			 strerror(-counted->refused_error[i]));
		json_object_set_new(all, setting_names[i],
				    json_integer(counted->refused[i]));
	}
	return all;
}

/* The last line on standard output: the run's counters, for run.json. */
static void report(const struct run *run)
{
	const struct counters *counted = &run->programs->bss->counters;
	__u64 unwritten = run->csv ? run->csv->unwritten : 0;
	json_t *line;

	if (counted->lost_samples)
		complain("%llu of %llu samples lost: the ring buffer was full (is the host overloaded?)",
			 counted->lost_samples,
			 counted->samples + counted->lost_samples);
	line = json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}",
			 "format", "manet-tcp-report/1",
			 "connections", (json_int_t)counted->connections,
			 "samples", (json_int_t)(counted->samples - unwritten),
			 "lost_samples", (json_int_t)counted->lost_samples,
			 "unwritten_samples", (json_int_t)unwritten,
			 "refused", refusals(counted));
	if (run->csv && !run->csv->broken)
		json_object_set_new(line, "wrote", csv_written(run->csv));
	if (run->agent)
		json_object_set_new(line, "layers", agent_report(run->agent));
	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(line);
}

static void detach(struct run *run)
{
	struct manet_tcp *programs = run->programs;

	bpf_link__destroy(programs->links.settings);
	bpf_link__destroy(programs->links.sample);
	programs->links.settings = programs->links.sample = NULL;
	if (run->ring)
		drain(run);
	if (run->csv)
		csv_close(run->csv);
}

static int attach_and_wait(struct run *run, const char *path)
{
	if (copies_register(&run->copies, path, &run->settings) ||
	    open_programs(run) || fill_stations(run) ||
	    ((run->settings.samples[0] || agent_wanted(&run->settings)) &&
	     open_ring(run)) ||
	    (run->settings.samples[0] && attach_samples(run)) ||
	    (agent_wanted(&run->settings) && attach_layers(run)) ||
	    (run->copies.hops && follow_hops(run)) || attach_settings(run))
		return EXIT_RUNTIME;
	puts("ready");
	fflush(stdout);
	wait_for_signal(run, path);
	detach(run);
	report(run);
	return 0;
}

int run_command(const char *path)
{
	struct run run = { .signals = -1 };
	int code = EXIT_SETTINGS, cgroup;

	if (settings_load(path, &run.settings) || watch_signals(&run.signals))
		goto out;
	if (!run.settings.cgroup[0]) {
		complain("%s: top level: \"cgroup\" must be a string that is not empty", path);
		goto out;
	}
	/* Before the network namespaces: a wrong path is the more likely mistake. */
	cgroup = open_cgroup(run.settings.cgroup);
	if (cgroup < 0)
		goto out;
	close(cgroup);
	if (!settings_resolve(path, &run.settings))
		code = attach_and_wait(&run, path);
out:
	agent_free(run.agent);
	hops_free(run.hops);
	ring_buffer__free(run.ring);
	manet_tcp__destroy(run.programs);
	copies_close(&run.copies);
	added_free(run.added);
	if (run.csv)
		csv_close(run.csv);
	free(run.csv);
	if (run.signals >= 0)
		close(run.signals);
	settings_free(&run.settings);
	return code;
}
