/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The distance of each destination, from the routing daemon to tcpap. A run has one
 * map for all its copies of tcpap; hops.c fills it. */
#ifndef HOPS_MAP_H
#define HOPS_MAP_H

#include <linux/types.h>

#define HOPS_MAP "hops_to"
#define MAX_HOPS 255		/* the maximum TTL */
#define HOPS_ENTRIES 65536	/* stations times destinations */

struct hops_key {
	__u64 netns_cookie;	/* of the station */
	__u8 remote[16];	/* IPv6 or v4-mapped, network order */
};

/* The value is a __u32: hops, from 1. */

#endif
