"""Ranges, powers and antennas of a script's stations: declared, or changed while the network runs."""

from dataclasses import replace
from typing import Any

from scenarios.keys import Keys
from testbed.errors import UsageError
from testbed.mn_wifi import settings
from testbed.mn_wifi.arguments import within
from testbed.mn_wifi.infrastructure import Infrastructure
from testbed.mn_wifi.node import ScriptNetwork, Station, WirelessInterface
from testbed.mn_wifi.propagation import DEFAULT
from testbed.mn_wifi.radio import IN_5_GHZ, OWN_RANGE, PROFILES, Radio, own_of_profile
from testbed.stages import radios


class Powers(ScriptNetwork):
    """The part of a network that knows the radio of each station."""

    infrastructure: Infrastructure

    def __init__(self) -> None:
        self._propagation: dict[str, Any] | None = None
        self._own_range: bool | None = None  # of the profile; known from build() on
        self._changed: set[str] = set()  # stations whose power or antenna changed since build()

    def _with_radios(self) -> list[Station]:
        """All nodes with a radio, in the order of their numbers: stations, then access points."""
        return [*self.stations, *self.aps]

    def _key(self, name: str, default: object) -> Any:
        """A key of the scenario, from the script or from --set."""
        of_script = {name: self.options["scenario"].get(name, default)}
        settings = [setting for setting in self.session.overrides if setting.partition("=")[0].strip() == name]
        return Keys.of_script(of_script, self.session.script.name).set(settings).values[name]

    def option_of(self, station: Station, name: str, otherwise: Any = None, radio: str | None = None) -> Any:
        """A setting of a station's radio: from addLink, else addStation, else Mininet_wifi()."""
        in_link = self.adhoc.get(radio or station.name, {})
        return in_link.get(name, station.params.get(name, self.options.get(name, otherwise)))

    def common_mode(self) -> str:
        """The mode of all radios. Raises UsageError if they differ."""
        if self.infrastructure.used:
            return settings.mode({self.infrastructure.mode()}, infrastructure=True)
        return settings.mode({self.option_of(station, "mode") for station in self.stations})

    def radio_of(self, station: Station) -> Radio:
        """The radio of a station, as declared or changed. Raises UsageError."""
        mode = self.common_mode()
        channels = {str(self.option_of(other, "channel")) for other in self.stations} if not self.infrastructure.used else set()
        if len(channels) > 1:
            text = f"{', '.join(sorted(channels))} of {', '.join(map(str, self.stations))}"
            raise UsageError(f"channel: {text}: all stations have the same radio here; give all of them the same channel")
        stated: dict[str, Any] = {}
        for name, key, limits in settings.RADIO:
            value = self.option_of(station, name)
            if name == "channel" and self.infrastructure.used:
                stated[key] = self.infrastructure.channel()
            elif value is not None:
                stated[key] = within("addStation", name, value, limits)
        radio = Radio(**{"mode": mode, "channel": 36 if mode in IN_5_GHZ else 1, **stated})
        return replace(radio, channel=int(radio.channel), of_profile=self._has_own_range())

    def channel_of(self, radio: WirelessInterface) -> int:
        """The number of a radio's channel."""
        return self.infrastructure.channel_of(radio) if self.infrastructure.used else self.radio_of(radio.node).channel

    def power_of(self, station: Station) -> Radio:
        """The radio of a station with its power, whatever stated it."""
        name, model = self._air()
        if self._has_own_range() and station.name not in self._changed:
            return own_of_profile(name, self.radio_of(station))
        return self.radio_of(station).at_power(name, model)

    def reach_of(self, station: Station) -> float:
        """The range of a station in metres: as stated, or as it follows from its power and antenna."""
        name, model = self._air()
        return self.radio_of(station).range_m or self.power_of(station).reach_m(name, model)

    def distance_of(self, sender: Station, receiver: Station, power_dbm: float) -> float:
        """The distance in metres at which `receiver` has Mininet-WiFi's power `power_dbm` of `sender`'s frames."""
        name, model = self._air()
        other_antenna_db = self.power_of(receiver).gain_db - self.power_of(sender).gain_db
        return self.power_of(sender).reach_m(name, model, power_dbm - other_antenna_db)

    def change_radio(self, station: Station, call: str, name: str, value: float) -> None:
        """Set `range`, `txpower`, `antennaGain` or `antennaHeight` of a station; on the air at once if the network is up. Raises
        UsageError."""
        if self.standing is None:
            self._state(station, name, value)
            return
        profile, model = self._air()
        if model["model"] in OWN_RANGE:
            raise UsageError(f"{station}.{call}: propagation {model['model']!r} has ranges of its own; choose another model")
        known = self.power_of(station)  # a stated range becomes the power that gave it
        for other, now in (("txpower", known.tx_power_dbm), ("antennaGain", known.gain_db), ("antennaHeight", known.height_m)):
            self._state(station, other, now)
        self._state(station, name, value)
        self._changed.add(station.name)
        changed = self.radio_of(station).of_station(profile, model)
        for radio in station.wintfs.values():
            radios.change(self.standing.network.medium, self.standing.site.directory, radio.radio, **changed)

    def _state(self, station: Station, name: str, value: float) -> None:
        """Note a setting, in place of earlier ones; of power and range the later one decides."""
        self.adhoc.get(station.name, {}).pop(name, None)
        if name == "txpower":
            station.params.pop("range", None)
        station.params[name] = value

    def _air(self) -> tuple[str, dict[str, Any]]:
        """The profile of all radios and the propagation model."""
        model = self._key("propagation", self._propagation or DEFAULT)
        return str(self._key("radio", PROFILES[self.common_mode()])), model if isinstance(model, dict) else {"model": model}

    def _has_own_range(self) -> bool:
        """Whether the scenario names the profile, and the script leaves its range as it is."""
        if self._own_range is not None:
            return self._own_range
        named = "radio" in self.options["scenario"] or any(
            setting.partition("=")[0].strip() == "radio" for setting in self.session.overrides
        )
        return named and not self._states_its_range()

    def _states_its_range(self) -> bool:
        """Whether the script sets the range of its radios, directly or by power, gain or height."""
        arguments = {
            *(key for station in self._with_radios() for key in station.params),
            *(key for options in self.adhoc.values() for key in options),
        }
        return bool(arguments & {"range", "txpower", "antennaGain", "antennaHeight"})
