"""The prompt's `map`: a picture of the network in a file and the same as text, once or at an interval."""

from collections.abc import Callable, Collection
from pathlib import Path

from testbed.errors import RunError, UsageError
from testbed.runs.live_map import MappedNetwork, Updater

USAGE = "map [FILE.png [SECONDS]] [station station ...] | map off"


class MapVerb:
    """The verb. `say` prints an answer; `names` are the nodes; `default` is the picture's file if the user names none."""

    def __init__(self, network: MappedNetwork, names: Collection[str], default: Path, say: Callable[[str], None]) -> None:
        self._network, self._names, self._default, self._say = network, names, default, say
        self._updater: Updater | None = None

    def __call__(self, line: str) -> None:
        """Execute one line of the prompt. Raises UsageError or RunError."""
        from analysis.maps import map_picture, map_text
        from record.errors import RecordError

        words = line.split()
        if words == ["off"]:
            self.off()
            return
        file, every_s, pairs = self._read(words)
        try:
            snapshot = self._network.snapshot(pairs)
            map_picture.draw(snapshot, file)
        except RecordError as problem:
            raise RunError(str(problem)) from None
        self._say("\n".join(map_text.lines(snapshot)))
        if every_s is None:
            self._say(f"written   {_short(file)}")
            return
        self.end()
        self._updater = Updater(self._network, file, every_s, pairs)
        self._say(f"written   {_short(file)}, again every {every_s:g} s until `map off`")

    def off(self) -> None:
        """`map off`: end the updates and print how many pictures were drawn."""
        if self._updater is None:
            self._say("no map is kept up to date; `map FILE.png 1` does")
            return
        updater = self._updater
        self.end()
        drawn = f"{_short(updater.file)} stays as it is, drawn {updater.drawn} times"
        self._say(f"{drawn}; last: {updater.problem}" if updater.problem else drawn)

    def end(self) -> None:
        """End the updates; no picture is drawn after the return."""
        if self._updater is not None:
            self._updater.stop()
            self._updater = None

    def _read(self, words: list[str]) -> tuple[Path, float | None, list[tuple[str, str]]]:
        file, every_s = self._default, None
        if words and words[0] not in self._names:
            file = Path(words.pop(0)).absolute()
            if file.suffix != ".png":
                raise UsageError(f"usage: {USAGE}        ({file.name}: neither a node nor a .png)")
            if words and words[0] not in self._names:
                every_s = _seconds(words.pop(0))
        unknown = [word for word in words if word not in self._names]
        if unknown:
            raise UsageError(f"there is no station {unknown[0]}; `nodes` lists them")
        pairs = list(zip(words[::2], words[1::2], strict=False))
        if len(words) % 2 or any(a == b for a, b in pairs):
            raise UsageError(f"usage: {USAGE}        (two different stations for each path)")
        return file, every_s, pairs


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.2 <= value <= 3600:
        raise UsageError(f"usage: {USAGE}        ({text}: seconds from 0.2 to 3600)")
    return value


def _short(file: Path) -> Path:
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file
