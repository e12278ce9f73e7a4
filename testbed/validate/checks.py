"""The references of the medium and the tolerances.

closed-form  one saturated sender, every radio profile, RTS on and off, and each MCS of 802.11n, ac and ax: within 1 %; at two
             lower rates, whose ACK is slower, 0.2 %
edca         one saturated category with the TXOPs of table 9-155: within 1 %; shares of two categories with windows of a fixed
             size, in one station and in two, against their Markov chain: within 2 %
bianchi      n saturated senders: within 5 %. The medium is configured to the model's assumptions: all in range of one another
             with equal power, no capture, and for the model of 2000 no retry limit that is ever reached.
             `retry-limit` is the same with the profile's own limits against Wu et al., counters freezing.
ns3          saturation, hidden senders, chains, distances, 802.11n with and without aggregation, and shares of frames decoded:
             within 5 % of ns-3.44's mean or three standard errors of it; of a share of frames those of its binomial
             distribution
ns2          saturation, unequal powers, hidden terminals, capture, UDP chain: within 5 % of ns-2.35's mean, or within three
             standard deviations of ns-2's own seeds where that is more; unequal powers without RTS: within 2 %

Durations of the models: a success ends with DIFS; a collision ends, for those who hear it, with EIFS instead. In
ns-2's MAC (rule `eifs_as_nav`) EIFS is a NAV, after which DIFS is waited as well. With RTS only RTS frames
collide. The models give all stations one Tc; the parties to a collision wait for CTS or ACK timeout instead, parallel to DIFS.
With ns-2's rules that is over before the EIFS they wait for as well; with the standard's the start delay in the timeout is
set so that it takes as long as EIFS.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from statistics import fmean
from typing import Any

from testbed.validate import bianchi, closed_form, edca, ns2, ns3, radio, simulate
from testbed.validate.simulate import Layout, Result

IP_BYTES = 1500
RTS_OFF_BYTES = 3000  # an RTS threshold that no frame reaches
NO_CAPTURE_DB = 90.0
RETRY_LIMIT_MAX = 255
SEEDS = (1, 2, 3, 4, 5)
SENDERS = (2, 5, 10, 20, 50)
HT_IN_2_4_GHZ: dict[str, Any] = {"slot_us": 20, "sifs_us": 10, "signal_extension_us": 6}  # 802.11-2016 table 19-25, ad hoc
# of S1G none: its basic rates are those of the long guard interval
OTHER_GUARDS = {"ht": ("short",), "vht": ("short",), "he": ("double", "quadruple"), "s1g": ()}
RTS_THRESHOLDS = {"on": 0, "off": RTS_OFF_BYTES}
NEARER_M = {"toplinkst-top-5m01": 2.0}  # with antennas of -3 dBi MCS 8 and 9 do not reach 10 m


@dataclass(frozen=True)
class Case:
    """A layout of the medium and the number it must give."""

    name: str
    layout: Layout
    metric: Callable[[Result], float]
    unit: str
    reference: float
    source: str
    tolerance: float  # relative to the reference
    whole: float = 1.0  # what error and tolerance are relative to where the reference is 0


@dataclass(frozen=True)
class Check:
    """A case with its outcome: the mean over our seeds."""

    name: str
    ours: float
    reference: float
    source: str
    tolerance: float
    ok: bool
    unit: str
    error: float


def cases(pattern: str | None = None) -> list[Case]:
    """All cases, or those whose name matches the shell pattern or contains it. Raises UsageError for a missing ns-2 table."""
    everything = [*_closed_form(), *_bianchi(), *_ns2_saturation(), *_ns2_near_far(), *_ns2_hidden(), *_ns2_udp_chain()]
    everything += [*_closed_form_of_mcs(), *ns3_cases(ns3.read()), *_edca_alone(), *_edca_shares()]
    return [case for case in everything if is_chosen(case.name, pattern)]


def is_chosen(name: str, pattern: str | None) -> bool:
    """Whether `--only` chooses the check of this name: it matches the shell pattern or contains it."""
    return pattern is None or pattern in name or fnmatch(name, pattern)


def evaluate(chosen: Sequence[Case], progress: Callable[[int, int], None]) -> list[Check]:
    """Simulate every case with every seed and compare; `progress(done, total)` after each simulation."""
    return [compare(case, values) for case, values in measure(chosen, progress)]


def measure(chosen: Sequence[Case], progress: Callable[[int, int], None]) -> list[tuple[Case, list[float]]]:
    """Each case with its metric under each of SEEDS; `progress(done, total)` after each simulation."""
    jobs = [(case.layout, seed) for case in chosen for seed in SEEDS]
    results = simulate.run_all(jobs, progress)
    return [
        (case, [case.metric(result) for result in results[first : first + len(SEEDS)]])
        for case, first in zip(chosen, range(0, len(jobs), len(SEEDS)), strict=True)
    ]


def compare(case: Case, values: Sequence[float]) -> Check:
    """The check of a case with these values of its metric."""
    measured = fmean(values)
    error = (measured - case.reference) / (case.reference or case.whole)
    return Check(case.name, measured, case.reference, case.source, case.tolerance, abs(error) <= case.tolerance, case.unit, error)


def _total(result: Result) -> float:
    return result.total_kbps


def _flow(index: int, result: Result) -> float:
    return result.flows_kbps[index]


def _second_share(result: Result) -> float:
    return result.flows_kbps[1] / result.total_kbps


def _closed_form() -> Iterator[Case]:
    profiles = [(name, constants) for name in radio.names() if (constants := radio.load(name)).mcs is None]
    # slower than the fastest basic rate, so that the ACK is as well
    profiles += [(f"dot11a-54m@{m}m", replace(radio.load("dot11a-54m"), data_rate_bps=m * 1_000_000)) for m in (6, 18)]
    for name, constants in profiles:
        for rts in ("on", "off"):
            layout = Layout(
                constants.name,
                simulate.circle(1, 10.0),
                [simulate.saturated(1, 0)],
                measured_s=20.0,
                warmup_s=1.0,
                overrides={"rts_threshold_bytes": RTS_THRESHOLDS[rts], "data_rate_bps": constants.data_rate_bps},
            )
            expected = closed_form.single_sender_bps(constants, IP_BYTES, rts == "on") / 1000
            source = "IEEE Std 802.11-2012: frame durations, DIFS, mean backoff"
            tolerance = 0.01 if name == constants.name else 0.002  # an ACK at 24 Mbit/s would be worth 0.4 to 0.7 %
            yield Case(f"closed-form/{name}/rts-{rts}", layout, _total, "kbit/s", expected, source, tolerance)


def _closed_form_of_mcs() -> Iterator[Case]:
    """Each MCS of each profile that has one, and other guard intervals and two streams at the highest."""
    for name in radio.names():
        constants = radio.load(name)
        if constants.mcs is None:
            continue
        highest = {"ht": 7, "he": 11, "s1g": 10 - constants.width_mhz}.get(constants.modulation, 9)
        modes = [replace(constants, mcs=mcs) for mcs in range(highest + 1)]
        modes += [replace(constants, mcs=highest, guard_interval=guard) for guard in OTHER_GUARDS[constants.modulation]]
        modes.append(replace(constants, mcs=highest, streams=2))
        if name == "dot11n-ht20":
            modes.append(replace(constants, **HT_IN_2_4_GHZ))
        if name == "dot11ax-he20":
            modes.append(replace(constants, mcs=highest, width_mhz=40))
        if name == "dot11ah-1m":
            modes.append(replace(constants, mcs=closed_form.REPEATED))
        for mode in modes:
            guard, streams = mode.guard_interval, mode.streams
            overrides: dict[str, Any] = {"mcs": mode.mcs, "guard_interval": guard, "streams": streams, "aggregation": False}
            overrides |= {"rts_threshold_bytes": RTS_OFF_BYTES, "width_mhz": mode.width_mhz}
            in_2_4_ghz = mode.slot_us != constants.slot_us
            if in_2_4_ghz:
                overrides |= HT_IN_2_4_GHZ
            measured_s = 40.0 if constants.modulation == "s1g" else 5.0  # a frame takes up to 0.08 s
            away_m = NEARER_M.get(name, 10.0)
            layout = Layout(name, simulate.circle(1, away_m), [simulate.saturated(1, 0)], measured_s, 1.0, overrides)
            expected = closed_form.single_sender_bps(mode, IP_BYTES, rts=False, distance_m=away_m) / 1000
            standard = "802.11ax-2021" if constants.modulation == "he" else "802.11-2016"
            source = f"IEEE Std {standard}: PPDU durations, AIFS, mean backoff"
            label = f"closed-form/{name}/mcs-{mode.mcs}{f'-{guard}' * (guard != 'long')}{'-2ss' * (streams == 2)}"
            label += "-40mhz" * (mode.width_mhz != constants.width_mhz)
            yield Case(label + "-2.4ghz" * in_2_4_ghz, layout, _total, "kbit/s", expected, source, 0.01)


def _edca_alone() -> Iterator[Case]:
    """Each category alone, RTS on and off, without aggregation."""
    constants = radio.load("dot11n-ht20")
    for category in edca.categories(constants).values():
        for rts in ("on", "off"):
            overrides = {"access": "edca", "aggregation": False, "rts_threshold_bytes": RTS_THRESHOLDS[rts]}
            traffic = [{**simulate.saturated(1, 0), "dscp": category.dscp}]
            layout = Layout("dot11n-ht20", simulate.circle(1, 10.0), traffic, 5.0, 1.0, overrides)
            expected = edca.single_sender_bps(constants, category, IP_BYTES, rts == "on", distance_m=10.0) / 1000
            source = "IEEE Std 802.11-2020: AIFS, mean backoff, exchanges of a TXOP"
            yield Case(f"edca/{category.name}/rts-{rts}", layout, _total, "kbit/s", expected, source, 0.01)


def _edca_shares() -> Iterator[Case]:
    """Two categories whose windows do not grow: unequal windows, and unequal AIFS."""
    known = edca.categories(radio.load("dot11n-ht20"))
    for first, second, windows in (("voice", "video", (7, 15)), ("video", "background", (15, 15))):
        for where in ("one-station", "two-stations"):
            own = {
                name: {"cw_min": window, "cw_max": window, "txop_us": 0}
                for name, window in zip((first, second), windows, strict=True)
            }
            overrides: dict[str, Any] = {
                "access": "edca", "aggregation": False, "access_categories": own, "short_retry_limit": RETRY_LIMIT_MAX,
                "long_retry_limit": RETRY_LIMIT_MAX, "capture_db": NO_CAPTURE_DB,
            }  # fmt: skip
            senders = (1, 1) if where == "one-station" else (1, 2)
            traffic = [
                {**simulate.saturated(sender, 0), "dscp": known[name].dscp}
                for sender, name in zip(senders, (first, second), strict=True)
            ]
            layout = Layout("dot11n-ht20", simulate.circle(2, 10.0), traffic, 10.0, 1.0, overrides)
            both = ((windows[0], known[first].aifsn), (windows[1], known[second].aifsn))
            expected = edca.share_of_second(*both, in_one_station=where == "one-station")
            source = "IEEE Std 802.11-2020 10.23.2.4: Markov chain of the backoffs"
            yield Case(f"edca/{second}-beside-{first}/{where}", layout, _second_share, "share", expected, source, 0.02)


def ns3_cases(results: Mapping[str, ns2.Summary]) -> Iterator[Case]:
    """The cases of ns-3 that have a result, by the name of the case there."""
    for reference in ns3.references():
        if reference.case in results:
            yield _ns3_case(reference, results[reference.case])


def _ns3_case(reference: ns3.Reference, result: ns2.Summary) -> Case:
    mean, whole = result.mean, ns3.offered_kbps(reference)
    rule, tolerance = "5 %", 0.05
    three = 3 * ns3.standard_error(reference, result) / (mean or whole)
    if three > tolerance:
        rule, tolerance = "3 se", three
    source = f"ns-3.44, {result.seeds} seed{'s' * (result.seeds > 1)}, {rule}"
    metric = _total if reference.flow is None else partial(_flow, reference.flow)
    return Case(f"ns3/{reference.name}", reference.layout, metric, "kbit/s", mean, source, tolerance, whole)


def _bianchi() -> Iterator[Case]:
    for profile in ("ns2-dsss-2m", "dot11a-54m"):
        for rts in ("on", "off"):
            for senders in SENDERS:
                yield from _bianchi_pair(profile, rts, senders)


def _bianchi_pair(profile: str, rts: str, senders: int) -> Iterator[Case]:
    """The model of 2000 without retry limits, and its retry-limited, freezing form with the profile's."""
    constants = radio.load(profile)
    slots = _model_slots(constants, rts == "on")
    no_limit = {"short_retry_limit": RETRY_LIMIT_MAX, "long_retry_limit": RETRY_LIMIT_MAX}
    # Only first frames of an exchange collide (RTS, or data below the threshold): the short retry limit counts.
    limited = bianchi.Backoff(constants.windows, constants.short_retry_limit)
    for model, backoff, freezing, overrides, source in (
        ("bianchi", bianchi.Backoff(constants.windows), False, no_limit, "Bianchi 2000"),
        ("retry-limit", limited, True, {}, "Bianchi 2000, retry limits (Wu 2002), frozen counters"),
    ):
        layout = Layout(
            profile,
            simulate.circle(senders, 10.0),
            [simulate.saturated(i, 0) for i in range(1, senders + 1)],
            measured_s=30.0 if "dsss" in profile else 8.0,  # some 4000 packets
            warmup_s=1.0,
            overrides={
                "rts_threshold_bytes": RTS_THRESHOLDS[rts],
                "capture_db": NO_CAPTURE_DB,
                **_same_wait_for_all(constants),
                **overrides,
            },
        )
        expected = bianchi.saturation(senders, backoff, slots, freezing).utilisation * 1000
        yield Case(f"{model}/{profile}/rts-{rts}/n={senders}", layout, _total, "kbit/s", expected, source, 0.05)


def _same_wait_for_all(constants: radio.Radio) -> dict[str, int]:
    """Overrides by which the timeout takes as long as EIFS: SIFS + slot + start delay = SIFS + DIFS + ACK.

    The DIFS of a station in a collision runs in parallel with its timeout: when the timeout is over, slots count at once.
    """
    if constants.eifs_as_nav:
        return {}
    ack_us = closed_form.airtime_us(constants, closed_form.ACK_BYTES, constants.eifs_ack_rate_bps)
    return {"rx_start_delay_us": round(closed_form.difs_us(constants) + ack_us - constants.slot_us)}


def _model_slots(constants: radio.Radio, rts: bool) -> bianchi.Slots:
    """Durations in us and a payload in bits, so that utilisation is Mbit/s."""
    length = closed_form.RTS_BYTES if rts else IP_BYTES + constants.overhead_bytes
    rate = constants.control_rate_bps if rts else constants.data_rate_bps
    collision = closed_form.airtime_us(constants, length, rate) + closed_form.eifs_us(constants)
    if constants.eifs_as_nav:
        collision += closed_form.difs_us(constants)
    success = closed_form.success_us(constants, IP_BYTES, rts)
    return bianchi.Slots(constants.slot_us, success, collision, 8 * IP_BYTES)


def _ns2_case(name: str, layout: Layout, summary: ns2.Summary, unit: str, metric: Callable[[Result], float]) -> Case:
    tolerance = max(0.05, 3 * summary.deviation / summary.mean)
    rule = "5 %" if tolerance == 0.05 else "3 sd"
    return Case(name, layout, metric, unit, summary.mean, f"ns-2.35, {summary.seeds} seeds, {rule}", tolerance)


def _ns2_saturation() -> Iterator[Case]:
    rows = ns2.read("ns2_saturation")
    for rts in ("on", "off"):
        for senders in (1, *SENDERS):
            layout = Layout(
                "ns2-dsss-2m",
                simulate.circle(senders, 50.0),
                [simulate.saturated(i, 0) for i in range(1, senders + 1)],
                measured_s=30.0,
                warmup_s=1.0,
                overrides={"rts_threshold_bytes": RTS_THRESHOLDS[rts]},
            )
            summary = ns2.summarise(rows, senders=senders, rts=rts)
            yield _ns2_case(f"ns2/saturation/rts-{rts}/n={senders}", layout, summary, "kbit/s", _total)
            if senders > 1:
                failed = ns2.summarise(rows, "failed_attempts", senders=senders, rts=rts)
                label = f"ns2/failed-attempts/rts-{rts}/n={senders}"
                yield _ns2_case(label, layout, failed, "share", lambda result: result.failed_attempts)


def _ns2_near_far() -> Iterator[Case]:
    """Unequal powers: without RTS same-slot capture decides the shares, so they have to agree closely."""
    rows = ns2.read("ns2_near_far")
    for rts in ("on", "off"):
        for senders in (2, 6, 16):
            layout = Layout(
                "ns2-dsss-2m",
                simulate.near_far(senders, ns2.NEAR_M, ns2.FAR_M),
                [simulate.saturated(i, 0, 1000) for i in range(1, senders + 1)],
                measured_s=120.0,
                warmup_s=1.0,
                overrides={"rts_threshold_bytes": RTS_THRESHOLDS[rts]},
            )
            label = f"ns2/near-far/rts-{rts}/n={senders}"
            for share, column, metric in (("near", "near_kbps", partial(_flow, 0)), ("total", "throughput_kbps", _total)):
                summary = ns2.summarise(rows, column, senders=senders, rts=rts)
                case = _ns2_case(f"{label}/{share}", layout, summary, "kbit/s", metric)
                if rts == "off":
                    case = replace(case, tolerance=0.02, source=f"ns-2.35, {summary.seeds} seeds, 2 %")
                yield case


def _ns2_hidden() -> Iterator[Case]:
    rows = ns2.read("ns2_hidden")
    for rts in ("on", "off"):
        for capture in ("on", "off"):
            for a_m, c_m in ((200, 200), (50, 240), (120, 240)):
                if a_m == c_m and capture == "off":
                    continue  # equal power: nothing is captured, ns-2's rows are identical
                for offered_kbps in (2400, 400):
                    layout = _hidden_layout(a_m, c_m, rts, capture, offered_kbps)
                    summary = ns2.summarise(
                        rows,
                        distance_a_m=a_m,
                        distance_c_m=c_m,
                        rts=rts,
                        capture=capture,
                        offered_kbps=offered_kbps,
                    )
                    kind = "hidden" if a_m == c_m else "capture"
                    label = f"ns2/{kind}/{a_m}m-{c_m}m/{offered_kbps}k/rts-{rts}/capture-{capture}"
                    yield _ns2_case(label, layout, summary, "kbit/s", _total)


def _hidden_layout(a_m: float, c_m: float, rts: str, capture: str, offered_kbps: float) -> Layout:
    """A - B - C, carrier sense cut to the 250 m of reception: A and C do not hear each other."""
    overrides = {"rts_threshold_bytes": RTS_THRESHOLDS[rts], "carrier_sense_threshold_w": ns2.SENSE_250_M_W}
    if capture == "off":
        overrides["capture_db"] = NO_CAPTURE_DB
    return Layout(
        "ns2-dsss-2m",
        [(500.0, 500.0), (500.0 - a_m, 500.0), (500.0 + c_m, 500.0)],
        [simulate.cbr([sender, 0], offered_kbps * 1000, start_s=0.001 * sender) for sender in (1, 2)],
        measured_s=30.0,
        warmup_s=1.0,
        overrides=overrides,
    )


def _ns2_udp_chain() -> Iterator[Case]:
    """Each chain at the load with ns-2's highest throughput, and at the highest load."""
    rows = ns2.read("ns2_udp_chain")
    for hops in range(1, 11):
        loads = sorted({int(row["offered_kbps"]) for row in rows if row["hops"] == str(hops)})
        summaries = {load: ns2.summarise(rows, hops=hops, offered_kbps=load) for load in loads}
        best = max(loads, key=lambda load: summaries[load].mean)
        for load in sorted({best, loads[-1]}):
            layout = Layout(
                "ns2-dsss-2m",
                [(200.0 * i, 1.0) for i in range(hops + 1)],
                [simulate.cbr(range(hops + 1), load * 1000)],
                measured_s=40.0,
                warmup_s=5.0,
            )
            yield _ns2_case(f"ns2/udp-chain/{hops}-hops/{load}k", layout, summaries[load], "kbit/s", _total)
