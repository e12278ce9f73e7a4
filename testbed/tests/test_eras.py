"""The tables of docs/eras.md: they follow from the kept rows of hv-eras."""

import random
import re

import pytest

from analysis.decisions import eras as shares_of
from analysis.decisions.rule import collapses, comparison
from analysis.tables.kept_rows import KeptRow, merged, write
from testbed import __main__ as manet
from testbed.campaigns import kept
from testbed.campaigns.experiment import load
from testbed.campaigns.library import find
from testbed.campaigns.report import Report
from testbed.campaigns.request import Request
from testbed.claims import eras, page
from testbed.claims.numbers import Numbers
from testbed.errors import UsageError

PATH = list(shares_of.SWITCHES)[: list(shares_of.SWITCHES).index(shares_of.LAST) + 1]  # of ELFN; Reno's lacks `icmp`
# kbit/s over the variant before it in the way, or over 1999
GAINS = {"no-arp": 150, "dsr-rfc": 0, "ack": -100, "today": 20, "rto-floor-1s": -80}


def kept_rows(folder, seeds=40, left_out=()):
    """Rows of hv-eras (quick): patterns differ by hundreds, a pair by some 5 kbit/s around the gains."""
    rng = random.Random(7)
    patterns = {seed: rng.gauss(300, 100) for seed in range(1, seeds + 1)}
    rows = []
    for cell in load(find(eras.NAME), Request(quick=True)).cells:
        at = shares_of.station(cell.variant)
        gain = sum(GAINS.get(name, 0) for name in PATH[: PATH.index(at) + 1]) if at in PATH else GAINS.get(at, 0)
        values = {"variant": cell.variant, **{axis: str(value) for axis, value in cell.axes.items()}}
        rows += [
            KeptRow(cell.identity, seed, "valid", values, {"acked_kbps": round(max(0, base + gain + rng.gauss(0, 5)), 3)}, 40.0)
            for seed, base in patterns.items()
            if cell.variant not in left_out
        ]
    write(kept.file_of(eras.NAME, folder), merged(rows))
    return Numbers(folder)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return kept_rows(tmp_path_factory.mktemp("results"))


def cells(text, label, table=0):
    """The cells of a line of a table."""
    (line,) = re.findall(rf"^\| {re.escape(label)} \|(.*)\|$", text.split("\n\n")[1 + table], re.MULTILINE)
    return [cell.strip() for cell in line.split("|")]


def test_the_committed_page_has_the_tables_of_the_rows():
    assert eras.PAGE.read_text() == eras.text(eras.PAGE, Numbers()), "docs/eras.md is not of the rows; ./manet report --claims"


def test_the_words_of_both_pages_have_the_numbers_of_the_tables():
    """README.md and the head of docs/eras.md say `146 [104, 195] less` of `-146 [-195, -104]`."""
    number = re.compile(r"[+-]?(\d+) \[[+-]?(\d+), [+-]?(\d+)\]")

    def found(text):
        return {frozenset(match) for match in number.findall(text)}

    computed, page_head = found(eras.tables(Numbers())), eras.PAGE.read_text().partition(eras.BEGIN)[0]
    for words in (page_head, (eras.PAGE.parents[1] / "README.md").read_text()):
        assert found(words), "the page names no share"
        assert found(words) <= computed, "correct the words; the numbers are those of the tables of docs/eras.md"


def test_the_command_writes_the_tables_and_leaves_the_words(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(eras, "PAGE", tmp_path / "eras.md")
    eras.PAGE.write_text(f"before\n{eras.BEGIN}\nold\n{eras.END}\nafter\n")
    monkeypatch.setattr(page, "write", lambda: page.Page(None, None))
    assert manet.main(["report", "--claims"]) == 0
    assert f"{eras.PAGE}: {len(Numbers().load(eras.NAME, 'quick').counted({}))} kept rows of hv-eras" in capsys.readouterr().out
    assert eras.PAGE.read_text() == f"before\n{eras.BEGIN}\n{eras.tables(Numbers())}\n{eras.END}\nafter\n"


def test_every_variant_of_the_experiment_has_words():
    variants = {cell.variant for cell in load(find(eras.NAME), Request(quick=True)).cells}
    assert {shares_of.station(variant) for variant in variants} == {shares_of.FIRST, *shares_of.SWITCHES}


def test_a_share_has_the_interval_of_its_pairs(numbers):
    """ELFN's share of the back-off of requests has no question: a single look at all pairs."""
    made = eras.tables(numbers)
    runs = {name: {} for name in ("elfn-dsr-rfc", "elfn-no-arp")}
    for run in numbers.load(eras.NAME, "quick").runs:
        if run["variant"] in runs and run["speed"] == 30:
            runs[run["variant"]][run["seed"]] = run["acked_kbps"]
    values = [(runs["elfn-dsr-rfc"][seed], runs["elfn-no-arp"][seed]) for seed in range(1, 41)]
    found = comparison([one - other for one, other in values], collapses(values))
    assert cells(made, "DSR: back-off of RFC 4728")[3] == shown(found)
    assert cells(made, "ELFN: notice of drops only")[:2] == ["", ""], "Reno has no notices"
    assert "over 20 to 40 pairs of runs" in made, "a large effect is decided at the first look"


def shown(found):
    return f"{found.mean:+.0f} [{found.low:+.0f}, {found.high:+.0f}]"


def test_a_share_that_a_question_asks_for_is_its_answer(numbers):
    made, sized = eras.tables(numbers), numbers.load(eras.NAME, "quick")
    question = "Reno carries more without the ARP of 1999"
    asked = [each for each in sized.answers if each.asked.question.question == question]
    assert [each.asked.where["speed"] for each in asked] == [10, 30]
    assert cells(made, "no ARP")[:2] == [f"**{shown(each.answer)}**" for each in asked]
    assert cells(made, question, table=2) == [f"holds, {each.answer.pairs} pairs" for each in asked]


def test_each_switch_has_its_gain_and_the_way_their_sum(numbers):
    made = eras.tables(numbers)

    def numbers_of(label):
        return [int(re.match(r"\**([+-]?\d+)", cell)[1]) if cell else 0 for cell in cells(made, label)]

    path = [shares_of.SWITCHES[name] for name in PATH]
    assert numbers_of("no ARP")[0] == pytest.approx(150, abs=5)
    assert numbers_of("1999, but RTO at least 1 s, not 0.2")[0] == pytest.approx(-80, abs=5)
    for column in range(4):
        # each share is rounded to 1 kbit/s, and those of decided questions are of the first 30 of the 40 pairs
        assert sum(numbers_of(label)[column] for label in path) == pytest.approx(numbers_of("**the whole way**")[column], abs=12)


def test_a_variant_without_rows_is_named(tmp_path):
    made = eras.tables(kept_rows(tmp_path, left_out=("elfn-ack",)))
    assert cells(made, "DSR: link breaks by its ACKs")[2:] == ["no runs"] * 2
    assert cells(made, "DSR: link breaks by its ACKs", table=1) == ["no runs"] * 2
    assert "no runs" not in cells(made, "**the whole way**")


@pytest.mark.slow
def test_a_report_draws_the_figure_from_rows_alone(tmp_path, numbers):
    """As after `manet campaign` in a checkout whose rows answer everything: no run is in the folder."""
    experiment = load(find(eras.NAME), Request(quick=True))
    (tmp_path / "experiment.json").write_text(experiment.to_json())
    assert len(kept.lay_out(experiment, tmp_path, numbers.folder).rows) == 44 * 40
    report = Report(tmp_path)
    report.make()
    assert (report.no_figure, [path.name for path in report.figures][-1]) == (None, "pairs.csv")
    assert "switch by switch" in report.caption
    assert not (tmp_path / "general.png").exists()


def test_without_rows_the_page_names_the_command(tmp_path):
    path = tmp_path / "eras.md"
    path.write_text(f"before\n{eras.BEGIN}\nold\n{eras.END}\nafter\n")
    assert eras.text(path, Numbers(tmp_path)) == f"before\n{eras.BEGIN}\n{eras.NO_ROWS}\n{eras.END}\nafter\n"
    path.write_text("no place for tables\n")
    with pytest.raises(UsageError, match="shares: begin"):
        eras.text(path, Numbers(tmp_path))
