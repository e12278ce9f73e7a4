/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The name that the kernel is to know a congestion control by, in its object. */
#ifndef OPERATIONS_NAME_H
#define OPERATIONS_NAME_H

#include <stddef.h>

/* `elf` is the object's `size` bytes. -1 if it has no such name. */
int rename_operations(char *elf, size_t size, const char *name);

#endif
