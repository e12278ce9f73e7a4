"""`manet curve`: the chain curves from which expected throughput is computed (testbed/curves)."""

import argparse
from typing import Any

from testbed.commands.options import add_overrides, add_verb, overrides, positive

EXAMPLES = """
  ./manet curve show hv-fig3       the curves of that experiment
  ./manet curve measure hv-fig3    measure those that are missing, about two
                                   minutes each; `manet run` does it by itself

Curves are kept in ~/.cache/manet/curves (MANET_CACHE) by radio, TCP, kernel,
and the sources of medium and kernel-tcp. They are means of valid runs: what is
suspect or void is repeated alone, and then left out.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "curve", "show or measure the chain curves behind expected throughput", EXAMPLES)
    parser.add_argument("action", choices=("show", "measure"), help="print the curves, or measure the missing ones")
    parser.add_argument("experiment", metavar="NAME|FILE", help="an experiment by name or file")
    parser.add_argument("--quick", action="store_true", help="the curves that its quick size needs")
    add_overrides(parser)
    parser.add_argument("--variant", metavar="NAME", action="append", default=[], help="only this variant; may be repeated")
    parser.add_argument("--jobs", metavar="N", type=positive, help="parallel runs (default: as many as this machine supports)")


def run(options: argparse.Namespace) -> int:
    """Print the curves; with `measure`, measure the missing ones first."""
    from testbed.campaigns.experiment import load
    from testbed.campaigns.library import find
    from testbed.campaigns.request import Request
    from testbed.columns import folded
    from testbed.curves.curve import curve_of, read
    from testbed.curves.measure import measured_now

    request = Request(options.quick, overrides(options), tuple(options.variant))
    experiment = load(find(options.experiment), request)
    curves = {curve.name: curve for curve in (curve_of(cell.scenario) for cell in experiment.cells)}
    for curve in curves.values():
        document = read(curve)
        if document is None and options.action == "measure":
            document = measured_now(curve, options.jobs)
        shown = document["values"] if document else "not measured yet"
        if document:
            shown = " ".join(f"{value:.0f}" for value in document["values"].values()) + " kbit/s"
        print(folded(f"{curve.name}  {curve.scenario['tcp']} over {curve.scenario['radio']}, 1, 2, 3, ... hops: {shown}"))
        if document:
            print(folded(f"  {curve.path}, {_origin(document['measured'])}"))
    return 0


def _origin(measured: dict[str, Any]) -> str:
    """When, where and of which runs a curve was made, and the widest interval of its values."""
    left_out = measured.get("left_out") or {}
    runs = f"{measured['verdicts']['valid']} valid runs of {measured['duration_s']:g} s"
    runs += "".join(f", {count} {verdict} left out" for verdict, count in left_out.items())
    widest = max((value for value in measured["ci95_kbps"].values() if value is not None), default=None)
    interval = f", ±{widest:.0f} kbit/s at most" if widest is not None else ""
    return f"measured {measured['date']} on {measured['host']} at {measured['commit']}: {runs}{interval}"
