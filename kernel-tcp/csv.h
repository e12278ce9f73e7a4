/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Writes tcp.csv (formats/tcp.md) from samples. */
#ifndef CSV_H
#define CSV_H

#include <time.h>
#include "settings.h"

struct csv {
	int fd;			/* -1 once the file cannot be written */
	const char *path;
	const struct station *stations;
	long us_per_jiffy;
	__s64 realtime_minus_monotonic_ns;
	__u64 unwritten;	/* samples lost to a failed write */
	bool broken;		/* a write failed */
	__u64 bytes;		/* written so far */
	__u32 sum;		/* their CRC-32 (IEEE 802.3) */
	size_t rows, used;	/* in the buffer: samples, bytes */
	char buffer[1 << 18];
};

int csv_open(struct csv *csv, const struct run_settings *run);
void csv_update_clock(struct csv *csv);
/* `event` "" = a per-ACK sample; neither text has a comma. */
void csv_add(struct csv *csv, const struct sample *row, const char *event,
	     const char *detail);
/* A row with only addresses, snd_nxt and snd_una of the connection. */
void csv_add_known(struct csv *csv, const struct sample *row, const char *event,
		   const char *detail);
/* A row made by an eBPF program. */
void csv_add_event(struct csv *csv, const struct sample *row);
/* A row made without eBPF of a connection whose sequence numbers are unknown. */
void csv_add_unnumbered(struct csv *csv, const struct sample *row);
__s64 clock_ns(clockid_t clock);
/* What the file holds, by its name (formats/results.md). */
json_t *csv_written(const struct csv *csv);
void csv_flush(struct csv *csv);
void csv_close(struct csv *csv);

#endif
