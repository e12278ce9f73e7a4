/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A congestion control of ours, registered with the kernel. */
#ifndef COPY_H
#define COPY_H

#include <stdbool.h>
#include <jansson.h>
#include <bpf/libbpf.h>
#include "intf.h"

/* An object file: embedded, or a user's. */
struct object {
	const char *name;		/* of the algorithm */
	const void *bytes;
	size_t size;
};

struct copy {
	struct bpf_object *programs;
	struct bpf_map *operations;
	struct bpf_link *registration;
	int link_fd;			/* 0: none, or held by `registration` */
	char name[ALGORITHM_BYTES];	/* the kernel's name of it */
};

/* Whether this kernel registers for as long as somebody holds the link (6.4),
 * or until it is told otherwise. */
bool kernel_links_struct_ops(void);

/* Prepares `copy`: opened, parameters set. `where` begins messages. One line and
 * -1 if refused: a parameter that there is not, or out of range. */
int copy_open(struct copy *copy, const struct object *object, json_t *parameters,
	      const char *where);
/* Registers it as `copy->name`. 0; -EEXIST, silently, if the kernel has one of
 * that name; or one line and another negative number. */
int copy_register(struct copy *copy, const char *where);
/* The descriptor of its registration; -1 on kernels before 6.4. */
int copy_link(const struct copy *copy);
/* Closes it without unregistering: pins hold it. */
void copy_release(struct copy *copy);
/* Unregisters. Connections that use it keep it until they end. */
void copy_close(struct copy *copy);

/* Opened for a look at its parameters, on whatever kernel. */
int copy_open_unchecked(struct copy *copy, const struct object *object);
json_t *copy_tunables(const struct copy *copy);

/* Where a variable is in its section; -1 if it is not there. */
long variable_offset(const struct btf *btf, const char *section, const char *name);
/* The parameters a `.rodata` has, as users write them; a new object. */
json_t *tunables(const struct btf *btf, const void *rodata, size_t size);

#endif
