"""Published against measured: the cells of an experiment for which a paper has a number."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from superarm.core.statistics import mean_and_standard_error
from superarm.experiments.spec.experiment import as_list
from superarm.simulation.statistics import LEVEL, Estimate, adjust_holm

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study

Claim = Mapping[str, Any]
ALARM = 0.05
"""The chance of at least one false alarm in a table whose published numbers can all be reproduced."""


@dataclass(frozen=True)
class PublishedCell:
    """A mean of a paper beside the same mean here.

    ``round`` is the round after which regret is compared; ``error`` is the standard error of the published mean, as far
    as it is known; ``mean``, ``deviation`` and ``runs``
    are measured. ``difference`` is measured − published, with a 95 % interval for this cell alone, widened by what a
    drawing can be misread by. ``p`` is its p-value, adjusted by Holm's method over the table.
    """

    claim: Claim
    instance: str
    policy: str
    round: int
    error: float
    mean: float
    deviation: float
    runs: int
    difference: Estimate
    p: float = math.nan

    @property
    def agrees(self) -> bool | None:
        """Whether the difference can be chance; None with a single run, from which nothing follows."""
        return None if math.isnan(self.p) else self.p > ALARM


def compare_published(study: "Study", claims: Sequence[Claim]) -> list[PublishedCell]:
    """The cells that ``claims`` of the kind ``reported`` are about; together they are one table."""
    cells = [
        _compare(study, claim, instance, policy)
        for claim in claims
        for policy in find_labels(study, claim["policy"])
        for instance in find_instances(study, claim, policy)
    ]
    adjusted = adjust_holm([cell.difference.p for cell in cells])
    return [replace(cell, p=p) for cell, p in zip(cells, adjusted, strict=True)]


def _compare(study: "Study", claim: Claim, instance: str, policy: str) -> PublishedCell:
    """One cell: Student's test with the degrees of freedom of the smaller sample, so that few runs are no advantage."""
    record = study.records[instance, policy]
    at = int(claim.get("round", record.rounds[-1]))
    values = np.array([np.interp(at, record.rounds, row) for row in record.regret])
    runs, (mean, own) = len(values), mean_and_standard_error(values)
    deviation = own * math.sqrt(runs)
    error = _published_error(claim, deviation)
    freedom = max(1.0, min(runs, claim.get("runs", math.inf)) - 1.0)
    difference = _test(mean - claim["regret"], math.hypot(own, error), freedom, float(claim.get("reading", 0.0)))
    return PublishedCell(claim, instance, policy, at, error, mean, deviation, runs, difference)


def _published_error(claim: Claim, measured: float) -> float:
    """The standard error of a published mean, as far as the paper tells it.

    Of a paper that gives the number of its runs alone, the deviation is taken to be the ``measured`` one.
    """
    if "error" in claim:
        return float(claim["error"])
    return float(claim.get("deviation", measured)) / math.sqrt(claim.get("runs", math.inf))


def _test(difference: float, error: float, freedom: float, reading: float) -> Estimate:
    """Student's test of a difference of which up to ``reading`` may be an error of reading a drawing."""
    if math.isnan(error):
        return Estimate(difference, math.nan, math.nan)
    beyond = max(0.0, abs(difference) - reading)
    if error == 0.0:
        return Estimate(difference, difference - reading, difference + reading, float(beyond == 0.0))
    half = float(special.stdtrit(freedom, 0.5 + LEVEL / 2.0)) * error + reading
    return Estimate(
        difference, difference - half, difference + half, float(2.0 * special.stdtr(freedom, -beyond / error))
    )


def find_instances(study: "Study", claim: Claim, *policies: str) -> list[str]:
    """The instances a claim is about on which all the policies have results."""
    meant = [label for label, case in study.instances.items() if is_about(claim, case.name)]
    return [instance for instance in meant if all((instance, policy) in study.records for policy in policies)]


def is_about(claim: Claim, instance: str) -> bool:
    """Whether a claim is about the instance that was declared under this name."""
    return "instance" not in claim or instance in as_list(claim["instance"])


def find_labels(study: "Study", name: str) -> list[str]:
    """The labels of the policies that were declared under ``name``."""
    return [label for label, case in study.policies.items() if case.name == name]
