"""A stand-in for the workers of a campaign, and an experiment with one question, for tests of its rounds."""

import json

from record import manifest
from testbed.campaigns.batch import Batch
from testbed.campaigns.rounds import DONE, batches_in, has_ended
from testbed.campaigns.time_limit import TimeLimit

TEXT = """question = "?"
[scenario]
hops = 1
[axes]
hops = [1, 2]
[quick]
seeds = 2
[[questions]]
question = "Two hops carry less"
claim = "less"
metric = "acked_kbps"
key = "hops"
compared = 2
with = 1
matters = 10
max_pairs = 14
confidence = 0.6
"""


class Workers:
    """Carry out batches at once; `kbps` gives the throughput of a cell and seed, or None for a run that fails."""

    def __init__(self, kbps, die_after=None):
        self.kbps, self.die_after = kbps, die_after
        self.runs = []

    def __call__(self, folder):
        for path in batches_in(folder):
            done = path.with_name(path.stem + DONE)
            if done.exists():
                continue
            batch = Batch.read(path)
            limit = TimeLimit.of(folder, lambda: len(self.runs))
            for task in batch.tasks:
                if has_ended(task) or limit.is_reached:
                    continue
                if self.die_after is not None and len(self.runs) >= self.die_after:
                    raise KeyboardInterrupt
                self.runs.append((task.cell.name, task.seed))
                self._run(task)
            runs = [{"experiment": t.experiment, "cell": t.cell.name, "seed": t.seed, "status": "complete", "verdict": "valid",
                     "voids": 0} for t in batch.tasks]  # fmt: skip
            record = {
                "host": "here",
                "cores": 2,
                "jobs": [1, 1],
                "wall_s": 2.0,
                "emulated_s": 20.0,
                "core_s": 1.0,
                "timers_us": {},
            }
            done.write_text(json.dumps(record | {"runs": runs, "dropped": {"runs": 0, "bytes": 0}}))

    def _run(self, task):
        kbps = self.kbps(task.cell.axes["hops"], task.seed)
        task.directory.mkdir(parents=True)
        status = "failed" if kbps is None else "complete"
        run = {"status": status, "seed": task.seed, "cell": task.cell.name, "axes": task.cell.axes, "id": task.name}
        files = {"run.json": run, "verdict.json": {"verdict": "valid"}, "scenario.json": json.loads(task.cell.scenario.to_json())}
        if kbps is not None:
            files["metrics.json"] = {"flows": {"flow1": {"acked_bps": 1000 * kbps}}}
        for name, content in files.items():
            (task.directory / name).write_text(json.dumps(content))
        manifest.write(task.directory)


def clear(hops, seed):
    return 600 / hops**2 + seed % 3


def noisy(hops, seed):
    return 600 + (100 if (seed + hops) % 2 else -100) + seed
