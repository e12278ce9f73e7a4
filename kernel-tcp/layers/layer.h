/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What a layer is to the agent: one file NAME.layer.c, which defines NAME_layer
 * (`-` in the name becomes `_`), and names/NAME.toml. The build finds both and
 * makes one table of them (table.py); no other file lists the layers.
 *
 * The parameters of the layer that answers notices are in `settings.values`,
 * indexed by the constants of layer_table.h: times in microseconds, choices as
 * their place in the list, numbers times NUMBER_SCALE, integers as they are.
 */
#ifndef LAYER_H
#define LAYER_H

#include "layers/state.h"

#define NUMBER_SCALE 1000

struct layer {
	__u16 mechanisms;	/* enum mechanism, beside stand-by */
	enum leave leave;	/* which ACK ends a stand-by */

	/* Sets what the kernel's programs need (`repair`, `leave`) from the
	 * parameters. NULL: they need none. */
	void (*configure)(const __u32 *values, struct layer_settings *settings);

	/* Answers a believed notice: may order a stand-by. NULL: the layer does not act
	 * on route failures. A TCP has at most one layer that does. */
	void (*notice)(struct agent *agent, __u32 slot, const struct notice *notice);

	/* The sequence number that a probe begins with. NULL: the first outstanding. */
	__u32 (*probe_seq)(const struct connection *own, const struct stand_by *now);

	/* After a probe: how long until the next one. NULL: as long as before. */
	__u64 (*next_interval_ns)(const struct stand_by *now);
};

/* The layer of a connection that answers notices; NULL if none does. */
const struct layer *answering_layer(const struct connection *own);

/* Whether that layer also follows `held`, `restored` and the routes of the station's
 * own daemon: `notices = "held"` in its names file. */
bool follows_repairs(const struct connection *own);

#endif
