"""The stage that makes traffic: one pair of programs per flow, started at the flow's time, reports into `traffic/`.

bulk  iperf3, a server of its own for each flow (bulk.py, bulk_receiver.py). Packets are full (MTU 1500, so 1460 bytes
      of payload without TCP options, where the scenario says neither `mtu` nor `mss`). Its control connection shares the
      path, but is silent between the test's start and end; the flow neither fails nor ends with it.
cbr   `testbed/stages/cbr.py`, nothing on the air but the datagrams.
All flows last until the same instant, so that late ones compete for all of their measured time.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analysis.files import write_whole
from scenarios.scenario import Flow
from testbed.errors import RunError
from testbed.host.processes import Child, Processes
from testbed.stages.site import Site
from testbed.stages.station import NamespaceHost, StationNet

FIRST_PORT = 5201  # iperf3's own; flow i uses FIRST_PORT + i - 1
READY_DEADLINE_S = 20.0
END_GRACE_S = 60.0  # for the last segments and iperf3's exchange of results over a slow path
DRAIN_S = 2.0  # for datagrams still in the stations' queues
CBR = Path(__file__).with_name("cbr.py")
BULK = Path(__file__).with_name("bulk.py")
BULK_RECEIVER = Path(__file__).with_name("bulk_receiver.py")
LISTEN = "0A"  # /proc/net/tcp: TCP_LISTEN
REMEDY = "the run's captures are kept; `manet cli` on this scenario lets you ping along the path"


@dataclass
class RunningFlow:
    """One flow: its report's path, its programs, and how long it sends."""

    name: str
    flow: Flow
    port: int
    seconds: float
    report: Path
    source: NamespaceHost
    target: NamespaceHost
    receiver: Child | None = None
    sender: Child | None = None


def run_flows(
    site: Site,
    net: StationNet,
    children: Processes,
    progress: Callable[[float], None],
    begin: Callable[[float], None] = lambda _start_s: None,
) -> None:
    """Run all flows of the scenario to their end and leave their reports in `traffic/`; `begin` is told the monotonic
    instant from which their starts count."""
    flows = _plan(site, net)
    try:
        for flow in flows:
            _start_receiver(site, flow, children)
        _wait_until_listening(flows, children)
        _send(site, flows, children, progress, begin)
    finally:
        children.stop([child for flow in flows for child in (flow.sender, flow.receiver) if child is not None])
    for flow in flows:
        _finish(site, flow)


def _plan(site: Site, net: StationNet) -> list[RunningFlow]:
    scenario, folder = site.scenario, site.folder("traffic")
    length_s = scenario.traffic_seconds()
    return [
        RunningFlow(
            name=name,
            flow=flow,
            port=FIRST_PORT + index,
            seconds=length_s - flow.start,
            report=folder / f"{name}.json",
            source=net[flow.source],
            target=net[flow.target],
        )
        for index, (name, flow) in enumerate(zip(scenario.flow_names(), scenario.flows, strict=True))
    ]


def _start_receiver(site: Site, flow: RunningFlow, children: Processes) -> None:
    address = flow.target.IP()
    if flow.flow.traffic == "bulk":
        argv = [sys.executable, "-I", "-S", BULK_RECEIVER, "--report", _served(site, flow), "--"]
        argv += ["iperf3", "--bind", address, "--port", flow.port]
    else:
        argv = [sys.executable, "-I", "-S", CBR, "receive", "--source", address, "--port", flow.port]
        argv += ["--out", site.log / f"{flow.name}-received.json"]
    # both stay until they are told to end: one that is gone has lost what it had counted
    flow.receiver = children.start(f"{flow.name}-receiver", argv, netns=flow.target.netns, remedy=REMEDY)


def _wait_until_listening(flows: list[RunningFlow], children: Processes) -> None:
    deadline = time.monotonic() + READY_DEADLINE_S
    waiting = list(flows)
    while waiting := [flow for flow in waiting if not _listening(flow)]:
        children.check()
        if time.monotonic() > deadline:
            raise RunError(
                f"{waiting[0].name}: its receiver does not listen after {READY_DEADLINE_S:g} s; the host is overloaded"
            )
        time.sleep(0.005)


def _listening(flow: RunningFlow) -> bool:
    """From the namespace's own table of sockets: iperf3 prints nothing when it reports in JSON."""
    assert flow.receiver is not None
    kind, port = ("tcp", f":{flow.port:04X}") if flow.flow.traffic == "bulk" else ("udp", f":{flow.port:04X}")
    try:
        lines = Path(f"/proc/{flow.receiver.pid}/net/{kind}").read_text().splitlines()[1:]
    except OSError:
        return False
    rows = [line.split() for line in lines]
    return any(row[1].endswith(port) and (kind == "udp" or row[3] == LISTEN) for row in rows)


def _send(
    site: Site,
    flows: list[RunningFlow],
    children: Processes,
    progress: Callable[[float], None],
    begin: Callable[[float], None],
) -> None:
    """Start each sender at its time and wait for all of them."""
    start = time.monotonic()
    begin(start)
    length_s = site.scenario.traffic_seconds()

    def tick() -> None:
        progress(min(1.0, (time.monotonic() - start) / length_s))

    for flow in sorted(flows, key=lambda flow: flow.flow.start):
        children.watch(until=start + flow.flow.start, on_tick=tick)
        _start_sender(site, flow, children)
    senders = [flow.sender for flow in flows if flow.sender is not None]
    if not children.watch(until=start + length_s + END_GRACE_S, ended=senders, on_tick=tick):
        late = next(flow for flow in flows if flow.sender is not None and flow.sender.running())
        raise RunError(f"{late.name}: not ended {END_GRACE_S:g} s after its time; the path may have broken; {REMEDY}")
    if any(flow.flow.traffic == "cbr" for flow in flows):
        children.watch(until=time.monotonic() + DRAIN_S)


def _start_sender(site: Site, flow: RunningFlow, children: Processes) -> None:
    source, target = flow.source.IP(), flow.target.IP()
    if flow.flow.traffic == "cbr":
        argv = [sys.executable, "-I", "-S", CBR, "send", "--source", source, "--to", target, "--port", flow.port]
        argv += ["--rate", flow.flow.rate, "--bytes", flow.flow.bytes, "--seconds", flow.seconds]
        argv += ["--out", site.log / f"{flow.name}-sent.json"]
        flow.sender = children.start(f"{flow.name}-sender", argv, netns=flow.source.netns, remedy=REMEDY, may_end=True)
        return
    assert flow.receiver is not None
    argv = [sys.executable, "-I", "-S", BULK, "--seconds", flow.seconds, "--report", flow.report]
    argv += ["--receiver", flow.receiver.pid, "--"]
    argv += ["iperf3", "--client", target, "--bind", source, "--port", flow.port]
    argv += ["--json", "--get-server-output"]
    flow.sender = children.start(
        f"{flow.name}-sender",
        argv,
        netns=flow.source.netns,
        remedy=REMEDY,
        may_end=True,
        explain=lambda: iperf_error(flow.report),
    )


def _finish(site: Site, flow: RunningFlow) -> None:
    """iperf3's word on the flow (it ends with status 0 even so), or a report made of the CBR programs' counts."""
    if flow.flow.traffic == "bulk":
        error = iperf_error(flow.report)
        if error is not None:
            raise RunError(f'{flow.name}: iperf3: "{error}"; {REMEDY}')
        _add_servers_part(flow.report, _served(site, flow))
    else:
        write_whole(flow.report, json.dumps(_cbr_report(site, flow), indent=1) + "\n")


def _served(site: Site, flow: RunningFlow) -> Path:
    """The reports of the flow's iperf3 servers."""
    return site.log / f"{flow.name}-received.json"


def _add_servers_part(path: Path, served: Path) -> None:
    """Of a flow whose server could not tell the client what it had read: its own report of the same test."""
    report = json.loads(path.read_text())
    if "server_output_json" in report or not report["manet"]["connected"] or not served.exists():
        return
    servers = json.loads(served.read_text())
    if "start" not in report and servers:
        # a client that had to be ended by force
        report |= {"start": _seen_from_the_client(servers[-1]["start"]), "end": {}}
    seconds = report["start"]["test_start"]["duration"]
    for server in servers:
        if server["start"]["cookie"] == report["start"]["cookie"]:
            read = sum(interval["sum"]["bytes"] for interval in server["intervals"] if interval["sum"]["start"] < seconds)
            report["server_output_json"] = server
            report["end"]["sum_received"] = {"bytes": read, "seconds": seconds}
            write_whole(path, json.dumps(report))


def _seen_from_the_client(start: dict) -> dict:
    """The head of a server's report as its client's would have it: what is local is remote."""
    swapped = {"local_host": "remote_host", "local_port": "remote_port", "remote_host": "local_host", "remote_port": "local_port"}
    connected = [{swapped.get(key, key): value for key, value in ends.items()} for ends in start["connected"]]
    return {**start, "connected": connected}


def _cbr_report(site: Site, flow: RunningFlow) -> dict:
    sent = json.loads((site.log / f"{flow.name}-sent.json").read_text())
    received = json.loads((site.log / f"{flow.name}-received.json").read_text())
    connected = {
        "local_host": flow.source.IP(),
        "local_port": sent["port"],
        "remote_host": flow.target.IP(),
        "remote_port": flow.port,
    }
    return {
        "format": "manet-cbr/1",
        "manet": {"first_try_s": sent["first_try_s"], "connected": sent["sent"] > 0},
        "start": {
            "connected": [connected],
            "test_start": {"protocol": "UDP", "blksize": sent["payload_bytes"], "duration": flow.seconds},
        },
        "end": {
            "sum_sent": {"packets": sent["sent"], "bytes": sent["sent"] * sent["payload_bytes"], "refused": sent["refused"]},
            "sum_received": {
                "packets": received["received"],
                "bytes": received["received_bytes"],
                "seconds": received["seconds"],
                "duplicates": received["duplicates"],
            },
        },
    }


def iperf_error(report: Path) -> str | None:
    """What iperf3 says went wrong, if anything."""
    try:
        return json.loads(report.read_text()).get("error")
    except (OSError, ValueError):
        return None
