// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * kernel.c - small queries to the running kernel.
 *
 * A query tries the feature on a socket of its own. It never compares version numbers:
 * distributions backport.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "kernel.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71	/* Linux 5.14 */
#endif
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44	/* Linux 6.15 */
#endif

#define UNREGISTER_DEADLINE_S 10	/* the kernel frees unpinned objects in a worker */

int complain(const char *format, ...)
{
	va_list arguments;

	fputs("manet-tcp: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return -1;
}

/* The coarse clocks advance once per jiffy, so their resolution is 1/HZ. Only here does
 * user space see HZ without the kernel's configuration. */
long jiffies_per_second(void)
{
	struct timespec tick;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_nsec <= 0)
		return 100;
	return (1000000000L + tick.tv_nsec / 2) / tick.tv_nsec;
}

static int tcp_socket(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
}

bool kernel_has_rto_max(void)
{
	int fd = tcp_socket(), ms = 60000, error;

	if (fd < 0)
		return false;
	error = setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &ms, sizeof(ms));
	close(fd);
	return error == 0;
}

int kernel_algorithm_error(const char *name)
{
	int fd = tcp_socket(), error = 0;

	if (fd < 0)
		return errno;
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, strlen(name)))
		error = errno;
	close(fd);
	return error;
}

bool kernel_has_algorithm(const char *name)
{
	FILE *file = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");
	char word[64];
	bool found = false;

	while (file && !found && fscanf(file, "%63s", word) == 1)
		found = !strcmp(word, name);
	if (file)
		fclose(file);
	return found;
}

int wait_until_unregistered(const char *name)
{
	for (int i = 0; i < UNREGISTER_DEADLINE_S * 100; i++) {
		if (!kernel_has_algorithm(name))
			return 0;
		usleep(10000);
	}
	return complain("%s: still registered after %d s", name, UNREGISTER_DEADLINE_S);
}

static int cookie_here(void *cookie, const char **step)
{
	socklen_t length = sizeof(__u64);
	int fd = tcp_socket(), error = 0;

	*step = "make a socket in";
	if (fd < 0)
		return errno;
	*step = "read the cookie (SO_NETNS_COOKIE, Linux 5.14) of";
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, &length))
		error = errno;
	close(fd);
	return error;
}

int in_netns(const char *netns, int (*here)(void *context, const char **step),
	     void *context, const char **step)
{
	int home, there, error;

	*step = "open";
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0)
		return errno;
	there = open(netns, O_RDONLY | O_CLOEXEC);
	if (there < 0) {
		error = errno;
		close(home);
		return error;
	}
	*step = "enter";
	error = setns(there, CLONE_NEWNET) ? errno : 0;
	close(there);
	if (!error) {
		error = here(context, step);
		if (setns(home, CLONE_NEWNET) && !error) {
			*step = "come back from";
			error = errno;
		}
	}
	close(home);
	return error;
}

int netns_cookie_of(const char *netns, __u64 *cookie, const char **step)
{
	return in_netns(netns, cookie_here, cookie, step);
}
