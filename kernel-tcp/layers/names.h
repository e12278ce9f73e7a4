/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The key `layers` of tcp-settings.json, and the spelling of a TCP. */
#ifndef LAYER_NAMES_H
#define LAYER_NAMES_H

#include <jansson.h>
#include "layers/layers.h"

struct tcp_layers {
	__u32 chosen;			/* one bit for each row of the table */
	struct layer_settings settings;	/* for the eBPF programs and the agent */
};

/* NULL or null = no layers. Prints one line and returns -1 on failure. */
int layers_load(const char *path, const char *where, json_t *list,
		struct tcp_layers *own);

/* The layer that has an algorithm of its own name (algorithms/NAME.bpf.c), which
 * takes newreno's place; NULL if none has. */
const char *layer_with_algorithm(const struct tcp_layers *own);

/* `elfn(reno-f(reno))`, without parameters; shortened if `bytes` are too few. */
void layers_spell(const struct tcp_layers *own, const char *algorithm, char *text,
		  size_t bytes);

#endif
