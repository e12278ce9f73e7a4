// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * csv.c - writes tcp.csv (formats/tcp.md).
 *
 * The file always ends with a complete row: the buffer holds complete rows, and after a
 * short write (disk full) the file is truncated to the last line end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include "csv.h"
#include "kernel.h"

#define HEADER "t_ns,station,cookie,saddr,sport,daddr,dport,data_len,snd_nxt," \
	       "snd_una,snd_cwnd,ssthresh,snd_wnd,srtt_us,rto_us,rcv_wnd,ca_state," \
	       "event,detail\n"
#define ROW_BYTES 512	/* longer than any row */

int csv_open(struct csv *csv, const struct run_settings *run)
{
	csv->path = run->samples;
	csv->stations = run->stations;
	csv->us_per_jiffy = 1000000L / jiffies_per_second();
	csv->unwritten = csv->rows = csv->bytes = csv->sum = 0;
	csv->broken = false;
	csv->fd = open(csv->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (csv->fd < 0)
		return complain("%s: cannot be written: %s; choose another \"samples\"",
				csv->path, strerror(errno));
	csv->used = strlen(HEADER);
	memcpy(csv->buffer, HEADER, csv->used);
	csv_flush(csv);
	csv_update_clock(csv);
	return 0;
}

__s64 clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* The eBPF program stamps with CLOCK_MONOTONIC (BPF has no CLOCK_REALTIME). Captures
 * use CLOCK_REALTIME, which may be stepped, so the difference is measured for every
 * batch. Of five tries the one with the shortest time between its readings counts; in
 * another the process may have lost the CPU. */
void csv_update_clock(struct csv *csv)
{
	__s64 shortest = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		__s64 before = clock_ns(CLOCK_MONOTONIC);
		__s64 real = clock_ns(CLOCK_REALTIME);
		__s64 after = clock_ns(CLOCK_MONOTONIC);

		if (after - before < shortest) {
			shortest = after - before;
			csv->realtime_minus_monotonic_ns =
				real - before - (after - before) / 2;
		}
	}
}

static void address_text(const __u8 *address, char *text)
{
	static const __u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (!memcmp(address, mapped, sizeof(mapped)))
		inet_ntop(AF_INET, address + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
}

static bool has_room(struct csv *csv)
{
	if (csv->used + ROW_BYTES > sizeof(csv->buffer))
		csv_flush(csv);	/* which may find the disk full */
	return csv->fd >= 0;
}

/* Writes the columns t_ns to dport; returns what is left of ROW_BYTES. */
static size_t add_head(struct csv *csv, const struct sample *row)
{
	char local[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN];
	size_t bytes;

	address_text(row->local, local);
	address_text(row->remote, remote);
	bytes = snprintf(csv->buffer + csv->used, ROW_BYTES,
		"%lld,%s,%llu,%s,%u,%s,%u,",
		(long long)row->monotonic_ns + csv->realtime_minus_monotonic_ns,
		csv->stations[row->station].name, row->socket_cookie,
		local, row->local_port, remote, row->remote_port);
	csv->used += bytes;
	return ROW_BYTES - bytes;
}

/* `numbers`: the columns snd_nxt and snd_una. */
static void add(struct csv *csv, const struct sample *row, const char *numbers,
		const char *event, const char *detail)
{
	size_t left;

	if (!has_room(csv)) {
		csv->unwritten += !event[0];
		return;
	}
	left = add_head(csv, row);
	csv->used += snprintf(csv->buffer + csv->used, left,
		"%u,%s,%u,%u,%u,%u,%llu,%u,%u,%s,%s\n",
		row->data_bytes, numbers, row->snd_cwnd, row->ssthresh, row->snd_wnd, row->srtt_us,
		(unsigned long long)row->rto_jiffies * csv->us_per_jiffy,
		row->rcv_wnd, row->ca_state, event, detail);
	csv->rows += !event[0];
}

void csv_add(struct csv *csv, const struct sample *row, const char *event,
	     const char *detail)
{
	char numbers[24];

	snprintf(numbers, sizeof(numbers), "%u,%u", row->snd_nxt, row->snd_una);
	add(csv, row, numbers, event, detail);
}

void csv_add_known(struct csv *csv, const struct sample *row, const char *event,
		   const char *detail)
{
	size_t left;

	if (!has_room(csv))
		return;
	left = add_head(csv, row);
	csv->used += snprintf(csv->buffer + csv->used, left,
		",%u,%u,,,,,,,,%s,%s\n",
		row->snd_nxt, row->snd_una, event, detail);
}

/* The settings of the connection: by local port, by remote port, of the station. */
static const struct connections *settings_of(const struct csv *csv,
					     const struct sample *row)
{
	const struct station *station = &csv->stations[row->station];
	const struct connections *found = NULL;

	for (size_t i = 0; i < station->port_count; i++) {
		if (station->ports[i].port == row->local_port)
			return &station->ports[i];
		if (station->ports[i].port == row->remote_port)
			found = &station->ports[i];
	}
	return found ? found : &station->own;
}

static void spell(const struct csv *csv, const struct sample *row, char *text,
		  size_t bytes)
{
	const struct connections *own = settings_of(csv, row);
	const char *algorithm = own->algorithm[0] ? own->algorithm : "default";

	layers_spell(&own->layers, algorithm, text, bytes);
}

/* The columns `event` and `detail`; the agent's events have their own text. */
static const char *words_of(const struct csv *csv, const struct sample *row, char *detail,
			    size_t bytes)
{
	switch (row->event) {
	case EVENT_ALGORITHM:
		spell(csv, row, detail, bytes);
		return "algorithm";
	case EVENT_TIMEOUT:
		snprintf(detail, bytes, "%u", row->value);
		return "timeout";
	case EVENT_WINDOW:
		snprintf(detail, bytes, "cwnd=%u ssthresh=%u", row->snd_cwnd,
			 row->ssthresh);
		return "window";
	case EVENT_REPAIR:
		snprintf(detail, bytes, "ack");
		return "repair";
	case EVENT_NONE:
		return "";
	}
	return NULL;
}

void csv_add_event(struct csv *csv, const struct sample *row)
{
	char detail[64] = "";
	const char *event = words_of(csv, row, detail, sizeof(detail));

	if (event)
		csv_add(csv, row, event, detail);
}

void csv_add_unnumbered(struct csv *csv, const struct sample *row)
{
	char detail[64] = "";
	const char *event = words_of(csv, row, detail, sizeof(detail));

	if (event)
		add(csv, row, ",", event, detail);
}

/* Removes the incomplete row at the end of the file. */
static void cut_back(struct csv *csv, size_t written)
{
	size_t whole = written;

	while (whole && csv->buffer[whole - 1] != '\n')
		whole--;
	/* Samples end with two empty fields. */
	for (size_t i = 2; i < whole; i++)
		csv->rows -= csv->rows && !memcmp(csv->buffer + i - 2, ",,\n", 3);
	if (whole < written) {
		off_t end = lseek(csv->fd, 0, SEEK_END);

		if (end < 0 || ftruncate(csv->fd, end - (off_t)(written - whole)))
			complain("%s: ends with an incomplete row", csv->path);
	}
}

/* Adds what was just written to the size and to the CRC-32. */
static void count(struct csv *csv, const char *text, size_t bytes)
{
	csv->bytes += bytes;
	csv->sum = crc32_z(csv->sum, (const Bytef *)text, bytes);
}

void csv_flush(struct csv *csv)
{
	size_t written = 0;

	while (csv->fd >= 0 && written < csv->used) {
		ssize_t now = write(csv->fd, csv->buffer + written,
				    csv->used - written);

		if (now >= 0) {
			count(csv, csv->buffer + written, now);
			written += now;
			continue;
		}
		if (errno == EINTR)
			continue;
		complain("%s: cannot be written: %s; the run continues without samples",
			 csv->path, strerror(errno));
		cut_back(csv, written);
		csv->unwritten += csv->rows;
		csv->broken = true;
		close(csv->fd);
		csv->fd = -1;
	}
	csv->used = csv->rows = 0;
}

void csv_close(struct csv *csv)
{
	csv_flush(csv);
	if (csv->fd >= 0)
		close(csv->fd);
	csv->fd = -1;
}

json_t *csv_written(const struct csv *csv)
{
	const char *slash = strrchr(csv->path, '/');
	char sum[9];

	snprintf(sum, sizeof(sum), "%08x", csv->sum);
	return json_pack("{s:{s:I, s:s}}", slash ? slash + 1 : csv->path,
			 "bytes", (json_int_t)csv->bytes, "crc32", sum);
}
