"""The configuration of our routing daemons (formats/routing.md)."""

from typing import Any

from testbed.stages import kernel_tcp
from testbed.stages.site import Site
from testbed.stages.status import status_socket
from topologies.addresses import NETWORK, PREFIX_BITS, ip_address, mac_address, radio_interface

TUN = "manet0"


def daemon_config(site: Site, name: str, number: int, *, wires: list[str], mtu: int, epoch_ns: int) -> dict[str, Any]:
    """The configuration of station `number`; `wires` are the networks (address/bits) to which it is a gateway."""
    routing, results = site.scenario.routing, site.directory / "routing"
    metrics = kernel_tcp.route_metrics(site.scenario, name).set()
    quickack = bool(metrics.pop("quickack", False))
    options = routing.options()
    if site.of_tcps["error_notices"]:  # some flow's TCP is elfn(notice=route-error); such a scenario has DSR
        options["error_notices"] = True
    return {
        "format": "manet-routing/1",
        "node": {
            "number": number,
            "address": ip_address(number),
            "network": [NETWORK, PREFIX_BITS],
            "mac": mac_address(number),
            "wires": [[address, int(bits)] for address, _, bits in (wire.partition("/") for wire in wires)],
            "mtu": mtu,
            "seed": site.seed,
            "feedback": options.get("link") == "feedback",
        },
        "interface": radio_interface(name, site.scenario.interface),
        "tun": TUN,
        "feedback": {"medium": str(site.feedback_folder / f"{name}.sock")},
        "status": str(status_socket(name)),
        "epoch_ns": epoch_ns,
        "notes": str(results / f"{name}.jsonl"),
        "events": str(results / f"{name}.events.jsonl") if getattr(routing, "events", False) else None,
        # no interface capture has packets that wait in the daemon for a route
        "held": str(site.folder("captures") / f"{name}.held.pcapng"),
        "quickack": quickack,
        **({"metrics": metrics} if metrics else {}),
        # some flow's TCP has the layer tcpf or tcpbus
        "notices": site.of_tcps["notices"],
        # if not, TCPs of the papers' years would follow RFC 6069
        "tcp_unreachable": site.of_tcps["tcp_unreachable"],
        "options": options,
    }
