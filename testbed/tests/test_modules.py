"""Kernel modules that a run needs: loaded on demand, or one line with the remedy."""

import pytest

from testbed.errors import UsageError
from testbed.host import modules, protocols, requirements


def modprobe(folder, status: int, words: str) -> str:
    """A folder with a modprobe that ends so."""
    path = folder / "modprobe"
    path.write_text(f"#!/bin/sh\necho \"$@\" >{folder}/asked\necho '{words}' >&2\nexit {status}\n")
    path.chmod(0o755)
    return str(folder)


def test_a_loaded_module_is_left_alone(tmp_path):
    (tmp_path / "batman_adv").mkdir()
    modules.load("batman-adv", "routing", path="/proc/nowhere", loaded=tmp_path)


def test_one_that_is_not_is_loaded(tmp_path):
    modules.load("batman_adv", "routing", path=modprobe(tmp_path, 0, ""), loaded=tmp_path)
    assert (tmp_path / "asked").read_text() == "batman_adv\n"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (1, 'routing "batman-adv": modprobe batman_adv: ERROR: could not insert; as root, on a kernel that has it: ./manet vm'),
        (None, 'routing "batman-adv": modprobe: not found; apt-get install kmod, or load batman_adv by hand'),
    ],
)
def test_one_that_cannot_be_is_refused_in_one_line(tmp_path, status, message):
    path = "/proc/nowhere" if status is None else modprobe(tmp_path, status, "modprobe: ERROR: could not insert")
    with pytest.raises(UsageError) as problem:
        modules.load("batman_adv", 'routing "batman-adv"', path=path, loaded=tmp_path)
    assert message in str(problem.value) and "\n" not in str(problem.value)


def test_without_hwsim_the_error_names_the_guest(tmp_path, monkeypatch):
    monkeypatch.setattr(modules, "is_loaded", lambda *_args: False)
    monkeypatch.setenv("PATH", modprobe(tmp_path, 1, "modprobe: FATAL: Module mac80211_hwsim not found"))
    with pytest.raises(UsageError) as problem:
        requirements.require_radios("hwsim")
    assert str(problem.value) == (
        'stations = "hwsim": modprobe mac80211_hwsim: FATAL: Module mac80211_hwsim not found; '
        "as root, on a kernel that has it: ./manet vm -- ..."
    )
    assert (tmp_path / "asked").read_text() == "mac80211_hwsim radios=0\n"
    requirements.require_radios("tap")


def test_a_run_that_needs_a_module_loads_it_before_anything_starts(monkeypatch):
    loaded = []
    monkeypatch.setattr(protocols, "missing_requirement", lambda *_args, **_options: None)
    monkeypatch.setattr(modules, "load", lambda name, for_what: loaded.append((name, for_what)))
    for protocol in ("batman-adv", "aodv", "static", "aodv-uu"):  # kaodv must not be there before the radios are
        protocols.require_protocol(protocol)
    assert loaded == [("batman_adv", 'routing "batman-adv"')]
