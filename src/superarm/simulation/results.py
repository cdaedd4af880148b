"""Results: what a simulation leaves behind."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.simulation.regret import Target


@dataclass(frozen=True)
class Results:
    """Regret of each policy over rounds and replications.

    ``rounds`` is (n,); ``regret[name]`` is (replications, n), against ``targets[name]``; ``pulls[name]`` is
    (replications, n_arms), at the end; ``seconds[name]`` is the time spent in the policy's runs.
    An interrupted run holds only the replications that every policy finished, and says so in ``complete``.
    """

    rounds: Ints
    regret: Mapping[str, Floats]
    pulls: Mapping[str, Floats]
    targets: Mapping[str, Target]
    seconds: Mapping[str, float]
    complete: bool

    @property
    def target(self) -> str:
        """The kind of target: ``optimal``, ``approximation`` or ``oracle``."""
        return next(iter(self.targets.values())).kind

    def summary(self) -> dict[str, tuple[float, float]]:
        """Final regret of each policy: mean over replications, and its standard error."""
        return {name: _mean_and_error(values[:, -1]) for name, values in self.regret.items()}

    def to_frame(self) -> dict[str, Any]:
        """A tidy table as a dict of columns: policy, replication, round, regret.

        ``pandas.DataFrame(results.to_frame())`` and ``polars.DataFrame(…)`` take it as it is.
        """
        names, shape = list(self.regret), next(iter(self.regret.values())).shape
        return {
            "policy": np.repeat(np.array(names), shape[0] * shape[1]),
            "replication": np.tile(np.repeat(np.arange(shape[0]), shape[1]), len(names)),
            "round": np.tile(self.rounds, shape[0] * len(names)),
            "regret": np.concatenate([self.regret[name].reshape(-1) for name in names]),
        }

    def table(self) -> str:
        """The final regret of each policy as text, best first."""
        from superarm.simulation.table import lines

        return "\n".join(lines(self))

    def plot(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure of mean regret with 95 % bands; written to ``path`` if given."""
        from superarm.simulation.plots import curves

        figure = curves(self)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def _repr_png_(self) -> bytes:
        from superarm.simulation.plots import png

        return png(self.plot())

    def __str__(self) -> str:
        return self.table()


def _mean_and_error(values: Floats) -> tuple[float, float]:
    n = len(values)
    error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return float(np.mean(values)), error
