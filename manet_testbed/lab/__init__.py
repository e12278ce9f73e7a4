"""Experiments in Python: a scenario, its runs, tables and figures as objects (docs/python.md).

`manet_testbed` exports these names. This half imports the testbed itself, hence needs the checkout's own Python (.venv), which
`service` needs too; the classes for tests of other projects do without.
"""

from analysis.tables.results import mean_and_interval
from manet_testbed.lab.experiment import Experiment
from manet_testbed.lab.progress import Progress
from manet_testbed.lab.results import Results
from manet_testbed.lab.run import Run
from manet_testbed.lab.scenario import Scenario

__all__ = ["Experiment", "Progress", "Results", "Run", "Scenario", "mean_and_interval"]
