"""ns-3's stored results, and its cases again: what the program is told, its answer, the comparison."""

import re
from fnmatch import fnmatch

import pytest

from testbed.__main__ import main
from testbed.errors import RunError, UsageError
from testbed.programs import ROOT
from testbed.validate import checks, ns3, ns3_rerun
from testbed.validate.ns2 import Summary

REFERENCES = {each.case: each for each in ns3.references()}


def options(case):
    return ns3_rerun.arguments(REFERENCES[case])


def test_every_case_has_a_stored_result_of_its_own():
    assert len(REFERENCES) == len(list(ns3.references()))
    assert REFERENCES.keys() <= ns3.read().keys()
    assert {case.name for case in checks.ns3_cases(ns3.read())} == {f"ns3/{each.name}" for each in REFERENCES.values()}


def test_every_stored_case_is_compared_in_some_form_or_left_out_for_a_reason():
    def plain(case):
        return ns3.VARIANT.sub("", case)

    compared = {plain(case) for case in REFERENCES}
    rest = [case for case in ns3.read() if plain(case) not in compared]
    patterns = [pattern for pattern, _ in ns3.LEFT_OUT]
    assert [case for case in rest if not any(fnmatch(case, pattern) for pattern in patterns)] == []
    assert all(any(fnmatch(case, pattern) for case in rest) for pattern in patterns)


def test_the_page_explains_each_form_of_a_case():
    """The letters before the name of a case of ns-3, and what the name of the check has at its end."""
    table = (ROOT / "docs/medium.md").read_text().partition("\n| form |")[2].partition("\n\n")[0]
    explained = set(re.findall(r"`([^`]+)`", " ".join(row.split("|")[1] for row in table.splitlines()[2:])))
    names = "/".join(each.name + "/" for each in REFERENCES.values())
    ends = re.findall(r"(?:\b(?:mcs-7|queue-500)/)?\bsensed-\d+-dbm", names)
    begins = re.findall(r"[a-z]+\d*-(?=.)", " ".join(found[0] for case in REFERENCES if (found := ns3.VARIANT.match(case))) + " ")
    assert explained == {f".../{end}" for end in ends} | set(begins)


def test_the_program_knows_every_option_that_a_case_gives_it():
    known = set(re.findall(r'cmd\.AddValue\("([\w-]+)"', ns3_rerun.SOURCE.read_text()))
    assert {name for case in REFERENCES for name in options(case)} <= known


def test_a_circle_is_told_as_its_layout_has_it():
    told = options("a-circle-2-rts0")
    assert told["stations"] == "500.0,500.0;520.0,500.0;480.0,500.0"
    assert told["flows"] == "1>0,4.5e+07,1500,0;2>0,4.5e+07,1500,0"
    assert (told["standard"], told["rate"], told["control"]) == ("11a", "OfdmRate54Mbps", "OfdmRate24Mbps")
    assert (told["rts"], told["retries"], told["warmup"], told["seconds"]) == (0, 7, 0.5, 1.5)
    assert "slot" not in told and options("g9us-circle-1-rts0")["slot"] == 9


def test_a_chain_is_told_with_its_route_and_losses():
    told = options("forward-a-chain3-two1000-rts0")
    assert (told["route"], told["forward"], told["flows"]) == ("0;1;2;3", 18, "0>3,4.32e+07,1500,0")
    assert set(told["losses"].split(";")) == {f"{a}>{b}=70" for a, b in ((0, 1), (1, 2), (2, 3), (1, 0), (2, 1), (3, 2))}
    assert "losses" not in options("a-chain3-80m-tworay-rts0")


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("n-mcs3-ampdu0", {"rate": "HtMcs3", "ampdu": 0}),
        ("q500-11n-minstrel-chain2-80m", {"manager": "MinstrelHt", "ampdu": 1, "queue": 500, "discipline": 0, "retries": 7}),
        ("11n-ideal-chain3-80m-ampdu0", {"manager": "Ideal", "ampdu": 0}),
        ("spectrum-q500-11n-ideal-chain3-80m",
         {"manager": "Ideal", "queue": 500, "discipline": 0, "error": "Nist", "spectrum": 1, "seconds": 8.0}),
        ("cca62-n-mcs7-senders10-ampdu1", {"cca": -62, "rate": "HtMcs7", "retries": 7}),
        ("decode-OfdmRate24Mbps--82dBm-nist-sense-101",
         {"rate": "OfdmRate24Mbps", "retries": 1, "sense": -101, "error": "Nist", "losses": "0>1=97;1>0=97"}),
        ("edca-vo2016-be-one-station-vo", {"voice-txop": 2016, "flows": "1>0,4.5e+07,1500,48;1>0,4.5e+07,1500,0"}),
        ("retry30-a-hidden-2-rts1000000", {"retries": 30}),
        ("settled-n-minstrel-senders10", {"manager": "MinstrelHt", "statistics": 1000, "warmup": 20.0, "error": "Nist"}),
        ("nist-11ac-ideal-100m", {"standard": "11ac", "manager": "Ideal", "ampdu": 1, "error": "Nist"}),
        ("nist-b-pair-450m", {"sense": -101, "error": "Nist"}),
        ("he80-mcs11-ampdu1", {"standard": "11ax", "rate": "HeMcs11", "width": 80, "ampdu": 1, "queue": 500, "rts": 1000000}),
    ],
)  # fmt: skip
def test_a_case_sets_what_its_name_stands_for(case, told):
    assert told.items() <= options(case).items()


def test_without_the_wheel_a_rerun_names_the_remedy(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(ns3_rerun.VARIABLE, str(tmp_path))
    assert main(["validate", "--rerun-ns3", "--only", "ns3/n-mcs/7"]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert f"{tmp_path}: has no wheel ns3; get it with: " in said and f"pip install --no-deps {ns3_rerun.WHEEL}" in said


def test_another_version_is_refused(monkeypatch, tmp_path):
    (tmp_path / "lib/python3.11/site-packages/ns3").mkdir(parents=True)
    monkeypatch.setenv(ns3_rerun.VARIABLE, str(tmp_path))
    with pytest.raises(UsageError, match=r"site-packages/ns3: is not ns-3 3\.44; get that with: "):
        ns3_rerun.installed()


def test_a_pattern_without_a_case_is_refused_before_the_wheel_is_looked_for(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(ns3_rerun.VARIABLE, str(tmp_path))
    assert main(["validate", "--rerun-ns3", "--only", "bianchi/*"]) == 2
    assert "--only bianchi/*: no case of ns-3 has such a name" in capsys.readouterr().err


def test_an_answer_is_the_result_line_and_anything_else_names_the_command(tmp_path):
    program = tmp_path / "ns3"

    def answer(script):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return ns3_rerun.call(program, {"standard": "11a"}, 3)

    assert answer("echo a line; echo RESULT flows=30480:1.5e+06") == [30480.0, 1.5e6]
    for script, said in (("echo '--flows: no flow' >&2; exit 2", "exit 2 .*: --flows: no flow"), ("true", "exit 0 without")):
        with pytest.raises(RunError, match=f"^{program} --standard=11a --seed=3: {said}"):
            answer(script)


def test_a_result_repeats_within_a_hundredth_or_three_standard_errors():
    reference = REFERENCES["a-circle-1-rts0"]

    def compared(before, now):
        return ns3_rerun._compared(reference, before, now)

    assert compared(Summary(1000.0, 0.0, 5), Summary(1009.0, 0.0, 5)).ok
    assert not compared(Summary(1000.0, 0.0, 5), Summary(1011.0, 0.0, 5)).ok
    wide = compared(Summary(1000.0, 30.0, 9), Summary(1040.0, 40.0, 16))  # errors 10 and 10: 3 * 14.14
    assert wide.ok and wide.tolerance == pytest.approx(3 * 200**0.5 / 1000) and wide.name == "rerun/a-circle/n=1/rts-on"
    # of 250 frames a share of 0.5 has a standard error of 0.0316
    share = ns3_rerun._compared(
        REFERENCES["decode-OfdmRate24Mbps--82dBm-nist-sense-101"], Summary(500.0, 0.0, 1), Summary(600.0, 0.0, 1)
    )
    nothing = REFERENCES["decode-OfdmRate24Mbps--88dBm-nist-sense-101"]
    assert ns3_rerun._compared(nothing, Summary(0.0, 0.0, 1), Summary(9.0, 0.0, 1)).error == pytest.approx(0.009)
    assert share.ok and share.tolerance == pytest.approx(3 * (0.25 / 250 + 0.24 / 250) ** 0.5 / 0.5)


def test_the_medium_is_compared_with_the_new_result():
    case = next(case for case in checks.ns3_cases({"a-circle-1-rts0": Summary(20000.0, 10.0, 5)}))
    assert (case.name, case.reference, case.tolerance) == ("ns3/a-circle/n=1/rts-on", 20000.0, 0.05)


@pytest.mark.parametrize(("result", "tolerance"), [(Summary(20000.0, 1000.0, 4), 0.075), (Summary(20000.0, 1000.0, 100), 0.05)])
def test_the_medium_may_differ_by_a_twentieth_or_three_standard_errors(result, tolerance):
    case = next(checks.ns3_cases({"a-circle-1-rts0": result}))
    assert case.tolerance == pytest.approx(tolerance)


def test_where_ns_3_delivers_nothing_the_error_is_a_share_of_what_is_offered():
    case = next(checks.ns3_cases({"decode-OfdmRate24Mbps--88dBm-nist-sense-101": Summary(0.0, 0.0, 1)}))
    assert checks.compare(case, [40.0]).ok and not checks.compare(case, [60.0]).ok
    assert checks.compare(case, [60.0]).error == pytest.approx(0.06)


def _missing():
    try:
        ns3_rerun.installed()
    except UsageError as problem:
        return str(problem)
    return ""


@pytest.mark.slow
def test_ns_3_gives_a_stored_result_again():
    if missing := _missing():
        pytest.skip(f"{missing} (docs/medium.md)")
    chosen = [REFERENCES["n-mcs7-ampdu0"]]
    (check,) = ns3_rerun.repeated(chosen, ns3_rerun.rerun(chosen, lambda done, total: None))
    assert check.ok, f"{check.ours} kbit/s, stored {check.reference}"
