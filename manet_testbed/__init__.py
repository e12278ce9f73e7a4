"""A testbed of mobile ad hoc networks with the kernel's own TCP, in Python.

`Mesh` brings a network up for a `with` block; `manet_testbed.pytest_plugin` gives tests the fixture `mesh`
(docs/testing-with-pytest.md). The process that uses them needs Python 3.11 alone. `Scenario`, `Experiment`, `Results`, `Run` and
`Progress` run experiments and hold their tables and figures (docs/python.md); they need the checkout's own Python,
.venv/bin/python, and are imported when they are used. These names are the interface, which stays; everything else of the checkout
may change.

Installed from a wheel, the package is the client of a testbed that is elsewhere on the machine (location.py).
"""

from typing import TYPE_CHECKING

from manet_testbed.answers import Ping, Route, Throughput, Verdict
from manet_testbed.errors import (
    CommandFailed,
    MeshError,
    MeshTimeout,
    MissingLibraries,
    MissingRequirement,
    UnreadableResults,
    WrongRequest,
    WrongScenario,
)
from manet_testbed.mesh import Mesh
from manet_testbed.process import Process
from manet_testbed.requirements import missing_requirement
from manet_testbed.station import Station
from manet_testbed.version import __version__ as __version__

if TYPE_CHECKING:
    from manet_testbed.lab import Experiment as Experiment
    from manet_testbed.lab import Progress as Progress
    from manet_testbed.lab import Results as Results
    from manet_testbed.lab import Run as Run
    from manet_testbed.lab import Scenario as Scenario
    from manet_testbed.lab import mean_and_interval as mean_and_interval

# `from manet_testbed import *` takes these alone: LAB needs the libraries of the testbed.
__all__ = [
    "CommandFailed",
    "Mesh",
    "MeshError",
    "MeshTimeout",
    "MissingLibraries",
    "MissingRequirement",
    "Ping",
    "Process",
    "Route",
    "Station",
    "Throughput",
    "UnreadableResults",
    "Verdict",
    "WrongRequest",
    "WrongScenario",
    "missing_requirement",
]
LAB = ("Experiment", "Progress", "Results", "Run", "Scenario", "mean_and_interval")


def __getattr__(name: str) -> object:
    if name not in LAB:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    try:
        lab = importlib.import_module("manet_testbed.lab")
    except ModuleNotFoundError as problem:
        from manet_testbed.location import find, missing_testbed

        found, text = find(), f"{name} needs the testbed and its libraries, and this Python has no {problem.name}"
        remedy = missing_testbed(__version__) if found is None or not found.python.exists() else f"use {found.python}"
        raise MissingLibraries(f"{text}; {remedy}") from None
    return getattr(lab, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *LAB])
