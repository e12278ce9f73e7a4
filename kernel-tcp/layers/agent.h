/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The layers in `manet-tcp run`: waits for notices and events of connections. */
#ifndef AGENT_H
#define AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include "csv.h"
#include "settings.h"

struct agent;

bool agent_wanted(const struct run_settings *settings);

/* `samples`: the descriptor of the ring's map. One line and -1 on failure. */
struct agent *agent_new(const struct run_settings *settings, int samples, int cgroup);
void agent_free(struct agent *agent);

/* `ring`: a descriptor that is readable when an event has come; `drain` reads it. */
int agent_listen(struct agent *agent, struct csv *csv, int ring,
		 void (*drain)(void *), void *context);
/* The descriptor to poll before agent_work(). */
int agent_descriptor(const struct agent *agent);
void agent_work(struct agent *agent);
/* Handles an event from the ring. */
void agent_event(struct agent *agent, const struct sample *row);
json_t *agent_report(const struct agent *agent);

#endif
