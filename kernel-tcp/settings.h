/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* tcp-settings.json (formats/tcp.md) as a C structure. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include "intf.h"

#define STATION_NAME_BYTES 64

struct station {
	char name[STATION_NAME_BYTES];
	char netns[PATH_MAX];
	__u64 netns_cookie;
	struct station_settings settings;
};

struct run_settings {
	char cgroup[PATH_MAX];
	char samples[PATH_MAX];		/* "" = no samples wanted */
	size_t station_count;
	struct station *stations;
};

/* Both print one line and return -1 on failure. */
int settings_load(const char *path, struct run_settings *run);
int settings_resolve(const char *path, struct run_settings *run);
void settings_free(struct run_settings *run);

#endif
