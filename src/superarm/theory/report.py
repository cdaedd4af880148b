"""The bounds of an instance beside what policies do on it: a table, a figure, and where each bound starts to matter."""

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
from superarm.theory.bound import Bound
from superarm.theory.crossover import crossover
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.graves_lai import graves_lai
from superarm.theory.lower import lower_bound, lower_bound_gap_free
from superarm.theory.upper import (
    upper_bound,
    upper_bound_gap_free,
    upper_bound_kl,
    upper_bound_sharp,
    upper_bound_wang_chen,
)

UPPER: Mapping[str, Callable[[Instance, Any, Gaps], Bound]] = {
    "Theorem 1 (BC-UCB)": upper_bound,
    "Corollary 1 (BC-UCB)": upper_bound_gap_free,
    "sharpened (BC-UCB)": upper_bound_sharp,
    "KL theorem (KL-UCB, 3 log t)": upper_bound_kl,
    "Wang-Chen (CUCB)": upper_bound_wang_chen,
}


@dataclass(frozen=True)
class Lines:
    """What the figure shows: rounds (n,), regret of policies (replications, n), bounds and the trivial bound (n,)."""

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
    """Simulate, compute every bound that applies, write ``bounds.png`` and ``bounds.txt`` to ``out_dir``; the text.

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
    lower, notes = _lower(instance, found.rounds, g)
    upper = {name: bound(instance, found.rounds, g).value for name, bound in UPPER.items()}
    lines = Lines(found.rounds, found.regret, lower, upper, np.asarray(g.largest * found.rounds))
    text = "\n".join([str(g), "", *_table(lines, horizon), "", *_crossings(instance, g), *notes])
    if out_dir is not None:
        from superarm.theory.plots import bounds

        room = Path(out_dir)
        room.mkdir(parents=True, exist_ok=True)
        bounds(lines).savefig(room / "bounds.png", dpi=150)
        (room / "bounds.txt").write_text(text + "\n")
    return text


def _lower(instance: Instance, rounds: Ints, known: Gaps) -> tuple[dict[str, Floats], list[str]]:
    """The lower bounds that apply, and a note on each that does not."""
    lines, notes = {}, []
    if known.alpha < 1.0:
        return {}, ["lower bounds are left out: they speak of exact oracles (alpha = 1)"]
    lines["gap-free, some instance of this size"] = lower_bound_gap_free(instance, rounds)
    try:
        lines["Lai-Robbins rate × log T, this size and gap"] = lower_bound(instance, rounds, known).value
    except InvalidArgument as error:
        notes.append(f"Proposition 1 is left out: {error}")
    try:
        lines["Graves-Lai rate × log T, this instance"] = graves_lai(instance).low * np.log(rounds)
    except InvalidArgument as error:
        notes.append(f"Graves-Lai is left out: {error}")
    return lines, notes


def _table(lines: Lines, horizon: int) -> list[str]:
    rows = [("lower", name, f"{values[-1]:.6g}") for name, values in lines.lower.items()]
    rows += [
        ("regret", name, f"{values[:, -1].mean():.6g} ± {_error(values[:, -1]):.2g}")
        for name, values in lines.regret.items()
    ]
    rows += [("upper", name, f"{values[-1]:.6g}") for name, values in lines.upper.items()]
    rows.append(("upper", "trivial, largest gap times T", f"{lines.trivial[-1]:.6g}"))
    width = max(len(name) for _, name, _ in rows)
    return [f"at T = {horizon}", *(f"{kind:<7} {name:<{width}}  {value}" for kind, name, value in rows)]


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _crossings(instance: Instance, known: Gaps) -> list[str]:
    lines = []
    for name, bound in UPPER.items():
        t = crossover(lambda t, bound=bound: float(bound(instance, t, known)), known.largest)  # type: ignore[misc]
        when = f"from T = {t:.3g} on" if math.isfinite(t) else "never"
        lines.append(f"{name} beats the trivial bound {when}")
    return lines
