"""The analysis' part of verdict.json: a run whose sources contradict each other is at best suspect (docs/verdict.md)."""

import json
from collections.abc import Iterable
from pathlib import Path

from analysis.metrics.checks import Check, Unmeasured
from record.files import read_object, write_atomic

NAME = "verdict.json"
CHECKS = "checks"  # the key: the failed cross-checks, and the verdict without them
NAMED_CHECKS = 3  # at most so many among the reasons


def enter_checks(run_dir: Path, checks: Iterable[Check]) -> bool:
    """Enter the failed cross-checks of a complete run instead of those of an earlier analysis; returns whether verdict.json
    changed."""
    was = read_object(run_dir / NAME)
    if (
        read_object(run_dir / "run.json").get("status") != "complete"
        or "verdict" not in was
        or not isinstance(was.get("reasons"), list)
    ):
        return False
    verdict = {key: value for key, value in was.items() if key != CHECKS}
    without = was[CHECKS]["without"] if CHECKS in was else {key: was[key] for key in ("verdict", "reasons")}
    verdict |= without
    failed = [check for check in checks if not check.ok and not isinstance(check, Unmeasured)]
    if failed:
        lines = [f"the cross-check {check.name} failed: {check.detail}" for check in failed]
        more = [f"and {len(lines) - NAMED_CHECKS} more (metrics.json)"] if len(lines) > NAMED_CHECKS else []
        verdict |= {
            "verdict": "suspect" if without["verdict"] == "valid" else without["verdict"],
            "reasons": [*without["reasons"], *lines[:NAMED_CHECKS], *more],
            CHECKS: {"failed": [check.name for check in failed], "without": without},
        }
    if verdict == was:
        return False
    write_atomic(run_dir / NAME, json.dumps(verdict, indent=2, sort_keys=True) + "\n")
    return True


def contradicts_itself(run_dir: Path) -> bool:
    """Whether a cross-check of the run failed when it was analysed."""
    return CHECKS in read_object(run_dir / NAME)
