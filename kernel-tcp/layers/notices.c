// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * notices.c - reads ICMP errors: which segment of which connection was lost, is held,
 * is forwarded again, or met a broken link (payload of a Route Error).
 *
 * An error quotes a packet: its IP header and at least 8 bytes (RFC 792), which hold
 * the TCP ports and the sequence number. A routing protocol on the path may have put a
 * header between the two: minimal encapsulation (RFC 2004, protocol 55; half tunnels
 * to a gateway) or DSR (RFC 4728, protocol 48). A quote that ends before the sequence
 * number is malformed.
 *
 * `restored` may list the forwarded data behind the quote (RFC 4884): the header has
 * the length of the quote, and an extension structure with an object of a private class
 * follows. A list that is not in order makes the whole notice malformed.
 *
 * All input comes from the network: nothing is believed yet (agent.c).
 */
#include <string.h>
#include "layers/notices.h"

#define ICMP 1
#define TCP 6
#define DSR 48
#define MINIMAL 55

#define UNREACHABLE 3
#define NET 0
#define HOST 1
#define EXPERIMENT 253	/* RFC 4727 4 */
#define HELD 0
#define RESTORED 1
#define ROUTE_ERROR 2

#define EXTENSION_VERSION 2	/* RFC 4884 7 */
#define FORWARDED_CLASS 247	/* RFC 4884 8: for private use; type 0 */

__u32 checksum_add(__u32 sum, const __u8 *data, size_t bytes)
{
	for (size_t i = 0; i + 1 < bytes; i += 2)
		sum += data[i] << 8 | data[i + 1];
	if (bytes % 2)
		sum += data[bytes - 1] << 8;
	return sum;
}

__u16 checksum_fold(__u32 sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

struct bytes {
	const __u8 *at;
	size_t left;
};

static bool skip(struct bytes *from, size_t count)
{
	if (from->left < count)
		return false;
	from->at += count;
	from->left -= count;
	return true;
}

static __u16 short_at(const __u8 *at)
{
	return at[0] << 8 | at[1];
}

static __u32 long_at(const __u8 *at)
{
	return (__u32)short_at(at) << 16 | short_at(at + 2);
}

static void map_address(__u8 *to, const __u8 *address)
{
	memset(to, 0, 10);
	memset(to + 10, 0xff, 2);
	memcpy(to + 12, address, 4);
}

/* Skips an IPv4 header (RFC 791 3.1); returns its protocol, or -1. */
static int skip_ip(struct bytes *from, const __u8 **header)
{
	size_t length;

	if (from->left < 20 || from->at[0] >> 4 != 4)
		return -1;
	*header = from->at;
	length = (from->at[0] & 15) * 4;
	if (length < 20 || !skip(from, length))
		return -1;
	return (*header)[9];
}

/* RFC 2004 3: protocol, S, checksum, destination, and with S the source. */
static int skip_minimal(struct bytes *from, struct notice *notice)
{
	const __u8 *header = from->at;
	bool has_source;

	if (from->left < 8)
		return -1;
	has_source = header[1] & 0x80;
	if (!skip(from, has_source ? 12 : 8))
		return -1;
	map_address(notice->remote, header + 4);
	if (has_source)
		map_address(notice->local, header + 8);
	return header[0];
}

/* RFC 4728 6.1: next header, flags, length of the options that follow. */
static int skip_dsr(struct bytes *from)
{
	const __u8 *header = from->at;

	if (from->left < 4 || !skip(from, 4 + short_at(header + 2)))
		return -1;
	return header[0];
}

static enum notice_result read_quote(struct bytes quote, struct notice *notice)
{
	const __u8 *header;
	int protocol = skip_ip(&quote, &header);

	if (protocol < 0)
		return NOTICE_MALFORMED;
	if (short_at(header + 6) & 0x1fff)	/* a fragment has no ports */
		return NOTICE_OTHER;
	map_address(notice->local, header + 12);
	map_address(notice->remote, header + 16);
	/* At most one of each: a DSR network's gateway tunnels. */
	if (protocol == DSR)
		protocol = skip_dsr(&quote);
	if (protocol == MINIMAL)
		protocol = skip_minimal(&quote, notice);
	if (protocol < 0)
		return NOTICE_MALFORMED;
	if (protocol != TCP)
		return NOTICE_OTHER;
	if (quote.left < 8)
		return NOTICE_MALFORMED;
	notice->local_port = short_at(quote.at);
	notice->remote_port = short_at(quote.at + 2);
	notice->seq = long_at(quote.at + 4);
	return NOTICE_TAKEN;
}

/* ---- the list of forwarded data (RFC 4884) ---- */

/* Each range begins after the end of the one before; none spans half the number space. */
static bool read_ranges(struct bytes object, struct notice *notice)
{
	__u32 after = object.left >= 8 ? long_at(object.at) : 0;
	const __u32 start = after;

	if (object.left % 8 || object.left / 8 > MAX_RANGES || notice->range_count)
		return false;
	for (; object.left; skip(&object, 8)) {
		struct range *range = &notice->ranges[notice->range_count];

		range->first = long_at(object.at);
		range->end = long_at(object.at + 4);
		if ((__s32)(range->end - range->first) <= 0 ||
		    (__s32)(range->first - start) < 0 ||
		    (__s32)(range->end - start) < 0 ||
		    (__s32)(range->first - after) < (notice->range_count ? 1 : 0))
			return false;
		after = range->end;
		notice->range_count++;
	}
	return true;
}

static bool read_extension(struct bytes structure, struct notice *notice)
{
	if (structure.left < 4 || structure.at[0] >> 4 != EXTENSION_VERSION ||
	    checksum_fold(checksum_add(0, structure.at, structure.left)) != 0xffff)
		return false;
	skip(&structure, 4);
	while (structure.left) {
		const __u8 *header = structure.at;
		struct bytes object = { header + 4, 0 };
		size_t length;

		if (structure.left < 4)
			return false;
		length = short_at(header);
		if (length < 4 || !skip(&structure, length))
			return false;
		object.left = length - 4;
		if (header[2] == FORWARDED_CLASS && header[3] == 0 &&
		    !read_ranges(object, notice))
			return false;
	}
	return true;
}

/* Separates the quote from the list that follows it. */
static bool split_quote(struct bytes *quote, const __u8 *icmp, struct notice *notice)
{
	size_t length = icmp[5] * 4;	/* RFC 4884 4 */
	struct bytes structure = *quote;

	if (notice->kind != NOTICE_RESTORED || !length)
		return true;
	if (!skip(&structure, length) || !read_extension(structure, notice))
		return false;
	quote->left = length;
	return true;
}

const struct range *notice_range_of(const struct notice *notice, __u32 seq)
{
	for (__u32 i = 0; i < notice->range_count; i++) {
		const struct range *range = &notice->ranges[i];

		if (seq - range->first < range->end - range->first)
			return range;
	}
	return NULL;
}

/* ---- the message ---- */

static bool kind_of(const __u8 *icmp, enum notice_kind *kind)
{
	if (icmp[0] == UNREACHABLE && (icmp[1] == NET || icmp[1] == HOST))
		*kind = NOTICE_UNREACHABLE;
	else if (icmp[0] == EXPERIMENT && icmp[1] == HELD)
		*kind = NOTICE_HELD;
	else if (icmp[0] == EXPERIMENT && icmp[1] == RESTORED)
		*kind = NOTICE_RESTORED;
	else if (icmp[0] == EXPERIMENT && icmp[1] == ROUTE_ERROR)
		*kind = NOTICE_ROUTE_ERROR;
	else
		return false;
	return true;
}

enum notice_result notice_read(const __u8 *packet, size_t bytes, struct notice *notice)
{
	struct bytes rest = { packet, bytes };
	const __u8 *header, *icmp;

	if (skip_ip(&rest, &header) != ICMP || rest.left < 8)
		return NOTICE_MALFORMED;
	icmp = rest.at;
	notice->range_count = 0;
	if (!kind_of(icmp, &notice->kind))
		return NOTICE_OTHER;
	/* The kernel has not checked what a raw socket receives. */
	if (checksum_fold(checksum_add(0, rest.at, rest.left)) != 0xffff)
		return NOTICE_MALFORMED;
	skip(&rest, 8);
	if (!split_quote(&rest, icmp, notice))
		return NOTICE_MALFORMED;
	return read_quote(rest, notice);
}
