"""The laboratory: experiments as files, run anywhere to the same bits, and reports to look at."""

from superarm.experiments.cluster import Cluster
from superarm.experiments.executors import Executor, Processes, Threads
from superarm.experiments.named import named
from superarm.experiments.runner import run
from superarm.experiments.spec import Experiment, from_toml, load
from superarm.experiments.study import Study

__all__ = ["Cluster", "Executor", "Experiment", "Processes", "Study", "Threads", "from_toml", "load", "named", "run"]
