/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Sockets in a station's name space, and segments sent past the gate. */
#ifndef PROBES_H
#define PROBES_H

#include <stdbool.h>
#include <linux/types.h>
#include "layers/layers.h"

/* A raw socket in the name space `netns`; -1 with errno. It keeps the name space
 * alive. */
int raw_socket_in(const char *netns, int protocol);

/* A copy of the segment that begins with `seq`; false if there is none (any
 * more). */
bool kept_find(const struct kept_window *window, __u64 cookie, __u32 seq,
	       struct kept *found);

/* A copy of the segment that ends with `end`: the last acknowledged one, where
 * nothing is outstanding. */
bool kept_find_last(const struct kept_window *window, __u64 cookie, __u32 end,
		    struct kept *found);

/* Sends it as if it were sent now. 0, or errno. */
int kept_send(int raw, struct kept *segment, __u64 now_ns);

#endif
