// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * probes.c - sends a copy of a segment from outside the run's cgroup, so that the gate
 * does not see it.
 *
 * The kernel's TCP does not know of the copy and need not: the answer acknowledges
 * outstanding data. Old fields of the copy are updated: the IP identification (the
 * kernel sets a new one), TSval (RFC 7323: the clock has advanced by 1 per millisecond;
 * otherwise the answer gives a wrong RTT), and the checksum, which a copy may lack.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "layers/notices.h"
#include "layers/probes.h"

#define OPTION_END 0
#define OPTION_NOP 1
#define OPTION_TIMESTAMP 8	/* RFC 7323 3.2 */

int raw_socket_in(const char *netns, int protocol)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int there = open(netns, O_RDONLY | O_CLOEXEC);
	int fd = -1, error;

	if (home >= 0 && there >= 0 && !setns(there, CLONE_NEWNET)) {
		fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
		error = errno;
		if (setns(home, CLONE_NEWNET) && fd >= 0) {
			error = errno;
			close(fd);
			fd = -1;
		}
		errno = error;
	}
	error = errno;
	if (home >= 0)
		close(home);
	if (there >= 0)
		close(there);
	errno = error;
	return fd;
}

/* The gate may be writing this copy: it sets `bytes` to 0 first and to the length last.
 * It does not write a copy again while its segment is outstanding. */
static bool take(const struct kept *from, __u64 cookie, __u32 seq, struct kept *to)
{
	__u32 bytes = __atomic_load_n(&from->bytes, __ATOMIC_ACQUIRE);

	if (bytes < 40 || bytes > COPY_BYTES || from->seq != seq ||
	    from->cookie != cookie)
		return false;
	memcpy(to, from, sizeof(*to));
	return __atomic_load_n(&from->bytes, __ATOMIC_ACQUIRE) == bytes &&
	       to->bytes == bytes && to->seq == seq;
}

bool kept_find(const struct kept_window *window, __u64 cookie, __u32 seq,
	       struct kept *found)
{
	for (int i = 0; i < COPIES; i++)
		if (take(&window->ring[i], cookie, seq, found))
			return true;
	return take(&window->refused, cookie, seq, found);
}

bool kept_find_last(const struct kept_window *window, __u64 cookie, __u32 end,
		    struct kept *found)
{
	for (int i = 0; i < COPIES; i++) {
		const struct kept *copy = &window->ring[i];

		if (copy->end == end && take(copy, cookie, copy->seq, found) &&
		    found->end == end)
			return true;
	}
	return false;
}

static __u32 long_at(const __u8 *at)
{
	return (__u32)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

static void put_long(__u8 *at, __u32 value)
{
	at[0] = value >> 24;
	at[1] = value >> 16;
	at[2] = value >> 8;
	at[3] = value;
}

static void advance_timestamp(__u8 *tcp, size_t header, __u32 ms)
{
	for (size_t i = 20; i + 1 < header && tcp[i] != OPTION_END; ) {
		if (tcp[i] == OPTION_NOP) {
			i++;
			continue;
		}
		if (tcp[i + 1] < 2)
			return;
		if (tcp[i] == OPTION_TIMESTAMP && i + 10 <= header)
			put_long(tcp + i + 2, long_at(tcp + i + 2) + ms);
		i += tcp[i + 1];
	}
}

/* RFC 9293 3.1: also over addresses, protocol and length. */
static void set_checksum(const __u8 *ip, __u8 *tcp, size_t bytes)
{
	__u32 sum = checksum_add(6 + bytes, ip + 12, 8);
	__u16 folded;

	memset(tcp + 16, 0, 2);
	folded = ~checksum_fold(checksum_add(sum, tcp, bytes));
	tcp[16] = folded >> 8;
	tcp[17] = folded;
}

int kept_send(int raw, struct kept *segment, __u64 now_ns)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	__u8 *ip = segment->packet, *tcp;
	size_t ip_header = (ip[0] & 15) * 4, header;

	if (segment->bytes < ip_header + 20 || segment->bytes > COPY_BYTES)
		return EINVAL;
	tcp = ip + ip_header;
	header = (tcp[12] >> 4) * 4;
	if (segment->bytes < ip_header + header)
		return EINVAL;
	memset(ip + 4, 0, 2);	/* the kernel sets the identification */
	advance_timestamp(tcp, header, (now_ns - segment->sent_ns) / 1000000);
	set_checksum(ip, tcp, segment->bytes - ip_header);
	memcpy(&to.sin_addr, ip + 16, 4);
	if (sendto(raw, ip, segment->bytes, MSG_DONTWAIT,
		   (struct sockaddr *)&to, sizeof(to)) < 0)
		return errno;
	return 0;
}
