"""Part `validation`: the checks of `manet validate`, each figure with its seeds as repetitions."""

import sys

from testbed.nightly.figure import Figure, Part
from testbed.validate import checks

RELEVANT = 0.01  # a fifth of most checks' tolerance


def figures(pattern: str | None = None) -> Part:
    """All checks, or those of `pattern` (as of `manet validate --only`)."""
    measured = checks.measure(checks.cases(pattern), _progress)
    part = Part()
    for case, values in measured:
        seeds = tuple(f"seed {seed}" for seed in checks.SEEDS)
        part.figures.append(Figure(f"validation/{case.name}", case.unit, tuple(values), RELEVANT, exact=True, runs=seeds))
        check = checks.compare(case, values)
        if not check.ok:
            part.failures.append(
                f"validation/{check.name}: {check.ours:.4g} {check.unit}, reference {check.reference:.4g}: "
                f"{check.error:+.1%}, allowed {check.tolerance:.1%}"
            )
    return part


def _progress(done: int, total: int) -> None:
    if done % 100 == 0 or done == total:
        print(f"manet nightly: validation: {done} of {total} simulations", file=sys.stderr, flush=True)
