"""The constants of a radio profile (medium/radios/<name>.toml) that timing depends on.

They are read independently of the medium's code, so that the closed form and Bianchi's model can disagree with it.
"""

import tomllib
from dataclasses import dataclass

from testbed.errors import UsageError
from testbed.programs import ROOT

FOLDER = ROOT / "medium" / "radios"

REQUIRED = (
    "modulation", "control_rate_bps", "basic_rates_bps", "eifs_ack_rate_bps", "overhead_bytes", "slot_us", "sifs_us",
    "cw_min", "cw_max", "short_retry_limit", "long_retry_limit",
)  # fmt: skip


@dataclass(frozen=True)
class Radio:
    """The timing of a profile (`data_rate_bps` 0: by `mcs`); keys, units and meaning are those of formats/radio.md."""

    name: str
    modulation: str
    data_rate_bps: int
    control_rate_bps: int
    basic_rates_bps: list[int]
    eifs_ack_rate_bps: int
    plcp_bits: int
    plcp_rate_bps: int
    signal_extension_us: float
    overhead_bytes: int
    slot_us: float
    sifs_us: float
    cw_min: int
    cw_max: int
    short_retry_limit: int
    long_retry_limit: int
    draws_below_cw: bool
    eifs_as_nav: bool
    mcs: int | None
    width_mhz: int
    guard_interval: str
    streams: int
    aifsn: int
    propagation_delay: bool

    @property
    def short_guard(self) -> bool:
        """Whether the guard interval is the short one."""
        return self.guard_interval == "short"

    @property
    def windows(self) -> list[int]:
        """The number of values of a backoff draw at each stage: CW doubles (plus one) from cw_min to cw_max."""
        windows = [self.cw_min]
        while windows[-1] < self.cw_max:
            windows.append(min(2 * windows[-1] + 1, self.cw_max))
        return windows if self.draws_below_cw else [cw + 1 for cw in windows]


def names() -> list[str]:
    """The names of all profiles."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Radio:
    """The profile of this name. Raises UsageError for a missing or incomplete file."""
    path = FOLDER / f"{name}.toml"
    try:
        values = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise UsageError(f"{path}: not found; profiles are {', '.join(names())}") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}; correct the file") from None
    try:
        rules = values["rules"]
        return Radio(
            name=name,
            plcp_bits=values.get("plcp_bits", 0),
            plcp_rate_bps=values.get("plcp_rate_bps", 0),
            signal_extension_us=values.get("signal_extension_us", 0),
            draws_below_cw=rules["backoff_draw"] == "cw-1",
            eifs_as_nav=rules["eifs_as_nav"],
            mcs=values.get("mcs"),
            data_rate_bps=values["data_rate_bps"] if "mcs" not in values else 0,
            width_mhz=values.get("width_mhz", 20),
            guard_interval=values.get("guard_interval", "long"),
            streams=values.get("streams", 1),
            aifsn=values.get("aifsn", 2),
            propagation_delay=values.get("propagation_delay", False),
            **{key: values[key] for key in REQUIRED},
        )
    except KeyError as error:
        raise UsageError(f"{path}: key {error} is missing; see formats/radio.md") from None
