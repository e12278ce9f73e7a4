/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The name of a congestion control in the kernel, inside its object file. */
#ifndef OPERATIONS_NAME_H
#define OPERATIONS_NAME_H

#include <stddef.h>

/* `elf`: the object file, `size` bytes. -1 if it has no place for the name. */
int rename_operations(char *elf, size_t size, const char *name);

#endif
