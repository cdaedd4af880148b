"""Results: the regret that a simulation measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.simulation.regret import Target
from superarm.statistics import mean_and_standard_error


@dataclass(frozen=True)
class Results:
    """Regret of each policy over rounds and replications.

    ``rounds`` is (n,); ``regret[name]`` is (replications, n), against ``targets[name]``; ``pulls[name]`` is
    (replications, n_arms), at the end; ``seconds[name]`` is the processor time of the policy's runs.
    After an interruption only the replications that every policy finished are here, and ``complete`` is False.
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
        return {name: mean_and_standard_error(values[:, -1]) for name, values in self.regret.items()}

    def to_frame(self) -> dict[str, Any]:
        """A tidy table as a dict of columns: policy, replication, round, regret.

        ``pandas.DataFrame(results.to_frame())`` and ``polars.DataFrame(…)`` accept it.
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
        return "\n".join(_table_lines(self))

    def plot(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure of mean regret with 95 % bands; written to ``path`` if given."""
        from superarm.simulation.plots import plot_results

        figure = plot_results(self)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def _repr_png_(self) -> bytes:
        from superarm.simulation.plots import to_png

        return to_png(self.plot())

    def __str__(self) -> str:
        return self.table()


def _table_lines(results: Results) -> list[str]:
    """A header, one line per policy (least regret first), and what regret was measured against."""
    summary = sorted(results.summary().items(), key=lambda entry: entry[1][0])
    width = max(6, *(len(name) for name, _ in summary))
    replications = len(next(iter(results.regret.values())))
    head = f"{'policy':<{width}}  {'regret':>12}  {'± s.e.':>9}  {'µs/round':>9}"
    body = [
        f"{name:<{width}}  {mean:>12.2f}  {error:>9.2f}  {_microseconds_per_round(results, name):>9.2f}"
        for name, (mean, error) in summary
    ]
    foot = f"after {results.rounds[-1]} rounds, {replications} replications, target: {results.targets[summary[0][0]]}"
    return [head, "-" * len(head), *body, foot if results.complete else foot + " (interrupted)"]


def _microseconds_per_round(results: Results, name: str) -> float:
    return 1e6 * results.seconds[name] / (int(results.rounds[-1]) * len(results.regret[name]))
