/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* tcp-settings.json (formats/tcp.md) as a C structure. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include "intf.h"
#include "layers/names.h"

#define STATION_NAME_BYTES 64
#define NAME_BYTES 32		/* of an algorithm, as users write it */

/* The settings of a station's connections, or of its connections with one port. */
struct connections {
	__u16 port;			/* 0: of the station */
	char algorithm[NAME_BYTES];	/* "" = the kernel's default */
	json_t *parameters;		/* of the algorithm; NULL = none given */
	struct tcp_layers layers;
	/* Its `algorithm` is the kernel's name, once resolved. */
	struct station_settings settings;
};

struct station {
	char name[STATION_NAME_BYTES];
	char netns[PATH_MAX];
	__u64 netns_cookie;
	char status[108];		/* the routing daemon's socket; "" = none */
	json_t *hops;			/* by destination, those that never change; NULL = none */
	json_t *gateways;		/* of wired hosts, by the host's address; NULL = none */
	char gateway_status[108];	/* a wired host's: the socket of its gateway's daemon */
	struct connections own;
	size_t port_count;
	struct connections *ports;
};

struct run_settings {
	char cgroup[PATH_MAX];
	char samples[PATH_MAX];		/* "" = no samples */
	size_t station_count;
	struct station *stations;
	json_t *file;			/* holds the parameters and the hops */
};

/* Both print one line and return -1 on failure. */
int settings_load(const char *path, struct run_settings *run);
int settings_resolve(const char *path, struct run_settings *run);
void settings_free(struct run_settings *run);

#endif
