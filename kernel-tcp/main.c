// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * manet-tcp - settings and samples of the TCP connections of stations.
 *
 * `run` attaches the programs of manet_tcp.bpf.c; `sample` only samples, without eBPF;
 * `features` shows what the kernel can do; `load` registers a congestion control.
 * Interfaces: formats/tcp.md.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <bpf/libbpf.h>
#include "run.h"

static const char usage[] =
	"usage: manet-tcp [--debug] run SETTINGS.json\n"
	"       manet-tcp sample SETTINGS.json\n"
	"       manet-tcp [--debug] features [--json]\n"
	"       manet-tcp [--debug] load NAME|FILE.bpf.o [PARAMETER=VALUE ...] [--name KERNELNAME]\n"
	"                                  [--operations VARIABLE]\n"
	"       manet-tcp unload NAME\n"
	"       manet-tcp list [--json]\n"
	"\n"
	"run       applies TCP settings to the programs of a cgroup, station by station,\n"
	"          and samples their connections; prints \"ready\" when attached and\n"
	"          detaches on SIGTERM or SIGINT\n"
	"sample    samples the connections without eBPF, at an interval, and applies\n"
	"          nothing; for a run without root\n"
	"features  shows what this kernel can do; exit code 1 if `run` would not work\n"
	"load      registers a built-in algorithm, or one from a file, for every program\n"
	"          of this machine, until unload or the next boot; of several in a file,\n"
	"          the one of this variable\n"
	"list      shows built-in and loaded algorithms with their parameters and uses\n"
	"--debug   shows the messages of libbpf\n"
	"\n"
	"example:  manet-tcp run results/demo/seed-1/tcp-settings.json\n";

static bool debug;

static int print_libbpf(enum libbpf_print_level level, const char *format,
		       va_list arguments)
{
	(void)level;
	return debug ? vfprintf(stderr, format, arguments) : 0;
}

int main(int argc, char **argv)
{
	libbpf_set_print(print_libbpf);
	if (argc > 1 && !strcmp(argv[1], "--debug")) {
		debug = true;
		argc--;
		argv++;
	}
	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "run"))
		return run_command(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "sample"))
		return sample_command(argv[2]);
	if (argc > 2 && !strcmp(argv[1], "load"))
		return load_command(argc - 2, argv + 2);
	if (argc == 3 && !strcmp(argv[1], "unload"))
		return unload_command(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "list"))
		return list_command(false);
	if (argc == 3 && !strcmp(argv[1], "list") && !strcmp(argv[2], "--json"))
		return list_command(true);
	if (argc == 2 && !strcmp(argv[1], "features"))
		return features_command(false);
	if (argc == 3 && !strcmp(argv[1], "features") && !strcmp(argv[2], "--json"))
		return features_command(true);
	fputs(usage, stderr);
	return EXIT_SETTINGS;
}
