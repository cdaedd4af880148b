"""The bounds of an instance beside simulated regret: a table, a figure, and from which round on each bound matters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.statistics import mean_and_standard_error
from superarm.environments import Bernoulli
from superarm.oracles import Default, Guarantee
from superarm.policies import Policy
from superarm.simulation.instances import Instance
from superarm.simulation.replicate import simulate
from superarm.theory.bound import LABELS
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.graves_lai import graves_lai
from superarm.theory.lower import lower_bound, lower_bound_gap_free, lower_bound_independent
from superarm.theory.theorems import (
    ASSUMPTIONS,
    CASCADES,
    describe_theorems,
    evaluate,
    guarantee_of,
    theorems_for,
    theorems_on,
)

MAX_REPORTED_HORIZON, POINTS_PER_DECADE = 1e30, 2000
"""The horizons at which bounds are compared with the trivial one: a relative distance of 0.1 %."""

SMALLEST_DRAWN = 1e-9
"""Regret below it is drawn at it, since a log axis has no 0."""


@dataclass(frozen=True)
class ComparedBounds:
    """What the report compares: rounds (n,), regret of policies (replications, n), bounds and trivial bound (n,).

    ``lower`` are the lower bounds of this instance, ``size`` those of other instances of its size, which are not drawn;
    ``upper`` are the bounds of the simulated policies, ``other`` those of policies that were not simulated.
    """

    rounds: Ints
    regret: Mapping[str, Floats]
    lower: Mapping[str, Floats]
    upper: Mapping[str, Floats]
    trivial: Floats
    other: Mapping[str, Floats] = field(default_factory=dict)
    size: Mapping[str, Floats] = field(default_factory=dict)


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
    regretDef), and so are the gaps in its bounds. The text names the theorems that cover each policy and what they
    assume; a bound that does not apply to the instance is left out, and the text says why.

    >>> from superarm.indices import Bernstein
    >>> from superarm.policies import IndexPolicy
    >>> from superarm.simulation import instances
    >>> instance = instances.lower_bound(6, 3, epsilon=0.2)
    >>> text = bounds_report(instance, {"BC-UCB": IndexPolicy(Bernstein())}, 300, 2, progress=False)
    >>> print(text.splitlines()[0])
    r_max 0.5, alpha 1, gaps from 0.2 to 0.2 over 5 of 6 arms (exact, by enumeration of 4 batches)
    """
    bounds = _find_bounds(instance, policies)
    found = simulate(instance, policies, horizon, replications, seed, target="approximation", progress=progress)
    lower, size, notes = _find_lower(instance, found.rounds, policies)
    own, other = (
        {one.label: one.values(instance, found.rounds) for one in bounds if one.simulated == simulated}
        for simulated in (True, False)
    )
    known = {one.known.alpha: one.known for one in bounds} or {1.0: gaps(instance, alpha=1.0)}
    largest = max(g.largest for g in known.values())
    compared = ComparedBounds(found.rounds, found.regret, lower, own, np.asarray(largest * found.rounds), other, size)
    covered = [describe_theorems(label, policy, instance) for label, policy in policies.items()]
    parts = (
        [str(g) for g in known.values()],
        _format_table(compared, horizon),
        covered,
        [*_find_crossovers(instance, bounds), *notes],
        [ASSUMPTIONS],
    )
    text = "\n\n".join("\n".join(part) for part in parts)
    if out_dir is not None:
        _write(Path(out_dir), text, compared)
    return text


def _write(directory: Path, text: str, compared: ComparedBounds) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    plot_bounds(compared).savefig(directory / "bounds.png", dpi=150)
    (directory / "bounds.txt").write_text(text + "\n")


@dataclass(frozen=True)
class _ReportedBound:
    """A bound of the report, the gaps that it is computed from, and whether it is for a simulated policy."""

    name: str
    label: str
    known: Gaps
    simulated: bool

    def values(self, instance: Instance, rounds: Any) -> Floats:
        bound = evaluate(self.name, instance, rounds, self.known)
        assert bound is not None  # those that do not apply were left out
        return bound.value


def _find_bounds(instance: Instance, policies: Mapping[str, Policy]) -> list[_ReportedBound]:
    """The bounds of the simulated policies, each with the guarantee of its own oracle; then those of other policies."""
    covering = {label: theorems_for(policy, instance) for label, policy in policies.items()}
    alphas = {
        label: guarantee_of(policies[label], instance.problem).alpha for label, names in covering.items() if names
    }
    known = {alpha: gaps(instance, alpha=alpha) for alpha in dict.fromkeys(alphas.values())}
    own = dict.fromkeys((name, alphas[label]) for label, names in covering.items() for name in names)
    wide = len(known) > 1
    found = [
        _ReportedBound(name, f"{LABELS[name]}, alpha {alpha:.4g}" if wide else LABELS[name], known[alpha], True)
        for name, alpha in own
    ]
    usual = Default().guarantee(instance.problem).alpha
    if usual > 0.0 and theorems_on(instance):
        g = known[usual] if usual in known else gaps(instance, alpha=usual)
        named = {name for name, _ in own}
        found += [_ReportedBound(n, LABELS[n], g, False) for n in theorems_on(instance) if n not in named]
    return [one for one in found if evaluate(one.name, instance, 1, one.known) is not None]


def _find_lower(
    instance: Instance, rounds: Ints, policies: Mapping[str, Policy]
) -> tuple[dict[str, Floats], dict[str, Floats], list[str]]:
    """The lower bounds of the instance, those of other instances of its size, and notes on those that do not apply."""
    if all(guarantee_of(policy, instance.problem) != Guarantee(1.0, 1.0) for policy in policies.values()):
        return {}, {}, ["lower bounds are left out: they hold for exact oracles (alpha = beta = 1)"]
    if not set(theorems_on(instance)) - set(CASCADES):
        return {}, {}, ["lower bounds are left out: they are for complete feedback"]
    own, notes = dict[str, Floats](), list[str]()
    size = {LABELS["lower_bound_gap_free"]: lower_bound_gap_free(instance, rounds)}
    try:
        known = gaps(instance, alpha=1.0)
        rate = lower_bound_independent if isinstance(instance.environment, Bernoulli) else lower_bound
        size[LABELS[rate.__name__]] = rate(instance, rounds, known).value
    except InvalidArgument as error:
        notes.append(f"Proposition 1 is left out: {error}")
    try:
        own[LABELS["graves_lai"]] = graves_lai(instance).low * np.log(rounds)
    except InvalidArgument as error:
        notes.append(f"Graves-Lai is left out, so that no lower bound of this instance is known: {error}")
    return own, size, notes


def _format_table(compared: ComparedBounds, horizon: int) -> list[str]:
    rows = [("lower", name, f"{values[-1]:.6g}") for name, values in compared.lower.items()]
    rows += [
        ("regret", name, "{:.6g} ± {:.2g}".format(*mean_and_standard_error(values[:, -1])))
        for name, values in compared.regret.items()
    ]
    rows += [("upper", name, f"{values[-1]:.6g}") for name, values in compared.upper.items()]
    rows.append(("upper", "trivial, largest gap times T", f"{compared.trivial[-1]:.6g}"))
    rows += [("other", f"{name}, not simulated", f"{values[-1]:.6g}") for name, values in compared.other.items()]
    rows += [("size", f"lower: {name}; not of this one", f"{values[-1]:.6g}") for name, values in compared.size.items()]
    width = max(len(name) for _, name, _ in rows)
    return [
        f"at T = {horizon}, regret against the approximation target",
        *(f"{kind:<7} {name:<{width}}  {value}" for kind, name, value in rows),
    ]


def _find_crossovers(instance: Instance, bounds: Sequence[_ReportedBound]) -> list[str]:
    """From which horizon on each bound is below the trivial one; all horizons are evaluated at once."""
    horizons = np.geomspace(1.0, MAX_REPORTED_HORIZON, POINTS_PER_DECADE * round(math.log10(MAX_REPORTED_HORIZON)))
    lines = []
    for one in bounds:
        if one.known.largest == 0.0:
            continue
        below = one.values(instance, horizons) < one.known.largest * horizons
        when = f"from T = {horizons[np.argmax(below)]:.3g} on" if below.any() else "never"
        lines.append(f"{one.label} beats the trivial bound {when}")
    return lines


def plot_bounds(compared: ComparedBounds) -> Any:
    """Regret with 95 % bands, lower bounds dashed, upper bounds dotted, on log axes; every line labelled at its end."""
    from superarm.simulation.plots import draw_curves, line_style, new_figure

    figure = new_figure(figsize=(10.0, 6.0))
    axes = figure.add_subplot()
    draw_curves(axes, compared.rounds, compared.regret, linewidth=2.2, lowest=SMALLEST_DRAWN)
    means = {name: float(values[:, -1].mean()) for name, values in compared.regret.items()}
    ends = [(mean, name, line_style(n)["color"]) for n, (name, mean) in enumerate(means.items())]
    for style, colour, family in (("--", "#00695c", compared.lower), (":", "#8e0000", compared.upper)):
        for name, values in family.items():
            shown = values > 0.0  # a rate times log T is 0 at T = 1
            axes.plot(compared.rounds[shown], values[shown], style, color=colour, linewidth=1.5)
            ends.append((values[-1], name, colour))
    axes.plot(compared.rounds, compared.trivial, "-", color="#bbbbbb", linewidth=1.2)
    ends.append((compared.trivial[-1], "trivial: largest gap × T", "#888888"))
    axes.set_xscale("log")
    axes.set_yscale("log")
    largest = max(float(end) for end, _, _ in ends if np.isfinite(end))
    axes.set_ylim(max(1e-2, min(means.values()) / 1e3), 3.0 * largest)
    axes.set_xlim(min(2, compared.rounds[-1] / 2), compared.rounds[-1])
    _label_ends(axes, ends)
    axes.set_xlabel("round")
    axes.set_ylabel("regret (approximation target)")
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _label_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Write names at the right ends of the lines, moved apart where they would overlap, each with a line to its end."""
    low, high = np.log(axes.get_ylim())
    apart = (high - low) / 24.0
    at = -np.inf
    for value, name, colour in sorted(end for end in ends if np.isfinite(end[0]) and end[0] > 0.0):
        at = max(np.log(value), at + apart, low)
        axes.annotate(
            name, (1.0, value), (1.05, (at - low) / (high - low)), xycoords=("axes fraction", "data"),
            textcoords="axes fraction", color=colour, fontsize=8.5, va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 1.0, "shrinkB": 0.0},
        )  # fmt: skip
