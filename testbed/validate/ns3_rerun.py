"""`manet validate --rerun-ns3`: the cases of ns-3 again, beside the stored results, and the medium beside the new ones.

The program is medium/validation/ns3.cc; the wheel `ns3` of PyPI has the headers and libraries with which g++ builds it. A case is
described once, by its layout for the medium (ns3.py), and `arguments` says the same to ns-3. What is ns-3's alone stands here:
lengths of the runs, the load that fills a channel, and the settings that the beginning of a case's name stands for. ns-3 is
deterministic: the same seed gives the same figure. The table of stored results is not written.
"""

import hashlib
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from testbed.errors import RunError, UsageError
from testbed.programs import INSTALLATION
from testbed.validate import ns3, simulate
from testbed.validate.checks import Check
from testbed.validate.ns2 import FOLDER, Summary, summary
from testbed.validate.ns3 import Reference
from testbed.validate.simulate import Layout

SOURCE = FOLDER / "ns3.cc"
VARIABLE = "MANET_NS3"  # the folder of an environment of Python with the wheel
VERSION = "3.44"
WHEEL = f"ns3=={VERSION}.post0"
LIBRARIES = ("wifi", "applications", "internet", "mobility", "propagation", "spectrum", "network", "bridge", "traffic-control",
             "stats", "core", "antenna", "energy")  # fmt: skip
TIMEOUT_S = 1200.0
RESULT = re.compile(r"^RESULT flows=(?P<flows>[0-9.e+:-]+)$", re.M)
SAME = 0.01  # a difference from the stored mean that needs no reason

Say = Callable[[int, int], None]
# By radio: standard, mode of data and of RTS; {} is the rate in Mbit/s or the MCS
MODES = {
    "dot11b-11m": ("11b", "DsssRate{}Mbps", "DsssRate2Mbps"),
    "dot11a-54m": ("11a", "OfdmRate{}Mbps", "OfdmRate24Mbps"),
    "dot11g-54m": ("11g", "ErpOfdmRate{}Mbps", "ErpOfdmRate24Mbps"),
    "dot11n-ht20": ("11n", "HtMcs{}", "OfdmRate24Mbps"),
    "dot11ac-vht80": ("11ac", "VhtMcs{}", "OfdmRate24Mbps"),
    "dot11ax-he20": ("11ax", "HeMcs{}", "OfdmRate24Mbps"),
    "dot11ax-he80": ("11ax", "HeMcs{}", "OfdmRate24Mbps"),
}
HIGHEST = {"11b": 11, "11a": 54, "11g": 54, "11n": 7, "11ac": 8, "11ax": 11}
BY_MCS = ("11n", "11ac", "11ax")
MANAGERS = {"ideal": "Ideal", "minstrel-ht": "MinstrelHt"}
# bit/s of IP packets, more than the channel carries, and not so much that a run is spent on packets that a full queue drops
CAPACITY_BPS = {"11b": 8e6, "11a": 36e6, "11g": 36e6, "11n": 36e6, "11ac": 40e6, "11ax": 60e6}
CAPACITY_WITH_AMPDUS_BPS = {"dot11n-ht20": 80e6, "dot11ac-vht80": 100e6, "dot11ax-he20": 140e6, "dot11ax-he80": 500e6}
DSCP = {46: 48}  # ns-3 has the user priority from the first three bits, which makes EF video: CS6 is voice
# The first that matches: warm-up and measurement, s
LENGTHS = (
    (r"decode", 0.2, 3.0),
    (r"(late|cca62)-", 1.0, 3.0),
    (r"settled-", 20.0, 4.0),
    (r"spectrum-q500-", 2.0, 8.0),
    (r"q500-.*minstrel", 2.0, 3.0),
    (r"q500-", 1.0, 3.0),
    (r"edca-", 0.5, 3.0),
    (r"nist-11n-minstrel", 2.0, 1.0),
    (r"11n-minstrel", 0.7, 0.5),
    (r"((nist-)?11(n|ac)|n-|ac-|a54-)", 0.2, 0.4),
    (r"he(20|80)-", 0.3, 1.0),
    (r"b-circle", 0.5, 4.0),
    (r"(retry30-)?b-hidden", 0.5, 5.0),
    (r"(a|g|g9us)-circle|(retry30-)?(a|g9us)-hidden", 0.5, 1.5),
    (r"(forward-)?b-chain", 0.5, 3.0),
    (r"(forward-)?(a|g9us)-chain", 0.5, 1.0),
    (r"(nist-)?b-pair", 0.5, 1.5),
    (r"(nist-)?(a|g9us)-pair", 0.5, 0.5),
)
# All that match: options of the program
SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    (r"(nist|(spectrum-)?q500|settled|edca|decode)-", {"error": "Nist"}),
    (r"spectrum-", {"spectrum": 1}),
    (r"(decode|(nist-)?b-pair)-", {"sense": -101}),  # no floor of the detection of preambles, which is -82 dBm
    (r"b-chain3-(two103|300m)-", {"sense": -92}),
    (r"cca62-", {"cca": -62}),
    (r"forward-(b|g9us)-", {"forward": 12}),
    (r"forward-a-", {"forward": 18}),
    (r"((spectrum-)?q500|edca|he20|he80)-", {"queue": ns3.MAC_QUEUE}),
    (r"he80-", {"width": 80}),
    (r"(spectrum-)?q500-", {"discipline": 0}),
    (r"settled-", {"statistics": 1000}),
)  # fmt: skip


def installed() -> Path:
    """The folder of the wheel in the environment that VARIABLE names, else in this Python's. UsageError, with the remedy, where
    there is none, or one of another version, or no g++."""
    environment = Path(os.environ.get(VARIABLE) or sys.prefix)
    found = sorted(environment.glob("lib/python3*/site-packages/ns3"))
    get = f"python3 -m venv DIR && DIR/bin/pip install --no-deps {WHEEL}, and set {VARIABLE}=DIR"
    if not found:
        raise UsageError(f"{environment}: has no wheel ns3; get it with: {get}")
    if not (found[0] / "lib64" / _library("wifi")).exists():
        raise UsageError(f"{found[0]}: is not ns-3 {VERSION}; get that with: {get}")
    if shutil.which("g++") is None:
        raise UsageError("g++: not found; install it with: apt-get install g++")
    return found[0]


def _library(module: str) -> str:
    return f"libns{VERSION}-{module}.so"


def build(wheel: Path) -> Path:
    """The program, built if the cache has none of this source and wheel. Raises RunError."""
    name = hashlib.sha256(SOURCE.read_bytes() + str(wheel.resolve()).encode()).hexdigest()[:16]
    program = INSTALLATION.cache("ns3") / f"ns3-{name}"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    unfinished = program.with_suffix(".new")
    libraries = wheel / "lib64"
    done = subprocess.run(
        ["g++", "-std=c++20", "-O1", f"-I{wheel / 'include'}", str(SOURCE), "-o", str(unfinished), f"-L{libraries}",
         f"-Wl,-rpath,{libraries}", *(f"-l:{_library(module)}" for module in LIBRARIES)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
        raise RunError(f"{SOURCE}: g++ cannot build it with {wheel}: {errors[0]}")
    unfinished.rename(program)
    return program


def arguments(reference: Reference) -> dict[str, Any]:
    """The options of the program, without the seed, for the case of this layout."""
    layout, overrides, case = reference.layout, reference.layout.overrides, reference.case
    standard, _, _ = MODES[layout.radio]
    stations = {simulate.name(number): number for number in range(len(layout.positions))}
    warmup_s, measured_s = next((before, after) for pattern, before, after in LENGTHS if re.match(pattern, case))
    retries = overrides["short_retry_limit"]
    options: dict[str, Any] = {
        "standard": standard,
        "stations": ";".join(f"{x},{y}" for x, y in layout.positions),
        "flows": ";".join(_flow(flow, stations, load_bps) for flow, load_bps in _loads(layout)),
        "retries": ns3.RETRY_LIMIT if retries == ns3.ENDLESS["short_retry_limit"] else retries,
        "rts": ns3.RTS["on" if overrides.get("rts_threshold_bytes") == 0 else "off"],
        "ampdu": int(_has_ampdus(layout)),
        "warmup": warmup_s,
        "seconds": measured_s,
        **_rates(layout, case),
    }
    if "slot_us" in overrides:
        options["slot"] = overrides["slot_us"]
    if layout.propagation["model"] == "matrix":
        entries = layout.propagation["matrix"]
        options["losses"] = ";".join(f"{stations[e['from']]}>{stations[e['to']]}={e['loss_db']:g}" for e in entries)
    for flow in layout.traffic:
        if "route" in flow:
            options["route"] = ";".join(str(stations[station]) for station in flow["route"])
    if txop_us := overrides.get("access_categories", {}).get("voice", {}).get("txop_us"):
        options["voice-txop"] = txop_us
    for pattern, settings in SETTINGS:
        if re.match(pattern, case):
            options |= settings
    return options


def _rates(layout: Layout, case: str) -> dict[str, str]:
    """The mode of data and RTS, or who chooses it: Ideal also where the medium has the MCS that ns-3's takes."""
    standard, data, control = MODES[layout.radio]
    if manager := MANAGERS.get("ideal" if "-ideal-" in case else layout.overrides.get("rate_control", "")):
        return {"manager": manager}
    highest = HIGHEST[standard]
    of_data = layout.overrides.get("mcs", highest) if standard in BY_MCS else _mbps(layout.overrides, highest)
    return {"rate": data.format(of_data), "control": control}


def _mbps(overrides: Mapping[str, Any], highest: int) -> int:
    return int(overrides.get("data_rate_bps", highest * 1_000_000) // 1_000_000)


def _has_ampdus(layout: Layout) -> bool:
    return bool(layout.overrides.get("aggregation"))


def _loads(layout: Layout) -> list[tuple[dict[str, Any], float]]:
    """The flows with their loads, bit/s of IP packets."""
    with_ampdus = _has_ampdus(layout)
    capacity_bps = CAPACITY_WITH_AMPDUS_BPS[layout.radio] if with_ampdus else CAPACITY_BPS[MODES[layout.radio][0]]
    saturated = sum(flow["kind"] == "saturated" for flow in layout.traffic)
    load_bps = 1.2 * capacity_bps if saturated == 1 else 2.5 * capacity_bps / max(1, saturated)
    return [(flow, flow.get("rate_bps", load_bps)) for flow in layout.traffic]


def _flow(flow: Mapping[str, Any], stations: Mapping[str, int], load_bps: float) -> str:
    dscp = flow.get("dscp", 0)
    return f"{stations[flow['from']]}>{stations[flow['to']]},{load_bps:g},{flow['bytes']},{DSCP.get(dscp, dscp)}"


def call(program: Path, options: Mapping[str, Any], seed: int) -> list[float]:
    """kbit/s of each flow of one run. Raises RunError."""
    command = [str(program), *(f"--{name}={value}" for name, value in {**options, "seed": seed}.items())]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise RunError(f"{shlex.join(command)}: not done after {TIMEOUT_S:.0f} s; is the machine overloaded?") from None
    if done.returncode == 0 and (result := RESULT.search(done.stdout)):
        return [float(kbps) for kbps in result["flows"].split(":")]
    message = (done.stderr.strip().splitlines() or ["no message"])[-1]
    raise RunError(f"{shlex.join(command)}: exit {done.returncode} without a result: {message}")


def rerun(references: Sequence[Reference], progress: Say, workers: int | None = None) -> dict[str, Summary]:
    """The new results by case, each over as many seeds as the stored one. `progress(done, total)` after every run; several
    references of one case share its runs. Raises UsageError and RunError."""
    program = build(installed())
    stored = ns3.read()
    shown = {tuple(sorted(arguments(each).items())): each for each in references}
    jobs = [(options, seed) for options, each in shown.items() for seed in range(1, stored[each.case].seeds + 1)]
    # the longest first, so that the workers end together
    jobs.sort(key=lambda job: -_work(dict(job[0])))
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        futures = {pool.submit(call, program, dict(options), seed): (options, seed) for options, seed in jobs}
        flows: dict[Any, list[float]] = {}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                flows[futures[future]] = future.result()
                progress(done, len(jobs))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    results = {}
    for each in references:
        options = tuple(sorted(arguments(each).items()))
        runs = [flows[options, seed] for seed in range(1, stored[each.case].seeds + 1)]
        results[each.case] = summary([sum(run) if each.flow is None else run[each.flow] for run in runs])
    return results


def _work(options: Mapping[str, Any]) -> float:
    """Stations times seconds: a measure of how long a run takes."""
    return float((options["warmup"] + options["seconds"]) * (1 + options["stations"].count(";")))


def repeated(references: Sequence[Reference], results: Mapping[str, Summary]) -> list[Check]:
    """The new results beside the stored ones: within SAME or three standard errors of the difference."""
    return [_compared(each, ns3.read()[each.case], results[each.case]) for each in references]


def _compared(reference: Reference, before: Summary, now: Summary) -> Check:
    whole = before.mean or ns3.offered_kbps(reference)
    three = 3 * math.hypot(*(ns3.standard_error(reference, each) for each in (before, now))) / whole
    rule, tolerance = f"{SAME:.0%}", SAME
    if three > tolerance:
        rule, tolerance = "3 se", three
    error = (now.mean - before.mean) / whole
    source = f"ns-3.44 as stored, {before.seeds} seeds, {rule}"
    return Check(f"rerun/{reference.name}", now.mean, before.mean, source, tolerance, abs(error) <= tolerance, "kbit/s", error)
