"""The laboratory: experiments described in files, run on any machine with identical results, and reported in HTML.

An experiment is a table of instances and policies; every pair is a cell, which is stored under a digest of everything
that determines its numbers. The public names are loaded when they are first used.

- ``spec/``: experiments, from and to TOML.
- ``execution/``: the cells of an experiment, divided into tasks and run by threads, processes or a cluster.
- ``store.py``: the directory that a run writes.
- ``analysis/``: results read back: summaries, statistics, claims and bounds.
- ``report/``: the HTML report, its figures and tables; comparisons of two runs; text for terminals.
- ``commands.py``: ``superarm run``, ``reproduce``, ``report``, ``compare`` and ``bounds``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study
    from superarm.experiments.execution.cluster import Cluster
    from superarm.experiments.execution.executors import Executor, Processes, Threads
    from superarm.experiments.execution.runner import run
    from superarm.experiments.spec.experiment import Experiment, from_toml, load, load_shipped

_HOMES = {
    "Cluster": "execution.cluster",
    "Executor": "execution.executors",
    "Experiment": "spec.experiment",
    "Processes": "execution.executors",
    "Study": "analysis.study",
    "Threads": "execution.executors",
    "from_toml": "spec.experiment",
    "load": "spec.experiment",
    "load_shipped": "spec.experiment",
    "run": "execution.runner",
}

__all__ = [
    "Cluster",
    "Executor",
    "Experiment",
    "Processes",
    "Study",
    "Threads",
    "from_toml",
    "load",
    "load_shipped",
    "run",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that the command line starts at once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
