/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The eBPF programs of the layers. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "layers/state.h"

/* Loads and attaches; 0, or one line and -1. */
int programs_start(struct agent *agent, int samples, int cgroup);
void programs_stop(struct agent *agent);
const struct layer_counters *programs_counters(const struct agent *agent);

#endif
