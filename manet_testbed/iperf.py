"""One iperf3 test between two stations. Each test of a mesh has a port of its own, so several may run at a time."""

from numbers import Real

from manet_testbed.answers import Throughput
from manet_testbed.errors import WrongRequest
from manet_testbed.process import PIPE, STDOUT
from manet_testbed.station import Station

FIRST_PORT = 5300  # flows of a scenario begin at 5201
PORTS = 1000
MAX_S = 86_400  # of a test, MAX_TIME of iperf3
CONNECT_DEADLINE_S = 10  # three retransmissions of a SYN
LISTENS_WITHIN_S = 10.0
END_GRACE_S = 15.0  # for the last segments and iperf3's exchange of results over a slow path


def measure(source: Station, target: Station, seconds: int, *, number: int, ip: int = 4) -> Throughput:
    """The throughput from `source`, the client, to `target`, over IPv4 or IPv6. Raises MeshError."""
    here, there = source.address_of(ip), target.address_of(ip)
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not 1 <= seconds <= MAX_S or seconds % 1:
        raise WrongRequest(f"tcp({source}, {target}): seconds={seconds!r}: iperf3 takes whole seconds from 1 to {MAX_S}")
    port = str(FIRST_PORT + number % PORTS)
    serve = ["iperf3", "--server", "--one-off", "--forceflush", "--bind", there, "--port", port]
    with target.popen(serve, stdout=PIPE, stderr=STDOUT) as server:
        server.wait_for_line("Server listening", LISTENS_WITHIN_S)
        argv = ["iperf3", "--client", there, "--bind", here, "--port", port, "--time", str(int(seconds))]
        argv += ["--json", "--connect-timeout", str(CONNECT_DEADLINE_S * 1000)]
        done = source.run(argv, timeout=CONNECT_DEADLINE_S + seconds + END_GRACE_S, check=False)
    return Throughput.parse(done.stdout, f"{source}: iperf3 to {target}")
