/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The key `layers` of tcp-settings.json, and how a TCP is spelled. */
#ifndef LAYER_NAMES_H
#define LAYER_NAMES_H

#include <jansson.h>
#include "layers/layers.h"

/* NULL or null = no layers. Prints one line and returns -1 on failure. */
int layers_load(const char *path, const char *where, json_t *list,
		struct layer_settings *own);

/* `elfn(reno-f(reno))`, without parameters; shortened if `bytes` are too few. */
void layers_spell(const struct layer_settings *own, const char *algorithm,
		  char *text, size_t bytes);

#endif
