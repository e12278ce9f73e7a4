"""Time series of the flows of a run: throughput in equal steps, and the samples of the sender's TCP."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from analysis.captures import tcp_samples
from analysis.captures.connections import Connection
from analysis.captures.rundir import RunDirectory
from analysis.metrics.throughput import Staircase, sender_view
from record.errors import RunFileError
from record.scenario import RunFlow

STEP_S = 0.2  # Flent's own default


@dataclass(frozen=True)
class FlowSeries:
    """A flow over time. `mbps[i]` is the throughput in [i, i+1) * STEP_S from the start of the traffic: acknowledged bytes of a
    TCP flow, received ones (UDP payload) of a flow of datagrams. `samples` are rows of tcp.csv; none for datagrams."""

    flow: RunFlow
    mbps: list[float]
    samples: pl.DataFrame


def flow_series(run: RunDirectory) -> list[FlowSeries]:
    """The series of every flow that has a connection and packets; a RunFileError if none has."""
    series = []
    for flow in run.flows:
        connection = run.connection(flow)
        if connection is not None:
            no_rows = pl.DataFrame(schema=tcp_samples.SCHEMA)
            rows = run.tcp_rows(flow, connection) if flow.protocol == "tcp" else no_rows
            series.append(FlowSeries(flow, _rates(run, _bytes(run, flow, connection)), tcp_samples.samples(rows)))
    if not series:
        raise RunFileError(f"{run.path}: no flow of this run has a connection with packets; there is no series to export")
    return series


def _bytes(run: RunDirectory, flow: RunFlow, connection: Connection) -> Staircase:
    """Bytes that have arrived, over time: acknowledged at the sender, or received as datagrams."""
    at_source, at_target = (run.capture_of(flow, node) for node in (flow.source, flow.target))
    if flow.protocol == "tcp":
        isn = connection.initial_sequence(at_source, at_target)
        return Staircase() if isn is None else sender_view(at_source, connection, isn).acked
    received = connection.forward(at_target).filter(pl.col("payload_bytes") > 0)
    return Staircase(received["t_ns"].to_numpy(), np.cumsum(received["payload_bytes"].to_numpy().astype(np.int64)))


def _rates(run: RunDirectory, arrived: Staircase) -> list[float]:
    steps = max(1, round(run.scenario.traffic_seconds() / STEP_S))
    edges_ns = [run.traffic_ns + round(number * STEP_S * 1e9) for number in range(steps + 1)]
    counts = [arrived.before(edge) for edge in edges_ns]
    return [(after - before) * 8 / STEP_S / 1e6 for before, after in pairwise(counts)]
