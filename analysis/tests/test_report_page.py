"""The parts of a report's page: answers, forest plot, numbers, figures inside the page, and the rendered page."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from analysis.drawing import style
from analysis.reports import forest, inline_svg
from analysis.reports.answers import Answers, read_answers
from analysis.reports.content import ExperimentPart, NamedRun, NumberTable, Page, PaperPart
from analysis.reports.inline_svg import inline_figure
from analysis.reports.numbers import number_tables
from analysis.reports.page import render, write_page
from analysis.reports.papers import paper_of
from analysis.reports.provenance import provenance
from analysis.tables.results import collect
from analysis.tests.drawn import panels
from analysis.tests.markup import outline
from analysis.tests.test_tables import EXPERIMENT, make_run
from record.errors import RunFileError

HOLDS = {
    "question": "ELFN carries more than Reno", "claim": "more", "metric": "percent", "unit": "%", "compared": "elfn-2s",
    "with": "reno", "key": "variant", "where": {"speed": 20}, "matters": 5.0, "max_pairs": 50, "outcome": "more",
    "answer": "holds", "pairs": 12, "mean_compared": 61.0, "mean_with": 55.2, "difference": 5.8, "low": -1.2, "high": 10.4,
    "needed": None, "looks": [4, 8, 12], "wall_s": 312.0, "emulated_s": 2880.0,
}  # fmt: skip
UNDECIDED = HOLDS | {"outcome": "undecided", "answer": "undecided", "needed": 140}
ONE_PAIR = UNDECIDED | dict.fromkeys(("mean_compared", "mean_with", "difference", "low", "high", "needed"))
EVIL = "</svg><script>alert('1')</script>&\"$x$"


def write_answers(folder: Path, *answers: dict) -> Answers:
    document = {"format": "manet-answers/1", "experiment": "e", "confidence": 0.95, "answers": answers}
    (folder / "answers.json").write_text(json.dumps(document))
    return read_answers(folder)


def page_with(**parts) -> Page:
    part = ExperimentPart(anchor="x-e", name="e", **parts)
    return Page("Report: e", "1 experiment", (PaperPart("paper-other", "Other experiments", (part,)),))


def test_an_answer_is_read_with_its_comparison_and_interval(tmp_path):
    (answer,) = write_answers(tmp_path, HOLDS).answers
    assert answer.comparison == "elfn-2s minus reno, speed 20"
    assert (answer.interval, answer.means) == ("5.8 [−1.2, 10.4] %", "61 and 55.2 %")  # noqa: RUF001


def test_large_numbers_of_an_answer_are_digits(tmp_path):
    large = {"difference": -1254.0, "low": -2_000_000.4, "high": 12.3456, "mean_compared": 1e6, "mean_with": 99.96}
    (answer,) = write_answers(tmp_path, HOLDS | large | {"compared": 3e6, "matters": 2e6}).answers
    assert (answer.interval, answer.means) == ("−1254 [−2000000, 12.3] %", "1000000 and 100 %")  # noqa: RUF001
    assert (answer.smallest, answer.comparison) == ("2000000 %", "3000000 minus reno, speed 20")


def test_an_answer_says_how_its_interval_was_found(tmp_path):
    """Files of earlier versions do not."""
    bounded = {"method": "bounds of the runs", "bounds": [-640.0, 450.0]}
    first, second, third = write_answers(tmp_path, HOLDS, HOLDS | bounded, HOLDS | bounded | {"method": "student-t"}).answers
    assert (first.how, second.how, third.how) == ("", "bounds of the runs −640 to +450", "Student's t")  # noqa: RUF001
    (few,) = write_answers(tmp_path, HOLDS | bounded | {"method": "student-t, few pairs"}).answers
    assert few.how == "Student's t of fewer than 30 pairs: assumes that no rare event was missed"
    part = ExperimentPart(anchor="x-e", name="e", answers=Answers(answers=[second]))
    text = render(Page("Report: e", "1 experiment", (PaperPart("paper-other", "Other experiments", (part,)),)))
    assert "bounds of the runs −640 to +450" in text  # noqa: RUF001


def test_an_answer_of_one_pair_has_no_interval(tmp_path):
    (answer,) = write_answers(tmp_path, ONE_PAIR).answers
    assert (answer.interval, answer.means) == ("", "")


def test_a_reference_is_called_by_its_name(tmp_path):
    found = write_answers(tmp_path, HOLDS | {"with": "published", "key": None}, HOLDS | {"with": "ns2", "where": {}}).answers
    assert [answer.comparison for answer in found] == [
        "elfn-2s minus the published value, speed 20", "elfn-2s minus ns-2.35",
    ]  # fmt: skip


def test_a_folder_without_questions_has_no_answers(tmp_path):
    assert read_answers(tmp_path).answers == []


@pytest.mark.parametrize(
    "text", [b"{", b"\xff", b'{"format": "manet-answers/2", "answers": []}', b'{"format": "manet-answers/1", "answers": [{}]}']
)
def test_answers_of_another_format_are_an_error_that_names_the_file(tmp_path, text):
    (tmp_path / "answers.json").write_bytes(text)
    with pytest.raises(RunFileError, match=r"answers\.json: is no manet-answers/1 \(.*`manet campaign` writes it again"):
        read_answers(tmp_path)


def test_the_forest_plot_has_each_interval_in_units_of_the_smallest_difference_that_matters(tmp_path):
    answers = write_answers(tmp_path, HOLDS, ONE_PAIR, UNDECIDED | {"matters": 2.0, "low": -4.0, "difference": 1.0, "high": 6.0})
    (panel,) = panels(forest.draw, tmp_path, answers.answers)
    lines = [one.points for one in panel.series if len(one.points) == 2 and one.marker == "None"]
    # 5.8, -1.2 and 10.4 over 5; -4, 1 and 6 over 2; the answer of one pair has no interval
    assert lines[1:] == [[(-0.24, 0), (2.08, 0)], [(-2, 1), (3, 1)]]
    assert [(one.points, one.filled) for one in panel.series if one.marker == "o"] == [([(1.16, 0)], True), ([(0.5, 1)], False)]
    assert [box.x for box in panel.boxes] == [(-1, 1)]
    assert panel.yticks == ["1. elfn-2s minus reno, speed 20", "3. elfn-2s minus reno, speed 20"]


def test_no_forest_plot_is_drawn_without_an_interval(tmp_path):
    assert forest.draw(tmp_path, write_answers(tmp_path, ONE_PAIR).answers) == []


def drawn(folder: Path, text: str = "hops") -> Path:
    """The SVG of a small figure with a marker, a clipped line and a text."""
    with style.page(folder, "small", 1.0) as ((axes,), written):
        axes.plot([0, 1], [0, 2], marker="o")
        axes.set_xlabel(text, parse_math=False)
    return written[2]


def test_two_figures_in_a_page_share_no_id(tmp_path):
    svg = drawn(tmp_path)
    ids = [
        {element.get("id") for element in ElementTree.fromstring(inline_figure(svg, anchor, "a")).iter() if element.get("id")}
        for anchor in ("one", "two")
    ]
    assert len(ids[0]) > 10 and ids[0] & ids[1] == set()


def test_references_in_a_figure_lead_to_ids_in_it(tmp_path):
    root = ElementTree.fromstring(inline_figure(drawn(tmp_path), "one", "a"))
    ids = {element.get("id") for element in root.iter()}
    links = [element.get(f"{{{inline_svg.XLINK}}}href") for element in root.iter() if element.tag.endswith("use")]
    clips = [element.get("clip-path") for element in root.iter() if element.get("clip-path")]
    assert links and clips
    assert {link[1:] for link in links} | {clip[5:-1] for clip in clips} <= ids


def test_a_figure_names_itself_and_brings_neither_metadata_nor_style_sheet(tmp_path):
    root = ElementTree.fromstring(inline_figure(drawn(tmp_path), "one", EVIL))
    assert (root.get("role"), root.get("aria-label"), root.get("viewBox") is not None) == ("img", EVIL, True)
    assert {element.tag.partition("}")[2] for element in root.iter()} <= inline_svg.ELEMENTS


def test_a_text_of_an_experiment_stays_text_in_a_figure(tmp_path):
    root = ElementTree.fromstring(inline_figure(drawn(tmp_path, EVIL), "one", "a"))
    assert EVIL in [element.text for element in root.iter() if element.tag.endswith("text")]


@pytest.mark.parametrize(
    "inside",
    ["<script>1</script>", "<foreignObject/>", '<path onload="1"/>', '<use xlink:href="https://example.org/a.svg#b"/>',
     '<a xlink:href="javascript:1"/>'],
)  # fmt: skip
def test_an_svg_that_is_none_of_ours_is_refused(tmp_path, inside):
    svg = tmp_path / "a.svg"
    head = f'<svg xmlns="{inline_svg.SVG}" xmlns:xlink="{inline_svg.XLINK}" width="9pt">'
    svg.write_text(f"{head}{inside}</svg>")
    with pytest.raises(RunFileError, match=r"a\.svg: .*manet report"):
        inline_figure(svg, "one", "a")


def test_a_large_figure_is_its_picture_inside_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(inline_svg, "MAX_SVG_BYTES", 100)
    markup = inline_figure(drawn(tmp_path), "one", EVIL)
    assert markup.startswith('<img src="data:image/png;base64,iVBOR') and "<script>" not in markup


def test_numbers_are_beside_the_published_and_ns2s(tmp_path):
    for seed, value in enumerate((600.0, 640.0), start=1):
        make_run(tmp_path, "ns2", 2, seed, value)
    make_run(tmp_path, "ns2", 2, 3, 9999.0, verdict="void")
    (table,) = number_tables(collect(tmp_path, EXPERIMENT))
    assert table.headings == ("hops", "variant", "runs", "mean", "±95 %", "published", "mean / published",
                              "ns-2.35", "mean / ns-2", "verdicts")  # fmt: skip
    # t(1) = 12.706 times 28.28 / sqrt(2) = 254.1; 620 / 729 and 620 / 619.19
    assert table.rows == (("2", "ns2", "2", "620", "254", "729", "0.85", "619", "1.00", "2 valid, 1 void"),)
    assert (table.names, table.caption) == (2, "acknowledged throughput, kbit/s")


def test_columns_without_any_number_are_left_out(tmp_path):
    make_run(tmp_path, "ns2", 2, 1, 600.0)
    (table,) = number_tables(collect(tmp_path, {"name": "e", "axes": {"hops": [2]}}))
    assert table.headings == ("hops", "variant", "runs", "mean", "verdicts")


def test_the_origin_names_commits_with_their_runs(tmp_path):
    for seed, commit in enumerate(("abc", "abc", "def"), start=1):
        make_run(tmp_path, "ns2", 2, seed, 600.0)
        path = tmp_path / "ns2-hops2" / f"seed-{seed}" / "run.json"
        record = {
            "commit": commit,
            "kernel": "6.18",
            "versions": {"iperf3": "3.12"},
            "started": f"2026-11-2{seed}T10:00:00.264+00:00",
        }
        path.write_text(json.dumps(json.loads(path.read_text()) | record))
    entries = dict(provenance({"quick": True}, collect(tmp_path, EXPERIMENT)))
    assert entries["commit"] == "abc (2 runs); def (1 runs)"
    assert (entries["kernel"], entries["seeds"], entries["size"]) == ("6.18", "1 to 3", "quick")
    assert entries["first run began, last ended"] == "2026-11-21 10:00:00 UTC, 2026-11-23 10:00:00 UTC"
    assert entries["versions"] == "iperf3: 3.12"


@pytest.mark.parametrize(("name", "code"), [("hv-fig1", "hv"), ("wm-http", "wm"), ("tcp-chain", "other"), ("hv", "hv")])
def test_an_experiment_belongs_to_the_paper_in_front_of_its_name(name, code):
    assert paper_of(name).code == code


def test_every_text_of_a_page_is_escaped(tmp_path):
    answers = write_answers(tmp_path, {key: EVIL if isinstance(value, str) else value for key, value in HOLDS.items()})
    table = NumberTable(EVIL, (EVIL,), 1, ((EVIL,),))
    page = page_with(question=EVIL, source=EVIL, problem=EVIL, verdict=EVIL, verdict_line=EVIL, answers=answers, tables=(table,),
                     outcome=EVIL, doubtful=(NamedRun(EVIL, EVIL, EVIL),), remarks=(EVIL,), provenance=((EVIL, EVIL),),
                     resume=EVIL)  # fmt: skip
    found = outline(render(page))
    assert "script" not in found.tags
    assert found.text.count(EVIL) >= 15


def test_a_page_is_well_formed_and_loads_nothing(tmp_path):
    answers = write_answers(tmp_path, HOLDS, ONE_PAIR)
    found = outline(render(page_with(question="How far?", answers=answers, verdict="valid", resume="./manet run e")))
    assert found.problems == []
    assert found.loaded == []
    assert "script" not in found.tags


def test_headings_are_in_order_and_links_lead_to_ids(tmp_path):
    found = outline(render(page_with(answers=write_answers(tmp_path, HOLDS), verdict="valid")))
    assert found.headings[0] == 1 and found.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(found.headings, found.headings[1:], strict=False))
    assert found.landmarks >= {"header", "nav", "main", "footer"}
    assert {link[1:] for link in found.links if link.startswith("#")} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))


def test_an_undecided_question_names_the_pairs_it_would_take(tmp_path):
    text = outline(render(page_with(answers=write_answers(tmp_path, UNDECIDED)))).text
    assert "would take about 140 pairs" in text


def test_a_page_without_questions_says_so():
    text = outline(render(page_with(verdict="valid"))).text
    assert "No experiment here states a question" in text


def test_the_same_content_gives_the_same_page(tmp_path):
    first = write_page(tmp_path, page_with(verdict="valid")).read_bytes()
    assert write_page(tmp_path, page_with(verdict="valid")).read_bytes() == first
