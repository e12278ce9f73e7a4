/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The built-in congestion controls, and the copies of a run. */
#ifndef ALGORITHMS_H
#define ALGORITHMS_H

#include <stdbool.h>
#include <stddef.h>
#include "copy.h"

struct run_settings;

struct copies {
	struct copy *copies;
	size_t count;
	int hops;	/* descriptor of their map (algorithms/hops_map.h); 0 = none */
};

/* NULL if there is no algorithm of this name. */
const struct object *algorithm_object(const char *name);
const struct object *algorithm_objects(size_t *count);
bool algorithm_is_builtin(const char *name);
/* 0 if the built-in algorithm takes these parameters; one line and -1 if not. */
int algorithm_check(const char *name, json_t *parameters, const char *where);

/* Registers the algorithms of the stations, one copy for each set of parameters, under
 * free names, and writes the names into the settings. One line and -1 if refused. */
int copies_register(struct copies *copies, const char *path, struct run_settings *run);
/* Makes them end with this process on kernels before 6.4. */
int guard_copies(const struct copies *copies);
void copies_close(struct copies *copies);

#endif
