// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * daemon.c - follows the notes of a station's own routing daemon (formats/routing.md:
 * status socket, `follow`).
 *
 * The agent uses `route`, `lost` and `no-route`. The socket is local and belongs to the
 * user, so its notes are believed, for connections to that destination that have data
 * outstanding or stand by. If there is no daemon (yet, or any more), the agent tries
 * again every second.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "layers/daemon.h"
#include "layers/stand_by.h"

static const char follow[] = "{\"op\":\"follow\"}\n";

void daemon_connect(struct listener *listener)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", listener->station->status);
	if (fd < 0)
		return;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    write(fd, follow, sizeof(follow) - 1) != sizeof(follow) - 1) {
		close(fd);
		return;
	}
	listener->daemon = fd;
	listener->line_bytes = 0;
}

static bool kind_of(const char *event, enum notice_kind *kind)
{
	if (!event)
		return false;
	if (!strcmp(event, "route"))
		*kind = NOTICE_ROUTE;
	else if (!strcmp(event, "lost"))
		*kind = NOTICE_LOST_ROUTE;
	else if (!strcmp(event, "no-route"))
		*kind = NOTICE_NO_ROUTE;
	else
		return false;
	return true;
}

static bool is_in(const __u8 *address, struct in_addr network, unsigned prefix)
{
	struct in_addr own;

	if (prefix > 32)
		return false;
	memcpy(&own, address + 12, 4);
	return !prefix || !((ntohl(own.s_addr) ^ ntohl(network.s_addr)) >> (32 - prefix));
}

static void pass_on(struct agent *agent, const struct listener *listener,
		    enum notice_kind kind, struct in_addr network, unsigned prefix)
{
	for (__u32 slot = 0; slot < MAX_LAYERED; slot++) {
		struct connection *own = &agent->connections[slot];
		struct notice notice = { .kind = kind, .seq = own->snd_una };

		if (own->cookie && own->settings.station == listener->index &&
		    answering_layer(own) &&
		    (kind == NOTICE_LOST_ROUTE || follows_repairs(own)) &&
		    is_in(own->remote, network, prefix) &&
		    (connection_stands_by(own) ||
		     (kind == NOTICE_LOST_ROUTE && own->snd_una != own->snd_nxt)))
			stand_by_notice(agent, slot, &notice);
	}
}

static void read_note(struct agent *agent, const struct listener *listener, const char *line)
{
	json_t *note = json_loads(line, 0, NULL);
	const char *about = json_string_value(json_object_get(note, "about"));
	json_t *prefix = json_object_get(note, "prefix");
	enum notice_kind kind;
	struct in_addr network;

	if (kind_of(json_string_value(json_object_get(note, "event")), &kind) &&
	    about && inet_pton(AF_INET, about, &network) == 1)
		pass_on(agent, listener, kind, network,
			json_is_integer(prefix) ? json_integer_value(prefix) : 32);
	json_decref(note);
}

/* Complete lines; a line longer than the buffer is not a note and is dropped. */
static void read_lines(struct agent *agent, struct listener *listener)
{
	char *end;

	while ((end = memchr(listener->line, '\n', listener->line_bytes))) {
		size_t used = end + 1 - listener->line;

		*end = 0;
		read_note(agent, listener, listener->line);
		memmove(listener->line, end + 1, listener->line_bytes - used);
		listener->line_bytes -= used;
	}
	if (listener->line_bytes == sizeof(listener->line))
		listener->line_bytes = 0;
}

void daemon_read(struct agent *agent, struct listener *listener)
{
	ssize_t bytes = read(listener->daemon, listener->line + listener->line_bytes,
			     sizeof(listener->line) - listener->line_bytes);

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes <= 0) {
		close(listener->daemon);	/* epoll forgets it too */
		listener->daemon = -1;
		return;
	}
	listener->line_bytes += bytes;
	read_lines(agent, listener);
}
