"""The answers on the pages of results: those of the claims, by the same rows."""

import random
from functools import cache

import pytest

from analysis.tables.kept_rows import KeptRow, merged, write
from testbed import __main__ as manet
from testbed.campaigns import kept
from testbed.campaigns.experiment import load
from testbed.campaigns.library import find
from testbed.campaigns.request import Request
from testbed.claims import eras, marked, page, results, source, verdicts
from testbed.claims.numbers import Numbers
from testbed.errors import UsageError

NAME = "hv-fig12"
BEGIN, END = marked.lines(results.PART)


@cache
def committed():
    return Numbers()


def kept_rows(folder, seeds, compared=("reno", "elfn-2s", "elfn-30s")):
    """Rows of hv-fig12 (quick) of some variants: probes every 30 s cost some 200 kbit/s, those every 2 s nothing."""
    draw = random.Random(1)
    cells = [cell for cell in load(find(NAME), Request(quick=True)).cells if cell.variant in compared]
    rows = [
        KeptRow(
            cell.identity, seed, "valid", {"variant": cell.variant, "speed": str(cell.axes["speed"])},
            {"acked_kbps": round(600 - 200 * (cell.variant == "elfn-30s") + draw.gauss(0, 5), 3)}, 60.0,
        )
        for cell in cells for seed in range(1, seeds + 1)
    ]  # fmt: skip
    write(kept.file_of(NAME, folder), merged(rows))
    return folder


def page_of(folder, text=f"before\n{BEGIN}\nold\n{END}\nafter\n"):
    path = folder / NAME / "README.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", results.pages(), ids=lambda path: path.parent.name)
def test_a_committed_page_has_the_answers_of_the_rows(path):
    assert path.read_text() == results.text(path, committed()), f"{path} is not of the rows; ./manet report --claims"


def test_the_command_writes_the_answers_and_leaves_the_words(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(kept, "FOLDER", kept_rows(tmp_path, 32))
    monkeypatch.setattr(page, "write", lambda: page.Page(None, None))
    monkeypatch.setattr(eras, "write", lambda: "")
    path = page_of(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "README.md").write_text("a page without answers")
    assert manet.main(["report", "--claims"]) == 0
    assert "10 answers on 1 pages" in capsys.readouterr().out
    text = path.read_text()
    assert text.startswith(f"before\n{BEGIN}\n| question ")
    assert text.endswith(f"\n{END}\nafter\n")
    assert (tmp_path / "other" / "README.md").read_text() == "a page without answers"


def test_a_page_has_the_answer_of_the_claims(tmp_path):
    numbers, question = Numbers(kept_rows(tmp_path, 32)), "Probes every 30 s carry less than plain Reno"
    table = results.table(numbers.load(NAME, "quick").answers)
    asked = source.Asked(experiment=NAME, question=question, where={"speed": 10})
    (part,) = verdicts.verdict(source.Claim(claim="c", of="f", answers=[asked]), numbers).parts
    difference, pairs = part.text.rsplit(", ", 1)
    assert f"| {question} | 10 m/s | {difference} | {pairs.removesuffix(' pairs')} | bounds | {part.verdict} |" in table
    assert "4 comparisons have no rows yet" in table  # of the variants without rows


def test_an_open_answer_of_few_pairs_is_explained(tmp_path):
    table = results.table(Numbers(kept_rows(tmp_path, 6)).load(NAME, "quick").answers)
    assert "| few pairs | undecided; some " in table
    assert "the answer is open even if its interval has no zero" in table
    assert "Student's t |" not in table


def test_without_rows_the_page_says_so(tmp_path):
    assert results.table(Numbers(tmp_path).load(NAME, "quick").answers) == "10 comparisons have no rows yet."


def test_a_page_with_one_of_the_two_lines_is_refused(tmp_path):
    path = page_of(tmp_path, f"{BEGIN}\n")
    with pytest.raises(UsageError, match="has no <!-- answers: begin --> and <!-- answers: end -->"):
        results.text(path, Numbers(kept_rows(tmp_path, 4)))
