"""From the keys of a scenario to the checked scenario. Every error is one line: file, line, key, what is wrong, remedy."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from keys.errors import UsageError, did_you_mean, shortened
from mobility import measured
from mobility.measured import LinksError
from scenarios import confined, owned, profiles, toml_file
from scenarios.containers import Container
from scenarios.daemon_file import with_description
from scenarios.document import dotted
from scenarios.flows import Flow
from scenarios.keys import Keys, is_path
from scenarios.medium_program import radio_mistake
from scenarios.movement import MODEL_NAMES, Replay
from scenarios.movement_files import checked, matching
from scenarios.radios import overridden
from scenarios.refusal import validated
from scenarios.scenario import Scenario
from scenarios.topology_file import with_graph
from scenarios.traffic_file import with_commands


def load_scenario(path: Path, overrides: Sequence[str] = ()) -> Scenario:
    """The scenario in `path` (keys at top level or in a `[scenario]` table), with `--set` values applied."""
    document = toml_file.read(path)
    if document.is_experiment:
        raise UsageError(f"{path}: is an experiment, which has several scenarios; give a scenario or a movement file")
    return scenario_of(Keys.of_file(document, overrides))


def scenario_of(keys: Keys) -> Scenario:
    """The checked scenario of these keys, with all defaults."""
    confined.check_routing(keys)
    keys = with_commands(with_graph(with_description(keys)))
    scenario = validated(Scenario, keys.values, keys.refusal, keys.refusal_of_name)
    confined.check(scenario, keys)
    if is_path(scenario.radio, profiles.ENDING):
        scenario = scenario.model_copy(update={"radio": str(_own_profile(scenario.radio, keys))})
    _check_radio(scenario, keys)
    if scenario.containers:
        stations = tuple(_with_root(index, container, keys) for index, container in enumerate(scenario.containers))
        scenario = scenario.model_copy(update={"stations": stations})
    flows = tuple(_with_files(flow, index, scenario, keys) for index, flow in enumerate(scenario.flows))
    if flows != scenario.flows:
        scenario = scenario.model_copy(update={"flows": flows})
    if scenario.propagation.file is not None:
        scenario = _with_links(scenario, scenario.propagation.file, keys)
    return _with_movement(scenario, scenario.mobility, keys) if isinstance(scenario.mobility, Replay) else scenario


def _own_profile(written: str, keys: Keys) -> Path:
    """The full path of a radio profile of the user's own. Of its keys it is checked here that they are there;
    `_check_radio_values` has the values."""
    path = keys.file_of(("radio",), written, "a radio profile (TOML)")
    name = toml_file.short_name(path)
    there, wanted = toml_file.read(path, name, within=keys.document.within).tables, owned.schema("radio")
    for key in there:
        if key not in wanted["properties"]:
            text = did_you_mean(key, wanted["properties"]) or "the keys are those of formats/radio.md"
            raise UsageError(f'{name}: key "{shortened(key)}": unknown key; {text}')
    missing = [key for key in wanted["required"] if key not in there]
    if missing:
        raise UsageError(f'{name}: key "{missing[0]}": is missing; add it, or copy a profile of medium/radios and change that')
    return path


def _check_radio(scenario: Scenario, keys: Keys) -> None:
    if not profiles.is_own(scenario.radio) and scenario.radio not in profiles.names():
        known = ", ".join(profiles.names())
        text = f'"{scenario.radio}" is no radio profile of medium/radios; use one of {known}, or the path of a file of your own'
        raise keys.refusal(("radio",), text)
    keys_of_profiles = owned.schema("radio")["properties"]
    for key in scenario.radio_overrides:
        if key not in keys_of_profiles:
            text = did_you_mean(key, keys_of_profiles) or "the keys are those of formats/radio.md"
            raise keys.refusal(("radio_overrides", key), f"unknown key; {text}")
    _check_radio_values(scenario, keys)
    if scenario.stations != "hwsim":
        return
    modulation = tomllib.loads(profiles.path_of(scenario.radio).read_text())["modulation"]
    if modulation not in ("dsss", "ofdm", "ht"):
        text = f'"{scenario.radio}" is for TAP stations; hwsim stations have 802.11b, g, a and n (docs/hwsim.md)'
        raise keys.refusal(("radio",), text)
    if modulation == "ht" and scenario.radio_keys().get("aggregation") is not False:
        text = f'"{scenario.radio}" aggregates, and hwsim stations send each frame by itself; add aggregation = false'
        raise keys.refusal(("radio",), text)


def _check_radio_values(scenario: Scenario, keys: Keys) -> None:
    """Refuse a radio with values that do not fit each other. The rules are the medium's, in one place (medium/src/phy/radio)."""
    changed, is_own = scenario.radio_keys(), profiles.is_own(scenario.radio)
    if not changed and not is_own:
        return
    file = profiles.path_of(scenario.radio)
    profile = tomllib.loads(file.read_text())
    if is_own and (wrong := radio_mistake(profile)):
        path, text = wrong
        raise UsageError(f'{toml_file.short_name(file)}: key "{dotted(path)}": {text}')
    if wrong := radio_mistake(overridden(profile, changed)):
        path, text = wrong
        raise keys.refusal(scenario.place_of_radio_key(path), text)


def _with_root(index: int, container: Container, keys: Keys) -> Container:
    """The station with the full path of its root file system or image archive. The name of an image that is no file remains: an
    image of podman's or buildah's storage."""
    key, written = ("rootfs", container.rootfs) if container.rootfs else ("image", container.image or "")
    paths, remedy = keys.paths_of(("stations", index, key), written)
    found = toml_file.first(paths, Path.is_dir if key == "rootfs" else Path.is_file)
    root = None if found is None else found.resolve()
    if root == Path("/"):
        raise keys.refusal(("stations", index, key), "is this machine's own root file system; give a copy of a part of it")
    if root is not None:
        return container.model_copy(update={key: str(root)})
    if key == "image":
        return container
    raise keys.refusal(("stations", index, key), f"there is no folder {paths[-1].resolve()}; give its path, {remedy}")


def _with_files(flow: Flow, index: int, scenario: Scenario, keys: Keys) -> Flow:
    """The flow with the full paths of the files that it names, each of which is checked."""
    for key, written in flow.named_files().items():
        file = keys.file_of(("flows", index, key), written, f"the file of {key}")
        try:
            flow.kind.check_file(key, file, scenario.mtu, scenario.ip_of(flow))
        except UsageError as problem:
            raise keys.refusal(("flows", index, key), str(problem)) from None
        flow = flow.model_copy(update={key: str(file)})
    return flow


def _with_links(scenario: Scenario, written: str, keys: Keys) -> Scenario:
    """The scenario with the full path of its measured links, which are checked."""
    file = keys.file_of(("propagation", "file"), written, "measured links", "file")
    try:
        measured.read(file, list(scenario.radio_numbers()))
    except LinksError as problem:
        raise keys.refusal(("propagation", "file"), str(problem)) from None
    return scenario.model_copy(update={"propagation": scenario.propagation.model_copy(update={"file": str(file)})})


def _with_movement(scenario: Scenario, movement: Replay, keys: Keys) -> Scenario:
    """The scenario with the full path of its movement files, each of which is checked for the whole run."""
    paths, remedy = keys.paths_of(("mobility",), movement.file, "file")
    for each in paths:  # a pattern may match links that lead elsewhere
        keys.opened(("mobility",), matching(movement.model_copy(update={"file": str(each)})))
    found = checked(movement, scenario, paths)
    if found is None:
        models = ", ".join(f'"{name}"' for name in MODEL_NAMES)
        text = f"there is no trace file {paths[-1].resolve()}; use {models} or the path of a movement file, {remedy}"
        raise keys.refusal(("mobility",), text)
    return scenario.model_copy(update={"mobility": found})
