/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Layers that stand by without probes until the daemons report a repair. */
#ifndef FREEZE_H
#define FREEZE_H

#include "layers/layer.h"

struct freeze {
	/* Starts the layer's own timer. */
	void (*begin)(const struct connection *own, struct stand_by *now);
	/* After `restored` or the own daemon's new route: ends the stand-by and sends
	 * again what is missing. */
	void (*thaw)(struct agent *agent, __u32 slot, const struct notice *notice);
};

/* Answers a notice for such a layer. */
void freeze_notice(struct agent *agent, __u32 slot, const struct notice *notice,
		   const struct freeze *layer);

#endif
