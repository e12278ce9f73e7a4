/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* operations_name_fuzz FILE [ROUNDS]: renames the file's congestion control, in a buffer of exactly the file's length;
 * prints "renamed" or "refused". With ROUNDS, so many mutations of it from a fixed seed: cut anywhere, fields of the
 * headers set to bytes, to what is near the file's length, and to what is near the largest numbers. Prints how many were
 * renamed. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "operations_name.h"

#define FILE_BYTES_MAX (1 << 20)

static unsigned long long state = 1;

static unsigned long long number(unsigned long long below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

static int renamed(const char *bytes, size_t size)
{
	char *exact = malloc(size ? size : 1);
	int result;

	memcpy(exact, bytes, size);
	result = rename_operations(exact, size, ".struct_ops", 8, "fuzz.1");
	free(exact);
	return !result;
}

/* A number that bounds checks get wrong. */
static unsigned long long awkward(size_t size)
{
	static const unsigned long long ends[] = { 0, 1ULL << 16, 1ULL << 31, 1ULL << 32, 1ULL << 63 };
	unsigned long long near = number(128) - 64;

	switch (number(4)) {
	case 0:
		return number(256);
	case 1:
		return size + near;
	case 2:
		return ends[number(5)] + near;
	default:
		return ends[number(5)] - size + near;
	}
}

static void set_field(char *bytes, size_t size, size_t at)
{
	static const size_t widths[] = { 1, 2, 4, 8 };
	size_t width = widths[number(4)];
	unsigned long long value = awkward(size);

	if (at + width <= size)
		memcpy(bytes + at, &value, width);
}

/* Where the file header is, or the table of sections: what the offsets are in. */
static size_t in_headers(const char *bytes, size_t size)
{
	const Elf64_Ehdr *header = (const void *)bytes;
	unsigned long long table = (unsigned long long)header->e_shnum * sizeof(Elf64_Shdr);

	if (number(2) || !table || header->e_shoff >= size)
		return number(sizeof(*header));
	return header->e_shoff + number(table);
}

int main(int argc, char **argv)
{
	static char original[FILE_BYTES_MAX], mutated[FILE_BYTES_MAX];
	FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
	size_t size = file ? fread(original, 1, sizeof(original), file) : 0;
	int rounds = argc > 2 ? atoi(argv[2]) : 0, count = 0;

	if (!file)
		return 2;
	if (!rounds)
		puts(renamed(original, size) ? "renamed" : "refused");
	for (int i = 0; i < rounds; i++) {
		memcpy(mutated, original, size);
		for (int fields = number(4); fields > 0; fields--)
			set_field(mutated, size, number(8) ? in_headers(original, size) & ~1 : number(size));
		count += renamed(mutated, number(4) ? size : number(size + 1));
	}
	if (rounds)
		printf("%d of %d renamed\n", count, rounds);
	return 0;
}
