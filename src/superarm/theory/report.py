"""The bounds of an instance beside simulated regret: a table, a figure, and from which round on each bound matters."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.statistics import mean_and_standard_error
from superarm.policies import Policy
from superarm.simulation.instances import Instance
from superarm.simulation.regret import target
from superarm.simulation.replicate import simulate
from superarm.simulation.results import Results
from superarm.theory.bound import Bound
from superarm.theory.theorems import Bounds, Question, explain_left_out, tabulate

SMALLEST_DRAWN = 1e-9
"""Regret below it is drawn at it, since a log axis has no 0."""


def bounds_report(
    instance: Instance,
    policies: Mapping[str, Policy[Any]],
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
        results = simulate(instance, policies, horizon, replications, seed, target="oracle", progress=progress)
    cases = {label: Question(instance, policy, np.asarray(results.rounds, float)) for label, policy in policies.items()}
    tables = {label: tabulate(case) for label, case in cases.items()}
    known = {case.gaps.alpha: case.gaps for label, case in cases.items() if tables[label].applying and not case.unusual}
    below = _below(list(tables.values()))
    regret, shown = _measure(instance, policies, results), _choose(tables, below)
    assumed = dict.fromkeys(bound.assumptions for table in tables.values() for bound in table.applying)
    parts = (
        [str(g) for g in known.values()],
        _format_table(results.rounds, regret, shown),
        [_describe(label, table) for label, table in tables.items()],
        [f"{label}: {bound.usefulness}" for label, bound in shown.items() if bound.is_upper],
        [str(bound) for bound in below if bound.applies and bound.kind in ("rate", "growth")],
        explain_left_out(below),
        [f"Assumed: {text}." for text in assumed],
    )
    text = "\n\n".join("\n".join(part) for part in parts if part)
    if out_dir is not None:
        Path(out_dir).mkdir(parents=True, exist_ok=True)
        plot_bounds(results.rounds, regret, shown).savefig(Path(out_dir) / "bounds.png", dpi=150)
        (Path(out_dir) / "bounds.txt").write_text(text + "\n")
    return text


def _measure(instance: Instance, policies: Mapping[str, Policy[Any]], results: Results) -> dict[str, Floats]:
    """The regret of each policy against alpha * beta * r_max, whatever the target of ``results`` is."""
    regret = dict(results.regret)
    for label, policy in policies.items():
        wanted = target(instance, policy, "approximation", int(results.rounds[-1]))
        regret[label] = regret[label] + (wanted.value - results.targets[label].value) * results.rounds
    return regret


def _below(tables: list[Bounds]) -> list[Bound]:
    """Rates and lower bounds: each as in the first table in which it applies, otherwise as in the first table."""
    rows = [[bound for bound in table if not bound.is_upper] for table in tables]
    return [next((bound for bound in same if bound.applies), same[0]) for same in zip(*rows, strict=True)]


def _choose(tables: Mapping[str, Bounds], below: list[Bound]) -> dict[str, Bound]:
    """The bounds that apply by label: upper and Bayesian ones of all policies, lower bounds of other instances."""
    upper = [bound for table in tables.values() for bound in table.applying if bound.is_upper]
    wide = len({bound.alpha for bound in upper}) > 1
    labelled = {f"{b.label}, alpha {b.alpha:.4g}" if wide else b.label: b for b in upper}
    whose = {"near": "this instance or one near it", "size": "not of this one"}
    size = {f"lower: {b.label}; {whose[b.kind]}": b for b in below if b.applies and b.kind in whose}
    return labelled | size


def _describe(label: str, table: Bounds) -> str:
    """One line that says which theorems are about the policy, and with which guarantee of its oracle."""
    found = [bound for bound in table.applying if bound.is_upper]
    if not found:
        return f"{label}: no theorem is about this policy here"
    names = ", ".join(bound.label.partition(" (")[0] for bound in found)
    share = f"alpha {found[0].alpha:.4g}, beta {found[0].beta:.4g}"
    return f"{label}: {names}; regret and gaps are measured from alpha beta r_max, {share}"


def _format_table(rounds: Ints, regret: Mapping[str, Floats], shown: Mapping[str, Bound]) -> list[str]:
    rows: list[tuple[str, str, str]] = [(bound.kind, name, f"{bound.value[-1]:.6g}") for name, bound in shown.items()]
    measured = {name: "{:.6g} ± {:.2g}".format(*mean_and_standard_error(v[:, -1])) for name, v in regret.items()}
    rows += [("regret", name, value) for name, value in measured.items()]
    if any(bound.is_upper for bound in shown.values()):
        rows += [("upper", "trivial, largest gap times T", f"{_trivial(rounds, shown)[-1]:.6g}")]
    width = max(len(name) for _, name, _ in rows)
    rows.sort(key=lambda row: ("regret", "upper", "bayes", "near", "size").index(row[0]))
    head = f"at T = {rounds[-1]}, regret against the approximation target, ± standard error"
    return [head, *(f"{kind:<7} {name:<{width}}  {value}" for kind, name, value in rows)]


def _trivial(rounds: Ints, shown: Mapping[str, Bound]) -> Floats:
    """The largest gap, from the targets of the policies that theorems are about, times the round."""
    return np.asarray(max((b.largest for b in shown.values() if b.is_upper), default=np.nan) * rounds)


def plot_bounds(rounds: Ints, regret: Mapping[str, Floats], shown: Mapping[str, Bound]) -> Any:
    """Regret with 95 % bands, and bounds with markers, on log axes; every line labelled at its end."""
    from superarm.simulation.plots import MARKERS, draw_curves, line_style, new_figure

    figure = new_figure(figsize=(10.0, 6.0))
    axes = figure.add_subplot()
    draw_curves(axes, rounds, regret, linewidth=2.2, lowest=SMALLEST_DRAWN)
    means = {name: float(values[:, -1].mean()) for name, values in regret.items()}
    ends = [(mean, name, line_style(n)["color"]) for n, (name, mean) in enumerate(means.items())]
    for n, (name, bound) in enumerate((name, bound) for name, bound in shown.items() if bound.is_upper):
        colour = "#8e0000"
        values, says_nothing = bound.value, bool(bound.vacuous[-1])
        positive = values > 0.0
        look = {"linestyle": line_style(n)["linestyle"], "marker": MARKERS[n % len(MARKERS)], "markersize": 3.5}
        look |= {"markevery": (5 + 3 * n % 11, 17), "color": colour, "alpha": 0.5 if says_nothing else 1.0}
        axes.plot(rounds[positive], values[positive], linewidth=1.2, **look)
        ends.append((values[-1], f"{name}, vacuous" if says_nothing else name, colour))
    trivial = _trivial(rounds, shown)
    axes.plot(rounds, trivial, "-", color="#bbbbbb", linewidth=1.2)
    ends.append((trivial[-1], "trivial: largest gap × T", "#888888"))
    axes.set_xscale("log")
    axes.set_yscale("log")
    largest = max(float(end) for end, _, _ in ends if np.isfinite(end))
    lowest = max(1e-2, min(means.values()) / 1e3)
    axes.set_ylim(lowest, 3.0 * max(largest, lowest))
    axes.set_xlim(min(2, rounds[-1] / 2), rounds[-1])
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
