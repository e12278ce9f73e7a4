"""The load of a worker: more runs while the cores are idle, fewer when they are busy or a run is not valid."""

import pytest

from testbed.campaigns.safe_load import LOOK_S, MIN_LOOKS, REGAIN, SafeLoad, cpu_times


class Machine:
    """A clock and a counter of ticks, of which a share is busy."""

    def __init__(self):
        self.now_s, self.busy, self.total = 0.0, 0.0, 0.0

    def pass_time(self, share, seconds=LOOK_S):
        self.now_s += seconds
        self.busy, self.total = self.busy + share * 100 * seconds, self.total + 100 * seconds

    def load(self, jobs, most=20):
        return SafeLoad(jobs, most, lambda: (self.busy, self.total), lambda: self.now_s)


def test_idle_cores_take_one_more_run_at_each_look():
    machine = Machine()
    load = machine.load(4, most=6)
    for expected in (5, 6, 6):
        machine.pass_time(0.3)
        assert load.look(full=True) == expected
    assert load.looks == [(0.3, 5), (0.3, 6), (0.3, 6)]


def test_many_runs_on_idle_cores_get_more_at_once():
    """Half of (65 % - 25 %) of 21 runs are 4 more, of (65 % - 60 %) of 25 one more. Before a run has ended, it is one."""
    machine = Machine()
    load = machine.load(20, most=64)
    machine.pass_time(0.25)
    assert load.look(full=True) == 21
    load.ended(True, load.began())
    for share, expected in ((0.25, 25), (0.6, 26)):
        machine.pass_time(share)
        assert load.look(full=True) == expected


def test_the_number_found_is_that_of_the_later_looks():
    machine = Machine()
    load = machine.load(4, most=64)
    for _ in range(MIN_LOOKS - 1):
        machine.pass_time(0.64)
        load.look(full=True)
    assert load.found() is None
    machine.pass_time(0.7)
    load.look(full=True)
    assert load.found() == 12  # of the looks 10, 11, 12, 13, 13


def test_busy_cores_take_one_less_but_never_none():
    machine = Machine()
    load = machine.load(2)
    for expected in (1, 1):
        machine.pass_time(0.95)
        assert load.look(full=True) == expected


def test_between_two_looks_nothing_changes():
    machine = Machine()
    load = machine.load(4)
    machine.pass_time(0.1, LOOK_S / 2)
    assert load.look(full=True) == 4


def test_places_that_are_not_used_are_no_reason_for_more():
    machine = Machine()
    load = machine.load(4)
    machine.pass_time(0.1)
    assert load.look(full=False) == 4


def test_a_run_that_is_not_valid_lowers_the_load_and_valid_ones_raise_it_ever_faster():
    machine = Machine()
    load = machine.load(8)
    load.ended(True, load.began())
    assert load.jobs == 8
    load.ended(False, load.began())
    assert load.jobs == 6
    for expected in (7, 8, 10, 14):
        assert after_looks(machine, load) == expected
        for _ in range(min(expected, REGAIN)):
            load.ended(True, load.began())
    load.ended(False, load.began())
    limit = load.limit
    for _ in range(REGAIN):
        load.ended(True, load.began())
    assert load.limit == limit + 1  # by one at first


def test_the_runs_that_one_disturbance_spoils_lower_the_load_once():
    machine = Machine()
    load = machine.load(16)
    began_s = [load.began() for _ in range(16)]
    machine.pass_time(0.7)
    for one in began_s[:5]:
        load.ended(False, one)
    assert (load.jobs, load.limit) == (12, 15)
    load.ended(False, load.began())  # one that began after it
    assert (load.jobs, load.limit) == (9, 11)


def test_at_a_high_limit_ten_valid_runs_raise_it():
    machine = Machine()
    load = machine.load(30, most=40)
    load.ended(False, load.began())
    for _ in range(REGAIN):
        load.ended(True, load.began())
    assert load.limit == 30


def test_valid_runs_raise_the_load_no_further_than_asked():
    machine = Machine()
    load = machine.load(4, most=5)
    for _ in range(5 * REGAIN):
        load.ended(True, load.began())
    assert after_looks(machine, load) == 5


def after_looks(machine, load):
    """The jobs after so many looks at idle cores that the limit alone decides."""
    for _ in range(5):
        machine.pass_time(0.1)
        load.look(full=True)
    return load.jobs


@pytest.mark.parametrize(("autogroup", "busy"), [("0", 30), ("1", 50), (None, 30)])
def test_work_of_low_priority_counts_where_sessions_have_equal_shares(tmp_path, autogroup, busy):
    stat, setting = tmp_path / "stat", tmp_path / "sched_autogroup_enabled"
    stat.write_text("cpu  10 20 10 40 10 5 5 0 0 0\ncpu0 1 1 1 1 1 1 1 0 0 0\n")
    if autogroup is not None:
        setting.write_text(f"{autogroup}\n")
    assert cpu_times(stat, setting) == (busy, 100)


def test_the_machine_counts_busy_ticks_within_all_ticks():
    busy, total = cpu_times()
    assert 0 < busy < total
