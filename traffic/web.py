"""Sessions of a web client with a real web server: request-reply cycles and think times drawn from published distributions.

The server is nginx; its configuration and objects are made for the session (programs/web_server.py). The client is our own
program (programs/web_client.py), because of two needs: the same series of objects and think times in each variant of a run, and a
record of each request with its connection and times.

The data flow from `to` to `from`: `tcp` is that of both ends' sockets on the flow's port, so also nginx's.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from keys.errors import did_you_mean, shortened
from keys.models import Strict
from keys.quantities import Whole
from traffic.shared import sessions
from traffic.shared.exchanges import MAX_CYCLES, distributions_of, drawn, is_path, presets, written
from traffic.shared.kind import FlowPlan, Kind, Listening, Program, Report, Shown, python_program, unfinished

CLIENT = Path(__file__).with_name("programs") / "web_client.py"
SERVER = Path(__file__).with_name("programs") / "web_server.py"
NGINX = "nginx"
DEFAULT_DISTRIBUTIONS = "1995"


def _known(name: str) -> str:
    if not is_path(name) and name not in presets():
        listed = ", ".join(f'"{each}"' for each in presets())
        hint = did_you_mean(name, presets()) or f"use one of {listed}, or the path of a file, with / or ending in .toml"
        raise ValueError(f'"{shortened(name)}" is not known; {hint}')
    return name


class WebKeys(Strict):
    """`distributions`: a name of data/web.toml, or the path of a file. `cycles`: of the session, default that of the
    distributions. `scale`: of the sizes of replies."""

    distributions: Annotated[str, AfterValidator(_known)] = DEFAULT_DISTRIBUTIONS
    cycles: Annotated[Whole, Field(ge=1, le=MAX_CYCLES)] | None = None
    scale: Annotated[float, Field(gt=0, le=1000)] = 1.0


class Web(Kind[WebKeys]):
    """See the head of this file."""

    keys = WebKeys
    transport = "tcp"
    measured = "exchanges"
    readiness = Listening("tcp")
    drain_s = 2.0  # an unfinished session ends with packets on their way
    records_at_once = True
    path_keys = ("distributions",)
    programs = {NGINX: "nginx"}  # noqa: RUF012
    outcome = "session"
    own_metrics = sessions.METRICS
    run_metrics = sessions.OF_RUN
    shown = (
        Shown("service_s", "service time", "s"),
        Shown("response_s", "response time", "s"),
        Shown("throughput_bps", "throughput", "kbit/s", 1e-3),
        Shown("finished_sessions", "finished", "sessions", of="sessions"),
    )

    def names_file(self, key: str, value: str) -> bool:
        """A name of data/web.toml is no path."""
        return is_path(value)

    def check_file(self, key: str, path: Path, mtu: int, ip: int) -> None:
        """The distributions of the file."""
        distributions_of(str(path))

    def receiver(self, plan: FlowPlan[WebKeys]) -> Program:
        """`web_server.py` with the objects of the exchanges, which are drawn here."""
        distributions = distributions_of(plan.keys.distributions)
        cycles = plan.keys.cycles or distributions.cycles
        written(drawn(distributions, cycles, plan.keys.scale, f"{plan.seed} {plan.name}"), _exchanges(plan))
        own = ["--nginx", NGINX, "--source", plan.target, "--port", plan.port]
        return Program(python_program(SERVER, *own, "--exchanges", _exchanges(plan), "--folder", plan.log / f"{plan.name}-nginx"))

    def sender(self, plan: FlowPlan[WebKeys], receiver_pid: int) -> Program:
        """`web_client.py` with the exchanges, which lasts for the flow's time even if the session finishes earlier."""
        ends = ["--source", plan.source, "--to", plan.target, "--port", plan.port]
        own = ["--exchanges", _exchanges(plan), "--seconds", plan.seconds, "--out", _record(plan)]
        return Program(python_program(CLIENT, *ends, *own))

    def report(self, plan: FlowPlan[WebKeys]) -> str:
        """The session's outcome, with the connection that carried most."""
        events = sessions.read_record(_record(plan))
        planned = len(json.loads(_exchanges(plan).read_text())["cycles"])
        requests = sessions.of(events, "request")
        opened = [event for event in requests if event["connection"] is not None]
        carried: dict[int, int] = {}
        for event in opened:
            carried[event["connection"]] = carried.get(event["connection"], 0) + event["reply_bytes"]
        largest = max(carried, key=lambda port: carried[port], default=None)
        errors = [event["error"] for event in requests if event["error"] not in (None, "unfinished")]
        tried = {
            "tries": len(requests),
            "first_try_s": events[0]["began_unix_s"],
            "connected": bool(opened),
            "remark": errors[-1] if errors else None,
        }
        content = {
            "format": "manet-web/1",
            "manet": tried,
            "start": plan.start_entry(largest),
            "session": {"seconds": plan.seconds, **sessions.outcome(events, planned, plan.seconds)},
        }
        return json.dumps(content, indent=1) + "\n"

    def of_run(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Means and sums over the sessions."""
        return sessions.of_run(entries)

    def remark(self, report: Report) -> str | None:
        """A remark about an unfinished session that had begun."""
        session = report.get("session", {})
        if not report.get("manet", {}).get("connected") or session.get("finished") is not False:
            return None
        done = f"{session['cycles_finished']} of {session['cycles_planned']} cycles"
        return unfinished(report, done, round(session["seconds"], 1))


KIND = Web()


def _exchanges(plan: FlowPlan[WebKeys]) -> Path:
    return plan.report.with_name(f"{plan.name}-exchanges.json")


def _record(plan: FlowPlan[WebKeys]) -> Path:
    return plan.report.with_name(f"{plan.name}-requests.jsonl")
