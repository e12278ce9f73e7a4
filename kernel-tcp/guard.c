// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * guard.c - unregisters a run's copies when its process ends, on old kernels.
 *
 * Before Linux 6.4 only a deletion ends a registration, and a killed process deletes
 * nothing. So a child waits for the end of its parent, which it sees as the end of a
 * pipe, and deletes the registrations then. It leaves the parent's session, so that
 * signals to the process group do not end it too.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "algorithms.h"
#include "kernel.h"

static void wait_and_unregister(const struct copies *copies, int pipe_end)
{
	__u32 zero = 0;
	char byte;

	setsid();
	/* A reader of the parent's output waits until all copies of it are closed. */
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	while (read(pipe_end, &byte, 1) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < copies->count; i++)
		bpf_map_delete_elem(bpf_map__fd(copies->copies[i].operations), &zero);
	_exit(0);
}

int guard_copies(const struct copies *copies)
{
	int ends[2];

	if (!copies->count || kernel_links_struct_ops())
		return 0;
	if (pipe(ends))
		return complain("pipe: %s", strerror(errno));
	switch (fork()) {
	case -1:
		return complain("fork: %s", strerror(errno));
	case 0:
		close(ends[1]);
		wait_and_unregister(copies, ends[0]);
	}
	/* ends[1] stays open as long as this process lives. */
	close(ends[0]);
	return 0;
}
