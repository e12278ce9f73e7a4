"""ns-3.44 as the reference: its stored results (medium/validation/ns3.csv), and the medium set up as its runs were.

The cases override noise (kTB at 290 K and a noise figure of 6 dB), power (15 dBm), slots and basic rates. Known differences are
ns-3's (docs/medium.md has the runs that isolate them), and the cases remove each on the side that allows it:

retry30-*  CW stays after a dropped packet: the run of ns-3 without drops
forward-*  a relay's first packet has no backoff if it arrives before the relay's ACK: the run in which it arrives during the ACK
late-*     ns-3's first second is slower: the run measured after it
cca62-*    a frame whose preamble was missed is sensed from -82 dBm on, as the medium does with `energy_detect_w = CCA_WIFI_W`:
           the run in which ns-3 senses it from -62 dBm on
nist-*     error rates of link simulations: the run with the NIST model
settled-*  Minstrel-HT samples after a number of frames, and judges a rate by those of 50 ms, of ten senders one A-MPDU or none:
           the run measured after 20 s, with estimates from intervals of 1 s, NIST
*-vo2016-* a TXOP that ends early is announced by a CF-End: the run with a limit that leaves no room for one
q500-*     FqCoDel above a MAC queue of 50: the run with a MAC queue of 500 (ns-3's default) alone, NIST
spectrum-* YansWifiPhy decodes a frame within 4 us after a weaker one as if that were not there: the run with SpectrumWifiPhy
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from testbed.errors import UsageError
from testbed.validate import simulate
from testbed.validate.ns2 import FOLDER, Summary
from testbed.validate.simulate import Layout

PATH = FOLDER / "ns3.csv"
POWER_W = 0.031623  # 15 dBm
POWER_DBM = 15.0
NOISE_W_PER_HZ = 1.380649e-23 * 290 * 10**0.6
# of 802.11b too: of frames at -89 and -88 dBm ns-3 decodes 0.24 and 0.83, which its model has at 6.0 and 7.0 dB
WIDTH_HZ = 20e6
HE80_WIDTH_HZ = 80e6
RTS = {"off": 1000000, "on": 0}  # ns-3's thresholds
NEIGHBOUR_LOSS_DB = 70.0
RETRY_LIMIT = 7  # ns-3 has one limit
PROFILES = {"b": "dot11b-11m", "a": "dot11a-54m", "g": "dot11g-54m", "g9us": "dot11g-54m", "n": "dot11n-ht20",
            "ac": "dot11ac-vht80", "he20": "dot11ax-he20", "he80": "dot11ax-he80"}  # fmt: skip
AGGREGATION: dict[int, Any] = {0: False, 1: {"request_after_silence": True}}  # as ns-3 does
SECONDS = {"b": 6.0, "a": 3.0, "g": 3.0, "g9us": 3.0, "n": 3.0, "ac": 3.0, "he20": 3.0, "he80": 3.0}
ALL_BASIC: dict[str, Any] = {"basic_rates_bps": [1_000_000, 2_000_000, 5_500_000, 11_000_000]}
CCA_WIFI_W = 6.31e-12  # -82 dBm, ns-3's CcaSensitivity
MAC_QUEUE = 500  # ns-3's WifiMacQueue
# ns-3 counts no retries of MPDUs under an agreement (IEEE Std 802.11-2020 clause 10.23.2.12.1; IncrementRetryCountUnderBa)
ENDLESS: dict[str, Any] = {"short_retry_limit": 255, "long_retry_limit": 255}
DECODED_S = 3.0  # ns-3's measurement of a case `decoded`
BITS = 8 * 1500  # of a packet
CARRIED_BPS = 30e6  # by one saturated sender, for cases in which nothing arrives
SHORT_SLOT: dict[str, Any] = {"network": "infrastructure", "slot_us": 9}
AC_IN_20_MHZ: dict[str, Any] = {"width_mhz": 20, "carrier_sense_threshold_w": CCA_WIFI_W, "energy_detect_w": 6.31e-10}
VARIANT = re.compile(r"^(spectrum-)?(retry30|forward|late|cca62|nist|q500|settled|detect-20)-")
# Cases of ns-3 that are not compared in any form: pattern of the name, and why
LEFT_OUT: tuple[tuple[str, str], ...] = (
    ("decode-*-table-sense-101", "ns-3's tables are another error model; its NIST model is compared at each power"),
    ("decode-*-table-sense-82", "the same, and from -82 dBm on all or nothing is decoded, by ns-3's least power of a preamble"),
)


@dataclass(frozen=True)
class Reference:
    """A case of ns-3, by its name in the table, and the layout that repeats it here."""

    name: str
    layout: Layout
    case: str
    flow: int | None = None  # the flow that is compared, from 0; None: the sum of all


@cache
def read() -> dict[str, Summary]:
    """The stored results by case, kbit/s. Raises UsageError without the table."""
    try:
        lines = [line for line in PATH.read_text().splitlines() if not line.startswith("#")]
    except FileNotFoundError:
        raise UsageError(f"{PATH}: not found; git checkout has it") from None
    return {
        row["case"]: Summary(float(row["mean_kbps"]), float(row["deviation_kbps"]), int(row["seeds"]))
        for row in csv.DictReader(lines)
    }


def offered_kbps(reference: Reference) -> float:
    """What the sources of a case offer, kbit/s; of a saturated one CARRIED_BPS."""
    return sum(float(flow.get("rate_bps", CARRIED_BPS)) for flow in reference.layout.traffic) / 1000


def standard_error(reference: Reference, result: Summary) -> float:
    """The standard error of a result, kbit/s: of a share of decoded frames, which has one seed, that of its number of frames."""
    if not reference.name.startswith("decoded"):
        return float(result.deviation / result.seeds**0.5)
    offered = offered_kbps(reference)
    share = result.mean / offered
    frames = offered * DECODED_S * 1000 / BITS
    return float(offered * (share * (1 - share) / frames) ** 0.5)


def references() -> Iterator[Reference]:
    """All cases that the medium can repeat."""
    yield from _circles()
    yield from _hidden()
    yield from _chains()
    yield from _pairs()
    yield from _modes()
    yield from _he_modes()
    yield from _aggregating_circles()
    yield from _by_distance()
    yield from _circles_with_rate_control()
    yield from _ht_chains()
    yield from _decoding()
    yield from _edca()


def _layout(kind: str, positions: list[simulate.Position], traffic: list[dict[str, Any]], **more: Any) -> Layout:
    """`kind`: b, a, g, g9us, n, he20 or he80; `more`: `overrides`, `propagation`."""
    own: dict[str, Any] = {"b": ALL_BASIC, "g9us": SHORT_SLOT, "ac": AC_IN_20_MHZ}.get(kind, {})
    overrides = {
        "reception": "sinr",
        "noise_w": NOISE_W_PER_HZ * WIDTH_HZ,
        "tx_power_w": POWER_W,
        "short_retry_limit": RETRY_LIMIT,
        "long_retry_limit": RETRY_LIMIT,
        "propagation_delay": True,
        **own,
        **more.get("overrides", {}),
    }
    propagation = more.get("propagation", {"model": "two-ray"})
    return Layout(PROFILES[kind], positions, traffic, SECONDS[kind], 0.5, overrides, propagation)


def _rts(state: str) -> dict[str, int]:
    return {"rts_threshold_bytes": 0 if state == "on" else 3000}


def _reference(case: str, layout: Layout, name: str = "") -> Reference:
    return Reference(name or case, layout, case)


def _circles() -> Iterator[Reference]:
    senders = {"b": (1, 2, 5, 10), "a": (1, 2, 5, 10), "g": (1, 2, 5, 10), "g9us": (1, 5)}
    for kind, numbers in senders.items():
        for number in numbers:
            for state, threshold in RTS.items():
                traffic = [simulate.saturated(i, 0) for i in range(1, number + 1)]
                layout = _layout(kind, simulate.circle(number, 20.0), traffic, overrides=_rts(state))
                yield _reference(f"{kind}-circle-{number}-rts{threshold}", layout, f"{kind}-circle/n={number}/rts-{state}")


def _matrix(losses: dict[tuple[int, int], float]) -> dict[str, Any]:
    """Losses in dB of pairs of stations, both ways; no other pair hears anything."""
    both = [(a, b, loss) for (a, b), loss in losses.items()] + [(b, a, loss) for (a, b), loss in losses.items()]
    entries = [{"from": simulate.name(a), "to": simulate.name(b), "loss_db": loss} for a, b, loss in both]
    return {"model": "matrix", "matrix": entries}


def _hidden() -> Iterator[Reference]:
    propagation = _matrix({(0, 1): NEIGHBOUR_LOSS_DB, (0, 2): NEIGHBOUR_LOSS_DB})
    traffic = [simulate.saturated(1, 0), simulate.saturated(2, 0)]
    for kind in ("a", "b", "g9us"):
        # without RTS ns-3 drops a packet in 30; the run without drops shows that CW after a drop is the difference
        for case, state, limit in (("hidden-2-rts0", "on", RETRY_LIMIT), ("hidden-2-rts1000000", "off", 30)):
            overrides = {**_rts(state), "short_retry_limit": limit, "long_retry_limit": limit}
            layout = _layout(kind, simulate.circle(2, 20.0), traffic, overrides=overrides, propagation=propagation)
            yield _reference(f"{'retry30-' * (state == 'off')}{kind}-{case}", layout, f"{kind}-hidden/rts-{state}")


def _chains() -> Iterator[Reference]:
    """Three hops: the second neighbour unheard, or sensed but not decoded; 802.11g at 180 m; one to four hops of 802.11a."""
    for state, threshold in RTS.items():
        for kind, two_db in (("b", 1000), ("b", 103), ("a", 1000), ("a", 95)):
            losses = {(i, i + 1): NEIGHBOUR_LOSS_DB for i in range(3)}
            if two_db < 1000:
                losses |= {(i, i + 2): float(two_db) for i in range(2)}
            layout = _chain(kind, 3, 100.0, _rts(state), _matrix(losses))
            forward = "forward-" * ((two_db, state) == (1000, "on"))
            name = f"{kind}-chain/3-hops/two-{two_db}/rts-{state}"
            yield _reference(f"{forward}{kind}-chain3-two{two_db}-rts{threshold}", layout, name)
        layout = _chain("g9us", 3, 180.0, _rts(state), {"model": "two-ray"})
        yield _reference(f"forward-g9us-chain3-180m-tworay-rts{threshold}", layout, f"g9us-chain/3-hops/180m/rts-{state}")
        for kind, metres in (("a", 80), ("b", 300)):
            case = f"{kind}-chain3-{metres}m-tworay-rts{threshold}"
            layout = _chain(kind, 3, float(metres), _rts(state), {"model": "two-ray"})
            yield _reference(case, layout, f"{kind}-chain/3-hops/{metres}m/rts-{state}")
    for hops in (1, 2, 3, 4):
        for metres in (20, 80):
            layout = _chain("a", hops, float(metres), _rts("off"), {"model": "two-ray"})
            name = f"a-chain/{hops}-hops/{metres}m/short"
            if (hops, metres) != (4, 80):
                yield _reference(f"a54-chain{hops}-{metres}m", layout, name)
                continue
            layout.overrides["energy_detect_w"] = CCA_WIFI_W
            layout = replace(layout, queue_packets=MAC_QUEUE, warmup_s=2.0)
            yield _reference(f"q500-a54-chain{hops}-{metres}m", layout, f"{name}/queue-500/sensed-82-dbm")


def _chain(kind: str, hops: int, metres: float, overrides: dict[str, Any], propagation: dict[str, Any]) -> Layout:
    route = list(range(hops + 1))
    traffic = {**simulate.saturated(0, hops), "route": [simulate.name(station) for station in route]}
    return _layout(kind, [(metres * i, 1.0) for i in route], [traffic], overrides=overrides, propagation=propagation)


def _pairs() -> Iterator[Reference]:
    """By distance; `nist-*` from where the error model and ns-3's tables differ on."""
    distances = {"a": (50, 80, 100), "g9us": (100, 180, 210), "b": (200, 300, 380, 400, 420)}
    beyond = {"a": (110, 120, 140), "g9us": (220, 230, 250, 280), "b": (450, 500)}
    for variant, by_kind in (("", distances), ("nist-", beyond)):
        for kind, metres in ((kind, metres) for kind, each in by_kind.items() for metres in each):
            layout = _layout(kind, [(0.0, 1.0), (float(metres), 1.0)], [simulate.saturated(0, 1)], overrides=_rts("off"))
            yield _reference(f"{variant}{kind}-pair-{metres}m", layout, f"{kind}-pair/{metres}m")


def _modes() -> Iterator[Reference]:
    for ampdu, aggregation in AGGREGATION.items():
        suffix = "/ampdu" if ampdu else ""
        for mcs in range(8):
            overrides = {"mcs": mcs, "aggregation": aggregation}
            layout = _layout("n", [(0.0, 1.0), (10.0, 1.0)], [simulate.saturated(0, 1)], overrides=overrides)
            yield _reference(f"n-mcs{mcs}-ampdu{ampdu}", layout, f"n-mcs/{mcs}{suffix}")
        for senders in (1, 2, 5) if ampdu else (1, 2, 5, 10):
            traffic = [simulate.saturated(i, 0) for i in range(1, senders + 1)]
            layout = _layout("n", simulate.circle(senders, 20.0), traffic, overrides={"aggregation": aggregation})
            yield _reference(f"n-mcs7-senders{senders}-ampdu{ampdu}", layout, f"n-circle/n={senders}{suffix}")


def _he_modes() -> Iterator[Reference]:
    """802.11ax, one sender. ns-3 has HE-LTFs of 8 us whatever the guard interval, 0.8 us more than the standard."""
    groups: list[tuple[str, Sequence[int], Sequence[int], dict[str, Any]]] = [
        ("he20", range(12), (7, 11), {}),
        ("he80", (7, 11), (), {"noise_w": NOISE_W_PER_HZ * HE80_WIDTH_HZ}),
    ]
    for kind, modes, alone, own in groups:
        for ampdu, mcs in [(1, mcs) for mcs in modes] + [(0, mcs) for mcs in alone]:
            # ns-3's limit of an A-MPDU is 65535 bytes with HE, too
            aggregation = {**AGGREGATION[1], "max_bytes": 65535} if ampdu else False
            overrides = {"mcs": mcs, "aggregation": aggregation, **own}
            layout = _layout(kind, [(0.0, 1.0), (10.0, 1.0)], [simulate.saturated(0, 1)], overrides=overrides)
            layout = replace(layout, queue_packets=MAC_QUEUE)
            yield _reference(f"{kind}-mcs{mcs}-ampdu{ampdu}", layout, f"{kind}-mcs/{mcs}{'/ampdu' * ampdu}")


def _aggregating_circles() -> Iterator[Reference]:
    """Senders with A-MPDUs, both with one rule for a frame whose preamble was missed."""
    for name, senders, sensed in (("late", 2, "82"), ("late", 5, "82"), ("late", 10, "82"), ("cca62", 10, "62")):
        overrides = {"aggregation": AGGREGATION[1], **ENDLESS, **({"energy_detect_w": CCA_WIFI_W} if sensed == "82" else {})}
        traffic = [simulate.saturated(i, 0) for i in range(1, senders + 1)]
        layout = _layout("n", simulate.circle(senders, 20.0), traffic, overrides=overrides)
        yield _reference(f"{name}-n-mcs7-senders{senders}-ampdu1", layout, f"n-circle/n={senders}/ampdu/sensed-{sensed}-dbm")


def _by_distance() -> Iterator[Reference]:
    """A pair whose sender chooses the rate."""
    for kind, manager, rate_control in (("n", "ideal", "ideal"), ("n", "minstrel", "minstrel-ht"), ("ac", "ideal", "ideal")):
        for metres in (10, 50, 100, 150, 200, 300):
            overrides = {"aggregation": AGGREGATION[1], "rate_control": rate_control}
            layout = _layout(kind, [(0.0, 1.0), (float(metres), 1.0)], [simulate.saturated(0, 1)], overrides=overrides)
            if manager == "minstrel":
                layout = replace(layout, warmup_s=2.0)
            yield _reference(f"nist-11{kind}-{manager}-{metres}m", layout, f"{kind}-{manager}/{metres}m")


def _circles_with_rate_control() -> Iterator[Reference]:
    for senders in (1, 2, 5, 10):
        traffic = [simulate.saturated(i, 0) for i in range(1, senders + 1)]
        for kind, rate_control, case in (
            ("ac", "ideal", f"ac-ideal-senders{senders}"),
            ("n", "minstrel-ht", f"settled-n-minstrel-senders{senders}"),
        ):
            overrides = {"aggregation": AGGREGATION[1], "rate_control": rate_control, "energy_detect_w": CCA_WIFI_W, **ENDLESS}
            layout = _layout(kind, simulate.circle(senders, 20.0), traffic, overrides=overrides)
            layout = replace(layout, warmup_s=2.0)
            yield _reference(case, layout, f"{kind}-circle/n={senders}/{rate_control}/sensed-82-dbm")


def _ht_chains() -> Iterator[Reference]:
    """802.11n: A-MPDUs over two to four hops with a queue of 500 packets; frames alone.

    Those ns-3's Ideal sends at MCS 7, which is set here: after three frames without an answer `ideal` takes the most robust rate.
    """
    for manager, rate_control in (("ideal", "ideal"), ("minstrel", "minstrel-ht")):
        for metres, hops in ((metres, hops) for metres in (80, 20) for hops in (1, 2, 3, 4)):
            overrides = {"aggregation": AGGREGATION[1], "rate_control": rate_control, "energy_detect_w": CCA_WIFI_W, **ENDLESS}
            layout = _chain("n", hops, float(metres), overrides, {"model": "two-ray"})
            # queues need a second to fill, and shares of the hops change slowly; where all hear all they fill for longer, and
            # with `ideal`, which ns-3 runs from 1 to 4 s, throughput falls after that
            from_s, for_s = (1.0, 3.0) if (manager, metres) == ("ideal", 20) else (2.0, 10.0)
            layout = replace(layout, queue_packets=MAC_QUEUE, warmup_s=from_s, measured_s=for_s)
            variant = "" if hops == 1 else "q500-"
            yield _reference(f"{variant}11n-{manager}-chain{hops}-{metres}m", layout, f"n-chain/{hops}-hops/{metres}m/{manager}")
            if (manager, metres) == ("ideal", 80) and hops > 1:
                case = f"spectrum-q500-11n-ideal-chain{hops}-80m"
                yield _reference(case, layout, f"n-chain/{hops}-hops/80m/ideal/spectrum")
    for hops, metres in ((hops, metres) for hops in (1, 2, 3, 4) for metres in (20, 80)):
        overrides = {"aggregation": False, "mcs": 7, "energy_detect_w": CCA_WIFI_W}
        layout = _chain("n", hops, float(metres), overrides, {"model": "two-ray"})
        name = f"n-chain/{hops}-hops/{metres}m/single/mcs-7/sensed-82-dbm"
        yield _reference(f"11n-ideal-chain{hops}-{metres}m-ampdu0", layout, name)


def _decoding() -> Iterator[Reference]:
    """Share of single frames decoded, by power."""
    cases = (("b", "DsssRate1Mbps", 1, -101, -88), ("b", "DsssRate2Mbps", 2, -101, -86), ("b", "DsssRate11Mbps", 11, -97, -80),
             ("a", "OfdmRate6Mbps", 6, -97, -84), ("a", "OfdmRate12Mbps", 12, -95, -82), ("a", "OfdmRate24Mbps", 24, -88, -76),
             ("a", "OfdmRate36Mbps", 36, -84, -72), ("a", "OfdmRate54Mbps", 54, -80, -67))  # fmt: skip
    for kind, mode, mbps, lowest, highest in cases:
        # at 1 Mbit/s fewer than a packet of 1500 bytes each 12 ms fit
        load_bps = 3e5 if mbps == 1 else 1e6
        for dbm in range(lowest, highest + 1):
            overrides = {
                **_rts("off"), "data_rate_bps": mbps * 1_000_000, "short_retry_limit": 1, "carrier_sense_threshold_w": 1e-14,
            }  # fmt: skip
            loss = _matrix({(0, 1): POWER_DBM - dbm})
            traffic = [simulate.cbr([0, 1], load_bps)]
            layout = _layout(kind, [(0.0, 0.0), (1.0, 0.0)], traffic, overrides=overrides, propagation=loss)
            yield _reference(f"decode-{mode}-{dbm}dBm-nist-sense-101", layout, f"decoded/{mbps}-mbps/{dbm}dBm")


def _edca() -> Iterator[Reference]:
    """Two saturated categories in one station and in two; a bulk transfer beside voice."""
    plain: dict[str, Any] = {"access": "edca", "aggregation": False}
    for where, senders in (("one-station", (1, 1)), ("two-stations", (1, 2))):
        traffic = [{**simulate.saturated(sender, 0), "dscp": dscp} for sender, dscp in zip(senders, (0, 8), strict=True)]
        layout = _layout("n", simulate.circle(2, 20.0), traffic, overrides=plain)
        for flow, category in enumerate(("be", "bk")):
            reference = _reference(f"edca-be-bk-{where}-{category}", layout, f"n-edca/be-bk/{where}/{category}")
            yield replace(reference, flow=flow)
    traffic = [{**simulate.saturated(1, 0), "dscp": dscp} for dscp in (46, 0)]
    layout = _layout(
        "n", simulate.circle(1, 20.0), traffic, overrides={**plain, "access_categories": {"voice": {"txop_us": 2016}}}
    )
    yield replace(_reference("edca-vo2016-be-one-station-vo", layout, "n-edca/vo-be/one-station/vo"), flow=0)
    voice = {**simulate.cbr([1, 0], 8e4, 200), "jitter": False, "dscp": 46}
    endless = {"access": "edca", "aggregation": AGGREGATION[1], "energy_detect_w": CCA_WIFI_W, **ENDLESS}
    for ampdu, overrides in (("", plain), ("ampdu-", endless)):
        layout = _layout("n", simulate.circle(1, 20.0), [voice, simulate.saturated(1, 0)], overrides=overrides)
        name = f"n-edca/bulk-beside-voice{'/ampdu' * bool(ampdu)}"
        yield replace(_reference(f"edca-bulk-{ampdu}one-station-be", layout, name), flow=1)
