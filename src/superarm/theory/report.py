"""The bounds of an instance beside simulated regret: a table, a figure, and from which round on each bound matters."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.policies import Policy
from superarm.simulation.instances import Instance
from superarm.simulation.replicate import simulate
from superarm.statistics import mean_and_standard_error
from superarm.theory import upper
from superarm.theory.bound import Bound
from superarm.theory.crossover import crossover
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.graves_lai import graves_lai
from superarm.theory.labels import LABELS, REPORTED
from superarm.theory.lower import lower_bound, lower_bound_gap_free

UPPER: Mapping[str, Callable[[Instance, Any, Gaps], Bound]] = {LABELS[name]: getattr(upper, name) for name in REPORTED}
"""The upper bounds of the report, by label."""


@dataclass(frozen=True)
class ComparedBounds:
    """What the report compares: rounds (n,), regret of policies (replications, n), bounds and trivial bound (n,)."""

    rounds: Ints
    regret: Mapping[str, Floats]
    lower: Mapping[str, Floats]
    upper: Mapping[str, Floats]
    trivial: Floats


def bounds_report(
    instance: Instance,
    policies: Mapping[str, Policy],
    horizon: int,
    replications: int = 10,
    seed: int = 0,
    out_dir: str | Path | None = None,
    progress: bool = True,
) -> str:
    """Simulate, compute every bound that applies, and return both as text; write it to ``out_dir`` with a figure.

    Regret is the paper's, against alpha * beta * r_max of each policy's oracle, [MerlisMannor2019]_ (equation
    regretDef). A bound that does not apply to the instance is left out, and the text says why.

    >>> import superarm as sa
    >>> instance = sa.instances.lower_bound(6, 3, epsilon=0.2)
    >>> text = bounds_report(instance, {"BC-UCB": sa.bc_ucb()}, 300, 2, progress=False)
    >>> print(text.splitlines()[0])
    r_max 0.5, alpha 1, gaps from 0.2 to 0.2 over 5 of 6 arms (exact, by enumeration of 4 batches)
    """
    g = gaps(instance)
    found = simulate(instance, policies, horizon, replications, seed, target="approximation", progress=progress)
    lower, notes = _find_lower(instance, found.rounds, g)
    above = {label: bound(instance, found.rounds, g).value for label, bound in UPPER.items()}
    compared = ComparedBounds(found.rounds, found.regret, lower, above, np.asarray(g.largest * found.rounds))
    text = "\n".join([str(g), "", *_format_table(compared, horizon), "", *_find_crossovers(instance, g), *notes])
    if out_dir is not None:
        from superarm.theory.plots import plot_bounds

        directory = Path(out_dir)
        directory.mkdir(parents=True, exist_ok=True)
        plot_bounds(compared).savefig(directory / "bounds.png", dpi=150)
        (directory / "bounds.txt").write_text(text + "\n")
    return text


def _find_lower(instance: Instance, rounds: Ints, known: Gaps) -> tuple[dict[str, Floats], list[str]]:
    """The lower bounds that apply, and a note on each that does not."""
    found, notes = {}, []
    if known.alpha < 1.0:
        return {}, ["lower bounds are left out: they hold for exact oracles (alpha = 1)"]
    found[LABELS["lower_bound_gap_free"]] = lower_bound_gap_free(instance, rounds)
    try:
        found[LABELS["lower_bound"]] = lower_bound(instance, rounds, known).value
    except InvalidArgument as error:
        notes.append(f"Proposition 1 is left out: {error}")
    try:
        found[LABELS["graves_lai"]] = graves_lai(instance).low * np.log(rounds)
    except InvalidArgument as error:
        notes.append(f"Graves-Lai is left out: {error}")
    return found, notes


def _format_table(compared: ComparedBounds, horizon: int) -> list[str]:
    rows = [("lower", name, f"{values[-1]:.6g}") for name, values in compared.lower.items()]
    rows += [
        ("regret", name, "{:.6g} ± {:.2g}".format(*mean_and_standard_error(values[:, -1])))
        for name, values in compared.regret.items()
    ]
    rows += [("upper", name, f"{values[-1]:.6g}") for name, values in compared.upper.items()]
    rows.append(("upper", "trivial, largest gap times T", f"{compared.trivial[-1]:.6g}"))
    width = max(len(name) for _, name, _ in rows)
    return [f"at T = {horizon}", *(f"{kind:<7} {name:<{width}}  {value}" for kind, name, value in rows)]


def _find_crossovers(instance: Instance, known: Gaps) -> list[str]:
    lines = []
    for name, bound in UPPER.items():
        t = crossover(lambda t, bound=bound: float(bound(instance, t, known)), known.largest)  # type: ignore[misc]
        when = f"from T = {t:.3g} on" if math.isfinite(t) else "never"
        lines.append(f"{name} beats the trivial bound {when}")
    return lines
