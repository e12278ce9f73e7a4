// SPDX-License-Identifier: GPL-2.0 OR MIT
/* state.c - the clock of the layers, and their events in the samples' file. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "layers/state.h"

__u64 agent_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

__u64 agent_begin_record(struct agent *agent)
{
	__u64 now_ns = agent_now_ns();

	/* Events that the eBPF programs saw earlier come first in the file. */
	if (agent->csv)
		agent->drain(agent->drain_context);
	return now_ns;
}

void agent_record_at(struct agent *agent, __u64 at_ns, const struct connection *own,
		     const char *event, const char *format, ...)
{
	struct sample row = { .monotonic_ns = at_ns };
	char detail[64];
	va_list arguments;

	if (!agent->csv)
		return;
	va_start(arguments, format);
	vsnprintf(detail, sizeof(detail), format, arguments);
	va_end(arguments);
	row.socket_cookie = own->cookie;
	row.station = own->settings.station;
	memcpy(row.local, own->local, sizeof(row.local));
	memcpy(row.remote, own->remote, sizeof(row.remote));
	row.local_port = own->local_port;
	row.remote_port = own->remote_port;
	row.snd_nxt = own->snd_nxt;
	row.snd_una = own->snd_una;
	csv_add_known(agent->csv, &row, event, detail);
}
