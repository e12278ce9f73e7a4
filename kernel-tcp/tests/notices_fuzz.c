/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Mutations of ICMP errors, some with a list of forwarded data, each in a buffer of exactly its length. Prints how many were
 * taken, and how many of them with a list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "layers/notices.h"

#define ROUNDS 1000000
#define MAX_BYTES 104
#define QUOTE 40
#define STRUCTURE (20 + 8 + QUOTE)	/* of RFC 4884: 4 bytes, an object's 4, ranges */

static unsigned long long state = 1;

static unsigned number(unsigned below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(state >> 33) % below;
}

/* IP, ICMP, the quoted IP, and in it TCP, minimal encapsulation or DSR. */
static size_t sample(__u8 *at)
{
	static const __u8 kinds[][2] = { { 3, 0 }, { 3, 1 }, { 253, 0 }, { 253, 1 } };
	static const __u8 protocols[] = { 6, 48, 55 };
	const __u8 *kind = kinds[number(4)];

	memset(at, 0, MAX_BYTES);
	at[0] = at[28] = 0x45;
	at[9] = 1;
	at[20] = kind[0];
	at[21] = kind[1];
	at[37] = protocols[number(3)];
	at[48] = number(2) ? 6 : 55;	/* the next header, of 48 and 55 */
	at[49] = number(2) ? 0x80 : 0;
	at[51] = number(2) ? 4 : number(256);
	for (int i = number(4); i > 0; i--)
		at[number(MAX_BYTES)] = number(256);
	return number(MAX_BYTES + 1);
}

static void set_checksum(__u8 *icmp, size_t bytes)
{
	__u16 sum;

	if (bytes < 4)
		return;
	icmp[2] = icmp[3] = 0;
	sum = ~checksum_fold(checksum_add(0, icmp, bytes));
	icmp[2] = sum >> 8;
	icmp[3] = sum;
}

/* Behind the quote, up to three ranges, now and then in disorder. The packet's length. */
static size_t put_list(__u8 *at)
{
	size_t bytes = 8 + 8 * number(4);

	at[25] = QUOTE / 4;
	memset(at + STRUCTURE, 0, MAX_BYTES - STRUCTURE);
	at[STRUCTURE] = 0x20;
	at[STRUCTURE + 5] = bytes - 4;
	at[STRUCTURE + 6] = number(8) ? 247 : number(256);
	for (size_t i = STRUCTURE + 11; i < STRUCTURE + bytes; i += 4)
		at[i] = number(8) ? i : number(256);
	if (!number(8))
		at[STRUCTURE + number(8)] = number(256);
	if (!number(8))
		at[25] = number(256);
	set_checksum(at + STRUCTURE, bytes);
	return STRUCTURE + bytes;
}

int main(void)
{
	unsigned taken = 0, listed = 0;

	for (int i = 0; i < ROUNDS; i++) {
		__u8 packet[MAX_BYTES], *exact;
		struct notice notice;
		size_t bytes = sample(packet);

		if (number(2)) {
			size_t whole = put_list(packet);

			bytes = number(4) ? whole : bytes;
		}
		if (bytes > 20)
			set_checksum(packet + 20, bytes - 20);
		exact = malloc(bytes ? bytes : 1);
		memcpy(exact, packet, bytes);
		if (notice_read(exact, bytes, &notice) == NOTICE_TAKEN) {
			taken++;
			listed += notice.range_count > 0;
		}
		free(exact);
	}
	printf("%u taken, %u with a list\n", taken, listed);
	return !taken || !listed;
}
