"""The processor time of other programs: the host's busy time without the run's own."""

from pathlib import Path

from testbed.host.other_load import OtherLoad


def write(folder: Path, stat: str, own_us: int) -> None:
    (folder / "stat").write_text(f"{stat}\ncpu0 1 2 3\n")
    (folder / "cpu.stat").write_text(f"usage_usec {own_us}\nuser_usec 0\n")


def test_idle_time_and_the_runs_own_are_not_others(tmp_path: Path) -> None:
    write(tmp_path, "cpu  100 0 50 9000 10 0 0 0 0 0", 1_000_000)
    load = OtherLoad(tmp_path, tmp_path / "stat")
    assert load.seconds() == 0
    # 400 ticks of 10 ms more in user, nice, system, irq, softirq and steal, of which the run has used 3 s; guest is in user
    write(tmp_path, "cpu  200 100 100 9500 99 50 50 50 70 0", 4_000_000)
    assert load.seconds() == 4.0 - 3.0


def test_an_unknown_time_explains_any_delay(tmp_path: Path) -> None:
    assert OtherLoad(tmp_path, tmp_path / "stat").seconds() == float("inf")
