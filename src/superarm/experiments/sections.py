"""The sections of a report: what each shows, from a study, as plain values for the page."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from superarm.describe import build, describe
from superarm.errors import InvalidArgument
from superarm.experiments import bounds, plots
from superarm.experiments.figures import inline
from superarm.experiments.statistics import Estimate
from superarm.experiments.tables import Table
from superarm.simulation.plots import COLOURS

if TYPE_CHECKING:
    from superarm.experiments.study import Study

_HEATS = 4
"""Heat maps are drawn for this many instances at most; the others are in the cells."""
_ROOM = 4_000
"""Items beyond which a heat map would be finer than a screen."""


def legend(study: "Study") -> list[dict[str, Any]]:
    """The key to all lines: a swatch a policy."""
    dashes = {"-": "", "--": "6 3", "-.": "6 2 1.5 2", ":": "1.5 2"}
    looks = [plots.look(n) for n in range(len(study.policies))]
    return [
        {"name": name, "colour": f"var(--c{n % len(COLOURS)})", "dash": dashes[look["linestyle"]]}
        for n, (name, look) in enumerate(zip(study.policies, looks, strict=True))
    ]


def curves(study: "Study") -> list[str]:
    """Regret curves, a panel an instance."""
    worlds = [world for world in study.worlds if study.of(world)]
    return [
        inline(
            plots.curves(study, [world], keyed=False), f"curves-{n}", f"Regret of each policy over rounds on {world}"
        )
        for n, world in enumerate(worlds)
    ]


def sweeps(study: "Study") -> list[dict[str, Any]]:
    """For each axis: a panel a group, and the slopes."""
    lines = study.lines
    axes = dict.fromkeys(line.axis for line in lines)
    shown = []
    for n, axis in enumerate(axes):
        mine = [line for line in lines if line.axis == axis]
        groups = dict.fromkeys(line.group for line in mine)
        panels = [
            inline(
                plots.sweeps([line for line in mine if line.group == group], keyed=False),
                f"sweep-{n}-{m}",
                f"Regret against {axis} on {group}",
            )
            for m, group in enumerate(groups)
        ]
        shown.append({"axis": axis, "panels": panels, "lines": mine})
    return shown


def heats(study: "Study") -> list[dict[str, Any]]:
    """Arm pulls and coverage of the first instances."""
    worlds = [world for world in study.worlds if study.of(world)][:_HEATS]
    shown = []
    for n, world in enumerate(worlds):
        pulls = inline(plots.pulls(study, world), f"pulls-{n}", f"How often each policy plays each arm on {world}")
        covered = ""
        if 1 < study.instance(world).problem.n_items <= _ROOM:
            words = f"What each item had of the batches over time on {world}"
            covered = inline(plots.covered(study, world), f"coverage-{n}", words)
        shown.append({"world": world, "pulls": pulls, "coverage": covered})
    return shown


def limits(study: "Study") -> list[dict[str, Any]]:
    """The bounds that apply, against the regret; empty where theory has none."""
    shown = []
    for n, world in enumerate(w for w in list(study.worlds)[:_HEATS] if study.of(w)):
        rounds = next(iter(study.of(world).values())).rounds
        found = bounds.curves(study.instance(world), rounds, study.experiment.target)
        if found:
            figure = inline(plots.limits(study, world, found), f"bounds-{n}", f"Regret and its bounds on {world}")
            shown.append({"world": world, "figure": figure, "finals": {w: float(v[-1]) for w, v in found.items()}})
    return shown


def instances(study: "Study") -> list[dict[str, Any]]:
    """What each instance is, in numbers."""
    rows = []
    for world in study.worlds:
        if study.of(world):
            instance, record = study.instance(world), next(iter(study.of(world).values()))
            problem, target = instance.problem, record.facts["target"]
            rows.append(
                {
                    "world": world,
                    "n_arms": problem.n_arms,
                    "n_items": problem.n_items,
                    "k": problem.k,
                    "reward": short(describe(problem.reward)),
                    "actions": type(problem.actions).__name__,
                    "outcomes": type(instance.environment).__name__,
                    "target": target["value"],
                    "r_max": target["r_max"],
                }
            )
    return rows


def policies(study: "Study") -> list[tuple[str, str, str]]:
    """What each policy is: its components with their parameters; and what it assumes that may not hold."""
    found = {}
    for (_, policy), record in study.records.items():
        found[policy] = policy, short(record.facts["policy"]), caveat(record.facts["policy"])
    return [found[policy] for policy in study.policies if policy in found]


def caveat(description: Any) -> str:
    """What the policy so described assumes, in its own words; empty if it assumes nothing."""
    try:
        return str(getattr(build(description), "caveat", ""))
    except InvalidArgument:  # a component of the user's own, of a module that is not here
        return ""


def short(description: Any) -> str:
    """A description as people write it.

    >>> short({"type": "superarm.indices.bernstein:Bernstein", "rho": 3.0})
    'Bernstein(rho=3)'
    """
    if isinstance(description, Mapping) and "type" in description:
        inner = ", ".join(f"{key}={short(value)}" for key, value in description.items() if key != "type")
        return f"{description['type'].rpartition(':')[2]}({inner})"
    if isinstance(description, Mapping):
        return f"array{tuple(description['shape'])}"
    return f"{description:g}" if isinstance(description, float) else str(description)


def tables(study: "Study") -> list[Table]:
    """The tables that go to files."""
    rows = study.finals
    ranks = [
        (world, place.policy, place.regret.value, *_interval(place.behind), None if math.isnan(place.p) else place.p)
        for world, places in study.rankings.items()
        for place in places
    ]
    found = [
        Table("regret", "Regret at the horizon", tuple(rows[0]), [tuple(row.values()) for row in rows]),
        Table(
            "ranking",
            "Ranking, and paired differences from the best (95 % intervals, Holm's p)",
            ("instance", "policy", "regret", "behind", "behind_low", "behind_high", "p_holm"),
            ranks,
        ),
    ]
    lines = [(line.group, line.name, line.axis, *_interval(line.slope)) for line in study.lines]
    if lines:
        head = ("instance", "policy", "axis", "slope", "slope_low", "slope_high")
        found.append(Table("slopes", "Slope of log regret in the log of the swept parameter", head, lines))
    return found


def _interval(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
    if estimate is None:
        return None, None, None
    low, high = (None if math.isnan(x) else x for x in (estimate.low, estimate.high))
    return estimate.value, low, high
