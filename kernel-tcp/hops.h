/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Tells TCP-AP how many hops there are, as the stations' routing daemons know it. */
#ifndef HOPS_H
#define HOPS_H

#include "settings.h"

struct hops;

/* `map`: of algorithms/hops_map.h. NULL and one line on failure. */
struct hops *hops_new(const struct run_settings *settings, int map);
/* To poll, and at least every second: a daemon may be there only later. */
int hops_descriptor(const struct hops *hops);
void hops_work(struct hops *hops);
void hops_free(struct hops *hops);

#endif
