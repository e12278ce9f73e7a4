"""The tab key at the prompt: verbs and names of nodes first in a line, then names of nodes, and paths of files."""

from collections.abc import Iterable
from pathlib import Path

WORD_ENDS = " \t\n"  # a path is one word


def candidates(word: str, names: Iterable[str]) -> list[str]:
    """The names that begin with `word`, each with a space behind it; then the paths that do, a folder with a slash."""
    nodes = [f"{name} " for name in sorted(names) if name.startswith(word)]
    return nodes if nodes and not word else [*nodes, *paths(word)]


def paths(word: str) -> list[str]:
    """The paths that begin with `word` (`~` is the home folder): folders with a slash, files with a space behind them. Hidden
    ones only after a dot."""
    shown, slash, typed = word.rpartition("/")
    try:
        entries = sorted(Path(f"{shown}{slash}" or ".").expanduser().iterdir())
    except (OSError, RuntimeError):  # RuntimeError: no such home
        return []
    matching = [path for path in entries if path.name.startswith(typed) and (typed or not path.name.startswith("."))]
    return [f"{shown}{slash}{path.name}{'/' if path.is_dir() else ' '}" for path in matching]


class Completion:
    """Mixed into a prompt (cmd.Cmd), whose `names_of_nodes` are completed."""

    def names_of_nodes(self) -> list[str]:
        """The stations and hosts."""
        raise NotImplementedError

    def prepare_completion(self) -> None:
        """Let readline hand over whole words, so that a path or a name with a hyphen is one."""
        try:
            import readline
        except ImportError:
            return
        readline.set_completer_delims(WORD_ENDS)

    def completenames(self, text: str, *_rest: object) -> list[str]:
        """First word of a line: a verb, or a node."""
        verbs = [name.removeprefix("do_") for name in self.get_names() if name.startswith(f"do_{text}")]  # type: ignore[attr-defined]  # of cmd.Cmd
        return [f"{name} " for name in sorted({*verbs, *(n for n in self.names_of_nodes() if n.startswith(text))} - {"EOF"})]

    def completedefault(self, text: str, _line: str, _begin: int, _end: int) -> list[str]:
        """Later words: a node, or a path."""
        return candidates(text, self.names_of_nodes())
