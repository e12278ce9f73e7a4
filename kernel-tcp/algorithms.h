/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The congestion controls of ours, and a run's copies of them. */
#ifndef ALGORITHMS_H
#define ALGORITHMS_H

#include <stdbool.h>
#include <stddef.h>
#include "copy.h"

struct run_settings;

struct copies {
	struct copy *copies;
	size_t count;
	int hops;	/* their map of hops (algorithms/hops_map.h); 0 = none has one */
};

/* NULL if there is none of this name. */
const struct object *algorithm_object(const char *name);
const struct object *algorithm_objects(size_t *count);
bool algorithm_is_builtin(const char *name);
/* Whether one of ours takes these parameters. One line and -1 if not. */
int algorithm_check(const char *name, json_t *parameters, const char *where);

/* Registers what the stations ask for, each algorithm once for each set of
 * parameters, under names that nobody else has, and puts these into the
 * settings. One line and -1 if refused. */
int copies_register(struct copies *copies, const char *path, struct run_settings *run);
/* Sees to their end where the kernel does not (before Linux 6.4). */
int guard_copies(const struct copies *copies);
void copies_close(struct copies *copies);

#endif
