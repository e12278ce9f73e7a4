"""`manet vm` and `manet test --guests`: tests without a boot, and one boot if QEMU and a kernel are installed."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.__main__ import main
from testbed.commands import test as test_verb
from testbed.commands import vm
from testbed.errors import ManetError, UsageError
from testbed.guests import guest, kernels, tests
from testbed.host.requirements import require_radios
from testbed.programs import ROOT
from testbed.runs import metadata
from testbed.tests.running import needs_runs

DEADLINE_S = 300.0
MEMINFO = "MemTotal: 9000000 kB\nMemAvailable: 1024000 kB\n"


@pytest.fixture
def machine(tmp_path):
    """A machine that has everything but 1000 MB; a test takes something away."""
    (tmp_path / "bin").mkdir()
    for name in ("qemu-system-x86_64", "virtme-run"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "meminfo").write_text(MEMINFO)
    return {
        "path": str(tmp_path / "bin"), "virtme_run": tmp_path / "bin" / "virtme-run", "meminfo": tmp_path / "meminfo",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "memory_mb", "message"),
    [
        ({"path": "/proc/nowhere"}, 800, "qemu-system-x86_64: not found; ./setup.sh --guests"),
        ({"virtme_run": Path("/proc/nowhere")}, 800, "/proc/nowhere: virtme-ng is not installed; ./setup.sh --guests"),
        ({"architecture": "aarch64"}, 800, "guests (manet vm, virtual time): are amd64 machines, and this is aarch64"),
        ({}, 200, "--memory 200M: too little, a guest needs at least 512M"),
        ({}, 4096, "--memory 4096M: this machine has only 1000M available"),
    ],
)
def test_a_missing_requirement_is_one_line_with_the_remedy(machine, change, memory_mb, message):
    guest.require(guest.Machine(800), **machine)
    with pytest.raises(UsageError, match=re.escape(message)) as problem:
        guest.require(guest.Machine(memory_mb), **(machine | change))
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(("text", "size"), [("2048", 2048), ("2048M", 2048), ("2G", 2048), ("3g", 3072)])
def test_memory_is_given_as_for_qemu(text, size):
    assert vm.memory_mb(text) == size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memory", "much", "--", "doctor"], '"much" is not a size such as 1024M or 2G'),
        (["--kernel", "5.0", "--", "doctor"], "--kernel 5.0: not known; there are 6.1, 6.12"),
        ([], "which command?"),
        (["--bogus", "--", "doctor"], "unrecognized arguments: --bogus"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(capsys, arguments, message):
    try:
        status = main(["vm", *arguments])
    except SystemExit as end:
        status = end.code
    err = capsys.readouterr().err
    assert status == 2
    assert message in err and err.count("\n") == 1


def test_a_job_is_quoted_for_the_shell():
    job = guest.Job(["echo", "it's", "a b"], Path("/a folder"), {"X": "1 2"}, [Path("/r"), Path("/s t")])
    script = job.script(interactive=False)
    assert "    mount_share 0 /r\n    mount_share 1 '/s t'\n" in script
    assert "    cd '/a folder' || return 126\n" in script
    assert script.split("exec ")[1].startswith("setsid env -i ")
    words = subprocess.run(["sh", "-c", f"{script}\njob() {{ :; }}"], capture_output=True, text=True)
    assert (words.returncode, words.stderr) == (0, "")
    assert "'X=1 2' echo 'it'\"'\"'s' 'a b'" in script


def test_a_run_in_a_guest_has_the_commit_that_the_host_found(monkeypatch):
    monkeypatch.setenv(metadata.COMMIT, "abc+")
    metadata.commit.cache_clear()
    assert metadata.commit() == "abc+"
    metadata.commit.cache_clear()


def test_virtmes_qemu_gets_our_init_and_ports(tmp_path):
    kernel = kernels.Unpacked("6.1", tmp_path, "6.1.0-9-amd64", "p", "1")
    given = [
        "qemu", "-m", "1G", "-chardev", "stdio,id=x", "-serial", "chardev:x", "-device", "virtserialport,name=virtme.ret",
        "-device", "virtio-9p-pci,fsdev=virtfs3", "-append", "quiet virtme.exec=`abc` init=/virtme-ng-init", "-initrd", "/i",
    ]  # fmt: skip
    job = guest.Job(["true"], Path("/"), shares=[Path("/out,put")])
    made = guest._with_own_init(given, kernel, job, Path("/job"), Path("/busybox"), interactive=False)
    append = made[made.index("-append") + 1]
    assert append.startswith("quiet manet.modules=") and "virtme.exec" not in append
    assert append.endswith(f"manet.job=/job init=/busybox -- sh {guest.INIT} /busybox {guest.INIT}")
    assert "-serial" not in made and not any("virtserialport" in word for word in made)
    assert any("path=/out,,put" in word and "readonly=off" in word for word in made)
    assert any("id=manet.rootfs,path=/," in word and "readonly=on" in word for word in made)


def test_a_path_with_a_space_is_refused_since_the_kernels_command_line_has_no_quotes(tmp_path):
    kernel = kernels.Unpacked("6.1", tmp_path / "my cache", "6.1.0-9-amd64", "p", "1")
    with pytest.raises(UsageError, match="my cache: a path with a space"):
        guest._with_own_init(
            ["qemu", "-append", "quiet"], kernel, guest.Job([], Path("/")), Path("/job"), Path("/b"), interactive=False
        )


TWICE = """
import pathlib
def test_passes_alone():
    tries = pathlib.Path("tries")
    tries.write_text((tries.read_text() if tries.exists() else "") + "x")
    assert len(tries.read_text()) > 1
def test_fails(): assert False
def test_works(): pass
"""


GUEST = test_verb.Guest("6.1", [], "6.1")


def in_place_of_a_guest(monkeypatch, folder, source, names=("test_twice.py",)):
    """The script of a guest, on this machine, in a folder with a file of tests; `names`: those that are run."""
    (folder / "test_twice.py").write_text(source)

    def command(_kernel, _tests, _arguments, results):
        return ["sh", "-c", tests.SCRIPT, "tests", str(folder), str(results), sys.executable, *names]

    monkeypatch.setattr(tests, "command", command)


def test_a_test_that_fails_in_a_guest_is_rerun_and_the_second_try_counts(monkeypatch, tmp_path):
    in_place_of_a_guest(monkeypatch, tmp_path, TWICE)
    counts = test_verb.run_guest(GUEST, [])
    assert counts.line() == "2 passed, 1 failed, 0 skipped"
    assert [line.partition(" - ")[0] for line in counts.failures.values()] == ["guest 6.1: FAILED test_twice.py::test_fails"]
    assert [line.partition(" - ")[0] for line in counts.second_tries] == ["guest 6.1: FAILED test_twice.py::test_passes_alone"]


def test_the_second_try_passes_over_a_named_test_of_a_file_without_failures(monkeypatch, tmp_path):
    (tmp_path / "test_other.py").write_text("def test_works(): pass\n")
    in_place_of_a_guest(monkeypatch, tmp_path, TWICE, ("test_twice.py::test_passes_alone", "test_other.py::test_works"))
    counts = test_verb.run_guest(GUEST, [])
    assert (counts.line(), len(counts.second_tries)) == ("2 passed, 0 failed, 0 skipped", 1)


def test_a_guest_that_falls_while_it_tries_again_leaves_the_first_result(monkeypatch, tmp_path):
    source = "import os\ndef test_one():\n    if os.environ.get('MANET_SECOND_TRY'): os._exit(7)\n    assert False\n"
    in_place_of_a_guest(monkeypatch, tmp_path, source)
    assert test_verb.run_guest(GUEST, []).line() == "0 passed, 1 failed, 0 skipped"


def test_without_qemu_the_guests_are_skipped_with_a_message(capsys, monkeypatch):
    monkeypatch.setattr(tests, "missing_requirement", lambda: "qemu-system-x86_64: not found")
    counts = test_verb.run_guests(None, [])
    assert counts.skipped == 1
    assert counts.reasons == ["all tests in guests (6.1, 6.12): qemu-system-x86_64: not found"]


def test_as_many_guests_run_in_parallel_as_there_are_cpus_and_memory_for(monkeypatch):
    room_mb = 10 * guest.Machine().memory_mb
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})

    def require(machine: guest.Machine) -> None:
        if machine.memory_mb > room_mb:
            raise UsageError("this machine has only 3000M available")

    monkeypatch.setattr(guest, "require", require)
    assert [tests.side_by_side(number) for number in (1, 2, 3, 4)] == [1, 2, 3, 3]
    room_mb = 2 * guest.Machine().memory_mb
    assert [tests.side_by_side(number) for number in (1, 2, 4)] == [1, 2, 2]
    room_mb = 0
    assert tests.side_by_side(4) == 1


IN_A_GUEST = """
import sys, pathlib
kernel, test, results = sys.argv[1:]
print(test + " skipped under " + kernel)
case = f"<testcase classname='{test}' file='{test}.py' name="
cases = f"{case}'one'/>{case}'two'/>{case}'late'><skipped message='{kernel}'/></testcase>"
pathlib.Path(results).write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
"""


def test_the_results_of_parallel_guests_are_kept_separate(capsys, monkeypatch):
    monkeypatch.setattr(tests, "missing_requirement", lambda: None)
    monkeypatch.setattr(tests, "side_by_side", lambda number: number)
    monkeypatch.setattr(tests, "parts", lambda arguments: [["a"], ["b"]])

    def command(kernel: str, listed: list[str], _arguments: list[str], results: Path) -> list[str]:
        return [sys.executable, "-c", IN_A_GUEST, kernel, *listed, str(results / tests.FIRST)]

    monkeypatch.setattr(tests, "command", command)
    monkeypatch.setattr(tests, "left_out", lambda arguments: ["chains: void"])
    counts = test_verb.run_guests(None, [])
    assert counts.line() == "8 passed, 0 failed, 5 skipped"
    assert counts.reasons == [
        "all guests: chains: void",
        *(f"guest {kernel}: [1] {test}.py: {kernel}" for kernel in ("6.1", "6.12") for test in ("a", "b")),
    ]
    lines = capsys.readouterr().out.splitlines()
    assert "6.1 part 1 | a skipped under 6.1" in lines and "6.12 part 2| b skipped under 6.12" in lines


def test_a_part_without_a_test_that_was_asked_for_is_no_failure(monkeypatch, tmp_path):
    in_place_of_a_guest(monkeypatch, tmp_path, "def test_one(): pass\n")
    monkeypatch.setattr(tests, "missing_requirement", lambda: None)
    monkeypatch.setattr(tests, "parts", lambda arguments: [["one"], ["none"]])
    usual = tests.command
    monkeypatch.setattr(tests, "command", lambda kernel, listed, *rest: [*usual(kernel, listed, *rest), "-k", *listed])
    assert test_verb.run_guests("6.1", ["-k", "one"]).line() == "1 passed, 0 failed, 0 skipped"


def test_the_list_names_tests_that_are_there():
    parts = tests.parts([])
    listed = [test for part in parts for test in part]
    assert len(listed) > 5 and len(set(listed)) == len(listed)
    assert all((ROOT / word.partition("::")[0]).exists() for word in listed)
    files = [{test.partition("::")[0] for test in part} for part in parts]
    assert len(set().union(*files)) == sum(map(len, files)), "a run that the tests of a file share is made once"
    assert set(tests.selected_kernels(None)) <= set(kernels.known_kernels())
    assert tests.command("6.1", ["a.py"], ["-k", "vegas"], Path("/r"))[-3:] == ["-k", "vegas", "a.py"]


def test_files_that_are_named_take_the_place_of_the_list():
    assert tests.parts(["kernel-tcp/tests/test_life.py"]) == [[]]
    assert tests.parts(["-k", "vegas"]) == tests.parts([]) != [[]]


# ----- one boot ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def require_kernel():
    """Skip without this kernel: nothing is fetched for a test of the host, kernels are there where `manet vm` was used before."""

    def check(name: str) -> None:
        try:
            guest.require(guest.Machine())
        except ManetError as problem:
            pytest.skip(str(problem))
        if kernels.Cache().cached(kernels.find(name)) is None:
            pytest.skip(f'no kernel in the cache; "manet vm fetch {name}" brings one')

    return check


@pytest.fixture
def bootable(require_kernel):
    """A guest of the default kernel can be booted."""
    require_kernel("6.1")


def manet_vm(temporary: Path, *arguments: str, before: Sequence[str] = (), **options) -> subprocess.Popen:
    """Start it; `before`: the words of a program that executes it."""
    command = [*before, sys.executable, "-P", "-m", "testbed", "vm", "--memory", "768M", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment}
    return subprocess.Popen(command, cwd=ROOT, text=True, **(pipes | options))


@pytest.mark.slow
def test_a_guest_runs_the_command_under_its_own_kernel_and_brings_output_files_and_status(bootable, tmp_path):
    share, lost = tmp_path / "out put", tmp_path / "lost"
    script = 'uname -r; echo here >"$1/file"; echo gone >"$2"; echo err >/dev/stderr; test -c /dev/net/tun && exit 7'
    process = manet_vm(tmp_path, "--share", str(share), "shell", "--", "sh", "-c", script, "x", str(share), str(lost))
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 7, err
    assert out.startswith("6.1.")
    assert err.endswith("err\n")
    assert (share / "file").read_text() == "here\n"
    assert not lost.exists()


@pytest.mark.slow
def test_a_guest_finds_the_programs_of_its_callers_path(bootable, tmp_path):
    (tmp_path / "my bin").mkdir()
    (tmp_path / "my bin" / "own-daemon").write_text("#!/bin/sh\necho here\n")
    (tmp_path / "my bin" / "own-daemon").chmod(0o755)
    process = manet_vm(
        tmp_path, "shell", "--", "own-daemon",
        env={**os.environ, "PATH": f"{tmp_path / 'my bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    out, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, out) == (0, "here\n"), err


def test_the_path_of_a_guest_is_the_callers_with_debians_folders(monkeypatch):
    monkeypatch.setenv("PATH", "/opt/bin:relative::/usr/bin")
    assert guest.search_path() == "/opt/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin"
    assert guest.search_path([]) == guest.PATH


@pytest.mark.slow
def test_standard_input_reaches_the_command_and_its_outputs_are_separate(bootable, tmp_path):
    process = manet_vm(tmp_path, "shell", "--", "sh", "-c", "read -r one; cat; echo $one >&2; exit 3", stdin=subprocess.PIPE)
    out, err = process.communicate(input="first\nsecond\nno end of line", timeout=DEADLINE_S)
    assert (process.returncode, out) == (3, "second\nno end of line"), err
    assert err.endswith("first\n")


ON_A_TERMINAL = """
import os, sys
print("terminals", *(os.isatty(number) for number in range(3)), *os.get_terminal_size())
try:
    print("answer", input("name?"))
    input("again?")
except KeyboardInterrupt:
    print("Ctrl-C")
print("x" * 5000 + "end")
sys.exit(4)
"""


@pytest.mark.slow
def test_a_terminal_is_the_commands_with_its_keys_and_its_size(bootable, tmp_path):
    terminal, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (33, 99))
    before = termios.tcgetattr(theirs)
    process = manet_vm(
        tmp_path, "shell", "--", "python3", "-c", ON_A_TERMINAL, before=["setsid", "--ctty", "--wait"],
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    try:
        printed = b""
        for question, answer in ((b"name?", b"Ann\r"), (b"again?", b"\x03")):
            while question not in printed:
                printed += os.read(terminal, 4096)
            os.write(terminal, answer)
        while b"end" not in printed:
            printed += os.read(terminal, 4096)
        assert process.wait(DEADLINE_S) == 4
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        os.close(theirs)
        os.close(terminal)
    text = printed.decode().replace("\r\n", "\n")
    assert "terminals True True True 99 33\n" in text and "answer Ann\n" in text, text
    assert text.endswith("Ctrl-C\n" + "x" * 5000 + "end\n") or text.endswith("Ctrl-C\n" + "x" * 5000 + "end"), text


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_a_prompt_on_hwsim_opens_in_a_guest_where_this_kernel_has_none(require_kernel, tmp_path):
    require_kernel("6.12")
    try:
        require_radios("hwsim")
    except UsageError:
        pass
    else:
        pytest.skip("this kernel has mac80211_hwsim")
    words = ["--set", "stations=hwsim", "--set", "hops=1", "--out", str(tmp_path / "out"), "chain5"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "testbed", "cli", *words], input="sta1 echo one of $(ls /sys/class/ieee80211 | wc -l)\n",
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "one of 1"), done.stderr
    assert "the prompt opens in a guest of Linux 6.12" in done.stderr
    assert json.loads((tmp_path / "out" / "run.json").read_text())["kernel"].startswith("6.12")


APPENDS = """
import os, subprocess, sys
path = sys.argv[1]
open(path, "ab").close()
lines = "import os\\nfor i in range(200): os.write(1, b'%05d\\\\n' % i)"
with open(path, "ab") as log:
    child = subprocess.Popen([sys.executable, "-c", lines], stdout=log)
while child.poll() is None:
    open(path, "rb").read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
def test_a_log_that_is_read_while_it_is_written_loses_nothing(require_kernel, kernel, tmp_path):
    require_kernel(kernel)
    share = tmp_path / "share"
    share.mkdir()
    words = ["--kernel", kernel, "--cpus", "1", "--share", str(share), "shell", "--"]
    process = manet_vm(tmp_path, *words, "python3", "-c", APPENDS, str(share / "log"))
    process.communicate(timeout=DEADLINE_S)
    assert (share / "log").read_text().splitlines() == [f"{number:05d}" for number in range(200)]


HEADERS_ONLY = """
mount -t tmpfs over "$1"
mkdir -p "$1/work" "$1/usr-lib/modules/$2"
ln -s /usr/src/headers "$1/usr-lib/modules/$2/build"
if [ "$3" ]; then
    mkdir "$1/usr-lib/modules/$2/updates"
    cp "$3" "$1/usr-lib/modules/$2/updates/"
    touch "$1/usr-lib/modules/$2/modules.dep" # that of depmod, for the modules that are here
fi
mount -t overlay -o "lowerdir=/usr/lib,upperdir=$1/usr-lib,workdir=$1/work" over /usr/lib
shift 3
exec "$@"
"""


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts over /usr/lib, which needs root; sudo ./manet test")
@pytest.mark.parametrize("module", ["", "dummy.ko"])
def test_a_machine_with_the_headers_of_the_guests_kernel_has_no_modules_of_it(bootable, tmp_path, module):
    """Debian's package of the headers makes the kernel's folder of modules, with the link `build` in it. A module that the user
    built against them is there, too."""
    kernel = kernels.Cache().cached(kernels.find("6.1"))
    assert kernel is not None
    inside = ["unshare", "--mount", "sh", "-ec", HEADERS_ONLY, "headers", str(tmp_path / "over"), kernel.release]
    inside.append(str(next(kernel.folder.rglob(module))) if module else "")
    (tmp_path / "over").mkdir()
    words = ["shell", "--", "bash", "-c", "modprobe dummy && modinfo -n dummy && readlink /lib/modules/$(uname -r)/build"]
    process = manet_vm(tmp_path, *words, before=inside)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    path, build = out.splitlines()
    folder = "updates" if module else "kernel/drivers/net"
    assert (path, build) == (f"/lib/modules/{kernel.release}/{folder}/dummy.ko", "/usr/src/headers")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_guest_ends_with_manet_vm(bootable, number, tmp_path):
    process = manet_vm(tmp_path, "shell", "--", "sleep", "600", start_new_session=True)

    def qemus() -> list[int]:
        """Its children that are QEMU, and alive: setpriv becomes it."""
        done = subprocess.run(["ps", "-eo", "pid=,ppid=,stat=,comm="], capture_output=True, text=True).stdout
        rows = [line.split() for line in done.splitlines()]
        return [int(pid) for pid, parent, stat, comm, *_ in rows if int(parent) == process.pid and comm.startswith("qemu-")]

    deadline = time.monotonic() + DEADLINE_S
    while not (children := qemus()):
        assert process.poll() is None and time.monotonic() < deadline, "no QEMU was started"
        time.sleep(0.1)
    process.send_signal(number)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    while any(Path(f"/proc/{pid}/fd/0").exists() for pid in children):  # a process that has ended has no files
        assert time.monotonic() < deadline, "QEMU is still there"
        time.sleep(0.1)
