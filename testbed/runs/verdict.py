"""The judgement of a real-time run: verdict.json (formats/air.md), the medium's, and what the run adds to it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from record.files import read_object, write_atomic

FORMAT = "manet-verdict/1"
BETTER_FIRST = ("valid", "suspect", "void")
VOID_REMEDY = "see verdict.json, and run it again"

# The movement is ahead of the traffic by that (docs/verdict.md): at 20 m/s a station is 10 and 50 m from its place.
SUSPECT_LATE_S = 0.5
VOID_LATE_S = 2.5
VOID_REFUSED = 20
NAMED_FILES = 3  # at most so many among the reasons


class Judgement(Protocol):
    """A part of the verdict."""

    def judgement(self) -> tuple[str, list[str]]:
        """`valid`, `suspect` or `void`, and the reasons."""

    def report(self) -> object:
        """Its measurements, as JSON."""


@dataclass(frozen=True)
class TrafficStart:
    """The start of the traffic, `late_s` seconds after the scenario's `traffic_at`."""

    late_s: float

    def judgement(self) -> tuple[str, list[str]]:
        """`valid`, `suspect` or `void`, as in the medium's verdict, and the reasons."""
        if self.late_s <= SUSPECT_LATE_S:
            return "valid", []
        reason = (
            f"the traffic began {self.late_s:.2f} s after traffic_at (allowed {SUSPECT_LATE_S:g} s), so the movement was ahead: "
            "fewer runs side by side, or nothing else on this machine"
        )
        return ("void" if self.late_s > VOID_LATE_S else "suspect"), [reason]

    def report(self) -> dict[str, object]:
        """`traffic_start` of verdict.json (formats/air.md)."""
        return {"late_s": round(self.late_s, 3), "thresholds": {"suspect_s": SUSPECT_LATE_S, "void_s": VOID_LATE_S}}


@dataclass(frozen=True)
class NeighbourTable:
    """Packets that were dropped during the traffic, on the whole machine, because the kernel's table of neighbours was full."""

    refused: int

    def judgement(self) -> tuple[str, list[str]]:
        """Judged like frames lost between hosts and medium: `suspect` from one on, `void` from VOID_REFUSED on."""
        if not self.refused:
            return "valid", []
        reason = (
            f"the kernel dropped {self.refused} packets because its table of neighbours was full: "
            "raise net.ipv4.neigh.default.gc_thresh3 of the machine, or run fewer stations at a time"
        )
        return ("void" if self.refused >= VOID_REFUSED else "suspect"), [reason]

    def report(self) -> int:
        """`neighbours_refused` of verdict.json (formats/air.md)."""
        return self.refused


@dataclass(frozen=True)
class CaptureDrops:
    """Packets that are in no capture, because the capturing program did not take them in time; by the name of the capture."""

    packets: dict[str, int]

    def judgement(self) -> tuple[str, list[str]]:
        """`suspect` from one on: nothing on the air changed, but figures from captures may be wrong."""
        if not self.packets:
            return "valid", []
        first, *more = self.packets
        names = f"{first} and {len(more)} more" if more else first
        lost = sum(self.packets.values())
        return "suspect", [f"{lost} packets are missing in the captures of {names}: the host was too busy; run it again"]

    def report(self) -> dict[str, int]:
        """`capture_drops` of verdict.json (formats/air.md)."""
        return self.packets


def verdict_of(directory: Path) -> str | None:
    """`valid`, `suspect` or `void`; None if the medium has not written it."""
    return read_object(directory / "verdict.json").get("verdict")


def reasons_of(directory: Path) -> list[str]:
    """The reasons of the verdict; empty if the medium has not written it."""
    return list(read_object(directory / "verdict.json").get("reasons") or ())


def add_judgements(directory: Path, **parts: Judgement | None) -> None:
    """Add judgements to the medium's verdict.json, each by its key (formats/air.md); the worst of all becomes the verdict. None:
    it was not made."""
    path = directory / "verdict.json"
    verdict = json.loads(path.read_text())
    for key, part in parts.items():
        if part is None:
            continue
        verdict[key] = part.report()
        judged, reasons = part.judgement()
        verdict["verdict"] = max(verdict["verdict"], judged, key=BETTER_FIRST.index)
        verdict["reasons"] += reasons
    write_atomic(path, json.dumps(verdict, indent=2, sort_keys=True) + "\n")  # on a full disk the medium's stays


def add_outputs(directory: Path, files: list[str]) -> None:
    """Make the run void because of files that are not what their writers wrote (outputs.py): a line for each."""
    path = directory / "verdict.json"
    more = [f"and {len(files) - NAMED_FILES} more (`files` of verdict.json)"] if len(files) > NAMED_FILES else []
    verdict: dict[str, Any] = {"format": FORMAT, "reasons": []} | read_object(path)  # which may be the lost one
    verdict |= {"verdict": "void", "reasons": [*verdict["reasons"], *files[:NAMED_FILES], *more], "files": files}
    write_atomic(path, json.dumps(verdict, indent=2, sort_keys=True) + "\n")
