/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Ports that tcp-settings.json gained after the start of `run`. */
#ifndef ADDED_H
#define ADDED_H

#include <stdbool.h>
#include "algorithms.h"
#include "settings.h"

/* What one reading brought. */
struct added {
	struct run_settings settings;
	struct copies copies;
	bool taken;
	struct added *next;
};

/* Reads the file again, removes the ports from `map` that an earlier reading took and the
 * file has no longer, and takes the settings of those that `map` does not have yet.
 * One line and -1 if it takes none of them. */
int added_take(struct added **all, const char *path, const struct run_settings *run,
	       int map);
void added_free(struct added *all);

#endif
