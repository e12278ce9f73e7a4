// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * load.c - `manet-tcp load|unload|list`: an algorithm for the whole machine.
 *
 * Pins in a folder of the BPF file system hold a loaded algorithm. The folder has the
 * algorithm's name in the kernel. Pinned are the registration (from Linux 6.4 a link,
 * before that the map itself), the parameters and counters (sections .rodata and .bss),
 * and the programs. There is no other record: `list` reads everything from there.
 */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include "algorithms.h"
#include "kernel.h"
#include "run.h"

#define BPFFS "/sys/fs/bpf"
#define FOLDER BPFFS "/manet-tcp"
#define BPFFS_MAGIC 0xcafe4a11	/* linux/magic.h */
#define TAKEN_PREFIX "manet_"	/* for a name that the kernel has already */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-_"
#define OBJECT_SUFFIX ".o"
#define MAX_OBJECT_BYTES (16 << 20)

#define PIN_OPERATIONS "operations"
#define PIN_LINK "link"
#define PIN_PARAMETERS "parameters"
#define PIN_COUNTERS "counters"
#define PIN_PROGRAMS "program-"

static const char no_bpffs[] =
	BPFFS ": no BPF file system is mounted there; mount -t bpf bpf " BPFFS;

static bool is_bpffs(void)
{
	struct statfs system;

	return !statfs(BPFFS, &system) && (__u32)system.f_type == BPFFS_MAGIC;
}

static void pin_path(char *path, const char *name, const char *what, const char *more)
{
	snprintf(path, PATH_MAX, FOLDER "/%s/%s%s", name, what, more);
}

static bool is_loaded(const char *name)
{
	char path[PATH_MAX];

	pin_path(path, name, PIN_OPERATIONS, "");
	return !access(path, F_OK);
}

/* ---- reading pins ---- */

/* The value of a section's map, and its types; NULL if there is none. */
static void *read_section(const char *name, const char *pin, struct btf **btf,
			  __u32 *size)
{
	struct bpf_map_info info = {};
	__u32 length = sizeof(info), zero = 0;
	char path[PATH_MAX];
	void *value = NULL;
	int map;

	pin_path(path, name, pin, "");
	map = bpf_obj_get(path);
	if (map < 0)
		return NULL;
	if (!bpf_obj_get_info_by_fd(map, &info, &length))
		value = calloc(1, info.value_size + 8);
	if (value && bpf_map_lookup_elem(map, &zero, value)) {
		free(value);
		value = NULL;
	}
	*size = info.value_size;
	*btf = value ? btf__load_from_kernel_by_id(info.btf_id) : NULL;
	close(map);
	return value;
}

static json_t *parameters_of(const char *name)
{
	struct btf *btf = NULL;
	__u32 size = 0;
	void *rodata = read_section(name, PIN_PARAMETERS, &btf, &size);
	json_t *all = btf ? tunables(btf, rodata, size) : json_object();

	btf__free(btf);
	free(rodata);
	return all;
}

/* The number of its connections; -1: unknown (the object does not count them). */
static long connections_of(const char *name)
{
	struct btf *btf = NULL;
	__u32 size = 0;
	char *counters = read_section(name, PIN_COUNTERS, &btf, &size);
	long offset = btf ? variable_offset(btf, ".bss", "connections") : -1;
	__s64 connections = -1;

	if (offset >= 0 && offset + sizeof(connections) <= size)
		memcpy(&connections, counters + offset, sizeof(connections));
	btf__free(btf);
	free(counters);
	return connections;
}

static json_t *instructions_of(const char *name)
{
	char folder[PATH_MAX], path[PATH_MAX];
	json_t *all = json_object();
	struct dirent *entry;
	DIR *pins;

	snprintf(folder, sizeof(folder), FOLDER "/%s", name);
	pins = opendir(folder);
	while (pins && (entry = readdir(pins))) {
		struct bpf_prog_info info = {};
		__u32 length = sizeof(info);
		int program;

		if (strncmp(entry->d_name, PIN_PROGRAMS, strlen(PIN_PROGRAMS)))
			continue;
		pin_path(path, name, entry->d_name, "");
		program = bpf_obj_get(path);
		if (program >= 0 && !bpf_obj_get_info_by_fd(program, &info, &length))
			json_object_set_new(all, entry->d_name + strlen(PIN_PROGRAMS),
					    json_integer(info.verified_insns));
		close(program);
	}
	if (pins)
		closedir(pins);
	return all;
}

static json_t *algorithm_of(const char *name)
{
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);
	char path[PATH_MAX];
	json_t *algorithm;
	int map;

	pin_path(path, name, PIN_OPERATIONS, "");
	map = bpf_obj_get(path);
	if (map < 0 || bpf_obj_get_info_by_fd(map, &info, &length))
		info.name[0] = 0;
	algorithm = json_string(info.name);
	if (map >= 0)
		close(map);
	return algorithm;
}

static json_t *loaded(const char *name)
{
	long connections = connections_of(name);

	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "name", name,
			 "algorithm", algorithm_of(name),
			 "parameters", parameters_of(name), "connections",
			 connections < 0 ? json_null() : json_integer(connections),
			 "verified_instructions", instructions_of(name));
}

static json_t *all_loaded(void)
{
	DIR *folder = is_bpffs() ? opendir(FOLDER) : NULL;
	json_t *all = json_array();
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			json_array_append_new(all, loaded(entry->d_name));
	if (folder)
		closedir(folder);
	return all;
}

/* ---- load ---- */

static int pin(int fd, const char *name, const char *what, const char *more)
{
	char path[PATH_MAX];

	pin_path(path, name, what, more);
	return bpf_obj_pin(fd, path) ? -errno : 0;
}

static int pin_all(const struct copy *copy)
{
	const char *name = copy->name;
	struct bpf_program *program;
	struct bpf_map *map;
	int error = pin(bpf_map__fd(copy->operations), name, PIN_OPERATIONS, "");

	if (!error && copy_link(copy) >= 0)
		error = pin(copy_link(copy), name, PIN_LINK, "");
	bpf_object__for_each_map(map, copy->programs) {
		if (!error && strstr(bpf_map__name(map), ".rodata"))
			error = pin(bpf_map__fd(map), name, PIN_PARAMETERS, "");
		if (!error && strstr(bpf_map__name(map), ".bss"))
			error = pin(bpf_map__fd(map), name, PIN_COUNTERS, "");
	}
	bpf_object__for_each_program(program, copy->programs)
		if (!error)
			error = pin(bpf_program__fd(program), name, PIN_PROGRAMS,
				    bpf_program__name(program));
	return error;
}

static void unpin_all(const char *name)
{
	char folder[PATH_MAX], path[PATH_MAX];
	struct dirent *entry;
	DIR *pins;

	snprintf(folder, sizeof(folder), FOLDER "/%s", name);
	pins = opendir(folder);
	while (pins && (entry = readdir(pins))) {
		pin_path(path, name, entry->d_name, "");
		if (entry->d_name[0] != '.')
			unlink(path);
	}
	if (pins)
		closedir(pins);
	rmdir(folder);
	rmdir(FOLDER);
}

static int make_folder(const char *name)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), FOLDER "/%s", name);
	if (mkdir(FOLDER, 0755) && errno != EEXIST)
		return complain(FOLDER ": %s; be root", strerror(errno));
	if (mkdir(folder, 0755))
		return complain("%s: %s", folder, strerror(errno));
	return 0;
}

/* Sets the name in the kernel: `wanted`, or the algorithm's, with a prefix if that is
 * taken. */
static int choose_name(struct copy *copy, const char *algorithm, const char *wanted)
{
	const char *name = wanted ? wanted : algorithm;
	bool taken = kernel_has_algorithm(name) && !is_loaded(name);

	if (!*name || name[strspn(name, NAME_LETTERS)])
		return complain("\"%s\" is no name for the kernel; use letters, digits, - and _",
				name);
	if (strlen(name) + (taken ? strlen(TAKEN_PREFIX) : 0) >= ALGORITHM_BYTES)
		return complain("%s: the kernel's names are at most %d bytes; give it one with --name",
				name, ALGORITHM_BYTES - 1);
	if (wanted && taken)
		return complain("%s: the kernel has an algorithm of that name; choose another",
				wanted);
	snprintf(copy->name, sizeof(copy->name), "%s%.9s", taken ? TAKEN_PREFIX : "",
		 name);
	if (!taken)
		strcpy(copy->name, name);
	if (is_loaded(copy->name))
		return complain("%s: is loaded already; `manet-tcp unload %s` first, or give this one another name with --name",
				copy->name, copy->name);
	return 0;
}

static int register_pinned(struct copy *copy)
{
	int error = copy_register(copy, copy->name);

	if (error == -EEXIST)
		complain("%s: the kernel has an algorithm of that name; choose another with --name",
			 copy->name);
	if (error || make_folder(copy->name))
		return -1;
	error = pin_all(copy);
	if (error) {
		unpin_all(copy->name);
		return complain("%s: cannot be kept in " FOLDER ": %s", copy->name,
				strerror(-error));
	}
	copy_release(copy);
	return 0;
}

static int load(const struct object *object, json_t *parameters, const char *wanted)
{
	struct copy copy = {};
	json_t *found;
	char *text;

	if (!is_bpffs()) {
		complain("%s", no_bpffs);
		return EXIT_RUNTIME;
	}
	if (choose_name(&copy, object->name, wanted))
		return EXIT_RUNTIME;
	if (copy_open(&copy, object, parameters, object->name)) {
		copy_close(&copy);
		return EXIT_SETTINGS;
	}
	if (register_pinned(&copy)) {
		copy_close(&copy);
		return EXIT_RUNTIME;
	}
	found = parameters_of(copy.name);
	text = json_dumps(found, JSON_COMPACT | JSON_REAL_PRECISION(6));
	printf("loaded %s %s as \"%s\" for every program of this machine%s\n", object->name,
	       text ? text : "", copy.name, strcmp(copy.name, object->name) && !wanted ?
	       ": the kernel has another of its own name" : "");
	free(text);
	json_decref(found);
	return 0;
}

/* A user's file: its name without folder and suffixes becomes the algorithm's, unless one
 * of several is chosen. */
static int read_object(const char *path, struct object *object, char *name)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	FILE *file = fopen(path, "re");
	char *bytes = malloc(MAX_OBJECT_BYTES);

	if (!file || !bytes) {
		free(bytes);
		return complain("%s: cannot be read: %s", path, strerror(errno));
	}
	snprintf(name, NAME_MAX, "%.*s", (int)strcspn(base, "."), base);
	object->name = name;
	object->size = fread(bytes, 1, MAX_OBJECT_BYTES, file);
	object->bytes = bytes;
	fclose(file);
	return 0;
}

static int find_object(const char *what, struct object *object, char *name)
{
	const struct object *builtin = algorithm_object(what);
	size_t length = strlen(what), suffix = strlen(OBJECT_SUFFIX);

	if (builtin) {
		*object = *builtin;
		return 0;
	}
	if (length > suffix && !strcmp(what + length - suffix, OBJECT_SUFFIX))
		return read_object(what, object, name);
	return complain("\"%s\" is no algorithm of ours; `manet-tcp list` shows them", what);
}

static int add_parameter(json_t *parameters, const char *word)
{
	const char *equals = strchr(word, '=');
	char name[NAME_MAX];
	json_t *value;

	if (!equals || equals == word || equals - word >= NAME_MAX)
		return complain("\"%s\": write a parameter as name=value", word);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - word), word);
	value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
	if (!value)
		value = json_string(equals + 1);
	if (json_object_get(parameters, name))
		return complain("\"%s\" is there twice; remove one", name);
	return json_object_set_new(parameters, name, value);
}

int load_command(int count, char **arguments)
{
	json_t *parameters = json_object();
	struct object object = {};
	const char *wanted = NULL, *operations = NULL;
	char name[NAME_MAX];
	int code = EXIT_SETTINGS;

	for (int i = 1; i < count; i++) {
		if (!strcmp(arguments[i], "--name") && i + 1 < count)
			wanted = arguments[++i];
		else if (!strcmp(arguments[i], "--operations") && i + 1 < count)
			operations = arguments[++i];
		else if (add_parameter(parameters, arguments[i]))
			goto out;
	}
	if (!find_object(arguments[0], &object, name)) {
		if (operations)
			object.name = object.operations = operations;
		code = load(&object, parameters, wanted);
	}
out:
	json_decref(parameters);
	return code;
}

/* ---- unload, list ---- */

/* Before Linux 6.4 a map stays registered until its element is deleted. */
static void unregister(const char *name)
{
	char path[PATH_MAX];
	__u32 zero = 0;
	int map;

	pin_path(path, name, PIN_OPERATIONS, "");
	map = bpf_obj_get(path);
	if (map < 0)
		return;
	if (!kernel_links_struct_ops())
		bpf_map_delete_elem(map, &zero);
	close(map);
}

int unload_command(const char *name)
{
	char prefixed[NAME_MAX];
	long connections;

	if (!is_bpffs()) {
		complain("%s: is not loaded (%s)", name, no_bpffs);
		return EXIT_RUNTIME;
	}
	snprintf(prefixed, sizeof(prefixed), TAKEN_PREFIX "%s", name);
	if (!is_loaded(name) && is_loaded(prefixed))
		name = prefixed;
	if (strchr(name, '/') || !is_loaded(name)) {
		complain("%s: is not loaded; `manet-tcp list` shows what is", name);
		return EXIT_RUNTIME;
	}
	connections = connections_of(name);
	if (connections > 0) {
		complain("%s: %ld connection%s it (ss -ti shows which); end them first",
			 name, connections, connections == 1 ? " uses" : "s use");
		return EXIT_RUNTIME;
	}
	unregister(name);
	unpin_all(name);
	return wait_until_unregistered(name) ? EXIT_RUNTIME : 0;
}

static json_t *builtin(void)
{
	size_t count;
	const struct object *all = algorithm_objects(&count);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		struct copy copy = { .name = "list" };

		if (!copy_open_unchecked(&copy, &all[i]))
			json_array_append_new(list, json_pack("{s:s, s:o}",
				"name", all[i].name, "parameters", copy_tunables(&copy)));
		copy_close(&copy);
	}
	return list;
}

static void print_rows(json_t *rows, bool connections)
{
	size_t index;
	json_t *row;

	json_array_foreach(rows, index, row) {
		json_t *uses = json_object_get(row, "connections");
		char *text = json_dumps(json_object_get(row, "parameters"),
					JSON_COMPACT | JSON_REAL_PRECISION(6));

		printf("  %-15s %s", json_string_value(json_object_get(row, "name")),
		       text ? text : "");
		if (connections && json_is_integer(uses))
			printf(" connections: %lld", (long long)json_integer_value(uses));
		putchar('\n');
		free(text);
	}
}

int list_command(bool as_json)
{
	json_t *all = json_pack("{s:s, s:o, s:o}", "format", "manet-tcp-list/1",
				"loaded", all_loaded(), "ours", builtin());

	if (as_json) {
		json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
		putchar('\n');
	} else {
		puts("ours, with the parameters' defaults:");
		print_rows(json_object_get(all, "ours"), false);
		puts("loaded for the whole machine:");
		print_rows(json_object_get(all, "loaded"), true);
	}
	json_decref(all);
	return 0;
}
