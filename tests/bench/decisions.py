"""How often the rule of a campaign answers falsely, and how many pairs it takes: `python -m tests.bench decisions`.

2,000 simulated campaigns a cell (analysis/decisions/tests/campaigns.py), 500 a price, with the rule and with Student's intervals
alone. The standard error of a share of 5 % is 0.5 points.
"""

import os
from concurrent.futures import ProcessPoolExecutor

from analysis.decisions.tests.campaigns import CELLS, EFFECTS, Effect, by_rule, by_student_alone, false_share
from tests.bench import Table

CAMPAIGNS = 2000
PRICED = 500  # campaigns of a row of prices
SEED = 7
RANGE = 4.0  # declared, standard deviations
Row = list[str | float]


def measure() -> Table:
    columns = ["cell", "false, Student alone (%)", "false (%)", "median pairs, Student alone", "pairs", "undecided (%)",
               f"pairs, range {RANGE:g}"]  # fmt: skip
    table = Table(f"Answers of {CAMPAIGNS} simulated campaigns a row, at most 50 pairs", columns, "at most 5 % false")
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        table.rows += workers.map(_false, range(len(CELLS)))
        table.rows += workers.map(_pairs, EFFECTS)
    return table


def _false(number: int) -> Row:
    cell = CELLS[number]  # a cell's function has no name by which a worker could receive it
    shares = [100 * false_share(cell, CAMPAIGNS, SEED, decide) for decide in (by_student_alone, by_rule)]
    return [cell.name, *shares, "", "", "", ""]


def _pairs(effect: Effect) -> Row:
    (alone, _), (pairs, undecided) = (effect.pairs(PRICED, SEED, decide) for decide in (by_student_alone, by_rule))
    with_range, _ = effect.pairs(PRICED, SEED, by_rule, RANGE) if effect.size + 2 <= RANGE else (0.0, 0.0)
    name = f"normal, effect {effect.size:g} sd, level {effect.level:g} sd"
    return [name, "", "", alone, pairs, 100 * undecided, with_range or ""]
