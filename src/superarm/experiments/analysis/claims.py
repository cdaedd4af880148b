"""Claims: what an experiment is expected to show, each decided by one number and its confidence interval."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from superarm.core.arrays import Floats
from superarm.experiments.analysis.bounds import bound_curve, rebuild_policy
from superarm.experiments.analysis.published import Claim, compare_published, find_instances, find_labels, is_about
from superarm.experiments.analysis.summary import compare_over_instances, count_locked
from superarm.experiments.spec.experiment import BOUNDS, as_list
from superarm.output.pages import format_p
from superarm.simulation.statistics import (
    Estimate,
    estimate_growth,
    estimate_mean,
    paired_difference,
    share_with_interval,
)

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study


@dataclass(frozen=True)
class Judgement:
    """A claim on one instance, decided by ``estimate``, the estimate of what ``measure`` describes.

    ``holds`` is None if the interval includes the limit, or if cells are missing.
    """

    text: str
    instance: str
    holds: bool | None
    measure: str
    estimate: Estimate | None

    @property
    def outcome(self) -> str:
        """``holds``, ``fails`` or ``undecided``."""
        return {True: "holds", False: "fails", None: "undecided"}[self.holds]


def judge_claims(study: "Study") -> list[Judgement]:
    """Every claim of the experiment on every instance that it is about."""
    judges: dict[str, Callable[..., Iterator[Judgement]]] = {
        "less": _judge_less,
        "towards": _judge_towards,
        "best": _judge_best,
        "slope": _judge_slope,
        "growth": _judge_growth,
        "bound": _judge_bound,
        "geometric": _judge_geometric,
        "locked": _judge_locked,
    }
    claims = study.experiment.claims
    judged = [one for claim in claims if claim["kind"] in judges for one in judges[claim["kind"]](study, claim)]
    return [*_judge_reported(study, [claim for claim in claims if claim["kind"] == "reported"]), *judged]


def _judge_less(study: "Study", claim: Claim) -> Iterator[Judgement]:
    """Whether a policy's regret is below ``factor`` times that of another."""
    factor = float(claim.get("factor", 1.0))
    times = f"{factor:g}·" if factor != 1.0 else ""
    for policy, than in itertools.product(find_labels(study, claim["policy"]), find_labels(study, claim["than"])):
        text = claim.get("text") or f"{policy} has less regret than {times}{than}"
        for instance in find_instances(study, claim, policy, than):
            target = factor * study.final_regret(instance, than)
            yield _compare_regret(study, text, instance, policy, target, f"{times}R({than})")


def _judge_towards(study: "Study", claim: Claim) -> Iterator[Judgement]:
    """Whether a policy closes a ``share`` of the distance from another to the best rival, if that one is better."""
    share = float(claim.get("share", 0.5))
    for policy, than in itertools.product(find_labels(study, claim["policy"]), find_labels(study, claim["than"])):
        for instance, rival in _best_rivals(study, claim, policy, than):
            start, end = study.final_regret(instance, than), study.final_regret(instance, rival)
            text = claim.get("text") or f"{policy} is {share:g} of the way from {than} to the best rival, or further"
            if np.mean(end) >= np.mean(start):
                yield Judgement(text, instance, None, f"no rival is better than {than} here", None)
                continue
            target, name = (1.0 - share) * start + share * end, f"{1.0 - share:g}·R({than}) − {share:g}·R({rival})"
            yield _compare_regret(study, text, instance, policy, target, name)


def _judge_best(study: "Study", claim: Claim) -> Iterator[Judgement]:
    """Whether a policy's regret is below ``factor`` times that of the best rival."""
    factor = float(claim.get("factor", 1.0))
    for policy in find_labels(study, claim["policy"]):
        for instance, rival in _best_rivals(study, claim, policy):
            text = claim.get("text") or f"{policy} has less regret than {factor:g} times the best rival's"
            target = factor * study.final_regret(instance, rival)
            yield _compare_regret(study, text, instance, policy, target, f"{factor:g}·R({rival})")


def _compare_regret(
    study: "Study", text: str, instance: str, policy: str, target: Floats, target_name: str
) -> Judgement:
    """Judge whether a policy's regret is below ``target``, which holds one number per replication."""
    estimate = paired_difference(study.final_regret(instance, policy), target)
    measure = f"R({policy}) − {target_name}, paired"
    return Judgement(text, instance, _is_on_side(estimate, below=0.0), measure, estimate)


def _best_rivals(study: "Study", claim: Claim, *policies: str) -> list[tuple[str, str]]:
    """The instances a claim is about, each with the rival that has the least mean regret on it."""
    rivals = [label for name in as_list(claim["rivals"]) for label in find_labels(study, name)]
    return [
        (instance, min(rivals, key=lambda rival: float(np.mean(study.final_regret(instance, rival)))))
        for instance in find_instances(study, claim, *policies, *rivals)
    ]


def _judge_slope(study: "Study", claim: Claim) -> Iterator[Judgement]:
    """Whether the slope of log regret along a sweep is on one side of a limit."""
    for line in study.sweep_lines:
        meant = line.axis == claim["against"] and line.name in find_labels(study, claim["policy"])
        if meant and is_about(claim, line.group.partition(" (")[0]):
            text = claim.get("text") or f"slope of {line.name} against {line.axis} is {_describe_limit(claim)}"
            measure = f"slope of log R({line.name}) in log {line.axis}"
            yield Judgement(text, line.group, _is_within_limit(line.slope, claim), measure, line.slope)


def _judge_growth(study: "Study", claim: Claim) -> Iterator[Judgement]:
    """Whether regret per unit of log t over the last decade of rounds is on one side of a limit."""
    for policy in find_labels(study, claim["policy"]):
        for instance in find_instances(study, claim, policy):
            record = study.records[instance, policy]
            estimate = estimate_growth(record.rounds, record.regret)
            text = claim.get("text") or f"regret of {policy} per log t is {_describe_limit(claim)}"
            measure = f"(R(T) − R(T/10)) / log 10 of {policy}"
            yield Judgement(text, instance, _is_within_limit(estimate, claim), measure, estimate)


def _judge_bound(study: "Study", claim: Claim) -> Iterator[Judgement]:
    """Whether regret is below a bound at the round at which it comes closest to it."""
    label = BOUNDS[claim["bound"]]
    for policy in find_labels(study, claim["policy"]):
        for instance in find_instances(study, claim, policy):
            record = study.records[instance, policy]
            policy_made = None if study.is_family(instance) else rebuild_policy(record)
            limit = bound_curve(claim["bound"], study.instance(instance), record.rounds, policy_made)
            text = claim.get("text") or f"{policy} stays below {label}"
            if limit is None:
                yield Judgement(text, instance, None, f"{label} does not apply here", None)
                continue
            positive = limit > 0.0
            if not positive.any():  # every batch is as good as the oracle guarantees
                yield Judgement(text, instance, None, f"{label} is 0 here", None)
                continue
            shares = record.regret[:, positive] / limit[positive]
            estimate = estimate_mean(shares[:, int(np.argmax(shares.mean(axis=0)))])
            measure = f"largest R({policy}) / {label} over rounds"
            yield Judgement(text, instance, _is_on_side(estimate, below=1.0), measure, estimate)


def _judge_reported(study: "Study", claims: Sequence[Claim]) -> Iterator[Judgement]:
    """Whether mean regret agrees with published means; all of an experiment are one table, to which Holm's method is
    applied: the chance of even one false alarm in it is at most ``ALARM``."""
    cells = compare_published(study, claims)
    for cell in cells:
        text = cell.claim.get("text") or f"{cell.policy} has the published regret {cell.claim['regret']:g}"
        measure = f"R({cell.policy}) − {cell.claim['regret']:g}, p {format_p(cell.p)} by Holm over {len(cells)}"
        yield Judgement(text, cell.instance, cell.agrees, measure, cell.difference)


def _judge_geometric(study: "Study", claim: Claim) -> Iterator[Judgement]:
    """Whether the geometric mean of regret ratios over all instances of the claim is below a limit."""
    for policy, than in itertools.product(find_labels(study, claim["policy"]), find_labels(study, claim["than"])):
        instances = find_instances(study, claim, policy, than)
        found = compare_over_instances(study, policy, than, instances)
        text = claim.get("text") or f"{policy} has less than {claim['below']:g} times the regret of {than} on average"
        measure = f"geometric mean of R({policy}) / R({than}) over instances"
        estimate = None if found is None else found.mean
        holds = None if estimate is None else _is_on_side(estimate, below=float(claim["below"]))
        yield Judgement(text, f"{len(instances)} instances", holds, measure, estimate)


def _judge_locked(study: "Study", claim: Claim) -> Iterator[Judgement]:
    """Whether at most a share of the runs is locked, where batches have one arm: the interval is Clopper and Pearson's.

    It holds if the observed share is at most the limit, and fails if the whole interval is above it.
    """
    limit = float(claim["share"])
    for policy in find_labels(study, claim["policy"]):
        for instance in find_instances(study, claim, policy):
            record = study.records[instance, policy]
            locked = count_locked(record, None if study.is_family(instance) else study.instance(instance))
            text = claim.get("text") or f"at most {100.0 * limit:g} % of the runs of {policy} are locked"
            if locked is None:
                yield Judgement(text, instance, None, "batches have several arms here", None)
                continue
            estimate = share_with_interval(locked, len(record.regret))
            holds = True if estimate.value <= limit else False if estimate.low > limit else None
            yield Judgement(text, instance, holds, f"share of locked runs of {policy}", estimate)


def _describe_limit(claim: Claim) -> str:
    return f"above {claim['above']:g}" if "above" in claim else f"below {claim['below']:g}"


def _is_within_limit(estimate: Estimate | None, claim: Claim) -> bool | None:
    return None if estimate is None else _is_on_side(estimate, claim.get("below"), claim.get("above"))


def _is_on_side(estimate: Estimate, below: float | None = None, above: float | None = None) -> bool | None:
    """Whether the whole interval is on the claimed side of the limit; None if it includes the limit."""
    if math.isnan(estimate.low):
        return None
    limit = below if below is not None else above
    if limit is None or estimate.low <= limit <= estimate.high:
        return None
    return estimate.high < limit if below is not None else estimate.low > limit
