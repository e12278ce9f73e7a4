/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A registered copy of a congestion control. */
#ifndef COPY_H
#define COPY_H

#include <stdbool.h>
#include <jansson.h>
#include <bpf/libbpf.h>
#include "intf.h"

/* An object file, embedded or of a user. */
struct object {
	const char *name;		/* of the algorithm */
	const void *bytes;
	size_t size;
	const char *operations;		/* variable of the congestion control; NULL: the only one */
};

struct copy {
	struct bpf_object *programs;
	struct bpf_map *operations;
	struct bpf_link *registration;
	int link_fd;			/* 0: none, or held by `registration` */
	char name[ALGORITHM_BYTES];	/* in the kernel */
};

/* Whether a registration ends with its link (from 6.4); otherwise it lasts until it is
 * removed. */
bool kernel_links_struct_ops(void);

/* Opens `copy` and sets its parameters. `where` begins the messages. One line and -1 if
 * a parameter is unknown or out of range. */
int copy_open(struct copy *copy, const struct object *object, json_t *parameters,
	      const char *where);
/* Registers it as `copy->name`. 0; -EEXIST without a message if the kernel has that
 * name; or one line and another negative number. */
int copy_register(struct copy *copy, const char *where);
/* The descriptor of its registration; -1 on kernels before 6.4. */
int copy_link(const struct copy *copy);
/* Makes copy_close() leave the registration to the pins. */
void copy_release(struct copy *copy);
/* Unregisters. Connections that use it keep it until they end. */
void copy_close(struct copy *copy);

/* Opens it only to read its parameters, on any kernel. */
int copy_open_unchecked(struct copy *copy, const struct object *object);
json_t *copy_tunables(const struct copy *copy);

/* The offset of a variable in its section; -1 if there is none. */
long variable_offset(const struct btf *btf, const char *section, const char *name);
/* The parameters in a `.rodata`, in the users' units; a new object. */
json_t *tunables(const struct btf *btf, const void *rodata, size_t size);

#endif
