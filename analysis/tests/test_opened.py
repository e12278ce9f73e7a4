"""Connections that a command opened: which are its own, their figures to the byte, and the checks on a wrong capture."""

from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from analysis.tests.craft import MS, T0_NS, Frame, RunFolder, Transfer, capture_bytes, over_ipv6, tcp, udp

EPOCH_NS = T0_NS - 1_000_000_000
TRIP_NS = 10 * MS
QUIC = bytes([0x43]) + bytes(20)  # a short header with the longest connection ID: equal in every packet (RFC 9000, 17.3.1)


class Commands(RunFolder):
    """Two stations; the window of a command is [1 s, 5 s) after its start, unless the test changes it."""

    def __init__(self) -> None:
        super().__init__(2, 1.0, 4.0)

    def add_command(self, start_s: float = 0.0, **keys: object) -> None:
        self._add_flow(1, 2, "command", _report(start_s))
        self.scenario["flows"][-1] |= {"command": ["x"], "start": start_s, **keys}

    def add(self, *transfers: Transfer) -> None:
        for transfer in transfers:
            self.captures[transfer.source] += transfer.at_source
            self.captures[transfer.destination] += transfer.at_destination

    def add_datagram(self, t_ns: int, ports: tuple[int, int], stamp: bytes, *, lost: bool = False, back: bool = False) -> None:
        source, destination = (2, 1) if back else (1, 2)
        self.captures[source].append(udp(t_ns, source, destination, ports, stamp, 500))
        if not lost:
            self.captures[destination].append(udp(t_ns + TRIP_NS, source, destination, ports, stamp, 500))

    def measured(self, folder: Path) -> dict:
        """metrics.json; every frame to sta2 is in the air log, as the medium would have written it."""
        self.air = []
        for frame in self.captures[2]:
            if frame.data[5] == 2:  # to sta2
                self.deliver(frame, "sta1", "sta2", EPOCH_NS)
        return analyse_run(self.write(folder, EPOCH_NS))


def _report(start_s: float) -> dict:
    tried = {"first_try_s": T0_NS / 1e9 + start_s, "connected": True}
    return {"format": "manet-command/1", "manet": tried, "argv": ["x"], "exit_status": 0, "ended_by_run": False, "seconds": 5.0}


def transfer(first_ns: int, ports: tuple[int, int], segments: int, *, back: bool = False, every_ns: int = 100 * MS) -> Transfer:
    """A segment of 1000 bytes every 100 ms, acknowledged 20 ms after it left."""
    made = Transfer(2, 1, 7000, ports) if back else Transfer(1, 2, 7000, ports)
    made.open(first_ns, TRIP_NS)
    for number in range(segments):
        at_ns = first_ns + 50 * MS + number * every_ns
        made.segment(at_ns, number * 1000, 1000, TRIP_NS)
        made.ack(at_ns + TRIP_NS, (number + 1) * 1000, TRIP_NS)
    return made


def _failed(metrics: dict) -> dict[str, str]:
    return {check["name"]: check["detail"] for check in metrics["checks"] if not check["ok"]}


def test_the_rates_of_all_connections_are_added(tmp_path: Path) -> None:
    """Segments leave 50 + 100 k ms after a connection's start: 40 within [1 s, 5 s) of the first, and ten of the one that starts
    at 2 s. Both are subflows of MPTCP for all that a capture tells."""
    run = Commands()
    run.add_command()
    run.add(transfer(0, (40000, 80), 60), transfer(2_000 * MS, (40001, 9999), 10))
    metrics = run.measured(tmp_path / "run")
    assert _failed(metrics) == {}
    flow = metrics["flows"]["flow1"]
    assert flow["connections"] == 2
    assert flow["acked_bps"] == flow["delivered_bps"] == flow["goodput_bps"] == flow["air_bps"] == 50 * 1000 * 8 / 4
    assert (flow["segments"], flow["retransmissions"], flow["back_segments"], flow["back_delivered_bps"]) == (50, 0, 0, 0)
    assert (flow["rtt_ms_mean"], flow["rtt_ms_p95"]) == (20, 20)
    assert (flow["sent"], flow["loss"], flow["latency_ms_mean"]) == (None, None, None)
    assert (flow["longest_silence_s"], flow["silence_s"]) == (0.1, 0)
    assert (flow["start_ns"], flow["window_s"], flow["exit_status"]) == (T0_NS, [1.0, 5.0], 0)


def test_a_retransmission_counts_once(tmp_path: Path) -> None:
    """Segment 20 is lost at 2.05 s and repeated 200 ms later."""
    run = Commands()
    run.add_command()
    made = Transfer(1, 2, 7000, (40000, 80))
    made.open(0, TRIP_NS)
    for number in range(20):
        made.segment(50 * MS + number * 100 * MS, number * 1000, 1000, TRIP_NS)
        made.ack(60 * MS + number * 100 * MS, (number + 1) * 1000, TRIP_NS)
    made.segment(2050 * MS, 20_000, 1000, None)
    made.segment(2250 * MS, 20_000, 1000, TRIP_NS)
    made.ack(2260 * MS, 21_000, TRIP_NS)
    run.add(made)
    flow = run.measured(tmp_path / "run")["flows"]["flow1"]
    # k = 10 .. 19, 20 twice; the ACK of the repeated one is no sample
    assert (flow["segments"], flow["retransmissions"], flow["rtt_ms_mean"]) == (12, 1, 20)
    assert flow["acked_bps"] == 11 * 1000 * 8 / 4


def test_a_download_is_data_back(tmp_path: Path) -> None:
    """The source opens the connection (40000 to 80), and the target sends 1000 bytes each 100 ms."""
    run = Commands()
    run.add_command()
    data = transfer(0, (80, 40000), 60, back=True)
    own = [tcp(0, 1, 2, (40000, 80), 4999, 0, flags=0x02), tcp(MS, 1, 2, (40000, 80), 5000, 7001)]
    run.add(data)
    run.captures[1] += own
    run.captures[2] += [Frame(each.t_ns + TRIP_NS, each.data, each.ip_bytes) for each in own]
    flow = run.measured(tmp_path / "run")["flows"]["flow1"]
    assert (flow["delivered_bps"], flow["back_delivered_bps"]) == (0, 40 * 1000 * 8 / 4)
    assert (flow["segments"], flow["back_segments"], flow["back_retransmissions"], flow["rtt_ms_mean"]) == (0, 40, 0, 20)


def test_datagrams_with_equal_headers_are_told_apart(tmp_path: Path) -> None:
    """40 datagrams of 500 bytes in the window, each with QUIC's longest header before bytes of its own; every tenth is lost. One
    copy, which a routing daemon sent again, counts no second time."""
    run = Commands()
    run.add_command()
    for number in range(50):
        run.add_datagram(50 * MS + number * 100 * MS, (50000, 443), QUIC + bytes([number]), lost=number % 10 == 9)
        run.add_datagram(60 * MS + number * 100 * MS, (443, 50000), QUIC + bytes([number]), back=True)
    run.captures[1].append(udp(1060 * MS, 1, 2, (50000, 443), QUIC + bytes([10]), 500))
    metrics = run.measured(tmp_path / "run")
    assert _failed(metrics) == {}
    flow = metrics["flows"]["flow1"]
    assert (flow["connections"], flow["sent"], flow["loss"]) == (1, 40, 4 / 40)
    assert (flow["latency_ms_mean"], flow["latency_ms_p95"]) == (10, 10)
    assert flow["delivered_bps"] == 36 * 500 * 8 / 4
    assert (flow["back_sent"], flow["back_loss"], flow["back_latency_ms_mean"]) == (40, 0, 10)
    assert (flow["acked_bps"], flow["segments"], flow["rtt_ms_mean"]) == (None, None, None)


def test_ipv6_counts_too(tmp_path: Path) -> None:
    run = Commands()
    run.add_command()
    made = transfer(0, (40000, 80), 60)
    run.captures[1] += [over_ipv6(frame) for frame in made.at_source]
    run.captures[2] += [over_ipv6(frame) for frame in made.at_destination]
    assert run.measured(tmp_path / "run")["flows"]["flow1"]["delivered_bps"] == 40 * 1000 * 8 / 4


def test_what_began_before_the_command_and_what_routing_sent_are_not_its_own(tmp_path: Path) -> None:
    run = Commands()
    run.add_command(start_s=1.0)
    run.add(transfer(500 * MS, (40000, 80), 60))
    run.add_datagram(1500 * MS, (654, 654), b"reply of AODV")
    run.write(tmp_path / "run", EPOCH_NS)
    control = capture_bytes([udp(1500 * MS, 1, 2, (654, 654), b"reply of AODV", 500)])
    (tmp_path / "run" / "captures" / "sta1.routing.pcap").write_bytes(control)
    flow = run.measured(tmp_path / "run")["flows"]["flow1"]
    assert (flow["connections"], flow["acked_bps"], flow["delivered_bps"]) == (0, 0, 0)


def test_the_port_of_another_flow_is_the_other_s(tmp_path: Path) -> None:
    """5202 is flow2's; 8080 is named by flow1."""
    run = Commands()
    run.add_command(ready_port=8080)
    run.add_command()
    run.add(transfer(0, (40000, 8080), 60), transfer(0, (40001, 5202), 20))
    metrics = run.measured(tmp_path / "run")
    assert [flow["delivered_bps"] for flow in metrics["flows"].values()] == [40 * 1000 * 8 / 4, 10 * 1000 * 8 / 4]
    assert "flow1 connections" not in _failed(metrics)


def test_a_connection_of_either_of_two_commands_is_nobody_s(tmp_path: Path) -> None:
    run = Commands()
    run.add_command()
    run.add_command()
    run.add(transfer(0, (40000, 5201), 60), transfer(0, (40001, 99), 60))
    metrics = run.measured(tmp_path / "run")
    assert [flow["connections"] for flow in metrics["flows"].values()] == [1, 0]
    assert _failed(metrics)["flow1 connections"].startswith("1 connections are on a port of none of flow1, flow2, which run ")


@pytest.mark.parametrize(
    ("wrong", "check"), [("at the sender", "flow1 capture-complete"), ("too early", "flow1 acked-delivered")]
)
def test_a_wrong_capture_fails_the_check_of_its_connection(tmp_path: Path, wrong: str, check: str) -> None:
    """A lost frame of tcpdump's at the sender; an ACK before the data that it acknowledges arrived."""
    run = Commands()
    run.add_command()
    made = transfer(0, (40000, 80), 60)
    if wrong == "at the sender":
        del made.at_source[20]
        made.at_source = [frame for frame in made.at_source if frame.t_ns != 1050 * MS]
    else:
        made.at_source.append(tcp(999 * MS, 2, 1, (80, 40000), 5001, 7001 + 12_000))
    run.add(transfer(0, (40001, 80), 60), made)
    failed = _failed(run.measured(tmp_path / "run"))
    assert failed[check].startswith("tcp 40000 to 80: ")


def test_a_datagram_that_never_left_fails_the_check(tmp_path: Path) -> None:
    run = Commands()
    run.add_command()
    run.add_datagram(1500 * MS, (50000, 443), b"first")
    run.captures[2].append(udp(1600 * MS, 1, 2, (50000, 443), b"second", 500))
    failed = _failed(run.measured(tmp_path / "run"))
    assert failed == {"flow1 datagrams-left": "udp 50000 to 443: 1 datagrams arrived that never left"}
