"""Daemons by their description: what a station gets, of the project's own descriptions and of a user's."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from scenarios import placeholders
from scenarios.definition import load_scenario
from scenarios.routing import SHIPPED
from scenarios.scenario import Scenario
from testbed.errors import RunError, UsageError
from testbed.host.processes import Processes
from testbed.host.protocols import missing_requirement
from testbed.programs import BUILT
from testbed.runs import preflight
from testbed.runs.preflight import check_machine
from testbed.stages.routing import Network
from testbed.stages.routing.shared.described import Rendering
from testbed.stages.routing.shared.third_party import Sign
from testbed.stages.site import SOCKETS, Site

PRIVATE = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
WIRE = {"station": "sta3", "host": "host1"}


class Host(SimpleNamespace):
    """A node by name and address, as Mininet's: equal only to itself."""

    __hash__ = object.__hash__

    @property
    def radio(self) -> SimpleNamespace:
        return SimpleNamespace(name="wlan0")

    def IP(self) -> str:
        return f"10.0.0.{self.number}"

    def MAC(self) -> str:
        return f"02:00:00:00:00:{self.number:02x}"


def rendering(folder: Path, routing: object) -> Rendering:
    """sta1 to sta3, and host1 on a wire of sta3."""
    flow = {"from": "sta1", "to": "sta2"}
    return of_scenario(folder, Scenario.model_validate({"hops": 2, "routing": routing, "wires": [WIRE], "flows": [flow]}))


def of_scenario(folder: Path, scenario: Scenario) -> Rendering:
    stations = [Host(name=f"sta{number}", number=number) for number in (1, 2, 3)]
    wires = [
        SimpleNamespace(number=number, settings=settings, gateway=stations[2], host=f"host{number}")
        for number, settings in enumerate(scenario.wires, 1)
    ]
    net = SimpleNamespace(stations=stations, hosts=stations, wires=wires)
    network = Network(Site(scenario, 7, folder, cgroup=folder), net, None, Processes(folder))
    assert scenario.routing.DESCRIPTION is not None
    return Rendering(network, scenario.routing.DESCRIPTION)


def argv(made: Rendering, number: int) -> list[str]:
    return made.argv(made.network.stations[number - 1], made.description.command, apart=True)


def file(made: Rendering, number: int) -> list[str]:
    (content,) = made.files(made.network.stations[number - 1]).values()
    return content.splitlines()


def test_babeld_announces_its_address_and_a_gateways_wires(tmp_path):
    made = rendering(tmp_path, {"protocol": "babeld", "hello_interval": 0.5})
    config, state = tmp_path / "routing" / "sta3.babeld.conf", SOCKETS / "routing" / "sta3" / "babel-state"
    assert argv(made, 3) == ["babeld", "-c", str(config), "-S", str(state), "-I", "", "wlan0"]
    assert file(made, 3) == [
        "router-id 00:00:00:ff:fe:00:00:03",
        "skip-kernel-setup true",
        "interface wlan0 type wireless hello-interval 0.5 update-interval 16",
        "redistribute local ip 10.0.0.3/32 allow",
        "redistribute proto 3 ip 192.168.1.0/30 allow",
        "redistribute local deny",
    ]
    assert not [line for line in file(made, 1) if "proto 3" in line]
    assert made.sysctls(made.network.stations[0])["net.ipv6.conf.wlan0.disable_ipv6"] == 0
    assert made.radio_lines(made.network.stations[0]) == []


def test_with_ipv6_babeld_announces_both_addresses_and_wires(tmp_path):
    flow = {"from": "sta1", "to": "sta2"}
    keys = {"hops": 2, "ipv6": True, "routing": "babeld", "wires": [WIRE], "flows": [flow]}
    made = of_scenario(tmp_path, Scenario.model_validate(keys))
    assert file(made, 3)[3:] == [
        "redistribute local ip 10.0.0.3/32 allow",
        "redistribute local ip fd6d:616e:6574::3/128 allow",
        "redistribute proto 3 ip 192.168.1.0/30 allow",
        "redistribute proto 3 ip fd6d:616e:6574:1::/64 allow",
        "redistribute local deny",
    ]
    assert not [line for line in file(made, 1) if "proto 3" in line]


@pytest.mark.parametrize("name", ["bird-babel", "frr-babel"])
def test_bird_and_frr_have_their_parts_of_ipv6_only_with_it(tmp_path, name):
    flow = {"from": "sta1", "to": "sta2"}
    keys = {"hops": 2, "routing": name, "wires": [WIRE], "flows": [flow]}
    without, with_it = (
        "".join(made.files(made.network.stations[2]).values())
        for made in (of_scenario(tmp_path, Scenario.model_validate({**keys, "ipv6": ipv6})) for ipv6 in (False, True))
    )
    assert "ipv6" not in without and "fd6d" not in without and "ipv6" in with_it
    rest = iter(with_it.splitlines())
    assert all(line in rest for line in without.splitlines())  # in their order


def test_a_line_of_ipv6_stands_only_with_it_and_a_wire_to_the_real_network_has_none(tmp_path):
    values = {"address": "10.0.0.1", "address6": "fd6d:616e:6574::1", "ipv6": ""}
    wires, wires6 = [{"wire": "192.168.1.0/30"}, {"wire": "0.0.0.0/0"}], [{"wire6": "fd6d:616e:6574:1::/64"}]
    template = "a {address}\n{ipv6}b\nc {wire}\nd {wire6}\n"
    with_it = placeholders.Values(values, {}, wires, wires6, ipv6=True)
    assert placeholders.lines_filled(template, with_it).splitlines() == [
        "a 10.0.0.1", "b", "c 192.168.1.0/30", "c 0.0.0.0/0", "d fd6d:616e:6574:1::/64",
    ]  # fmt: skip
    without = placeholders.Values(values, {}, wires)
    assert placeholders.lines_filled(template, without).splitlines() == ["a 10.0.0.1", "c 192.168.1.0/30", "c 0.0.0.0/0"]
    command = ("d", "{address}", ("-6", "{address6}"), ("-w", "{wire6}"))
    assert placeholders.words_filled(command, with_it) == [
        "d", "10.0.0.1", "-6", "fd6d:616e:6574::1", "-w", "fd6d:616e:6574:1::/64",
    ]  # fmt: skip
    assert placeholders.words_filled(command, without) == ["d", "10.0.0.1"]


def test_batmand_has_a_run_folder_of_its_own_and_announces_each_wire(tmp_path):
    made = rendering(tmp_path, {"protocol": "batmand", "originator_interval": 0.5})
    start = "mount -t tmpfs run /run && exec batmand -d 3 -o 500"
    assert argv(made, 1) == [*PRIVATE, f"{start} wlan0"]
    assert argv(made, 3) == [*PRIVATE, f"{start} -a 192.168.1.0/30 wlan0"]
    assert made.radio_lines(made.network.stations[0]) == [
        "address delete 10.0.0.1/8 dev wlan0",
        "address add 10.0.0.1/8 broadcast + dev wlan0 noprefixroute",
        "route replace broadcast 255.255.255.255/32 dev wlan0 table local scope link",
        "route replace multicast 224.0.0.0/4 dev wlan0 table local scope link",
    ]


def test_olsrd_is_configured_for_rfc_3626_and_a_gateways_wires(tmp_path):
    made = rendering(tmp_path, "olsrd")
    lines = file(made, 3)
    assert {"LinkQualityLevel 0", "TcRedundancy 2", "UseHysteresis no", 'Interface "wlan0"', "{", "}"} <= set(lines)
    assert "Hna4 { 192.168.1.0 255.255.255.252 }" in lines
    assert {"  HelloInterval 2.00", "  HelloValidityTime 6.00", "  TcInterval 5.00", "  TcValidityTime 15.00"} <= set(lines)
    assert len(lines) == 25 and len(file(made, 1)) == 24  # without a wire
    assert not [line for line in file(made, 1) if line.startswith("Hna4")]


def test_olsrd2_announces_the_wires_of_a_gateway_and_keeps_the_addresses(tmp_path):
    made = rendering(tmp_path, {"protocol": "olsrd2", "tc_interval": 2})
    assert {"[interface=wlan0]", "auto_ll4 false", "tc_interval 2", "hello_validity 20", "lan 192.168.1.0/30"} <= set(
        file(made, 3)
    )
    assert not [line for line in file(made, 1) if line.startswith("lan ")]
    assert argv(made, 1)[0] == "olsrd2_static" and argv(made, 1)[1].startswith("--load=/")


def test_neighbours_of_olsrd_start_three_seconds_apart(tmp_path):
    made = rendering(tmp_path, "olsrd")
    path = tmp_path / "routing" / "sta2.olsrd.conf"
    assert argv(made, 2) == ["sh", "-c", f"sleep 3; exec olsrd -f {path} -nofork"]
    assert [argv(made, number)[2].partition(";")[0] for number in (1, 2, 3)] == ["sleep 0", "sleep 3", "sleep 6"]


@pytest.mark.parametrize(
    ("options", "flags"),
    [({}, ""), ({"gratuitous": True, "local_repair": True}, " -g -L"), ({"expanding_ring": False}, " -x")],
)
def test_switches_of_aodv_uu_are_there_or_not(tmp_path, options, flags):
    made = rendering(tmp_path, {"protocol": "aodv-uu", **options})
    assert argv(made, 1) == [*PRIVATE, f"mount -t tmpfs log /var/log && exec aodvd -i wlan0 -D{flags}"]
    assert made.radio_lines(made.network.stations[0]) == ["route add default dev wlan0 metric 4096"]


def test_the_udp_ports_whose_packets_are_captured_whole():
    ports = {name: Scenario.model_validate({"hops": 1, "routing": name}).routing.udp_port for name in (*SHIPPED, "aodv")}
    assert ports == {
        "aodv-uu": 654, "olsrd": 698, "olsrd2": 269, "babeld": 6696, "batmand": 4305, "bird-babel": 6696, "frr-babel": 6696,
        "aodv": 654,
    }  # fmt: skip


OWN = """
about = "mine"
command = ["./d.py", "--peer", "{{x}}", "{config:b.conf}", ["-w", "{wire}"], "{loud}", ""]
[options.loud]
default = false
written = { true = "-v", false = "" }
[[files]]
name = "a.conf"
content = "a"
[[files]]
name = "b.conf"
content = '''
name "{station}" of {stations} {
  net {wire_address}/{wire_bits}; # seed {seed}
  from {here}
}
'''
[radio]
prefix_route = true
[radio.sysctls]
"net.ipv4.conf.{interface}.proxy_arp" = true
"""


@pytest.fixture
def own(tmp_path) -> Rendering:
    (tmp_path / "mine.toml").write_text(OWN)
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'hops = 2\nrouting = { protocol = "./mine.toml", loud = true }\n[[wires]]\nstation = "sta3"\nhost = "h1"\n'
        '[[wires]]\nstation = "sta3"\nhost = "h2"\n'
    )
    return of_scenario(tmp_path, load_scenario(scenario))


def test_braces_are_text_and_a_line_of_wires_stands_once_for_each(own, tmp_path):
    second = own.files(own.network.stations[2])["b.conf"].splitlines()
    assert second == [
        'name "sta3" of 3 {',
        "  net 192.168.1.0/30; # seed 7",
        "  net 192.168.2.0/30; # seed 7",
        f"  from {tmp_path}",
        "}",
    ]
    assert len(own.files(own.network.stations[0])["b.conf"].splitlines()) == 3


def test_a_command_of_a_users_daemon(own, tmp_path):
    path = str(tmp_path / "routing" / "sta3.b.conf")
    wires = ["-w", "192.168.1.0/30", "-w", "192.168.2.0/30"]
    assert argv(own, 3) == [str(tmp_path / "d.py"), "--peer", "{x}", path, *wires, "-v", ""]


def test_the_radio_of_a_users_daemon(own):
    assert own.radio_lines(own.network.stations[0]) == ["route add 10.0.0.0/8 dev wlan0 scope link src 10.0.0.1"]
    assert own.sysctls(own.network.stations[0]) == {"net.ipv4.conf.wlan0.proxy_arp": 1}


@pytest.mark.parametrize(("keys", "key"), [({"ipv6": True}, "ipv6"), ({"routing": "babeld"}, "routing")])
def test_a_kernel_without_ipv6_refuses_what_needs_it(tmp_path, monkeypatch, keys, key):
    monkeypatch.setattr(preflight, "IPV6", tmp_path / "none")
    check_machine([Scenario.model_validate({"hops": 1})], BUILT, "s")
    with pytest.raises(UsageError) as problem:
        check_machine([Scenario.model_validate({"hops": 1, **keys})], BUILT, "s")
    text = f's: key "{key}": this kernel has no IPv6; boot without ipv6.disable=1, or take a kernel with CONFIG_IPV6'
    assert str(problem.value) == text


def test_a_users_daemon_that_is_missing_is_refused_before_anything_starts(own, tmp_path):
    scenario = own.network.site.scenario
    with pytest.raises(UsageError) as problem:
        check_machine([scenario], BUILT, "s")
    remedy = "correct its path in the description, or make it executable (chmod +x)"
    assert str(problem.value) == f'routing "mine": {tmp_path / "d.py"}: not found; {remedy}'
    (tmp_path / "d.py").write_text("#!/bin/sh\n")
    assert missing_requirement("mine", scenario.routing.DESCRIPTION) == (f"{tmp_path / 'd.py'}: not executable", remedy)
    (tmp_path / "d.py").chmod(0o755)
    assert missing_requirement("mine", scenario.routing.DESCRIPTION) is None


def test_signs_of_a_process(tmp_path):
    with Processes(tmp_path / "log") as children:
        child = children.start("d", ["sh", "-c", f"echo working; touch {tmp_path}/there; sleep 9"], remedy="-")
        signs = [Sign(text="working\n"), Sign(file=f"{tmp_path}/there"), Sign()]
        deadline = time.monotonic() + 20
        while not all(sign.seen(child) for sign in signs) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert all(sign.seen(child) for sign in signs)
        assert not Sign(text="other").seen(child) and not Sign(file=f"{tmp_path}/gone").seen(child)
        assert [str(sign) for sign in (Sign(udp=5), Sign(tcp=6), Sign(file="/f"), Sign(text="t"))] == [
            "socket on UDP port 5",
            "socket on TCP port 6",
            "file /f",
            '"t" in its output',
        ]


def test_a_missing_program_after_preflight_is_one_line(tmp_path):
    with Processes(tmp_path / "log") as children, pytest.raises(RunError, match="not found; `manet doctor` says how to get it"):
        children.start("d", [str(tmp_path / "absent")], remedy="-")
