// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * copy.c - one registered copy of a congestion control: opens its object, sets its
 * parameters, renames and registers it.
 *
 * There is no code per algorithm. A parameter is a `struct tunable` in the object's
 * .rodata, found by its name in the object's BTF. The kernel's name is written into the
 * object (operations_name.c).
 *
 * From Linux 6.4 a link holds the registration, so that the kernel removes it when this
 * process ends, however it ends. Before, the registration lasts until it is removed
 * (guard.c does that). libbpf before 1.2 (Debian 12 has 1.1) cannot make such a link:
 * link_by_hand() does.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include "copy.h"
#include "kernel.h"
#include "operations_name.h"

#ifndef BPF_F_LINK
#define BPF_F_LINK (1U << 13)	/* Linux 6.4 */
#endif
#define MAX_OPERATIONS 16	/* of one object */
#define ATTACH_STRUCT_OPS 44	/* enum bpf_attach_type, Linux 6.4 */

static char verifier_log[1 << 20];

/* ---- parameters ---- */

static const struct btf_type *datasec(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_DATASEC);

	return id < 0 ? NULL : btf__type_by_id(btf, id);
}

/* The tunable at `variable`, and its name; NULL if it is something else. */
static const char *tunable_name(const struct btf *btf,
				const struct btf_var_secinfo *variable)
{
	const struct btf_type *var = btf__type_by_id(btf, variable->type);
	const struct btf_type *type = btf__type_by_id(btf, var->type);

	while (btf_is_const(type) || btf_is_volatile(type))
		type = btf__type_by_id(btf, type->type);
	if (!btf_is_struct(type) ||
	    strcmp(btf__name_by_offset(btf, type->name_off), "tunable"))
		return NULL;
	return btf__name_by_offset(btf, var->name_off);
}

/* The BTF of a user's file may be wrong: only complete tunables inside the section count. */
static struct tunable *tunable_at(void *rodata, size_t size, __u32 offset)
{
	struct tunable *tunable;

	if (size < sizeof(*tunable) || offset > size - sizeof(*tunable) ||
	    offset % _Alignof(struct tunable))
		return NULL;
	tunable = (void *)((char *)rodata + offset);
	return tunable->scale ? tunable : NULL;
}

static struct tunable *find_tunable(const struct btf *btf, void *rodata, size_t size,
				    const char *wanted)
{
	const struct btf_type *section = datasec(btf, ".rodata");
	const struct btf_var_secinfo *variables;

	if (!section || !rodata)
		return NULL;
	variables = btf_var_secinfos(section);
	for (int i = 0; i < btf_vlen(section); i++) {
		const char *name = tunable_name(btf, &variables[i]);

		if (name && !strcmp(name, wanted))
			return tunable_at(rodata, size, variables[i].offset);
	}
	return NULL;
}

long variable_offset(const struct btf *btf, const char *section, const char *name)
{
	const struct btf_type *type = datasec(btf, section);
	const struct btf_var_secinfo *variables = type ? btf_var_secinfos(type) : NULL;

	for (int i = 0; variables && i < btf_vlen(type); i++) {
		const struct btf_type *var = btf__type_by_id(btf, variables[i].type);

		if (!strcmp(btf__name_by_offset(btf, var->name_off), name))
			return variables[i].offset;
	}
	return -1;
}

static json_t *as_written(const struct tunable *tunable)
{
	if (tunable->value % tunable->scale == 0)
		return json_integer(tunable->value / tunable->scale);
	return json_real((double)tunable->value / tunable->scale);
}

json_t *tunables(const struct btf *btf, const void *rodata, size_t size)
{
	const struct btf_type *section = datasec(btf, ".rodata");
	const struct btf_var_secinfo *variables;
	json_t *all = json_object();

	if (!section || !rodata)
		return all;
	variables = btf_var_secinfos(section);
	for (int i = 0; i < btf_vlen(section); i++) {
		const char *name = tunable_name(btf, &variables[i]);
		const struct tunable *tunable =
			tunable_at((void *)rodata, size, variables[i].offset);

		if (name && tunable)
			json_object_set_new(all, name, as_written(tunable));
	}
	return all;
}

static int set_tunable(const char *where, const char *name, json_t *value,
		       struct tunable *tunable)
{
	double number = json_number_value(value), scale = tunable->scale;

	if (!json_is_number(value) ||
	    number < tunable->min / scale || number > tunable->max / scale ||
	    (tunable->scale == 1 && number != floor(number)))
		return complain("%s: \"%s\" must be a %snumber from %g to %g", where,
				name, tunable->scale == 1 ? "whole " : "",
				tunable->min / scale, tunable->max / scale);
	tunable->value = lround(number * scale);
	return 0;
}

static struct bpf_map *rodata_map(struct bpf_object *programs)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, programs)
		if (strstr(bpf_map__name(map), ".rodata"))
			return map;
	return NULL;
}

static int unknown_parameter(const char *where, const char *name,
			     const struct btf *btf, const void *rodata, size_t size)
{
	json_t *all = tunables(btf, rodata, size), *value;
	char known[256] = "";
	const char *key;

	json_object_foreach(all, key, value) {
		if (known[0])
			strncat(known, ", ", sizeof(known) - strlen(known) - 1);
		strncat(known, key, sizeof(known) - strlen(known) - 1);
	}
	json_decref(all);
	return complain("%s: no parameter \"%s\"; it has %s", where, name,
			known[0] ? known : "none");
}

static int set_tunables(struct copy *copy, json_t *parameters, const char *where)
{
	struct bpf_map *map = rodata_map(copy->programs);
	const struct btf *btf = bpf_object__btf(copy->programs);
	size_t size = 0;
	void *rodata = map ? (void *)bpf_map__initial_value(map, &size) : NULL;
	struct tunable *tunable;
	const char *key;
	json_t *value;

	json_object_foreach(parameters, key, value) {
		tunable = find_tunable(btf, rodata, size, key);
		if (!tunable)
			return unknown_parameter(where, key, btf, rodata, size);
		if (set_tunable(where, key, value, tunable))
			return -1;
	}
	return 0;
}

/* ---- opening and registering ---- */

/* Read once, since it is megabytes and needed for every station; never freed. */
static bool kernel_has_struct(const char *name)
{
	static struct btf *btf;

	if (!btf && !access(BTF_PATH, R_OK))
		btf = btf__load_vmlinux_btf();
	return btf && btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT) > 0;
}

bool kernel_links_struct_ops(void)
{
	/* For tests of the older kernels' path on a newer kernel. */
	if (getenv("MANET_TCP_WITHOUT_LINKS"))
		return false;
	return kernel_has_struct("bpf_struct_ops_link");
}

static int check_kernel(const char *where)
{
	if (kernel_has_struct("bpf_struct_ops_tcp_congestion_ops"))
		return 0;
	return complain("%s: this kernel takes no congestion control from BPF: Linux 6.1, CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF are needed (Debian's have them); use one of the kernel's own",
			where);
}

/* A congestion control in an object: a variable of type tcp_congestion_ops. */
struct operations {
	const char *section, *variable;
	size_t name_offset;		/* of its name in the kernel, in the section */
};

/* The offset of the member `name`; -1 if there is none. */
static long name_offset(const struct btf *btf, const struct btf_type *type)
{
	const struct btf_member *members = btf_members(type);

	for (int i = 0; i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, members[i].name_off), "name"))
			return btf_member_bit_offset(type, i) / 8;
	return -1;
}

/* Finds up to `max` congestion controls; other kinds of operations are skipped. */
static size_t all_operations(const struct btf *btf, struct operations *all, size_t max)
{
	static const char *const sections[] = { ".struct_ops", ".struct_ops.link" };
	size_t count = 0;

	for (size_t s = 0; btf && s < sizeof(sections) / sizeof(sections[0]); s++) {
		const struct btf_type *section = datasec(btf, sections[s]);
		const struct btf_var_secinfo *variables = section ? btf_var_secinfos(section) : NULL;

		for (int i = 0; variables && i < btf_vlen(section) && count < max; i++) {
			const struct btf_type *var = btf__type_by_id(btf, variables[i].type);
			const struct btf_type *type = var ? btf__type_by_id(btf, var->type) : NULL;
			long at = type && btf_is_struct(type) &&
				  !strcmp(btf__name_by_offset(btf, type->name_off), "tcp_congestion_ops") ?
				  name_offset(btf, type) : -1;

			if (at >= 0)
				all[count++] = (struct operations){
					sections[s], btf__name_by_offset(btf, var->name_off),
					variables[i].offset + at };
		}
	}
	return count;
}

static int choose_one(const struct operations *all, size_t count, const char *wanted,
		      const char *where)
{
	char names[256] = "";

	for (size_t i = 0; i < count; i++) {
		if (wanted ? !strcmp(all[i].variable, wanted) : count == 1)
			return i;
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 i ? ", " : "", all[i].variable);
	}
	if (!count)
		return complain("%s: the object has no congestion control", where);
	if (wanted)
		return complain("%s: the object has no congestion control \"%s\"; it has %s", where,
				wanted, names);
	return complain("%s: the object has %zu congestion controls; choose one with --operations: %s",
			where, count, names);
}

static struct bpf_object *open_bytes(const struct object *object, const char *elf)
{
	LIBBPF_OPTS(bpf_object_open_opts, options,
		    .object_name = object->name,
		    .kernel_log_buf = verifier_log,
		    .kernel_log_size = sizeof(verifier_log));

	return bpf_object__open_mem(elf, object->size, &options);
}

/* Opens the object twice: its types say where the name is, and libbpf copies it from the
 * file as it opens it. */
static int open_renamed(struct copy *copy, const struct object *object, const char *where)
{
	struct bpf_object *unnamed = open_bytes(object, object->bytes);
	struct operations all[MAX_OPERATIONS];
	char *elf = malloc(object->size);
	struct bpf_map *map;
	int chosen = -1;

	if (!unnamed || !elf) {
		complain("%s: not an object with a congestion control: %s", where, strerror(errno));
		goto out;
	}
	chosen = choose_one(all, all_operations(bpf_object__btf(unnamed), all, MAX_OPERATIONS),
			    object->operations, where);
	if (chosen < 0)
		goto out;
	memcpy(elf, object->bytes, object->size);
	if (rename_operations(elf, object->size, all[chosen].section, all[chosen].name_offset, copy->name) ||
	    !(copy->programs = open_bytes(object, elf))) {
		chosen = complain("%s: the object has no place for the name in the kernel", where);
		goto out;
	}
	bpf_object__for_each_map(map, copy->programs)
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS) {
			if (!strcmp(bpf_map__name(map), all[chosen].variable))
				copy->operations = map;
			else
				bpf_map__set_autocreate(map, false);
		}
out:
	bpf_object__close(unnamed);
	free(elf);
	return chosen < 0 ? -1 : 0;
}

int copy_open_unchecked(struct copy *copy, const struct object *object)
{
	return open_renamed(copy, object, object->name);
}

json_t *copy_tunables(const struct copy *copy)
{
	struct bpf_map *map = rodata_map(copy->programs);
	size_t size = 0;
	const void *rodata = map ? bpf_map__initial_value(map, &size) : NULL;

	return tunables(bpf_object__btf(copy->programs), rodata, size);
}

int copy_open(struct copy *copy, const struct object *object, json_t *parameters,
	      const char *where)
{
	if (check_kernel(where))
		return -1;
	if (open_renamed(copy, object, where))
		return -1;
	return set_tunables(copy, parameters, where);
}

/* The verifier's last line before its statistics. */
static const char *verifier_reason(void)
{
	char *last = NULL, *rest = verifier_log;

	for (char *line; (line = strsep(&rest, "\n")); )
		if (*line && strncmp(line, "processed ", 10) &&
		    strncmp(line, "verification time", 17) &&
		    strncmp(line, "stack depth", 11))
			last = line;
	return last;
}

static int refused(const char *where, int error)
{
	const char *reason = verifier_reason();

	if (error == EPERM || (error == EACCES && !reason))
		return complain("%s: the kernel refuses to load BPF: %s; run as root (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)",
				where, strerror(error));
	if (reason)
		return complain("%s: refused by the kernel's verifier: %s", where, reason);
	return complain("%s: refused by the kernel: %s; `manet-tcp --debug` shows the messages of libbpf",
			where, strerror(error));
}

/* For libbpf before 1.2, which returns the map itself as the "link". */
static int link_by_hand(struct copy *copy)
{
	union bpf_attr attributes;
	int fd;

	memset(&attributes, 0, sizeof(attributes));
	attributes.link_create.prog_fd = bpf_map__fd(copy->operations);
	attributes.link_create.attach_type = ATTACH_STRUCT_OPS;
	fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
	if (fd < 0)
		return -errno;
	bpf_link__disconnect(copy->registration);
	bpf_link__destroy(copy->registration);
	copy->registration = NULL;
	copy->link_fd = fd;
	return 0;
}

int copy_register(struct copy *copy, const char *where)
{
	bool links = kernel_links_struct_ops();
	int error;

	if (links)
		bpf_map__set_map_flags(copy->operations,
				       bpf_map__map_flags(copy->operations) | BPF_F_LINK);
	verifier_log[0] = 0;
	error = bpf_object__load(copy->programs);
	if (error)
		return refused(where, -error);
	copy->registration = bpf_map__attach_struct_ops(copy->operations);
	error = copy->registration ? 0 : -errno;
	if (!error && links &&
	    bpf_link__fd(copy->registration) == bpf_map__fd(copy->operations))
		error = link_by_hand(copy);
	if (error && error != -EEXIST)
		refused(where, -error);
	return error;
}

int copy_link(const struct copy *copy)
{
	if (copy->link_fd > 0)
		return copy->link_fd;
	return kernel_links_struct_ops() ? bpf_link__fd(copy->registration) : -1;
}

void copy_release(struct copy *copy)
{
	if (copy->registration)
		bpf_link__disconnect(copy->registration);
}

void copy_close(struct copy *copy)
{
	if (copy->link_fd > 0)
		close(copy->link_fd);
	bpf_link__destroy(copy->registration);
	bpf_object__close(copy->programs);
	memset(copy, 0, sizeof(*copy));
}
