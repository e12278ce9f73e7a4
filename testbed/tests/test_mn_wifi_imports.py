"""Imports of a script: unsupported names of `mn_wifi` can be imported, as many scripts do, and are refused where used."""

import importlib
import types
from pathlib import Path

import pytest

from testbed.mn_wifi import session
from testbed.mn_wifi.cli import CLI
from testbed.mn_wifi.net import Mininet_wifi
from testbed.tests.test_mn_wifi import refused


@pytest.fixture(autouse=True)
def in_a_script(tmp_path, monkeypatch):
    """The session of `manet script`, without a network."""
    monkeypatch.setattr(session, "_current_session", [])
    return session.begin(session.Session(Path("mine.py"), tmp_path, seed=1))


@pytest.mark.parametrize(
    "name",
    ["manetRoutingProtocols.olsrd", "link.Intf", "topo.Topo", "sixLoWPAN.link.LoWPAN", "wmediumdConnector.w_cst", "net.VERSION"],
)
def test_a_name_that_is_imported_and_not_used_is_no_error(name):
    module, _, name_of = name.rpartition(".")
    found = getattr(importlib.import_module(f"mn_wifi.{module}"), name_of)
    assert not isinstance("sta1", found)
    for use in (found, lambda: found.start, lambda: types.new_class("Mine", (found,))):
        refused(use, f"mn_wifi.{module}.{name_of}: ")


def test_an_unsupported_class_as_an_argument_is_refused_with_its_remedy():
    from mn_wifi.link import WifiDirectLink
    from mn_wifi.sixLoWPAN.link import LoWPAN

    net = Mininet_wifi(sensor=LoWPAN)
    net.addStation("sta1", position="0,0")
    refused(lambda: net.addLink("sta1", cls=WifiDirectLink), "mn_wifi.link.WifiDirectLink: is not modelled; use cls=adhoc")
    refused(lambda: Mininet_wifi(link=LoWPAN), "mn_wifi.sixLoWPAN.link.LoWPAN: is not supported")


def test_the_prompt_has_its_earlier_name_too():
    from mn_wifi.cli import CLI_wifi

    assert CLI_wifi is CLI
