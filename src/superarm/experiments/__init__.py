"""The laboratory: experiments as files, run anywhere to the same bits, and reports to look at."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm.experiments.cluster import Cluster
    from superarm.experiments.executors import Executor, Processes, Threads
    from superarm.experiments.runner import run
    from superarm.experiments.shelf import named
    from superarm.experiments.spec import Experiment, from_toml, load
    from superarm.experiments.study import Study

_HOMES = {
    "cluster": "Cluster",
    "executors": "Executor Processes Threads",
    "shelf": "named",
    "runner": "run",
    "spec": "Experiment from_toml load",
    "study": "Study",
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = ["Cluster", "Executor", "Experiment", "Processes", "Study", "Threads", "from_toml", "load", "named", "run"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that the command line starts without numba."""
    if name in _NAMES:
        return getattr(importlib.import_module(f"superarm.experiments.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'superarm.experiments' has no attribute {name!r}")
