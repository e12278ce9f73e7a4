"""`manet vm`: run any command on this machine's files under another kernel (testbed/guests)."""

import argparse
import os
import sys
from pathlib import Path

from testbed.commands.options import add_verb, positive
from testbed.errors import UsageError
from testbed.programs import INSTALLATION

EXAMPLES = """
  ./manet vm list                  the kernels, and which of them are here
  ./manet vm -- doctor             `manet doctor` under Debian 12's kernel
  ./manet vm --kernel 6.12 -- run hv-fig1 --quick
                                   results/ is shared with the guest
  ./manet vm --kernel 6.12 shell   a shell; "exit" ends the guest
  ./manet vm shell -- uname -r     any command
  ./manet vm --kernel 6.12 -- cli chain5 --set stations=hwsim
                                   a prompt in the guest
  ./manet vm --share /tmp/out -- run hv-fig1 --out /tmp/out
  ./manet vm fetch 6.1 6.12        download the newest of these kernels

A guest loses what it writes outside results/ and the shared folders when it
ends. It cannot reach the network. The command has the terminal, or reads
standard input if that is a pipe or a file.
"""
CPUS_HELP = "with 1, the clock of a software-emulated guest counts instructions, so that runs are on time (default: up to 2)"


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "vm", "run a command under another kernel, in a guest", EXAMPLES)
    parser.usage = (
        "manet vm [options] -- COMMAND...\n       manet vm [options] shell [-- COMMAND...]\n"
        "       manet vm list\n       manet vm fetch [KERNEL...]"
    )
    parser.add_argument("--kernel", metavar="NAME", default="6.1", help='one of "manet vm list" (default: 6.1)')
    parser.add_argument("--memory", metavar="SIZE", type=memory_mb, default=2048, help="such as 1024M or 2G (default: 2G)")
    parser.add_argument("--cpus", metavar="N", type=positive, default=min(2, os.cpu_count() or 1), help=CPUS_HELP)
    parser.add_argument(
        "--share", metavar="FOLDER", type=Path, action="append", default=[], help="a folder the guest may write to"
    )
    parser.add_argument("--timeout", metavar="SECONDS", type=positive, help="end the command after this time")
    accelerated = parser.add_mutually_exclusive_group()
    accelerated.add_argument("--kvm", action="store_true", default=None, help="require /dev/kvm (default: used if it works)")
    accelerated.add_argument("--no-kvm", dest="kvm", action="store_false", help="software emulation")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="a manet command; or shell, list, fetch as above")


def memory_mb(text: str) -> int:
    """The type of --memory, in MB."""
    from testbed.guests import guest

    try:
        return guest.megabytes(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def run(options: argparse.Namespace) -> int:
    """Run the command in a guest; the exit status is the command's."""
    if options.rest and options.rest[0].startswith("-") and options.rest[0] != "--":
        raise UsageError(f"unrecognized arguments: {' '.join(options.rest)}; the command's own options come after --")
    command = [*options.command, *options.rest]
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        raise UsageError('which command? for example "manet vm -- doctor", "manet vm shell", "manet vm list"')
    if command[0] == "list":
        if command[1:]:
            raise UsageError(f'list: takes no arguments; a command comes after --: "manet vm -- list {command[1]}"')
        return show_list()
    if command[0] == "fetch":
        return fetch(command[1:])
    if command[0] == "shell":
        rest = command[2:] if command[1:2] == ["--"] else command[1:]
        return in_guest(options, rest)
    from testbed.guests import commands

    return in_guest(options, commands.argv(command))


def show_list() -> int:
    """Print the kernels, and which of them are in the cache."""
    from testbed.guests import kernels

    cache = kernels.Cache()
    for name, kernel in kernels.known_kernels().items():
        there = cache.cached(kernel)
        print(f"{name:<6} {kernel.text:<22} {f'{there.package} {there.version}' if there else 'not fetched yet'}")
    print(f"cache: {cache.folder}")
    return 0


def fetch(names: list[str]) -> int:
    """Download the newest version of these kernels, or of all."""
    from testbed.guests import kernels

    cache = kernels.Cache(say=_say)
    for kernel in [kernels.find(name) for name in names or kernels.known_kernels()]:
        there = cache.get(kernel, newest=True)
        print(f"{kernel.name:<6} {there.package} {there.version}")
    cache.busybox()
    return 0


def in_guest(options: argparse.Namespace, command: list[str]) -> int:
    """Run the command, or a shell if there is none, in a guest; returns its exit status."""
    from testbed.guests import commands, guest, kernels

    kernel = kernels.find(options.kernel)
    if options.cpus > (cpus := os.cpu_count() or 1):
        raise UsageError(f"--cpus {options.cpus}: this machine has {cpus}")
    if not command and guest.own_input() != "terminal":
        raise UsageError('a shell needs a terminal; for a command, "manet vm shell -- COMMAND"')
    machine = guest.Machine(options.memory, options.cpus, options.kvm)
    guest.require(machine)
    cache = kernels.Cache(say=_say)
    unpacked, busybox = cache.get(kernel), cache.busybox()
    job = guest.Job(command or ["bash", "-i"], Path.cwd(), commands.environment(unpacked), shares(options.share))
    return guest.run(unpacked, job, machine, cache.folder, busybox, timeout_s=options.timeout)


def shares(extra: list[Path]) -> list[Path]:
    """The folders that a guest may write to: results/ of the checkout and `extra`; missing ones are created."""
    folders = [INSTALLATION.results(), *extra]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return [folder.resolve() for folder in folders]


def _say(text: str) -> None:
    print(f"manet vm: {text}", file=sys.stderr, flush=True)
