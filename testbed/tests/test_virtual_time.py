"""`clock = "virtual"`: the arguments of QEMU, the messages of a guest, and the end of a run that does not end by itself."""

import errno
import json
import os
import struct
import tempfile
from pathlib import Path

import pytest

from scenarios.scenario import Scenario
from testbed.__main__ import main
from testbed.campaigns import side_by_side
from testbed.errors import RunError, UsageError
from testbed.guests import companion, guest, kernels, run_files, virtual_run, virtual_time
from testbed.guests.initramfs import Files

SCENARIO = Scenario(hops=1, warmup=1, duration=3, clock="virtual")
SAID = [
    {"stage": "begin", "fraction": None, "guest_s": 100.0, "busy_s": 10.0},
    {"stage": "traffic", "fraction": 0.0, "guest_s": 110.0, "busy_s": 14.0},
    {"stage": "traffic", "fraction": 0.5, "guest_s": 112.0, "busy_s": 14.5},
    {"stage": "stop", "fraction": None, "guest_s": 114.0, "busy_s": 15.0},
]
ENDED = {"status": "complete", "error": None, "host_late": False}


class NoCache:
    def __init__(self, say):
        pass

    def get(self, kernel):
        return kernels.Unpacked(kernel.name, Path("/k"), "6.12.0", "p", "1")

    def busybox(self):
        return Path("/busybox")


@pytest.fixture
def guests(monkeypatch):
    """Guests that need neither QEMU nor a kernel; a test says what becomes of one."""
    monkeypatch.setattr(guest, "require", lambda machine: None)
    monkeypatch.setattr(kernels, "Cache", NoCache)
    monkeypatch.setattr(run_files, "of_run", lambda kernel, programs: Files())
    monkeypatch.setattr(virtual_time, "qemu_version", lambda: "QEMU emulator version 0 (stand-in)")
    said = []
    guests = virtual_time.Guests(say=said.append)
    guests.said = said

    def becomes(fate):
        monkeypatch.setattr(guest, "run_in_memory", lambda kernel, job, machine, busybox, files, output, cancel: fate(output))
        monkeypatch.setattr(guest, "run_virtual", lambda kernel, job, machine, busybox, output, cancel: fate(output))
        return guests

    return becomes


def say(output, *messages):
    text = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
    output("out", text[:30])
    output("out", text[30:])


def test_a_guests_clock_goes_by_instructions_and_timers_alone():
    words = guest.VirtualClock(7).qemu()
    assert words[words.index("-icount") + 1] == "shift=0,sleep=off"
    assert words[words.index("-rtc") + 1] == "clock=vm"
    assert words[words.index("-seed") + 1] == "7"


def test_a_guest_with_its_files_in_memory_has_a_fixed_date_and_is_alone_while_it_computes():
    words = guest.VirtualClock(7).qemu_in_memory()
    assert words[words.index("-icount") + 1] == "shift=0,sleep=off,rr=record,rrfile=/dev/null"
    assert words[words.index("-rtc") + 1] == "base=2000-01-01T00:00:00,clock=vm"
    assert words[words.index("-seed") + 1] == "7"


def test_devices_accept_writes_at_once_in_virtual_time():
    given = ["qemu", "-device", "virtio-9p-pci,fsdev=a", "-device", "i6300esb", "-append", "quiet", "-device", "virtio-rng-pci"]
    made = guest._without_ioeventfd(given)
    assert made == [
        "qemu", "-device", "virtio-9p-pci,fsdev=a,ioeventfd=off", "-device", "i6300esb",
        "-append", "clocksource=tsc tsc=reliable nokaslr norandmaps quiet", "-device", "virtio-rng-pci,ioeventfd=off",
    ]  # fmt: skip


def test_the_runs_folder_is_elsewhere_in_the_guest(tmp_path):
    job = guest.Job(["true"], tmp_path, shares=[tmp_path / "a"], mapped_shares={tmp_path / "b": virtual_time.OUT})
    assert job.exports() == [(tmp_path / "a", tmp_path / "a"), (tmp_path / "b", virtual_time.OUT)]
    assert f"    mount_share 1 {virtual_time.OUT}\n" in job.script(interactive=False)


def test_the_record_has_the_clock_and_the_speed_of_the_run(guests, tmp_path):
    stages = []
    ended = guests(lambda output: say(output, *SAID, {"ended": ENDED, "record": {"kernel": "6.12.0", "epoch_ns": 5}})).run(
        SCENARIO, 1, tmp_path / "run", progress=lambda *what: stages.append(what)
    )
    assert (ended.status, ended.error, ended.host_late) == ("complete", None, False)
    assert stages == [("begin", None), ("traffic", 0.0), ("traffic", 0.5), ("stop", None)]
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (record["kernel"], record["epoch_ns"], record["status"]) == ("6.12.0", 5, "complete")
    assert record["started"] <= record["ended"]
    clock = record["clock"]
    assert clock["files"] == "memory"
    assert (clock["kind"], clock["instruction_ns"]) == ("virtual", 1)
    assert (clock["traffic"]["guest_s"], clock["traffic"]["busy_s"]) == (4.0, 1.0)
    assert clock["traffic"]["instructions_per_s"] > 0
    assert {"qemu", "host_kernel", "wall_s"} <= set(clock)
    assert json.loads((tmp_path / "run" / "scenario.json").read_text())["clock"] == "virtual"


def test_a_run_in_real_time_is_recorded_as_such(tmp_path):
    from testbed.runs.run import prepare

    prepare(Scenario(hops=1), 1, tmp_path, {})
    assert json.loads((tmp_path / "run.json").read_text())["clock"] == {"kind": "real"}


def test_a_guest_that_falls_is_a_failed_run(guests, tmp_path):
    def falls(output):
        raise RunError("guest 6.1: it crashed while the command ran: Kernel panic")

    ended = guests(falls).run(SCENARIO, 1, tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert ended.status == record["status"] == "failed"
    assert "Kernel panic" in ended.error and record["error"] == ended.error
    assert record["clock"]["kind"] == "virtual"


def test_a_path_in_a_message_is_that_of_this_machine(guests, tmp_path):
    failed = {"status": "failed", "error": f"see {virtual_run.RUN}/log/run.log", "host_late": False}
    ended = guests(lambda output: say(output, {"ended": failed, "record": {}})).run(SCENARIO, 1, tmp_path / "run")
    assert ended.error == f"see {tmp_path}/run/log/run.log"


def test_a_full_temporary_folder_is_one_line_with_the_remedy(guests, tmp_path, monkeypatch):
    def full(self, archive):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Files, "write", full)
    ended = guests(lambda output: 0).run(SCENARIO, 1, tmp_path / "run")
    place = tempfile.gettempdir()
    error = f"{place}: No space left on device; a run in virtual time needs 120 MB, TMPDIR sets the folder"
    assert (ended.status, ended.error) == ("failed", error)


def test_a_file_that_cannot_be_read_is_one_line_with_its_name(guests, tmp_path):
    (tmp_path / "sizes").write_text("100\n")
    flow = {"from": "sta1", "to": "sta2", "traffic": "vbr", "interval": 0.02, "sizes": str(tmp_path / "sizes")}
    scenario = Scenario(hops=1, warmup=1, duration=3, clock="virtual", flows=[flow])
    (tmp_path / "sizes").unlink()
    ended = guests(lambda output: 0).run(scenario, 1, tmp_path / "run")
    assert ended.error.startswith(f"{tmp_path}/sizes: No such file or directory; a run in virtual time takes it along")


def test_a_run_with_programs_of_the_users_own_reads_this_machines_files_and_says_so_once(guests, tmp_path):
    flow = {"from": "sta1", "to": "sta2", "traffic": "command", "command": ["true"], "server": ["sleep", "99"], "ready_after": 1}
    scenario = Scenario(hops=1, warmup=1, duration=3, clock="virtual", flows=[flow])
    for name in ("one", "two"):
        stand_in = guests(lambda output: say(output, {"ended": ENDED, "record": {}}))
        stand_in.run(scenario, 1, tmp_path / name)
        assert json.loads((tmp_path / name / "run.json").read_text())["clock"]["files"] == "host"
    assert stand_in.said == [f'the programs of traffic "command": not known beforehand, so {virtual_time.NOT_REPEATED}']


def test_a_run_without_a_final_report_failed_with_its_last_output(guests, tmp_path):
    def ends(output):
        output("err", b"Traceback\nMemoryError\n")
        return 1

    ended = guests(ends).run(SCENARIO, 1, tmp_path / "run")
    assert ended.error == "guest 6.12: the run ended with status 1 without a report: MemoryError"
    assert (tmp_path / "run" / "log" / "guest.log").read_text().startswith("Traceback")


def test_an_interrupted_run_in_a_guest_is_reported_as_interrupted(guests, tmp_path):
    def cancelled(output):
        raise guest.Cancelled

    ended = guests(cancelled).run(SCENARIO, 1, tmp_path / "run")
    assert (ended.status, ended.error) == ("interrupted", virtual_time.INTERRUPTED)


def test_a_requirement_missing_in_the_guest_is_refused_with_its_message(guests, tmp_path):
    with pytest.raises(UsageError, match="tcp_vegas: not there"):
        guests(lambda output: say(output, {"refused": "tcp_vegas: not there"}) or 2).run(SCENARIO, 1, tmp_path / "run")


@pytest.mark.parametrize(("text", "size_mb"), [("4G", 4096), ("3000", 3000), ("3000m", 3000)])
def test_the_memory_of_guests_is_the_machines_own_affair(text, size_mb):
    assert virtual_time.memory_mb({virtual_time.MEMORY: text}) == size_mb


def test_an_invalid_size_is_refused_by_name():
    with pytest.raises(UsageError, match='MANET_GUEST_MEMORY: "much" is not a size'):
        virtual_time.memory_mb({virtual_time.MEMORY: "much"})


@pytest.mark.parametrize(("event", "is_start"), [(0x2, True), (0x1, False), (0x8000_0000, False)])
def test_the_companion_knows_the_start_of_a_program_from_forks_and_ends(event, is_start):
    head = struct.pack("=IHHII", 76, 3, 0, 0, 0) + struct.pack("=IIIIHH", 1, 1, 0, 0, 40, 0)
    assert companion.is_exec(head + struct.pack("=IIQII", event, 0, 0, 1, 1)) is is_start
    assert not companion.is_exec(head)


def test_as_many_guests_as_there_are_cores_and_memory_for(monkeypatch):
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 4)
    real = Scenario(hops=5)
    assert side_by_side.default_jobs([SCENARIO]) == 4 < side_by_side.default_jobs([real])
    assert side_by_side.default_jobs([SCENARIO, real]) == 4
    assert side_by_side.default_jobs([SCENARIO], max_guests=lambda: 2) == 2
    assert side_by_side.default_jobs([SCENARIO], max_guests=lambda: 0) == 1
    monkeypatch.setattr(guest, "available_mb", lambda: 5000)
    assert virtual_time.max_guests() == 5000 // virtual_time.memory_mb()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "chain5", "--kernel", "6.12"], "--kernel 6.12: no run is in a guest; add --clock virtual"),
        (["run", "chain5", "--clock", "virtual", "--kernel", "5.0"], "--kernel 5.0: not known; there are"),
        (["run", "chain5", "--clock", "fast"], "argument --clock: invalid choice: 'fast'"),
        (["cli", "chain5", "--set", "clock=virtual"], 'chain5: clock = "virtual" has no prompt'),
    ],
)
def test_a_clock_or_kernel_that_cannot_be_is_one_line(monkeypatch, capsys, tmp_path, arguments, message):
    monkeypatch.setattr(guest, "require", lambda machine: None)
    monkeypatch.setattr("testbed.host.requirements.require_for_runs", lambda: None)
    out = ["--out", str(tmp_path / "out")]
    try:
        status = main([*arguments, *out])
    except SystemExit as end:
        status = end.code
    err = capsys.readouterr().err
    assert status == 2
    assert message in err and err.count("\n") == 1
