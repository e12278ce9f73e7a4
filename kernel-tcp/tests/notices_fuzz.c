/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Mutations of ICMP errors, each in a buffer of exactly its length. Prints how many were taken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "layers/notices.h"

#define ROUNDS 1000000
#define MOST 96

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

	memset(at, 0, MOST);
	at[0] = at[28] = 0x45;
	at[9] = 1;
	at[20] = kind[0];
	at[21] = kind[1];
	at[37] = protocols[number(3)];
	at[48] = number(2) ? 6 : 55;	/* the next header, of 48 and 55 */
	at[49] = number(2) ? 0x80 : 0;
	at[51] = number(2) ? 4 : number(256);
	for (int i = number(4); i > 0; i--)
		at[number(MOST)] = number(256);
	return number(MOST + 1);
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

int main(void)
{
	unsigned taken = 0;

	for (int i = 0; i < ROUNDS; i++) {
		__u8 packet[MOST], *exact;
		struct notice notice;
		size_t bytes = sample(packet);

		if (bytes > 20)
			set_checksum(packet + 20, bytes - 20);
		exact = malloc(bytes ? bytes : 1);
		memcpy(exact, packet, bytes);
		taken += notice_read(exact, bytes, &notice) == NOTICE_TAKEN;
		free(exact);
	}
	printf("%u taken\n", taken);
	return taken == 0;
}
