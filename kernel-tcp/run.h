/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The commands and their exit codes. */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>

enum {
	EXIT_RUNTIME = 1,	/* the kernel or the machine refuses */
	EXIT_SETTINGS = 2,	/* the command line or the file is wrong */
};

int run_command(const char *path);
int features_command(bool as_json);

#endif
