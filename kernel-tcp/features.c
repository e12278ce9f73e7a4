// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * features.c - `manet-tcp features [--json]`: what this kernel can do.
 *
 * Each feature is tried, or looked up in the kernel's BTF. The exit code is 0 if
 * `manet-tcp run` will work, and 1 if something is missing; the output then names it
 * with its remedy.
 */
#include <jansson.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "kernel.h"
#include "run.h"

static json_t *first_line(const char *path)
{
	char line[256] = "";
	FILE *file = fopen(path, "re");

	if (!file)
		return json_null();
	if (!fgets(line, sizeof(line), file))
		line[0] = 0;
	fclose(file);
	line[strcspn(line, "\n")] = 0;
	return json_string(line);
}

static json_t *algorithms(void)
{
	json_t *names = json_array();
	json_t *line = first_line("/proc/sys/net/ipv4/tcp_available_congestion_control");
	char *text = json_is_string(line) ? strdup(json_string_value(line)) : NULL;
	char *rest = text;

	for (char *name; rest && (name = strsep(&rest, " ")); )
		if (*name)
			json_array_append_new(names, json_string(name));
	free(text);
	json_decref(line);
	return names;
}

static json_t *cgroup2_mount(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	json_t *found = NULL;
	struct mntent *mount;

	while (mounts && !found && (mount = getmntent(mounts)))
		if (!strcmp(mount->mnt_type, "cgroup2"))
			found = json_string(mount->mnt_dir);
	if (mounts)
		endmntent(mounts);
	return found ? found : json_null();
}

static json_t *jit(void)
{
	json_t *line = first_line("/proc/sys/net/core/bpf_jit_enable");
	const char *value = json_string_value(line);
	json_t *answer = value ? json_boolean(strcmp(value, "0")) : json_null();

	json_decref(line);
	return answer;
}

static bool btf_has(const struct btf *btf, const char *name, __u32 kind)
{
	return btf && btf__find_by_name_kind(btf, name, kind) > 0;
}

static json_t *probe(void)
{
	struct btf *btf = access(BTF_PATH, R_OK) ? NULL : btf__load_vmlinux_btf();
	bool sockops = libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SOCK_OPS, NULL) > 0;
	/* Not BPF_PROG_TYPE_TRACING: on 6.18 the probe of libbpf 1.1 for it fails,
	 * although such programs load. Both types use the same raw tracepoints. */
	bool tracing = libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL) > 0;
	bool struct_ops = libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_STRUCT_OPS, NULL) > 0;
	bool ring = libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) > 0;
	struct utsname system;
	const char *step;
	__u64 cookie;
	json_t *all;

	uname(&system);
	all = json_pack("{s:s, s:s, s:I, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:o, s:o, s:o}",
		"format", "manet-tcp-features/1",
		"kernel", system.release,
		"hz", (json_int_t)jiffies_per_second(),
		"root", geteuid() == 0,
		"btf", btf != NULL,
		"sockops", sockops,
		"struct_ops", struct_ops &&
			btf_has(btf, "tcp_congestion_ops", BTF_KIND_STRUCT),
		"tcp_probe", tracing && ring &&
			btf_has(btf, "btf_trace_tcp_probe", BTF_KIND_TYPEDEF),
		"netns_cookie", !netns_cookie_of("/proc/self/ns/net", &cookie, &step),
		"rto_max", kernel_has_rto_max(),
		"rto_min_sysctl", !access("/proc/sys/net/ipv4/tcp_rto_min_us", F_OK),
		"bpf_jit", jit(),
		"cgroup2", cgroup2_mount(),
		"algorithms", algorithms());
	btf__free(btf);
	return all;
}

static const struct {
	const char *feature, *remedy;
} needed[] = {
	{ "root", "not root: run with sudo" },
	{ "btf", "no " BTF_PATH ": boot a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian's have it)" },
	{ "sockops", "no BPF sockops: CONFIG_CGROUP_BPF=y and CAP_BPF, CAP_NET_ADMIN are needed" },
	{ "tcp_probe", "no tcp_probe for BPF: CONFIG_BPF_EVENTS=y, Linux 5.8 and CAP_PERFMON are needed" },
	{ "netns_cookie", "no SO_NETNS_COOKIE: Linux 5.14 is needed, and root" },
	{ "cgroup2", "no cgroup v2 mounted: mount -t cgroup2 none /sys/fs/cgroup/unified" },
};

static bool present(json_t *value)
{
	return json_is_true(value) || json_is_string(value);
}

static void add_missing(json_t *all)
{
	json_t *missing = json_array();

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!present(json_object_get(all, needed[i].feature)))
			json_array_append_new(missing, json_string(needed[i].remedy));
	json_object_set_new(all, "usable", json_boolean(!json_array_size(missing)));
	json_object_set_new(all, "missing", missing);
}

static void print_table(json_t *all)
{
	const char *key;
	json_t *value;

	json_object_foreach(all, key, value) {
		char *text = json_dumps(value, JSON_ENCODE_ANY);

		printf("%-16s %s\n", key, text ? text : "?");
		free(text);
	}
}

int features_command(bool as_json)
{
	json_t *all = probe();
	bool usable;

	add_missing(all);
	usable = json_is_true(json_object_get(all, "usable"));
	if (as_json) {
		json_dumpf(all, stdout, JSON_INDENT(1));
		putchar('\n');
	} else {
		print_table(all);
	}
	json_decref(all);
	return usable ? 0 : EXIT_RUNTIME;
}
