"""The TCP of a flow as text: its meaning, its canonical spelling, and the error for text without a meaning."""

import json
import random
import re
import subprocess
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.tcp import MAX_LENGTH, TcpError, parse
from scenarios.tcp_names import microseconds, spelled_time, table
from testbed.errors import UsageError
from testbed.programs import BUILT, ROOT

ELFN = {
    "probe_us": 2_000_000, "repair": "unchanged", "packet": "first", "leave": "any-ack", "restore": "at-notice", "notice": "icmp",
}  # fmt: skip


def problem(text):
    with pytest.raises(TcpError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- the table of names -----------------------------------------------------------------------------------------------


def test_every_name_of_the_papers_is_in_the_table():
    algorithms = {name for name, known in table().items() if not known.is_layer}
    assert algorithms >= {"newreno", "sack", "tahoe", "reno", "vegas", "tcpap"}
    assert set(table()) - algorithms >= {"reno-f", "elfn", "tcpf", "atcp", "tcpbus", "lcd"}


@pytest.mark.parametrize("name", table())
def test_a_name_has_the_attributes_of_its_file(name):
    known = table()[name]
    assert known.summary and known.source
    assert all(parameter.text for parameter in known.parameters.values())
    assert len(name) <= 10  # a run's own copy is registered as NAME.xxxx, of at most 15 bytes


@pytest.mark.parametrize("name", table())
def test_a_default_may_be_written_out(name):
    assert parse(parse(name).in_full).in_full == parse(name).in_full


ALGORITHMS = ROOT / "kernel-tcp" / "algorithms"
TUNABLE = re.compile(r"^TUNABLE\((\w+), ([0-9./ ]+), ([0-9./ ]+), ([0-9./ ]+), \d+\)", re.MULTILINE)


def quotient(text):
    """Of a C constant as `7 / 10.`."""
    above, _, below = text.partition("/")
    return Fraction(above) / Fraction(below.strip().rstrip(".") or 1)


@pytest.mark.parametrize("name", [name for name, known in table().items() if not (known.is_layer or known.kernel)])
def test_a_program_has_the_parameters_that_its_names_file_says(name):
    text = (ALGORITHMS / f"{name}.bpf.c").read_text()
    program = {found[0]: tuple(map(quotient, found[1:])) for found in TUNABLE.findall(text)}
    named = {p.key: tuple(map(Fraction, (p.default, p.min, p.max))) for p in table()[name].parameters.values()}
    assert program == named


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('kind = "layr"\nsummary = "s"', 'key "kind": "layr" is not known; use one of algorithm, layer'),
        ('kind = "algorithm"', 'key "summary": is missing'),
        ('kind = "layer"\nsummary = "s"', 'key "inner": is missing'),
        ('kind = "layer"\nsummary = "s"\ninner = "x"', 'key "inner": "x" is no algorithm of this folder'),
        ('kind = "algorithm"\nsummary = "s"\nsak = true', 'key "sak": unknown; the keys are'),
        ('kind = "algorithm"\nsummary = "s"\nsack = 1', 'key "sack": is of the wrong type, bool is expected'),
        ('kind = "algorithm"\nsummary = "s"\n[parameters.p]\ntype = "tim"', 'key "parameters.p.type": must be one of'),
        ("kind =", "cannot be read as TOML"),
        (
            'kind = "algorithm"\nsummary = "s"\n[parameters.p]\ntype = "time"\ntext = "t"\ndefault = 2\nmin = "0s"\nmax="9s"',
            'key "parameters.p.default": a time is text with its unit, as "2s"',
        ),
        (
            'kind = "algorithm"\nsummary = "s"\n[parameters.p]\ntype = "number"\ntext = "t"\ndefault = 2\nmin = 0\nmax = 1',
            'key "parameters.p.default": is not between min and max',
        ),
        *(
            (
                f'kind = "algorithm"\nsummary = "s"\n[parameters.p]\ntype = "{kind}"\ntext = "t"\ndefault = {bound}\n'
                f"min = {bound}\nmax = {bound}\nrtts = {rtts}",
                'key "parameters.p.rtts": must be the least and the greatest multiple, of a time',
            )
            for kind, bound, rtts in (("time", '"1s"', 9), ("time", '"1s"', [9]), ("number", 1, [1, 9]))
        ),
    ],
)
def test_an_invalid_names_file_is_reported_with_its_key(tmp_path, text, error):
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        table(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/x.toml: ") and error in str(caught.value)


# --- what a text means ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "settings", "sack"),
    [
        ("newreno", {"algorithm": "newreno"}, False),
        ("sack", {"algorithm": "newreno"}, True),
        ("reno", {"algorithm": "reno"}, False),
        ("cubic", {"algorithm": "cubic"}, None),
        ("kernel-vegas", {"algorithm": "kernel-vegas"}, None),
        ("kernel-reno", {"algorithm": "newreno"}, None),
        ("vegas(beta=4)", {"algorithm": "vegas", "parameters": {"alpha": 1, "beta": 4, "gamma": 1}}, False),
        ("elfn", {"algorithm": "newreno", "layers": [{"name": "elfn", "parameters": ELFN}]}, False),
        ("elfn(sack)", {"algorithm": "newreno", "layers": [{"name": "elfn", "parameters": ELFN}]}, True),
        ("reno-f", {"algorithm": "reno", "layers": [{"name": "reno-f", "parameters": {}}]}, False),
        (
            "elfn(reno-f(reno), probe=100ms, packet=lost)",
            {
                "algorithm": "reno",
                "layers": [
                    {"name": "elfn", "parameters": {**ELFN, "probe_us": 100_000, "packet": "lost"}},
                    {"name": "reno-f", "parameters": {}},
                ],
            },
            False,
        ),
    ],
)
def test_a_text_is_resolved_for_the_loader(text, settings, sack):
    tcp = parse(text)
    assert (tcp.settings(), tcp.sack) == (settings, sack)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("elfn", "elfn(newreno)"),
        (" elfn( packet = lost,newreno , )", None),
        ("elfn(newreno,packet=first,probe=2000 ms)", "elfn(newreno, probe=2s, packet=first)"),
        ("elfn(probe=0.1s)", "elfn(newreno, probe=100ms)"),
        ("elfn(probe=0.5min)", "elfn(newreno, probe=30s)"),
        ("vegas(alpha=0.50, beta=3.0)", "vegas(alpha=0.5, beta=3)"),
        ("vegas()", "vegas"),
        ("reno-f(cubic)", "reno-f(cubic)"),
    ],
)
def test_the_canonical_spelling_keeps_the_given_parameters(text, spelled):
    if spelled is None:
        assert "comes after a parameter" in problem(text)
    else:
        assert parse(text).spelled == spelled


def test_which_tcps_want_the_daemons_own_notices():
    assert parse("tcpf").wants_notices and parse("tcpbus").wants_notices
    assert not any(parse(name).wants_notices for name in ("elfn", "atcp", "lcd", "newreno"))
    assert parse("reno-f(newreno)").wants_notices is False


def test_the_kernels_own_need_no_struct_ops():
    assert [name for name in ("newreno", "sack", "cubic", "tahoe", "elfn") if parse(name).wants_struct_ops] == ["tahoe", "elfn"]


# --- what is wrong with a text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", 'the text is empty; write for example "newreno" or "elfn(newreno, probe=2s)"'),
        ("Tahoe", '"Tahoe" is no name of a TCP; did you mean "tahoe"?'),
        ("x/own.bpf.o", '"x/own.bpf.o" is no name of a TCP; load the file first (manet tcp load FILE.o) and give its name'),
        ("elfn(prob=2s)", '"elfn" has no parameter "prob"; did you mean "probe"?'),
        ("elfn(alpha=1)", '"elfn" has no parameter "alpha"; it has probe, repair, packet, leave, restore, notice'),
        ("tahoe(alpha=1)", '"tahoe" has no parameter "alpha"; it has none'),
        ("elfn(probe=2)", "probe of elfn: 2 has no unit; write 2s or 2ms (units: s, ms, us, min)"),
        ("elfn(probe=2m)", 'probe of elfn: "m" is no unit of time; use one of s, ms, us, min'),
        ("elfn(probe=soon)",
         'probe of elfn: "soon" is not a time, which is a number with its unit; give 100ms to 30s, or 0.1 to 1000rtt'),
        ("elfn(probe=60s)", 'probe of elfn: "60s" is out of range; give 100ms to 30s, or 0.1 to 1000rtt'),
        ("elfn(probe=2s, probe=3s)", '"elfn" has probe twice; remove one'),
        ("elfn(repair=windw)",
         'repair of elfn: "windw" is not known; use one of unchanged, window, initial (did you mean "window"?)'),
        ("vegas(alpha=1s)", 'alpha of vegas: 1 has the unit "s"; give a number without unit, 0 to 64 (segments)'),
        ("vegas(alpha=5)", '"vegas": alpha=5 is above beta=3; lower alpha, or raise beta'),
        ("tcpap(hops=1.5)", "hops of tcpap: 1.5 is not whole; give a whole number from 0 to 64 (hops)"),
        ("cubic(beta=2)", '"cubic" is not an algorithm of this testbed and takes no parameters; write the name alone'),
        ("tahooe(x=2)", '"tahooe" is not an algorithm of this testbed and takes no parameters; did you mean "tahoe"?'),
        ("newreno(elfn)", '"newreno" is an algorithm and has no inner TCP, but "elfn" is inside; remove it'),
        ("vegas(2)",
         '"vegas" is an algorithm and has no inner TCP, but "2" is inside; remove it, or name a parameter (alpha, beta, gamma)'),
        ("elfm(newreno)", '"elfm" is not a layer and has no inner TCP, but "newreno" is inside; did you mean "elfn"?'),
        ("veno(newreno)", '"veno" is an algorithm and has no inner TCP, but "newreno" is inside; remove it'),
        ("elfn(newreno, cubic)", '"elfn" has one inner TCP, but "cubic" is a second one; a parameter is written name=value'),
        ("elfn(probe=2s, newreno)", '"newreno" comes after a parameter; write the inner TCP of "elfn" first'),
        ("elfn(elfn(newreno))", '"elfn" is inside itself; remove one'),
        ("elfn(tcpf(newreno))", 'both "elfn" and "tcpf" act on route failures; take one of them'),
        ("elfn(newreno", 'a parenthesis is not closed in "elfn(newreno"; add ")"'),
        ("vegas(", 'a parenthesis is not closed in "vegas("; add ")"'),
        ("elfn(vegas(alpha=", '2 parentheses are not closed in "elfn(vegas(alpha="; add "))"'),
        ("elfn(vegas(alpha=2)beta)", "\"beta\" follows where ',' or ')' is expected, inside \"elfn(\"; correct it"),
        ("elfn(newreno))", '")" is unexpected after "elfn(...)"; remove it'),
        ("newreno)", '")" is unexpected after "newreno"; remove it'),
        ("tcp=newreno", '"=" is unexpected after "tcp"; a TCP is written like "newreno" or "elfn(newreno, probe=2s)"'),
        ("x" * (MAX_LENGTH + 1), f"is longer than {MAX_LENGTH} characters; shorten it"),
    ],
)  # fmt: skip
def test_an_invalid_text_is_reported_with_the_allowed_values(text, error):
    assert problem(text) == error


# --- for every text ---------------------------------------------------------------------------------------------------

_WORDS = st.one_of(
    st.sampled_from(["(", ")", ",", "=", " ", "2s", "100ms", "1", "0.5", "first", "\n", "-", "cubic", "kernel-", "1e9", "nan"]),
    st.sampled_from([*table(), *sorted({name for known in table().values() for name in known.parameters})]),
    st.text(max_size=3),
)


@given(st.one_of(st.lists(_WORDS, max_size=14).map("".join), st.text(max_size=400)))
def test_no_text_raises_anything_else(text):
    try:
        tcp = parse(text)
    except TcpError as error:
        assert "\n" not in str(error)
    else:
        assert parse(tcp.spelled) == tcp


def random_tcp(draw):
    """The text of any TCP of the table: layers, parameters of their whole range."""
    layers = [name for name, known in table().items() if known.is_layer and not known.notices]
    answering = [name for name, known in table().items() if known.notices]
    around = draw.sample(layers, draw.randrange(2)) + draw.sample(answering, draw.randrange(2))
    text = written(draw, draw.choice(["cubic", "kernel-bbr", *(n for n, known in table().items() if not known.is_layer)]), "")
    for layer in around:
        text = written(draw, layer, text)
    return text


def written(draw, name, inner):
    known = table()[name].parameters if name in table() else {}
    given = {key: value_of(draw, known[key]) for key in draw.sample(list(known), draw.randint(0, len(known)))}
    items = ([inner] if inner else []) + [f"{key} = {value}" for key, value in given.items()]
    return f"{name}({' , '.join(items)})" if items else name


def value_of(draw, parameter):
    if parameter.type == "choice":
        return draw.choice(parameter.choices)
    if parameter.type == "number":
        return f"{draw.uniform(float(parameter.min), float(parameter.max)):.3f}"
    value = draw.randint(int(parameter.min), int(parameter.max))
    return f"{value} us" if parameter.type == "time" else str(value)


@given(st.integers(0, 2**32))
def test_the_spelling_of_a_tcp_reads_back_as_the_same(seed):
    text = random_tcp(random.Random(seed))
    try:
        tcp = parse(text)
    except TcpError as error:
        assert "is above" in str(error), f"seed {seed}: {text}: {error}"
        return
    assert parse(tcp.spelled) == tcp and parse(tcp.spelled).spelled == tcp.spelled, f"seed {seed}: {text}"
    assert parse(tcp.in_full).settings() == tcp.settings(), f"seed {seed}: {text}"


@given(st.integers(0, 10**10))
def test_a_time_reads_back_from_its_spelling(us):
    text = spelled_time(us)
    unit = text.lstrip("0123456789.")
    assert microseconds(Decimal(text.removesuffix(unit)), unit) == us


# --- the table beside the loader's own -------------------------------------------------------------------------------


def refusal(tmp_path, settings):
    """The loader's error for these settings, for a station and a cgroup that do not exist."""
    station = {"name": "sta1", "netns": str(tmp_path / "nowhere"), "settings": settings}
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"format": "manet-tcp-settings/1", "cgroup": str(tmp_path / "nowhere"), "stations": [station]}))
    argv = [str(BUILT.kernel_tcp), "run", str(path)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False).stderr


@pytest.mark.skipif(not BUILT.kernel_tcp.exists(), reason="kernel-tcp is not built (./setup.sh)")
@pytest.mark.parametrize("name", [name for name, known in table().items() if known.is_layer])
def test_the_loader_accepts_exactly_the_values_of_the_table(name, tmp_path):
    known = table()[name].parameters
    assert "nowhere" in refusal(tmp_path, parse(name).settings())
    for parameter in (parameter for parameter in known.values() if parameter.type != "choice"):
        for value, taken in ((parameter.min, True), (parameter.max, True), (parameter.max + 1, False)):
            settings = parse(name).settings()
            settings["layers"][0]["parameters"][parameter.key] = int(value)
            error = refusal(tmp_path, settings)
            case = (parameter.name, value, error)
            assert ("nowhere" if taken else parameter.key) in error and ("nowhere" in error) == taken, case


def test_the_probe_interval_of_elfn_may_be_a_multiple_of_the_round_trip_time() -> None:
    tcp = parse("elfn(newreno, probe=2.50rtt)")
    assert tcp.spelled == "elfn(newreno, probe=2.5rtt)" and parse(tcp.in_full).settings() == tcp.settings()
    settings = tcp.settings()["layers"][0]["parameters"]  # type: ignore[index]
    assert (settings["probe_rtts"], "probe_us" in settings) == (2.5, False)
    for text, error in {
        "elfn(probe=0rtt)": '"0rtt" is out of range; give 100ms to 30s, or 0.1 to 1000rtt',
        "elfn(probe=1001rtt)": '"1001rtt" is out of range',
        "elfn(probe=2rtts)": '"rtts" is no unit of time',
        "atcp(probe=2rtt)": '"rtt" is no unit of time',
    }.items():
        with pytest.raises(TcpError) as problem:
            parse(text)
        assert error in str(problem.value)


@pytest.mark.skipif(not BUILT.kernel_tcp.exists(), reason="kernel-tcp is not built (./setup.sh)")
def test_the_loader_takes_a_multiple_of_the_round_trip_time(tmp_path):
    for rtts, taken in ((0.1, True), (1000, True), (1001, False)):
        settings = parse("elfn(probe=2rtt)").settings()
        settings["layers"][0]["parameters"]["probe_rtts"] = rtts
        error = refusal(tmp_path, settings)
        assert ("nowhere" if taken else '"probe_rtts" must be a number from 0 to 1000') in error, rtts


def test_elfn_follows_icmp_or_route_errors_never_both() -> None:
    by_error, by_icmp = parse("elfn(newreno, notice=route-error)"), parse("elfn")
    assert parse("elfn(notice=icmp)").settings() == by_icmp.settings()
    assert (by_error.wants_error_notices, by_error.hears_unreachable) == (True, False)
    assert (by_icmp.wants_error_notices, by_icmp.hears_unreachable) == (False, True)
    with pytest.raises(TcpError, match='"both" is not known; use one of icmp, route-error'):
        parse("elfn(notice=both)")
