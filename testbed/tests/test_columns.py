"""Printed rows at 80 columns: wrapped below their own text, never cut; in a pipe one row is one line."""

import pytest

from testbed import __main__ as manet
from testbed import columns
from testbed.commands import tcp
from testbed.host.doctor import Check
from testbed.programs import ROOT
from testbed.validate import checks, command

LONG = "a text of many words " * 8


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def too_long(text):
    return [line for line in text.splitlines() if len(line) > 80]


def test_a_row_continues_below_its_text(narrow):
    first, *others = columns.hanging("  name  ", LONG).splitlines()
    assert first.startswith("  name  a text") and len(others) == 2
    assert all(line.startswith("        ") and line[8] != " " for line in others)
    assert " ".join([first[8:], *(line.strip() for line in others)]) == LONG.strip()


def test_a_word_that_does_not_fit_stays_whole(narrow):
    path = "/" + "x" * 100
    assert path in columns.hanging("  name  ", f"before {path} after").splitlines()[1]


def test_without_a_terminal_a_row_is_one_line(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert columns.rows([("a", LONG), ("longer", "x")]) == [f"  a       {LONG.strip()}", "  longer  x"]
    assert columns.folded(f"  {LONG}") == f"  {LONG.strip()}"


def test_a_tied_space_is_no_place_to_wrap(narrow):
    text = f"{'x' * 70} 6:{columns.NO_BREAK}10.1{columns.NO_BREAK}%"
    assert columns.hanging("  ", text).splitlines()[1] == "  6: 10.1 %"


def test_a_folded_line_keeps_its_indent(narrow):
    assert [len(line) - len(line.lstrip()) for line in columns.folded(f"  {LONG}").splitlines()] == [2, 6, 6]


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "experiments", "scenarios", "radios", "topologies", "mobility", "propagation", "traffic", "routing", "tcp"],
        ["tcp", "list"],
        ["trace", str(ROOT / "mobility/patterns/p06.tcl"), "--hops", "sta1", "sta2"],
        ["curve", "show", "hv-fig3"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_the_output_of_a_verb_fits_80_columns(words, narrow, capsys, monkeypatch):
    monkeypatch.setattr(tcp, "_loaded", lambda: [{"name": "mine", "algorithm": "vegas", "parameters": {"alpha": 2.5}}])
    monkeypatch.chdir(ROOT)
    assert manet.main(words) == 0
    text = capsys.readouterr().out
    assert text and too_long(text) == []


def test_parameters_of_a_tcp_fit_80_columns_and_its_text_stays_whole(narrow, capsys):
    assert manet.main(["tcp", "show", "elfn"]) == 0
    described, _, scenario = capsys.readouterr().out.partition("in a scenario:")
    assert too_long(described) == []
    assert all(line.count('"') in (0, 2) for line in scenario.splitlines())  # to be copied


@pytest.mark.parametrize(
    ("rights", "user", "of_root", "whom"), [("root", 0, "MISSING", "root"), ("user", 1000, "?      ", "an ordinary user")],
    indirect=["rights"],
)  # fmt: skip
def test_checks_of_the_machine_fit_80_columns(rights, user, of_root, whom, narrow, capsys, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: user)
    found = [
        Check("TUN", True, "/dev/net/tun"),
        Check("kernel-tcp", False, LONG, LONG),
        Check("routing olsrd", False, LONG, LONG),
    ]
    monkeypatch.setattr("testbed.host.doctor.doctor", lambda: found)
    assert manet.main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert too_long(text) == [] and f"ok      TUN         /dev/net/tun\n{of_root} MISSING kernel-tcp  a text" in text
    assert text.endswith(f"missing, and needed for runs of {whom}: kernel-tcp, routing olsrd\n")


@pytest.mark.parametrize("width", ["80", "160"])
def test_checks_of_the_medium_fit_the_terminal(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    names = ("bianchi/dot11a-54m/rts-off/n=50", "ns2/udp-chain/hops=10/overload/failed-attempts")
    done = [
        checks.Check(name, 31209.9, 31200.0, "IEEE Std 802.11-2012: frame durations", 0.05, True, "kbit/s", 0.0003)
        for name in names
    ]
    command.print_checks(done)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= int(width)
    assert all(name in "\n".join(lines) for name in names) and "31209.9" in lines[1]
