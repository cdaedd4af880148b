"""Two runs side by side: where they share instance and policy, how far apart they are and how sure that is."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from superarm.experiments.statistics import Estimate, mean, paired, unpaired
from superarm.experiments.store import write_text
from superarm.experiments.summary import pace
from superarm.experiments.tables import number

if TYPE_CHECKING:
    from superarm.experiments.study import Study


@dataclass(frozen=True)
class Pair:
    """A cell that both runs have: regret in each, second minus first, and µs a round in each."""

    instance: str
    policy: str
    first: Estimate
    second: Estimate
    difference: Estimate
    paired: bool
    same: bool
    pace: tuple[float, float]


def pairs(a: "Study", b: "Study") -> list[Pair]:
    """Every pair of cells of the same labels; paired by replication if both saw the same worlds."""
    found = []
    for labels, first in a.records.items():
        if labels not in b.records:
            continue
        second = b.records[labels]
        x, y = first.regret[:, -1], second.regret[:, -1]
        alike = first.facts["instance"] == second.facts["instance"] and len(x) == len(y)
        shared = alike and a.experiment.seed == b.experiment.seed and a.experiment.horizon == b.experiment.horizon
        difference = paired(y, x) if shared else unpaired(y, x)
        same = bool(np.array_equal(first.regret, second.regret))
        found.append(Pair(*labels, mean(x), mean(y), difference, shared, same, (pace(first), pace(second))))
    return found


def lines(a: "Study", b: "Study") -> list[str]:
    """The comparison as text."""
    both = pairs(a, b)
    told = [f"first:  {a.directory} ({a.digest})", f"second: {b.directory} ({b.digest})"]
    told += [f"{key}: {_value(a, key)} and {_value(b, key)}" for key in _CHECKED if _value(a, key) != _value(b, key)]
    if not both:
        return [*told, "no instance and policy is in both"]
    width = max(len(f"{pair.policy} on {pair.instance}") for pair in both)
    for pair in both:
        name = f"{pair.policy} on {pair.instance}"
        values = f"{number(pair.first.value):>10} {number(pair.second.value):>10}"
        told.append(f"{name:<{width}}  {values}  {verdict(pair)}")
    told += [f"only in one: {policy} on {instance}" for instance, policy in sorted(set(a.records) ^ set(b.records))]
    return told


_CHECKED = ("horizon", "replications", "seed", "target")


def _value(study: "Study", key: str) -> str:
    return str(getattr(study.experiment, key))


def verdict(pair: Pair) -> str:
    """What the difference amounts to, in words."""
    if pair.same:
        return "identical to the bit"
    error = number(pair.difference.error, 3)
    sure = "" if math.isnan(pair.difference.p) else f", p {pair.difference.p:.3f}"
    kind = "paired" if pair.paired else "unpaired"
    return f"{number(pair.difference.value)} ± {error} ({kind}{sure})"


def write(a: "Study", b: "Study", path: Path) -> None:
    """The comparison as an HTML page, with the curves of both side by side."""
    from superarm.experiments import plots
    from superarm.experiments.figures import inline
    from superarm.experiments.report import page

    shared = [world for world in a.worlds if world in b.worlds and a.of(world) and b.of(world)]
    panels = [
        (
            inline(plots.curves(a, [world]), f"first-{n}", f"first run, {world}"),
            inline(plots.curves(b, [world]), f"second-{n}", f"second run, {world}"),
        )
        for n, world in enumerate(shared)
    ]
    differing = [(key, _value(a, key), _value(b, key)) for key in _CHECKED if _value(a, key) != _value(b, key)]
    versions = {
        name: (a.manifest["versions"].get(name), b.manifest["versions"].get(name)) for name in a.manifest["versions"]
    }
    differing += [(name, str(x), str(y)) for name, (x, y) in versions.items() if x != y]
    context = {"a": a, "b": b, "pairs": pairs(a, b), "verdict": verdict, "panels": panels, "differing": differing}
    only = sorted(set(a.records) ^ set(b.records))
    write_text(path, page("compare.html", context | {"only": only}))
