"""Two studies, cell by cell: how much the regret of the same policy on the same instance differs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from superarm.experiments.analysis.statistics import Estimate, estimate_mean, paired_difference, unpaired_difference
from superarm.experiments.analysis.summary import microseconds_per_round

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study

_COMPARED_SETTINGS = ("horizon", "replications", "seed", "target")


@dataclass(frozen=True)
class CellPair:
    """A cell that both studies have: the regret in each, second minus first, and microseconds per round in each.

    ``paired`` says whether the difference was taken replication by replication, ``same`` whether the regret of both is
    equal in every bit.
    """

    instance: str
    policy: str
    first: Estimate
    second: Estimate
    difference: Estimate
    paired: bool
    same: bool
    run_time: tuple[float, float]


def pair_cells(a: "Study", b: "Study") -> list[CellPair]:
    """Every cell whose labels are in both studies, paired by replication if both saw the same outcomes."""
    found = []
    for labels, first in a.records.items():
        if labels not in b.records:
            continue
        second = b.records[labels]
        x, y = first.regret[:, -1], second.regret[:, -1]
        alike = first.metadata["instance"] == second.metadata["instance"] and len(x) == len(y)
        shared = alike and a.experiment.seed == b.experiment.seed and a.experiment.horizon == b.experiment.horizon
        difference = paired_difference(y, x) if shared else unpaired_difference(y, x)
        same = bool(np.array_equal(first.regret, second.regret))
        times = (microseconds_per_round(first), microseconds_per_round(second))
        found.append(CellPair(*labels, estimate_mean(x), estimate_mean(y), difference, shared, same, times))
    return found


def list_unpaired(a: "Study", b: "Study") -> list[tuple[str, str]]:
    """The labels of the cells that only one of the studies has."""
    return sorted(set(a.records) ^ set(b.records))


def differing_settings(a: "Study", b: "Study") -> list[tuple[str, str, str]]:
    """The settings in which the experiments differ, with both values."""
    values = [(key, str(getattr(a.experiment, key)), str(getattr(b.experiment, key))) for key in _COMPARED_SETTINGS]
    return [(key, x, y) for key, x, y in values if x != y]


def differing_versions(a: "Study", b: "Study") -> list[tuple[str, str, str]]:
    """The packages whose versions differ, with both versions."""
    first, second = a.provenance["versions"], b.provenance["versions"]
    return [(name, str(first[name]), str(second.get(name))) for name in first if first[name] != second.get(name)]
