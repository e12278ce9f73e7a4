// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * operations_name.c - writes a congestion control's name in the kernel into its object,
 * at the place that the object's types say.
 */
#include <elf.h>
#include <stdbool.h>
#include <string.h>
#include <linux/types.h>
#include "intf.h"
#include "operations_name.h"

struct part {
	char *at;
	size_t bytes;
};

/* The file is untrusted (`load FILE`). The order of the checks avoids every sum of two
 * numbers from the file, which might overflow. */
static bool cut(struct part whole, Elf64_Off offset, Elf64_Xword bytes, struct part *part)
{
	if (offset > whole.bytes || bytes > whole.bytes - offset)
		return false;
	*part = (struct part){ whole.at + offset, bytes };
	return true;
}

static bool read_header(struct part elf, Elf64_Ehdr *header)
{
	static const char wanted[] = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
				       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ?
						ELFDATA2LSB : ELFDATA2MSB };

	if (elf.bytes < sizeof(*header))
		return false;
	memcpy(header, elf.at, sizeof(*header));
	return !memcmp(header->e_ident, wanted, sizeof(wanted)) &&
	       header->e_shentsize == sizeof(Elf64_Shdr);
}

/* Copied, since the table may be unaligned. */
static bool read_section(struct part table, size_t index, Elf64_Shdr *section)
{
	struct part entry;

	if (!cut(table, index * sizeof(*section), sizeof(*section), &entry))
		return false;
	memcpy(section, entry.at, sizeof(*section));
	return true;
}

/* A section of type SHT_NOBITS has no bytes in the file. */
static bool contents_of(struct part elf, const Elf64_Shdr *section, struct part *contents)
{
	return section->sh_type != SHT_NOBITS &&
	       cut(elf, section->sh_offset, section->sh_size, contents);
}

static bool is_called(struct part names, const Elf64_Shdr *section, const char *wanted)
{
	struct part name;

	return cut(names, section->sh_name, strlen(wanted) + 1, &name) &&
	       !memcmp(name.at, wanted, name.bytes);
}

/* The contents of the first section of that name (elf(5)). More than 65279 sections,
 * whose number is elsewhere, are refused. */
static bool find_section(struct part elf, const char *wanted, struct part *contents)
{
	struct part table, names;
	Elf64_Ehdr header;
	Elf64_Shdr section;

	if (!read_header(elf, &header) ||
	    !cut(elf, header.e_shoff, header.e_shnum * sizeof(section), &table) ||
	    !read_section(table, header.e_shstrndx, &section) ||
	    !contents_of(elf, &section, &names))
		return false;
	for (size_t i = 0; read_section(table, i, &section); i++)
		if (is_called(names, &section, wanted))
			return contents_of(elf, &section, contents);
	return false;
}

int rename_operations(char *elf, size_t size, const char *section, size_t offset,
		      const char *name)
{
	struct part whole = { elf, size }, operations, place;

	if (!find_section(whole, section, &operations) ||
	    !cut(operations, offset, ALGORITHM_BYTES, &place))
		return -1;
	memset(place.at, 0, place.bytes);
	memcpy(place.at, name, strnlen(name, ALGORITHM_BYTES - 1));
	return 0;
}
