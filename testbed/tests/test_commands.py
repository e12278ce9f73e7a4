"""The command line: help, wrong usage, exit status, counts of `manet test`."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.tcp import parse
from testbed import __main__ as manet
from testbed.commands import VERBS
from testbed.commands import test as test_verb
from testbed.commands.demo import free_folder
from testbed.commands.test import Counts, Pytest, count_cargo, tried_again
from testbed.errors import UsageError
from testbed.host.algorithms import available, missing_algorithm, require_algorithm
from testbed.programs import Programs
from testbed.runs.preflight import check_tcps

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(verb, capsys):
    with pytest.raises(SystemExit) as ended:
        manet.main([verb, "--help"])
    assert ended.value.code == 0
    assert "examples:" in capsys.readouterr().out


def helps(parser, words=()):
    """The words of every verb and of each of its actions, `manet` itself included."""
    yield words
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from helps(inner, (*words, name))


HELPS = list(helps(manet.parser()))


def test_actions_are_among_the_helps():
    assert {(), ("run",), ("tcp", "load")} < set(HELPS) and len(HELPS) > len(VERBS) + 4


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
@pytest.mark.parametrize("columns", ["80", "200"])
def test_help_fits_80_columns(words, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit) as ended:
        manet.main([*words, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "...." not in text and "\n\n\n" not in text


def test_every_option_and_argument_has_a_help_text():
    def silent(parser):
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    yield from silent(inner)
            elif not action.help:
                yield f"{parser.prog}: {action.dest}"

    assert list(silent(manet.parser())) == []


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["fly"], "manet: argument VERB: invalid choice: 'fly'"),
        (["run"], "manet run: the following arguments are required: NAME|FILE|RUN; see manet run --help"),
        (
            ["run", "hv-fig1", "--quik"],
            'manet run: unrecognized arguments: --quik; did you mean "--quick"?; see manet run --help',
        ),
        (["rnu", "chain5"], "manet: argument VERB: invalid choice: 'rnu'; did you mean \"run\"?; see manet --help"),
        (["run", "hv-fig1", "--seeds", "0"], 'manet run: argument --seeds: "0" is not a whole number of at least 1'),
        (["map", "--at", "abc"], 'manet map: argument --at: "abc" is not a time in seconds, such as 12.5; see'),
        (["map", "--at", "nan"], 'manet map: argument --at: "nan" is not a time in seconds, such as 12.5; see'),
        (["map", "a.csv", "--range", "0"], 'manet map: argument --range: "0" is not a range in metres above 0; see'),
        (["campaign", "hv", "--time", "-5m"], 'manet campaign: argument --time: "-5m" is not a duration such as 90m or 2h'),
        (["cli", "chain5", "--out", ""], "manet cli: argument --out: give a folder's name; see manet cli --help"),
        (["run", "hv-fig1", "--out", ""], "manet run: argument --out: give a folder's name; see manet run --help"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(arguments, wanted, capsys):
    with pytest.raises(SystemExit) as ended:
        manet.main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(wanted)
    assert error.count("\n") == 1


@pytest.mark.parametrize("verb", ["frob", "batc"])
def test_an_unknown_verb_names_no_verb_for_programs(verb, capsys):
    with pytest.raises(SystemExit):
        manet.main([verb])
    error = capsys.readouterr().err
    assert "invalid choice" in error and "'batch'" not in error and ", batch" not in error


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["run", "nowhere"], "manet run: nowhere: there is no experiment or file of this name; there are"),
        (["run", "chain5.toml"], 'manet run: chain5.toml: there is no such file; did you mean "chain5"?\n'),
        (["campaign", "hvv"], 'manet campaign: hvv: there is no experiment or file of this name; did you mean "hv"?\n'),
        (["run", "hv-fig99"], 'manet run: hv-fig99: there is no experiment or file of this name; did you mean "hv-fig'),
        (
            ["run", "no/such/x.toml"],
            "manet run: no/such/x.toml: there is no such file, and no folder no/such; correct the path\n",
        ),
        (
            ["cli", str(ROOT / "experiments/scenarios/chain5.tom")],
            f'manet cli: {ROOT}/experiments/scenarios/chain5.tom: there is no such file; did you mean "chain5.toml"?\n',
        ),
        (
            ["run", "chain5", "--set", "flows.3.to=sta2"],
            'manet run: --set flows.3.to=sta2: the scenario has no key "flows"; by default',
        ),
        (
            ["run", "hv-fig1", "--set", "tcp=tahooe"],
            'manet run: --set tcp=tahooe: key "tcp": this kernel has no "tahooe" (did you mean "tahoe"?); use one of',
        ),
        (
            ["cli", "chain5", "--set", "tcp=tahooe"],
            'manet cli: --set tcp=tahooe: key "tcp": this kernel has no "tahooe" (did you mean "tahoe"?); use one of',
        ),
        (["run", "hv-fig1", "--set", "spacing=-1"], 'manet run: --set: key "spacing": -1 is out of range; give more than 0 m'),
        (
            ["map", "nosuch"],
            "manet map: nosuch: there is no such folder or file; name a run's folder, results/NAME/CELL/seed-N, or",
        ),
        (
            ["map", "--range", "330"],
            "manet map: --range 330: applies to movement files only, a run uses its radio's range; omit --range",
        ),
        (
            ["map", str(ROOT / "analysis" / "tests" / "fixtures" / "two-flows"), "--range", "9"],
            "manet map: --range 9: applies to movement files only",
        ),
        (
            ["report", "/proc/nowhere"],
            "manet report: /proc/nowhere: holds no experiment.json; give a folder that `manet run` has made",
        ),
    ],
)
def test_an_invalid_request_is_one_line_and_status_2_before_anything_starts(arguments, wanted, rights, capsys, monkeypatch):
    monkeypatch.setattr("testbed.host.requirements.require_for_runs", lambda: None)
    assert manet.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(wanted)
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("verb", "option"),
    [
        ("bundle", "--out"), ("export", "--out"), ("batch", "--out"), ("map", "--out"), ("plot", "--out"), ("trace", "--convert"),
        ("trace", "--profile"), ("nightly", "--junit"),
    ],
)  # fmt: skip
def test_no_verb_replaces_a_device_a_link_or_a_folder(verb, option, tmp_path):
    (tmp_path / "x.png").symlink_to("/dev/null")
    action = manet.parser()._subparsers._group_actions[0].choices[verb]._option_string_actions[option]
    with pytest.raises(argparse.ArgumentTypeError, match="is a link and no plain file; give another name"):
        action.type(str(tmp_path / "x.png"))
    assert action.type(str(tmp_path / "new.png")) == tmp_path / "new.png"


def test_the_archive_of_a_bundle_is_no_device(tmp_path, capsys):
    """`bundle DIR --out /dev/null`, as by root, replaced the device for all programs of the machine."""
    with pytest.raises(SystemExit) as ended:
        manet.main(["bundle", str(tmp_path), "--out", "/dev/null"])
    assert ended.value.code == 2 and Path("/dev/null").is_char_device()
    assert '--out: "/dev/null" is a device and no plain file; give another name' in capsys.readouterr().err


def test_a_protocol_that_is_not_here_is_refused_before_the_folder_is_claimed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("testbed.host.requirements.require_for_runs", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    scenario = tmp_path / "both.toml"
    scenario.write_text(
        'question = "?"\n[scenario]\nhops = 1\n[[variants]]\nname = "static"\n'
        '[[variants]]\nname = "olsrd"\nset = { routing = "olsrd" }\n'
    )
    assert manet.main(["run", str(scenario), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith('manet run: routing "olsrd": olsrd: not found; build it from') and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_help_of_the_prompt_names_power(capsys):
    for words in (["--help"], ["cli", "--help"]):
        with pytest.raises(SystemExit):
            manet.main(words)
        assert "power" in capsys.readouterr().out


def test_help_needs_only_the_standard_library():
    code = "import sys; from testbed.__main__ import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "heavy = {'pydantic', 'polars', 'rich', 'numpy', 'mininet'} & set(sys.modules); assert not heavy, heavy"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "examples:" in done.stdout


HEAVY = {"polars", "numpy", "scipy", "pyarrow", "duckdb", "matplotlib", "fastapi", "rich", "dpkt", "http", "testbed.guests"}
UNTIL_THE_RUNS = """
from testbed.campaigns.campaign import Campaign
from testbed.host import requirements
from testbed.workers import execution

class Reached(BaseException): pass
def run(*_arguments, **_named): raise Reached
Campaign.run = run
execution.runner_for = lambda *_arguments, **_named: print
requirements.require_for_runs = lambda: None
try: main([*{words}, "--out", {out!r}])
except Reached: pass
else: raise SystemExit("the runs were not reached")
"""


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        pytest.param(["list"], set(), id="list"),
        pytest.param(["run", "chain5"], set(), id="scenario"),
        # the names of the metrics in its questions are checked
        pytest.param(["run", "hv-fig3", "--quick"], {"polars", "numpy"}, id="experiment"),
    ],
)
def test_a_verb_imports_the_libraries_of_tables_and_figures_no_earlier_than_it_needs_them(words, allowed, tmp_path):
    code = "import sys; from testbed.__main__ import main\n"
    code += "main(['list'])" if words == ["list"] else UNTIL_THE_RUNS.format(words=words, out=str(tmp_path / "out"))
    assert imported_by(code) <= allowed


def test_the_process_that_brings_a_network_up_imports_no_library_of_tables_and_figures():
    assert (
        imported_by(
            "import sys, importlib; from testbed.runs import template\nfor m in template.MODULES: importlib.import_module(m)"
        )
        == set()
    )


def imported_by(code: str) -> set[str]:
    """Of HEAVY, the modules that a program has imported at its end."""
    code += f"\nprint('HEAVY', *{HEAVY} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_a_demo_never_meets_the_results_of_the_last_one(tmp_path):
    assert free_folder(tmp_path) == tmp_path / "demo"
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo-2").mkdir()
    assert free_folder(tmp_path) == tmp_path / "demo-3"


def test_cargos_results_are_added_over_all_binaries():
    text = """running 3 tests
test a::works ... ok
test a::slow ... ignored, needs a minute
test b::left ... ignored
test c::broken ... FAILED
test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.51s
test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"""
    counts = count_cargo(text.splitlines())
    assert counts.line() == "15 passed, 1 failed, 2 skipped"
    assert counts.reasons == ["a::slow: needs a minute", "b::left: ignored, no reason given"]
    assert list(counts.failures) == ["c::broken"]


TESTS = """
import os, pathlib, time
import pytest
@pytest.fixture
def broken(): raise OSError("no fixture")
def test_works(): time.sleep(1.1)
class TestGroup:
    @pytest.mark.parametrize("value", ["a-b", "[x::y]"])
    def test_one(self, value): assert value == "a-b", "wrong\\nvalue"
def test_needs_it(broken): pass
@pytest.mark.parametrize("_", range(2))
def test_skipped(_): pytest.skip("needs root")
@pytest.mark.xfail(reason="known")
def test_known(): assert False
def test_passes_alone(): assert os.environ.get("MANET_SECOND_TRY")
def test_void_twice():
    assert os.environ.get("MANET_SECOND_TRY")
    pytest.skip("void twice")
"""


def test_pytests_results_are_counted_and_failed_tests_rerun_alone(tmp_path, monkeypatch):
    """Real calls of pytest. The parameter of a test may have any characters."""
    (tmp_path / "pytest.ini").write_text("[pytest]")
    (tmp_path / "t").mkdir()
    (tmp_path / "t/test_x.py").write_text(TESTS)
    (tmp_path / "t/test_y.py").write_text("import pytest\npytest.importorskip('nobody_has_this', reason='see x.md')\n")
    monkeypatch.setattr(test_verb, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:manet_testbed.pytest_plugin")
    runner = Pytest(tmp_path / "results")
    first = runner.run("pytest", ["t"], workers=2)
    assert first.line() == "2 passed, 4 failed, 4 skipped"
    assert set(first.reasons) == {"[1] t/test_y.py: see x.md", "[2] t/test_x.py: needs root", "[1] t/test_x.py: known"}
    group, fixture, alone, void = (
        "t/test_x.py::TestGroup::test_one[[x::y]]",
        "t/test_x.py::test_needs_it",
        "t/test_x.py::test_passes_alone",
        "t/test_x.py::test_void_twice",
    )
    assert {name: line.split()[0] for name, line in first.failures.items()} == {
        group: "FAILED", fixture: "ERROR", alone: "FAILED", void: "FAILED"
    }  # fmt: skip
    assert first.failures[group] == f"FAILED {group} - AssertionError: wrong"
    assert [name for _, name in first.slowest] == ["t/test_x.py::test_works"]
    counts = runner.second_try(first, ["t"])
    assert counts.line() == "3 passed, 2 failed, 5 skipped"
    assert set(counts.failures) == {group, fixture}
    assert set(counts.second_tries) == {first.failures[alone], first.failures[void]}
    assert counts.reasons[-1] == "[1] t/test_x.py: void twice"


def test_a_call_of_pytest_that_ends_without_results_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(test_verb, "ROOT", tmp_path)
    counts = Pytest(tmp_path / "results").run("pytest", ["--no-such-option"])
    assert counts.line() == "0 passed, 1 failed, 0 skipped"


def test_more_failures_than_a_loaded_host_gives_are_not_rerun(tmp_path):
    first = Counts(failed=13, failures={str(number): "late" for number in range(13)})
    assert Pytest(tmp_path).second_try(first) is first


def test_a_second_try_keeps_the_other_failures():
    """A runner that did not start has no failed test."""
    first = Counts(7, 2, 1, failures={"a.py::x": "FAILED a.py::x - late"})
    counts = tried_again(first, Counts(1, 0, 0))
    assert counts.line() == "8 passed, 1 failed, 1 skipped"
    assert (counts.failures, counts.second_tries) == ({}, ["FAILED a.py::x - late"])


class Runners:
    """Stands in for the runners; `failing` fails in the phase it is in, and passes alone."""

    def __init__(self, monkeypatch, failing=None):
        self.calls, self.failing = [], failing
        monkeypatch.setattr(test_verb, "_run", self.run)

    def run(self, name, command, count, environment, prefix="", *, may_be_empty=False):
        self.calls.append((name, command, environment))
        if name == "pytest, with root" and self.failing:
            return Counts(1, 1, 0, failures={self.failing: f"FAILED {self.failing} - late"})
        return Counts(1, 0, 0)

    def named(self, name):
        (found,) = [(command, environment) for called, command, environment in self.calls if called == name]
        return found


def test_all_tests_run_in_phases_and_failed_ones_once_more_alone(monkeypatch, capsys):
    runners = Runners(monkeypatch, failing="a.py::x")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(test_verb, "as_user", lambda: False)
    assert manet.main(["test"]) == 0
    names = [name for name, _, _ in runners.calls]
    assert sorted(names[:3]) == ["cargo test", "pytest, with root", "pytest, without root"]
    assert names[-2:] == ["pytest, alone", "pytest, second try"]
    command, environment = runners.named("pytest, with root")
    assert command[command.index("-n") + 1] == "3" and "(root and not alone)" in command
    assert test_verb.SECOND_TRY not in environment
    command, environment = runners.named("cargo test")
    assert "--exclude" not in command and "PROPTEST_CASES" not in environment
    command, environment = runners.named("pytest, second try")
    assert "--last-failed" in command and "-n" not in command and environment[test_verb.SECOND_TRY] == "1"
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "5 passed, 0 failed, 0 skipped"
    assert "failed at first, passed or skipped alone:\n  FAILED a.py::x - late" in out


@pytest.mark.parametrize("option", [["--rootless"], []], ids=["of root", "of a user"])
def test_without_root_and_quickly_only_those_are_chosen(option, monkeypatch, capsys):
    runners = Runners(monkeypatch)
    monkeypatch.setattr(test_verb, "as_user", lambda: not option)
    assert manet.main(["test", "--quick", *option]) == 0
    assert ("sudo ./manet test runs them" in capsys.readouterr().out) == (not option)
    assert sorted(name for name, _, _ in runners.calls) == ["cargo test", "pytest, without root"]
    command, _ = runners.named("pytest, without root")
    assert "(not root) and not slow" in command and "--hypothesis-profile=testbed-quick" in command
    command, environment = runners.named("cargo test")
    assert command[command.index("--exclude") + 1] == "manet-mesh" and environment["PROPTEST_CASES"] == "32"


def test_tests_that_are_named_run_in_one_process_and_cargos_not(monkeypatch):
    runners = Runners(monkeypatch)
    assert manet.main(["test", "topologies", "-k", "chain"]) == 0
    ((name, command, _),) = runners.calls
    assert name == "pytest" and "-n" not in command and "-m" not in command[3:] and command[-3:] == ["topologies", "-k", "chain"]


def test_pages_have_a_browser_for_each_core_and_those_in_real_time_run_alone(monkeypatch, capsys):
    runners = Runners(monkeypatch)
    monkeypatch.setattr(test_verb, "as_user", lambda: False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert manet.main(["test", "--pages"]) == 0
    assert [name for name, _, _ in runners.calls] == ["pages", "pages, alone"]
    command, _ = runners.named("pages")
    assert command[command.index("-n") + 1] == "2" and "(pages and not alone)" in command
    command, _ = runners.named("pages, alone")
    assert "-n" not in command and "(pages and alone)" in command
    assert manet.main(["test", "--pages", "-k", "axe"]) == 2
    assert "run `manet test -m pages -k axe`" in capsys.readouterr().err


def test_a_congestion_control_the_kernel_would_load_counts_as_available(tmp_path):
    listed = tmp_path / "available"
    listed.write_text("reno cubic tahoe.1f3a\n")
    folder = tmp_path / "6.1.0" / "kernel" / "net" / "ipv4"
    folder.mkdir(parents=True)
    for name in ("tcp_vegas.ko", "tcp_bbr.ko.xz", "tcp_diag.ko"):
        (folder / name).write_text("")
    assert available(listed, tmp_path, "6.1.0") == ["bbr", "cubic", "reno", "vegas"]


def test_a_congestion_control_the_kernel_lacks_is_refused():
    require_algorithm("reno", "x.toml", ["elfn", "tahoe"], ["cubic", "reno"])
    with pytest.raises(UsageError) as caught:
        require_algorithm("westwood", "x.toml", ["elfn", "tahoe"], ["cubic", "reno"])
    assert str(caught.value) == 'x.toml: key "tcp": this kernel has no "westwood"; use one of elfn, tahoe, cubic, reno'
    with pytest.raises(UsageError, match=r'this kernel has no "tahooe" \(did you mean "tahoe"\?\); use one of'):
        require_algorithm("tahooe", "x.toml", ["elfn", "tahoe"], ["cubic", "reno"])
    with pytest.raises(UsageError, match='this kernel has no "tahoe" of its own; tcp = "tahoe" is this testbed\'s; use one of'):
        require_algorithm("tahoe", "x.toml", ["elfn", "tahoe"], ["cubic", "reno"])


def test_an_algorithm_without_a_names_file_differs_from_a_missing_one(tmp_path):
    for folder in ("algorithms", "names"):
        (tmp_path / "kernel-tcp" / folder).mkdir(parents=True)
    (tmp_path / "kernel-tcp/algorithms/nox.bpf.c").write_text("")
    why = missing_algorithm("nox", ["tahoe"], ["cubic"], tmp_path / "kernel-tcp")
    assert why == (
        "kernel-tcp/algorithms/nox.bpf.c has no kernel-tcp/names/nox.toml; write that file (formats/tcp.md says what it holds)"
    )
    other = missing_algorithm("no", ["tahoe"], ["cubic"], tmp_path / "kernel-tcp")
    assert other == 'this kernel has no "no"; use one of tahoe, cubic'
    assert missing_algorithm("nox", ["tahoe"], ["nox"], tmp_path / "kernel-tcp") == ""  # loaded for the machine


def test_an_ordinary_user_is_told_that_ebpf_needs_root(as_user):
    with pytest.raises(UsageError, match=r'"elfn\(newreno\)": an ordinary user loads no eBPF programs; run it as root$'):
        check_tcps([parse("cubic"), parse("elfn")], "x.toml")


def test_a_kernel_without_bpf_congestion_control_has_its_own_error(as_root, tmp_path):
    loader = tmp_path / "manet-tcp"
    loader.write_text('#!/bin/sh\necho \'{"struct_ops": false, "kernel": "5.4.0"}\'\n')
    loader.chmod(0o755)
    with pytest.raises(UsageError) as caught:
        check_tcps([parse("cubic"), parse("elfn")], "x.toml", Programs(kernel_tcp=loader))
    error = str(caught.value)
    assert error.startswith('x.toml: key "tcp": "elfn(newreno)": this kernel (5.4.0) takes no BPF congestion control; use Linux')
    check_tcps([parse("cubic"), parse("newreno")], "x.toml", Programs(kernel_tcp=loader))
    loader.unlink()
    with pytest.raises(UsageError, match=r'"tahoe": .*manet-tcp is not built; run ./setup.sh'):
        check_tcps([parse("tahoe")], "x.toml", Programs(kernel_tcp=loader))
