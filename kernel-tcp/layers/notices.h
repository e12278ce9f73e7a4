/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Route failure notices and how they arrive in ICMP. */
#ifndef NOTICES_H
#define NOTICES_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

enum notice_kind {
	NOTICE_UNREACHABLE,	/* ICMP type 3, code 0 or 1 (RFC 792) */
	NOTICE_HELD,		/* type 253 (RFC 4727), code 0: formats/routing.md */
	NOTICE_RESTORED,	/* type 253, code 1 */
	NOTICE_ROUTE_ERROR,	/* type 253, code 2 */
	NOTICE_ROUTE,		/* from the station's own daemon, as the next two */
	NOTICE_LOST_ROUTE,
	NOTICE_NO_ROUTE,
	NOTICE_KINDS,
};

/* Ranges in one `restored`, as in routing/node/src/packet/icmp.rs. */
#define MAX_RANGES 32

/* Of sequence numbers: the first, and the one after the last. */
struct range {
	__u32 first, end;
};

struct notice {
	enum notice_kind kind;
	__u8 local[16];		/* IPv4-mapped: source of the quoted packet */
	__u8 remote[16];
	__u16 local_port;	/* host order */
	__u16 remote_port;
	__u32 seq;
	/* NOTICE_RESTORED: the forwarded data, in order and disjoint; none = no list. */
	__u32 range_count;
	struct range ranges[MAX_RANGES];
};

enum notice_result {
	NOTICE_TAKEN,
	NOTICE_OTHER,		/* ICMP, but about something else */
	NOTICE_MALFORMED,
};

/* `packet` begins with the IP header, as a raw socket reads it. */
enum notice_result notice_read(const __u8 *packet, size_t bytes, struct notice *notice);

/* The range that `seq` is in, or NULL. */
const struct range *notice_range_of(const struct notice *notice, __u32 seq);

/* The Internet checksum (RFC 1071) of `bytes`, added to `sum`; not complemented. */
__u32 checksum_add(__u32 sum, const __u8 *data, size_t bytes);
__u16 checksum_fold(__u32 sum);

#endif
