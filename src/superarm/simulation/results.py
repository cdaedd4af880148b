"""Results: the regret that a simulation measured."""

import base64
import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument, MissingExtra
from superarm.core.statistics import mean_and_standard_error
from superarm.output import labels
from superarm.output.table import Measured, ResultTable
from superarm.simulation.regret import Bracket, Target, find_negative, warn_of_negative

if TYPE_CHECKING:
    from typing import Unpack

    from superarm.simulation.plots import Look
    from superarm.simulation.statistics import Estimate


class PolicyResults(NamedTuple):
    """What one policy did: ``regret`` (rows, n), ``pulls`` (rows, n_arms), its target, and its processor time."""

    regret: Floats
    pulls: Floats
    target: Target
    seconds: float


@dataclass(frozen=True, repr=False)
class Results:
    """Regret of each policy over rounds and replications.

    ``rounds`` is (n,); ``regret[name]`` is (replications, n), against ``targets[name]``; ``pulls[name]`` is
    (replications, n_arms), at the end; ``seconds[name]`` is the processor time of the policy's runs. ``results[name]``
    has all of a policy's. After an interruption only the replications that every policy finished are here, and
    ``complete`` is False.

    Of a family of instances, the rows of ``regret`` and ``pulls`` are its instances, each the mean over its
    replications, so that every mean, interval and test is over instances. ``runs[name]`` is the final regret of every
    run then, (instances, replications).
    """

    rounds: Ints
    regret: Mapping[str, Floats]
    pulls: Mapping[str, Floats]
    targets: Mapping[str, Target]
    seconds: Mapping[str, float]
    complete: bool
    runs: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The kind of target: ``optimal``, ``approximation`` or ``oracle``."""
        return next(iter(self.targets.values())).kind

    def __getitem__(self, policy: str) -> PolicyResults:
        if policy not in self.regret:
            raise InvalidArgument("policy", f"there is no {policy!r}", f"give one of {', '.join(self.regret)}")
        return PolicyResults(self.regret[policy], self.pulls[policy], self.targets[policy], self.seconds[policy])

    def over_instances(self, each: int) -> "Results":
        """Results of a family, from those of all its runs, instance by instance, ``each`` runs of every instance."""

        def means(values: Floats) -> Floats:
            return np.asarray(values.reshape(-1, each, values.shape[1]).mean(axis=1))

        return replace(
            self,
            regret={name: means(values) for name, values in self.regret.items()},
            pulls={name: means(values) for name, values in self.pulls.items()},
            runs={name: values[:, -1].reshape(-1, each) for name, values in self.regret.items()},
        )

    def summary(self) -> ResultTable:
        """Final regret of each policy, least first: mean with standard error, quantiles, and time per round."""
        final = {name: values[:, -1] for name, values in self.regret.items()}
        return ResultTable(
            [
                {
                    "policy": name,
                    "regret": Measured(*mean_and_standard_error(final[name])),
                    **dict(
                        zip(("q10", "median", "q90"), np.quantile(final[name], [0.1, 0.5, 0.9]).tolist(), strict=True)
                    ),
                    "µs/round": self._microseconds(name),
                }
                for name in sorted(final, key=lambda name: float(final[name].mean()))
            ],
            self._foot(),
        )

    def compare(self, a: str, b: str) -> "Estimate":
        """Final regret of ``a`` less that of ``b``: the mean of paired differences, its 95 % interval, and the p-value.

        All policies see the same random outcomes, so differences are paired by replication, or by instance.
        """
        from superarm.simulation.statistics import paired_difference

        return paired_difference(self[a].regret[:, -1], self[b].regret[:, -1])

    def variance(self) -> ResultTable:
        """The variance of final regret of a family: between instances, and between the runs of an instance.

        With one run of each instance the two cannot be told apart, and the split is not known.
        """
        if not self.runs:
            raise InvalidArgument("results", "there is one instance", "simulate instances.family(…)", "variance")
        return ResultTable([{"policy": name, **_split(values)} for name, values in self.runs.items()])

    def profile(self, within: Any = None) -> tuple[Floats, dict[str, Floats]]:
        r"""Performance profiles: on which share of instances the regret is at most ``within`` times the least one.

        Returns ``within``, by default 100 numbers from 1 on, and the shares of each policy. Rows are instances of a
        family; of one instance, replications. Defined in [DolanMore2002]_.
        """
        return performance_profile({name: values[:, -1] for name, values in self.regret.items()}, within)

    def save(self, path: str | Path) -> None:
        """Write everything to ``path``, a file in NumPy's ``.npz`` format that ``Results.load`` reads."""
        names = list(self.regret)
        about = {
            "policies": names,
            "targets": [[*self.targets[name]] for name in names],
            "seconds": [self.seconds[name] for name in names],
            "complete": self.complete,
        }
        arrays = {"rounds": self.rounds, "about": np.array(json.dumps(about))}
        for kind in _BY_POLICY:
            arrays |= {f"{kind}_{n}": getattr(self, kind)[name] for n, name in enumerate(names) if getattr(self, kind)}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> "Results":
        """Results that ``save`` has written."""
        with np.load(path, allow_pickle=False) as stored:
            about, arrays = json.loads(str(stored["about"])), dict(stored)
        names = about["policies"]
        by_policy = {
            kind: {name: arrays[f"{kind}_{n}"] for n, name in enumerate(names) if f"{kind}_{n}" in arrays}
            for kind in _BY_POLICY
        }
        return cls(
            rounds=arrays["rounds"],
            targets={name: _read_target(*one) for name, one in zip(names, about["targets"], strict=True)},
            seconds=dict(zip(names, about["seconds"], strict=True)),
            complete=about["complete"],
            **by_policy,
        )

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
        return "\n".join(self._table_lines())

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
        text = "\n".join(html.escape(line) for line in self._table_lines())
        try:
            picture = _picture(self)
        except MissingExtra:
            picture = ""
        return f"<pre>{text}</pre>{picture}"

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<Results of {', '.join(self.regret)}: {self._size()} of {self.rounds[-1]} rounds>"

    def _size(self) -> str:
        """How many runs there are, in words."""
        rows = len(next(iter(self.regret.values())))
        each = next(iter(self.runs.values())).shape[1] if self.runs else 0
        what = f"{rows} {'instance' if each else 'replication'}{'s' * (rows > 1)}"
        return f"{what} × {each} replications" if each > 1 else what

    def _microseconds(self, name: str) -> float:
        runs = self.runs[name].size if self.runs else len(self.regret[name])
        return 1e6 * self.seconds[name] / (int(self.rounds[-1]) * runs)

    def _foot(self) -> str:
        foot = f"after {self.rounds[-1]} rounds, {self._size()}, target: {next(iter(self.targets.values()))}"
        return foot if self.complete else foot + " (interrupted)"

    def _table_lines(self) -> list[str]:
        """A header, one line per policy (least regret first), what regret is against, and a warning if need be."""
        rows = self.summary().rows
        width = max(6, *(len(row["policy"]) for row in rows))
        head = f"{'policy':<{width}}  {'regret':>12}  {'± s.e.':>9}  {'µs/round':>9}"
        body = [
            f"{row['policy']:<{width}}  {row['regret'].value:>12.2f}  {_format_error(row['regret'].error):>9}"
            f"  {row['µs/round']:>9.2f}"
            for row in rows
        ]
        means = {row["policy"]: row["regret"].value for row in rows}
        negative = find_negative(means, int(self.rounds[-1]), next(iter(self.targets.values())).value)
        return [head, "-" * len(head), *body, self._foot(), *warn_of_negative(negative, self.target)]


_BY_POLICY = ("regret", "pulls", "runs")


def _read_target(kind: Any, value: float, r_max: Any, eras: Any) -> Target:
    return Target(kind, value, Bracket(*r_max) if r_max else None, tuple((t, worth) for t, worth in eras))


def _split(runs: Floats) -> dict[str, float]:
    """Variances of final regret (instances, replications), by analysis of variance; NaN where they are not known."""
    each = runs.shape[1]
    within = float(runs.var(axis=1, ddof=1).mean()) if each > 1 else math.nan
    total = float(runs.mean(axis=1).var(ddof=1)) if len(runs) > 1 else math.nan
    return {"between instances": max(0.0, total - within / each) if each > 1 else math.nan, "within": within}


def performance_profile(values: Mapping[str, Floats], within: Any = None) -> tuple[Floats, dict[str, Floats]]:
    """The shares of instances on which a policy's regret is at most each of ``within`` times the least one.

    ``values`` are the regrets of each policy, (instances,).

    >>> performance_profile({"A": np.array([1.0, 2.0]), "B": np.array([2.0, 2.0])}, [1.0, 2.0])[1]
    {'A': array([1., 1.]), 'B': array([0.5, 1. ])}
    """
    table = np.array(list(values.values()))
    least = np.maximum(table.min(axis=0), np.finfo(float).tiny)
    ratios = np.maximum(table, least) / least
    finite = ratios[np.isfinite(ratios)]
    at = np.geomspace(1.0, max(1.01, float(finite.max())), 100) if within is None else np.asarray(within, float)
    shares = (ratios[:, None] <= at[:, None] * (1.0 + 1e-12)).mean(axis=2)
    return at, dict(zip(values, shares, strict=True))


def _picture(results: Results) -> str:
    from superarm.simulation.plots import to_png

    data = base64.b64encode(to_png(results.plot())).decode("ascii")
    return f'<img alt="Regret of each policy over rounds" style="max-width:100%" src="data:image/png;base64,{data}">'


def _format_error(error: float) -> str:
    """A standard error; a dash if there was one replication, which has none."""
    return "–" if math.isnan(error) else f"{error:.2f}"
