/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Sockets in a station's network namespace, and segments sent past the gate. */
#ifndef PROBES_H
#define PROBES_H

#include <stdbool.h>
#include <linux/types.h>
#include "layers/layers.h"

/* A raw socket in the network namespace `netns`; -1 with errno. It keeps the namespace
 * alive. */
int raw_socket_in(const char *netns, int protocol);

/* A copy of the segment that begins at `seq`; false if there is none (any more). */
bool kept_find(const struct kept_window *window, __u64 cookie, __u32 seq,
	       struct kept *found);

/* A copy of the segment that ends at `end`: the last acknowledged one, if nothing is
 * outstanding. */
bool kept_find_last(const struct kept_window *window, __u64 cookie, __u32 end,
		    struct kept *found);

/* Sends it with the fields of a segment sent now. 0, or errno. */
int kept_send(int raw, struct kept *segment, __u64 now_ns);

#endif
