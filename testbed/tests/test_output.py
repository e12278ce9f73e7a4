"""Output of all verbs: text of results that a terminal would obey, output that cannot be written, and values of all types."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from testbed import __main__ as manet
from testbed import output
from testbed.campaigns.report import Report
from testbed.tests.test_report import results  # noqa: F401  (a fixture)

ROOT = Path(__file__).parents[2]
RETITLE = "\x1b]0;title\x07\x9b2J\u202e"  # OSC, BEL, CSI in one byte, a mark that reverses the order
SHOWN = r"\x1b]0;title\x07\x9b2J\u202e"


@pytest.fixture
def folder(results):  # noqa: F811
    """The fixture's results with tables and store, and with such a text in the experiment's question."""
    description = json.loads((results / "experiment.json").read_text())
    (results / "experiment.json").write_text(json.dumps(description | {"question": f"why? {RETITLE} [/nothing]"}))
    Report(results).make()
    return results


def test_text_that_a_terminal_would_obey_is_shown():
    assert output.plain(f"a\tb\n{RETITLE}\r\x7f\udc80ü\u00a0") == rf"a{chr(9)}b{chr(10)}{SHOWN}\x0d\x7f\udc80ü" + "\u00a0"


def test_a_cell_of_a_query_and_the_name_of_a_column_are_shown(folder, capsys):
    assert manet.main(["sql", f"select '{RETITLE}' as \"{RETITLE}\"", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert shown.count(SHOWN) == 2 and not output.OBEYED.search(shown)


def test_csv_is_exact_in_a_file_and_shown_on_a_terminal(folder, capsys, monkeypatch):
    words = ["sql", f"select '{RETITLE}' as cell", str(folder), "--csv"]
    assert manet.main(words) == 0
    assert capsys.readouterr().out == f"cell\n{RETITLE}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert manet.main(words) == 0
    assert capsys.readouterr().out == f"cell\n{SHOWN}\n"


def test_the_question_of_an_experiment_is_shown_as_it_is(folder, capsys):
    """Not as rich's markup either, in which `[/nothing]` is an error."""
    manet.main(["report", str(folder)])
    out = capsys.readouterr().out
    assert f"why? {SHOWN} [/nothing]" in out and not output.OBEYED.search(out)


def test_an_error_shows_the_names_of_the_user(capsys, tmp_path):
    assert manet.main(["story", str(tmp_path / RETITLE)]) == 1
    error = capsys.readouterr().err
    assert not output.OBEYED.search(error) and len(error.splitlines()) == 1


@pytest.fixture(params=["", "1"], ids=["buffered", "unbuffered"])
def buffering(request):
    """PYTHONUNBUFFERED, which a caller may have set: with a buffer, text that was not written is tried again at the end."""
    return request.param


def in_shell(words, buffering):
    """`manet` with these words, and redirections, of a shell."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": buffering}
    command = ["sh", "-c", f'exec "$0" -P -m testbed {words}', sys.executable]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize(
    ("redirection", "status", "error"),
    [
        (">/dev/full", 1, "standard output: No space left on device; give it another place"),
        (">&-", 1, "standard output: Bad file descriptor; give it another place"),
        (">&- 2>&-", 1, ""), (">/dev/full 2>/dev/full", 1, ""), ("2>/dev/full", 0, ""), ("2>&-", 0, ""), ("<&-", 0, ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("words", ["list radios", "--help"])
def test_output_that_cannot_be_written_is_one_line_and_a_failure(words, redirection, status, error, buffering):
    done = in_shell(f"{words} {redirection}", buffering)
    assert (done.returncode, done.stderr) == (status, f"manet {words.split()[0]}: {error}\n" if error else "")
    assert bool(done.stdout) == (
        ">&-" not in redirection.replace("2>&-", "") and ">/dev/full" not in redirection.replace("2>/", "")
    )


def test_a_wrong_use_without_standard_error_keeps_its_status(buffering):
    done = in_shell("list nowhere 2>/dev/full", buffering)
    assert (done.returncode, done.stdout) == (2, "")


def types() -> list[str]:
    with duckdb.connect() as connection:
        return [column[0] for column in connection.execute("select * from test_all_types()").description]


@pytest.mark.parametrize("form", [[], ["--csv"], ["--json"]], ids=" ".join)
def test_a_query_for_values_of_any_type_is_answered_or_one_line(folder, form):
    """DuckDB's own extremes of each type, such as a date in the year -5877641."""
    answered = 0
    for name in [f'"{name}"' for name in types()] + ["*"]:
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            status = manet.main(["sql", f"select {name} from test_all_types()", str(folder), *form])
        assert status == 0 or (status == 2 and out.getvalue() == "" and len(error.getvalue().splitlines()) == 1), name
        answered += status == 0
        if status == 2:
            assert "a value cannot be shown" in error.getvalue() and "::VARCHAR" in error.getvalue()
    assert answered > 30


@pytest.mark.parametrize("resume", ["./manet run 'e", 5, ["x"], 'a " b'])
def test_a_recorded_command_that_no_shell_takes_is_no_traceback(results, capsys, tmp_path, resume):  # noqa: F811
    description = json.loads((results / "experiment.json").read_text())
    (results / "experiment.json").write_text(json.dumps(description | {"resume": resume}))
    for words in (
        ["report", str(results)],
        ["report", "--html", str(results)],
        ["bundle", str(results), "--out", f"{tmp_path}/e.zip"],
    ):
        assert manet.main(words) in (0, 1, 2)
        assert len(capsys.readouterr().err.splitlines()) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("gap_s", [0.0, 0.002, 0.02])
def test_twenty_ctrl_c_are_one_line_and_no_traceback(results, gap_s):  # noqa: F811
    """They come while the first one is answered, and at the end of the process."""
    words = [sys.executable, "-P", "-m", "testbed", "report", str(results), "--again"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=default_ctrl_c) as process:
        while process.poll() is None and "polars" not in Path(f"/proc/{process.pid}/maps").read_text():
            time.sleep(0.001)
        for _ in range(20):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGINT)
            time.sleep(gap_s)
        error = process.communicate()[1]
    assert error in ("manet report: interrupted; everything was taken down\n", "")
    assert process.returncode in (130, -signal.SIGINT)


def default_ctrl_c() -> None:
    """A job in the background begins with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
