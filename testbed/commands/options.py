"""Options that several verbs share, and the checks of their values."""

import argparse
import math
import shutil
from collections.abc import Sequence
from pathlib import Path

from mobility.trace import plain_number
from testbed.errors import UsageError
from testbed.programs import INSTALLATION

NO_STORE = "no result store (runs.parquet); `./manet report DIR` writes that of a folder of results"
DURATIONS = {"m": 60.0, "h": 3600.0}  # s
HELP_COLUMNS = 80  # of a line of help, on a terminal however wide; the examples are written for it


class Help(argparse.RawDescriptionHelpFormatter):
    """Keeps the examples' lines as they are written; all others are wrapped at HELP_COLUMNS or at a narrower terminal's width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24, width=min(HELP_COLUMNS, shutil.get_terminal_size().columns))

    def format_help(self) -> str:
        """The help with the commands of this installation."""
        return INSTALLATION.reworded(super().format_help())


def add_verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, summary: str, examples: str
) -> argparse.ArgumentParser:
    """A parser for the verb, with `summary` as its help and the examples below it."""
    parser = add_action(verbs, name, summary)
    parser.epilog = "examples:\n" + examples.strip("\n")
    return parser


def add_action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, summary: str
) -> argparse.ArgumentParser:
    """An action of a verb (`manet VERB NAME`), with `summary` as its help."""
    description = f"{summary[0].upper()}{summary[1:]}."
    return actions.add_parser(name, help=summary, description=description, formatter_class=Help)


def split_run(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The directory of a run that the words begin with, or None, and the other words. A station's name has no slash."""
    left = list(words)
    directory = Path(left.pop(0)) if left and ("/" in left[0] or Path(left[0]).is_dir()) else None
    return directory, left


def run_and_station(words: Sequence[str], usage: str) -> tuple[Path | None, str]:
    """The directory of a run that the words begin with, or None, and the station behind it. Raises UsageError: `usage` if there
    are other words."""
    directory, left = split_run(words)
    if directory is None and len(left) == 2:
        from testbed.runs.entering import not_a_run

        raise not_a_run(left[0])
    if len(left) != 1:
        raise UsageError(usage)
    return directory, left[0]


def positive(text: str) -> int:
    """The type of an option: a whole number of at least 1."""
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of at least 1')
    return number


def metres(text: str) -> float:
    """The type of an option: a range in metres, above 0 to 1e6."""
    value = plain_number(text)
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f'"{text}" is not a range in metres above 0')
    return value


def seconds(text: str) -> float:
    """The type of an option: a finite number of seconds."""
    value = plain_number(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f'"{text}" is not a time in seconds, such as 12.5')
    return value


def duration_s(text: str) -> float:
    """The type of an option: a duration above 0 in minutes, or with its unit, m or h; returns seconds."""
    value = plain_number(text[:-1] if text[-1:] in DURATIONS else text) * DURATIONS.get(text[-1:], DURATIONS["m"])
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f'"{text}" is not a duration such as 90m or 2h (a number alone: minutes)')
    return value


def folder(text: str) -> Path:
    """The type of an option: a folder. An empty name, as from an unset shell variable, is refused: it would be the current
    folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("give a folder's name")
    return Path(text)


def new_file(text: str) -> Path:
    """The type of an option: a file to write. Every verb writes by record.files, which replaces plain files only; here a link,
    a device or a folder is refused before the work."""
    from record.files import special

    path = folder(text)
    if (kind := special(path)) is not None:
        raise argparse.ArgumentTypeError(f'"{text}" is {kind} and no plain file; give another name')
    return path


def picture(text: str) -> Path:
    """The type of an option: a picture to write; its folder is created. By default `map`, `plot` and `trace` write into the
    run's folder, or into the current folder if there is no run, and print the files last (`written`)."""
    if folder(text).suffix != ".png":
        raise argparse.ArgumentTypeError(f'"{text}" is not the name of a picture; give one that ends in .png')
    return new_file(text)


def written(paths: Sequence[Path]) -> str:
    """The last lines of a verb that has written files."""
    return "\n".join(f"written   {path}" for path in paths)


def results_folder() -> Path:
    """The folder of results of this installation (testbed/programs.py)."""
    return INSTALLATION.results()


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Add --set and --profile."""
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="overrides",
        help="replace a key of the scenario (formats/scenario.md); may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--profile", choices=("period", "modern"), help="TCP settings: the papers' (period) or Linux as shipped (modern)"
    )


def add_clock(parser: argparse.ArgumentParser) -> None:
    """Add --clock and --kernel."""
    parser.add_argument(
        "--clock", choices=("real", "virtual"),
        help="virtual: each run in a guest that counts instructions, independent of the host's load (docs/virtual-time.md)",
    )  # fmt: skip
    parser.add_argument("--kernel", metavar="NAME", help='kernel of those guests, one of "manet vm list" (default: 6.12)')


def add_internet(parser: argparse.ArgumentParser) -> None:
    """Add --allow-internet."""
    parser.add_argument(
        "--allow-internet", action="store_true",
        help="let hosts of wires with `nat = true` reach this machine's networks (docs/internet.md)",
    )  # fmt: skip


def add_listen(parser: argparse.ArgumentParser) -> None:
    """Add --listen and --public-url."""
    text = "where it listens (default: a free port of 127.0.0.1, which only this machine reaches)"
    parser.add_argument("--listen", metavar="[ADDRESS:]PORT", help=text)
    parser.add_argument(
        "--public-url", metavar="URL", help="its address in browsers, if a proxy gives it another name than localhost"
    )


def overrides(options: argparse.Namespace) -> tuple[str, ...]:
    """All KEY=VALUE settings of the command line, those of --profile and --clock included."""
    short = {"profile": options.profile, "clock": getattr(options, "clock", None)}
    return (*options.overrides, *(f"{key}={value}" for key, value in short.items() if value))


def set_words(settings: Sequence[str]) -> list[str]:
    """The words of a command line that give these settings."""
    return [word for setting in settings for word in ("--set", setting)]


def place_of(key: str, settings: Sequence[str], otherwise: str) -> str:
    """The place that an error about `key` names: the last `--set` of it, else `otherwise`."""
    last = [setting for setting in settings if setting.partition("=")[0].strip() == key]
    return f"--set {last[-1]}" if last else otherwise


def add_campaign(parser: argparse.ArgumentParser) -> None:
    """Add --jobs and --json."""
    parser.add_argument("--jobs", metavar="N", type=positive, help="parallel runs (default: as many as this machine supports)")
    parser.add_argument("--json", action="store_true", help="print the answer as one JSON object")
