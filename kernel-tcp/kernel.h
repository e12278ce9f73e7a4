/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Small queries to the running kernel, and the printing of errors. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <linux/types.h>

#define BTF_PATH "/sys/kernel/btf/vmlinux"

/* Prints "manet-tcp: ..." and a newline to standard error; returns -1. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

long jiffies_per_second(void);
bool kernel_has_rto_max(void);
/* Loads the algorithm's module if there is one. 0, or errno. */
int kernel_algorithm_error(const char *name);
/* Whether it is registered now, by anyone. */
bool kernel_has_algorithm(const char *name);
/* 0; -1 and one line if it is still registered after some seconds. */
int wait_until_unregistered(const char *name);
/* Calls `here` in a network namespace, and comes back. Its result, or errno; `step` then
 * names the failed step. */
int in_netns(const char *netns, int (*here)(void *context, const char **step),
	     void *context, const char **step);
int netns_cookie_of(const char *netns, __u64 *cookie, const char **step);

#endif
