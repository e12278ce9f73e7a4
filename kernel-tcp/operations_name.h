/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The name of a congestion control in the kernel, inside its object file. */
#ifndef OPERATIONS_NAME_H
#define OPERATIONS_NAME_H

#include <stddef.h>

/* `elf`: the object file, `size` bytes; the name is at `offset` in `section`. -1 if the
 * file has no such place. */
int rename_operations(char *elf, size_t size, const char *section, size_t offset,
		      const char *name);

#endif
