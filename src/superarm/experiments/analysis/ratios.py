"""Regret of one policy relative to another over many instances, with errors over instances."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.experiments.analysis.statistics import Estimate, estimate_mean
from superarm.experiments.spec.claim_kinds import as_list

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study


class Ratios(NamedTuple):
    """Ratios of mean regrets over instances: their geometric mean with an interval, the largest, and where it is."""

    mean: Estimate
    largest: float
    where: str
    instances: int


def compare_over_instances(study: "Study", policy: str, than: str, instances: list[str]) -> Ratios | None:
    """Mean regret of ``policy`` over that of ``than`` on every instance; None if a mean is not positive.

    The interval of the geometric mean is Student's over instances: the draws of an instance are what varies, and the
    errors of the means over replications are contained in it.
    """
    means = [[float(np.mean(study.final_regret(instance, p))) for p in (policy, than)] for instance in instances]
    if not means or min(min(pair) for pair in means) <= 0.0:
        return None
    logs = np.log([a / b for a, b in means])
    over = estimate_mean(logs)
    worst = int(np.argmax(logs))
    geometric = Estimate(*(math.exp(x) for x in (over.value, over.low, over.high)))
    return Ratios(geometric, math.exp(logs[worst]), instances[worst], len(instances))


def summarise_ratios(study: "Study") -> list[dict[str, Any]]:
    """One row per policy and group of instances, for the groups that claims of the kind ``geometric`` are about."""
    rows: list[dict[str, Any]] = []
    for claim in study.experiment.claims:
        if claim["kind"] != "geometric" or any(row["claim"] == claim.get("text", "") for row in rows):
            continue
        about = as_list(claim["instance"]) if "instance" in claim else [c.name for c in study.instances.values()]
        labels = [label for label, case in study.instances.items() if case.name in about]
        for policy in study.policies:
            whole = all((label, name) in study.records for label in labels for name in (policy, claim["than"]))
            found = compare_over_instances(study, policy, claim["than"], labels) if whole else None
            if found is not None:
                rows.append(
                    {
                        "claim": claim.get("text", ""),
                        "policy": policy,
                        "than": claim["than"],
                        "ratio": found.mean.value,
                        "ratio_low": None if math.isnan(found.mean.low) else found.mean.low,
                        "ratio_high": None if math.isnan(found.mean.high) else found.mean.high,
                        "largest": found.largest,
                        "where": found.where,
                        "instances": found.instances,
                    }
                )
    return rows
