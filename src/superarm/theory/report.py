"""The bounds of an instance beside simulated regret: a table, a figure, and from which round on each bound matters."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.statistics import mean_and_standard_error
from superarm.oracles import Guarantee
from superarm.policies import Policy
from superarm.simulation.instances import Instance
from superarm.simulation.regret import target
from superarm.simulation.replicate import simulate
from superarm.simulation.results import Results
from superarm.theory.bound import Bound
from superarm.theory.gaps import Gaps
from superarm.theory.theorems import Bounds, Case, explain_left_out, tabulate

SMALLEST_DRAWN = 1e-9
"""Regret below it is drawn at it, since a log axis has no 0."""


@dataclass(frozen=True)
class ComparedBounds:
    """What the report compares: rounds (n,), regret of policies (replications, n), and bounds at these rounds.

    ``lower`` are the lower bounds of this instance, ``size`` those of other instances of its size, which are not drawn;
    ``upper`` are the bounds of the simulated policies, ``trivial`` the largest gap times the round, (n,).
    """

    rounds: Ints
    regret: Mapping[str, Floats]
    lower: Mapping[str, Bound]
    upper: Mapping[str, Bound]
    size: Mapping[str, Bound]
    trivial: Floats


def bounds_report(
    instance: Instance,
    policies: Mapping[str, Policy],
    horizon: int,
    replications: int = 10,
    seed: int = 0,
    out_dir: str | Path | None = None,
    progress: bool = True,
    results: Results | None = None,
) -> str:
    """Simulate, compute every bound that applies, and return both as text; write it to ``out_dir`` with a figure.

    Regret is the paper's, against alpha * beta * r_max of each policy's oracle, [MerlisMannor2019]_ (equation
    regretDef), and so are the gaps in its bounds. The text says which theorems are about each policy, what they assume,
    and why a lower bound is left out. Where ``results`` of these policies are given, nothing is simulated.

    >>> from superarm.policies import bc_ucb
    >>> from superarm.simulation import instances
    >>> instance = instances.lower_bound(6, 3, epsilon=0.2)
    >>> text = bounds_report(instance, {"BC-UCB": bc_ucb()}, 300, 2, progress=False)
    >>> print(text.splitlines()[0])
    r_max 0.5, alpha 1, gaps from 0.2 to 0.2 over 5 of 6 arms (exact, by enumeration of 4 batches)
    """
    if results is None:
        results = simulate(instance, policies, horizon, replications, seed, target="approximation", progress=progress)
    tables, known = _tabulate_all(instance, policies, results.rounds)
    exact = [label for label, one in policies.items() if one.guarantee(instance.problem) == Guarantee(1.0, 1.0)]
    below = [bound for bound in tables[exact[0] if exact else next(iter(tables))] if bound.kind != "upper"]
    compared = _compare(_measure(instance, policies, results), results.rounds, tables, below)
    assumed = dict.fromkeys(bound.assumptions for table in tables.values() for bound in table.applying)
    parts = (
        [str(g) for g in known.values()],
        _format_table(compared),
        [_describe(label, table) for label, table in tables.items()],
        [f"{label}: {bound.usefulness}" for label, bound in compared.upper.items()],
        explain_left_out(below),
        [f"Assumed: {text}." for text in assumed],
    )
    text = "\n\n".join("\n".join(part) for part in parts if part)
    if out_dir is not None:
        _write(Path(out_dir), text, compared)
    return text


def _write(directory: Path, text: str, compared: ComparedBounds) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    plot_bounds(compared).savefig(directory / "bounds.png", dpi=150)
    (directory / "bounds.txt").write_text(text + "\n")


def _tabulate_all(
    instance: Instance, policies: Mapping[str, Policy], rounds: Ints
) -> tuple[dict[str, Bounds], dict[float, Gaps]]:
    """The table of each policy, and the gaps that were computed, by alpha: policies share them."""
    tables, known = dict[str, Bounds](), dict[float, Gaps]()
    for label, policy in policies.items():
        alpha = policy.guarantee(instance.problem).alpha
        case = Case(instance, policy, np.asarray(rounds, float), known=known.get(alpha))
        tables[label] = tabulate(case)
        if any(bound.applies for bound in tables[label]) and not case.unusual:
            known[alpha] = case.gaps
    return tables, known


def _measure(instance: Instance, policies: Mapping[str, Policy], results: Results) -> dict[str, Floats]:
    """The regret of each policy against alpha * beta * r_max, whatever the target of ``results`` is."""
    regret = dict[str, Floats]()
    for label, policy in policies.items():
        own, wanted = results.targets[label], target(instance, policy, "approximation", int(results.rounds[-1]))
        shift = 0.0 if own.kind == "approximation" else wanted.value - own.value
        regret[label] = results.regret[label] + shift * results.rounds
    return regret


def _compare(
    regret: Mapping[str, Floats], rounds: Ints, tables: Mapping[str, Bounds], below: list[Bound]
) -> ComparedBounds:
    found = [bound for table in tables.values() for bound in table.applying if bound.kind == "upper"]
    wide = len({bound.alpha for bound in found}) > 1
    upper = {f"{b.label}, alpha {b.alpha:.4g}" if wide else b.label: b for b in found}
    lower, size = ({b.label: b for b in below if b.applies and b.kind == kind} for kind in ("lower", "size"))
    largest = max((bound.largest for bound in found), default=np.nan)
    return ComparedBounds(rounds, regret, lower, upper, size, np.asarray(largest * rounds))


def _describe(label: str, table: Bounds) -> str:
    """One line that says which theorems are about the policy, and with which guarantee of its oracle."""
    names = [bound.label.partition(" (")[0] for bound in table.applying if bound.kind == "upper"]
    if not names:
        return f"{label}: no theorem is about this policy here"
    alpha, beta = table.applying[0].alpha, table.applying[0].beta
    share = f"alpha {alpha:.4g}, beta {beta:.4g}"
    return f"{label}: {', '.join(names)}; regret and gaps are measured from alpha beta r_max, {share}"


def _format_table(compared: ComparedBounds) -> list[str]:
    rows = [("lower", name, f"{bound.value[-1]:.6g}") for name, bound in compared.lower.items()]
    rows += [
        ("regret", name, "{:.6g} ± {:.2g}".format(*mean_and_standard_error(values[:, -1])))
        for name, values in compared.regret.items()
    ]
    rows += [("upper", name, f"{bound.value[-1]:.6g}") for name, bound in compared.upper.items()]
    if compared.upper:
        rows.append(("upper", "trivial, largest gap times T", f"{compared.trivial[-1]:.6g}"))
    rows += [("size", f"lower: {name}; not of this one", f"{b.value[-1]:.6g}") for name, b in compared.size.items()]
    width = max(len(name) for _, name, _ in rows)
    return [
        f"at T = {compared.rounds[-1]}, regret against the approximation target",
        *(f"{kind:<7} {name:<{width}}  {value}" for kind, name, value in rows),
    ]


def plot_bounds(compared: ComparedBounds) -> Any:
    """Regret with 95 % bands, lower bounds dashed, upper bounds dotted, on log axes; every line labelled at its end."""
    from superarm.simulation.plots import draw_curves, line_style, new_figure

    figure = new_figure(figsize=(10.0, 6.0))
    axes = figure.add_subplot()
    draw_curves(axes, compared.rounds, compared.regret, linewidth=2.2, lowest=SMALLEST_DRAWN)
    means = {name: float(values[:, -1].mean()) for name, values in compared.regret.items()}
    ends = [(mean, name, line_style(n)["color"]) for n, (name, mean) in enumerate(means.items())]
    for style, colour, family in (("--", "#00695c", compared.lower), (":", "#8e0000", compared.upper)):
        for name, bound in family.items():
            values, says_nothing = bound.value, bool(bound.vacuous[-1])
            shown = values > 0.0  # a rate times log T is 0 at T = 1
            axes.plot(compared.rounds[shown], values[shown], style, color=colour, alpha=0.5 if says_nothing else 1.0)
            ends.append((values[-1], f"{name}, vacuous" if says_nothing else name, colour))
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
