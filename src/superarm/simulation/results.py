"""Results: the regret that a simulation measured."""

import base64
import html
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core import labels
from superarm.core.arrays import Floats, Ints
from superarm.core.errors import MissingExtra
from superarm.core.statistics import mean_and_standard_error
from superarm.simulation.regret import Target, find_negative, warn_of_negative

if TYPE_CHECKING:
    from typing import Unpack

    from superarm.simulation.plots import Look


@dataclass(frozen=True, repr=False)
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

        ``to_pandas``, ``to_polars`` and ``to_arrow`` make tables of these libraries from it.
        """
        names, shape = list(self.regret), next(iter(self.regret.values())).shape
        return {
            "policy": np.repeat(np.array(names), shape[0] * shape[1]),
            "replication": np.tile(np.repeat(np.arange(shape[0]), shape[1]), len(names)),
            "round": np.tile(self.rounds, shape[0] * len(names)),
            "regret": np.concatenate([self.regret[name].reshape(-1) for name in names]),
        }

    def to_pandas(self) -> Any:
        """The table of ``to_frame`` as a pandas DataFrame."""
        return labels.to_pandas(self.to_frame())

    def to_polars(self) -> Any:
        """The table of ``to_frame`` as a polars DataFrame."""
        return labels.to_polars(self.to_frame())

    def to_arrow(self) -> Any:
        """The table of ``to_frame`` as an Arrow table."""
        return labels.to_arrow(self.to_frame())

    def table(self) -> str:
        """The final regret of each policy as text, best first."""
        return "\n".join(_table_lines(self))

    def plot(self, path: str | Path | None = None, ax: Any = None, **look: "Unpack[Look]") -> Any:
        """A matplotlib figure of regret over rounds, one line per policy.

        Parameters
        ----------
        path
            The file that it is written to, if given; the suffix says in which format.
        ax
            matplotlib axes to draw into, instead of a new figure.
        look
            ``width``, ``height``, ``font_size``, ``policies``, ``log``, ``quantiles`` and ``styles``: see
            :class:`superarm.simulation.plots.Look`.
        """
        from superarm.simulation.plots import plot_results

        figure = plot_results(self, ax, look)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def _repr_html_(self) -> str:
        """What notebooks show: the table, and the figure if matplotlib is installed."""
        text = "\n".join(html.escape(line) for line in _table_lines(self))
        try:
            picture = _picture(self)
        except MissingExtra:
            picture = ""
        return f"<pre>{text}</pre>{picture}"

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        shape = next(iter(self.regret.values())).shape
        names = ", ".join(self.regret)
        return f"<Results of {names}: {shape[0]} replication{'s' * (shape[0] > 1)} of {self.rounds[-1]} rounds>"


def _picture(results: Results) -> str:
    from superarm.simulation.plots import to_png

    data = base64.b64encode(to_png(results.plot())).decode("ascii")
    return f'<img alt="Regret of each policy over rounds" style="max-width:100%" src="data:image/png;base64,{data}">'


def _table_lines(results: Results) -> list[str]:
    """A header, one line per policy (least regret first), what regret is measured against, and a warning if need be."""
    summary = sorted(results.summary().items(), key=lambda entry: entry[1][0])
    width = max(6, *(len(name) for name, _ in summary))
    replications = len(next(iter(results.regret.values())))
    head = f"{'policy':<{width}}  {'regret':>12}  {'± s.e.':>9}  {'µs/round':>9}"
    body = [
        f"{name:<{width}}  {mean:>12.2f}  {_format_error(error):>9}  {_microseconds_per_round(results, name):>9.2f}"
        for name, (mean, error) in summary
    ]
    runs = "1 replication" if replications == 1 else f"{replications} replications"
    foot = f"after {results.rounds[-1]} rounds, {runs}, target: {results.targets[summary[0][0]]}"
    means = {name: mean for name, (mean, _) in summary}
    negative = find_negative(means, int(results.rounds[-1]), results.targets[summary[0][0]].value)
    warning = warn_of_negative(negative, results.target)
    return [head, "-" * len(head), *body, foot if results.complete else foot + " (interrupted)", *warning]


def _format_error(error: float) -> str:
    """A standard error; a dash if there was one replication, which has none."""
    return "–" if math.isnan(error) else f"{error:.2f}"


def _microseconds_per_round(results: Results, name: str) -> float:
    return 1e6 * results.seconds[name] / (int(results.rounds[-1]) * len(results.regret[name]))
