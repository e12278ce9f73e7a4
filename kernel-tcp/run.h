/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The commands and their exit codes. */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>

enum {
	EXIT_RUNTIME = 1,	/* the kernel or the machine refuses */
	EXIT_SETTINGS = 2,	/* the command line or the file is wrong */
};

/* Blocks the signals that end a command, before anything is attached, so that one at any
 * moment ends it in order; a descriptor to poll for them. */
int watch_signals(int *descriptor);

int run_command(const char *path);
int sample_command(const char *path);
/* `arguments`: NAME [p=v ...] [--name KERNELNAME] */
int load_command(int count, char **arguments);
int unload_command(const char *name);
int list_command(bool as_json);
int features_command(bool as_json);

#endif
