"""The commands of the documentation run as they are written, in a fresh checkout: each parses, and each file that it names is
there or was made by an earlier command of the page."""

import re
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from testbed import __main__ as manet
from testbed.campaigns.library import find
from testbed.programs import ROOT

COMMAND = re.compile(r"^(?: {4})?\./manet\b")
PLACEHOLDER = re.compile(r"\b[A-Z][A-Z]+\b(?!=)|<\w+>")  # FILE, NAME/CELL; not MANET_GUEST=...
MAKES = ("--out", "--convert", "--profile")  # options whose value is made by the command
QUICK = ("trace", "tcp")  # verbs that need no root and no long time
OF_A_RUN = ("map", "plot", "routes", "story")  # verbs that look at a run
MADE_AT_HOME = ("/tmp", "results")
# files that the reader makes: `cat > FILE <<'END'`, `python3 FILE > FILE`; the folder of an unpacked archive; a compiled file
WRITTEN = re.compile(r"^ *(?:cat|sed|python3) .*> (\S+)(?: <<.*)?$|-m zipfile -e \S+ (\S+);|^clang .* -o (\S+) ", re.MULTILINE)
LINK = re.compile(r"""(?:\]\(|\bsrc=")([^)"\s]+)""")


def pages() -> list[str]:
    """The Markdown files of the checkout, except for the changelog and the measurements."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True, check=False).stdout.split()
    names = listed or [
        str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")]
    ]
    return [name for name in names if name not in ("CHANGELOG.md", "docs/archive/validation.md") and commands_of(name)]


def commands_of(page: str) -> list[list[str]]:
    """The words of each `./manet ...` line of its code blocks; lines with a placeholder are the reader's to complete."""
    lines, fenced, found = (ROOT / page).read_text(encoding="utf-8").splitlines(), False, []
    for line in lines:
        fenced ^= line.lstrip().startswith("```")
        if COMMAND.match(line) and (fenced or line.startswith("    ")):
            try:
                command = shlex.split(line, comments=True)
            except ValueError as problem:
                raise AssertionError(f"{page}: {line}: {problem}") from None
            if not PLACEHOLDER.search(" ".join(command)):
                found.append(command[1:])
    return found


def files_written(page: str) -> list[str]:
    """Files that the reader makes by the shell commands of the page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.startswith("docs/teaching/"):  # the page for teachers says how to unpack the recorded runs
        text += (ROOT / "docs" / "teaching" / "README.md").read_text(encoding="utf-8")
    return [file for found in WRITTEN.findall(text) for file in found if file]


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them: lower case, punctuation removed, blanks to hyphens."""
    lines = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


PAGES = pages()
ALL_PAGES = sorted(
    subprocess.run(["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True, check=False).stdout.split()
)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_first_pages_have_commands(page):
    assert len(commands_of(page)) > 7


@pytest.mark.parametrize("page", ALL_PAGES)
def test_each_relative_link_and_its_anchor_exist(page):
    for link in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if "://" not in link:
            target = (ROOT / page).parent / path if path else ROOT / page
            assert target.exists(), f"{page}: {link}"
            assert not anchor or anchor in headings(target), f"{page}: {link}"


@pytest.mark.parametrize("page", ALL_PAGES)
def test_no_page_refers_to_files_or_numbers_that_a_reader_lacks(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"\.\./shared\b\S*|/work/\S*|\b[Ii]ssue \d+", text)
    assert not found, f"{page}: {found}"


@pytest.mark.parametrize("page", PAGES)
def test_each_command_parses(page, capsys):
    for command in commands_of(page):
        if command[:1] == ["--help"]:
            continue
        options, rest = manet.parser().parse_known_args(command)
        assert not rest or options.verb == "test", f"./manet {shlex.join(command)}"


@pytest.mark.parametrize("page", PAGES)
def test_each_file_and_experiment_that_a_command_names_is_there_by_then(page):
    made = files_written(page)
    for command in commands_of(page):
        for word in _named(command):
            there = (ROOT / word).exists() if not word.startswith(MADE_AT_HOME) else False
            assert there or any(word == name or word.startswith(f"{name}/") for name in made), (
                f"./manet {shlex.join(command)}: {word}"
            )
        assert command[0] not in OF_A_RUN or _named(command), f"./manet {shlex.join(command)}: there is no run under way"
        now = _made_by(command, made)
        assert command[0] != "run" or not set(now) & set(made), f"./manet {shlex.join(command)}: {now} holds results already"
        made += now


@pytest.mark.parametrize("page", PAGES)
def test_commands_without_requirements_work(page, tmp_path, monkeypatch, capsys):
    for entry in ROOT.iterdir():
        if entry.name not in ("results", ".git"):
            (tmp_path / entry.name).symlink_to(entry)
    monkeypatch.chdir(tmp_path)
    written = files_written(page)  # by the reader: neither these files nor the names of added algorithms exist here
    own = {*written, *(Path(name).stem for name in written)}
    for command in commands_of(page):
        if command[0] in QUICK and not own & set(command):
            assert manet.main(command) == 0, f"./manet {shlex.join(command)}: {capsys.readouterr().err}"
            assert capsys.readouterr().out


def _named(command: list[str]) -> list[str]:
    """Words that are paths of files to be read. (`vm ... -- COMMAND` names its own after the dashes.)"""
    found, before = [], ""
    for word in command[1:]:
        path = "/" in word or re.search(r"\.(toml|py|gpx|tcl|csv)$", word)
        if path and "=" not in word and not word.startswith("-") and before not in MAKES and not word.startswith(".venv/"):
            found.append(word.partition("::")[0])
        before = word
    return found


def _made_by(command: list[str], before: list[str]) -> list[str]:
    made = [value for option, value in pairwise(command) if option in MAKES]
    if command[0] == "run" and not command[1].startswith(MADE_AT_HOME):
        # an experiment by its name; UsageError if there is none
        own = f"experiments/{command[1]}.toml" in before
        stem = command[1] if own else find(str(ROOT / command[1]) if command[1].endswith(".toml") else command[1]).stem
        made = made or [f"results/{stem}{'-quick' * ('--quick' in command)}"]
    return made


def test_the_tables_of_folders_and_files_are_complete():
    folders = {path.parent.name for path in ROOT.glob("testbed/*/__init__.py")} - {"tests"}
    told = (ROOT / "testbed" / "README.md").read_text(encoding="utf-8")
    assert [name for name in sorted(folders) if f"| `{name}/` |" not in told] == []
    told = (ROOT / "kernel-tcp" / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\w+(?:\.\w+)*\.c\b", told))
    assert sorted(path.name for path in ROOT.glob("kernel-tcp/*.c") if path.name not in named) == []
