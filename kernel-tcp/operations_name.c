// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * operations_name.c - writes the kernel's name of a congestion control into its
 * object: into the section `.struct_ops`, which holds nothing but the structure's
 * name (functions are relocations).
 */
#include <elf.h>
#include <string.h>
#include <linux/types.h>
#include "intf.h"
#include "operations_name.h"

static Elf64_Shdr *section_of(char *elf, size_t size, const char *wanted)
{
	Elf64_Ehdr *header = (void *)elf;
	Elf64_Shdr *sections;

	if (size < sizeof(*header) || memcmp(elf, ELFMAG, SELFMAG) ||
	    header->e_shoff + (size_t)header->e_shnum * sizeof(*sections) > size ||
	    header->e_shstrndx >= header->e_shnum)
		return NULL;
	sections = (void *)(elf + header->e_shoff);
	for (int i = 0; i < header->e_shnum; i++) {
		size_t at = sections[header->e_shstrndx].sh_offset +
			    sections[i].sh_name;

		if (at + strlen(wanted) < size && !strcmp(elf + at, wanted) &&
		    sections[i].sh_offset + sections[i].sh_size <= size)
			return &sections[i];
	}
	return NULL;
}

int rename_operations(char *elf, size_t size, const char *name)
{
	Elf64_Shdr *section = section_of(elf, size, ".struct_ops");
	char *at, *end;

	if (!section)
		section = section_of(elf, size, ".struct_ops.link");
	if (!section)
		return -1;
	at = elf + section->sh_offset;
	end = at + section->sh_size;
	while (at < end && !*at)
		at++;
	if (end - at < ALGORITHM_BYTES)
		return -1;
	memset(at, 0, ALGORITHM_BYTES);
	memcpy(at, name, strnlen(name, ALGORITHM_BYTES - 1));
	return 0;
}
