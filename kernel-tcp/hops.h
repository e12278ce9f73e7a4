/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Gives TCP-AP the length of its paths, from the routing daemons of the stations. */
#ifndef HOPS_H
#define HOPS_H

#include "settings.h"

struct hops;

/* `map`: descriptor of the map of algorithms/hops_map.h. NULL and one line on failure. */
struct hops *hops_new(const struct run_settings *settings, int map);
/* The descriptor to poll before hops_work(), which must also run every second: daemons
 * may start later. */
int hops_descriptor(const struct hops *hops);
void hops_work(struct hops *hops);
void hops_free(struct hops *hops);

#endif
