"""Claims: what an experiment is expected to show, each decided by one number and its confidence interval."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.errors import InvalidSpec
from superarm.experiments import bounds
from superarm.experiments.parts import choice
from superarm.experiments.statistics import Estimate, growth, mean, paired

if TYPE_CHECKING:
    from superarm.experiments.study import Study

_COMMON = ("kind", "text", "instance")
KINDS = {
    "less": ("policy", "than", "factor"),
    "towards": ("policy", "than", "rivals", "share"),
    "best": ("policy", "rivals", "factor"),
    "slope": ("policy", "against", "above", "below"),
    "growth": ("policy", "above", "below"),
    "bound": ("policy", "bound"),
    "reported": ("policy", "regret", "error"),
}
_NEEDED = {
    "less": ("policy", "than"),
    "towards": ("policy", "than", "rivals"),
    "best": ("policy", "rivals"),
    "slope": ("policy", "against"),
    "growth": ("policy",),
    "bound": ("policy", "bound"),
    "reported": ("policy", "regret", "error"),
}
_ERRORS = 3.0
"""How many combined standard errors may lie between a mean and the one that was reported: 0.3 % of true claims fail."""


@dataclass(frozen=True)
class Verdict:
    """A claim on one instance: ``holds`` is None where the interval lies on both sides, or the cells are missing."""

    text: str
    instance: str
    holds: bool | None
    measure: str
    number: Estimate | None

    @property
    def word(self) -> str:
        return {True: "holds", False: "fails", None: "undecided"}[self.holds]


def check(claims: Sequence[Mapping[str, Any]], instances: Mapping[str, Any], policies: Mapping[str, Any]) -> None:
    """Refuse a claim of an unknown kind, with unknown keys, or about what is not in the experiment."""
    for n, claim in enumerate(claims):
        path = ("claims", str(n))
        kind = choice(claim.get("kind"), KINDS, (*path, "kind"), "kind of claim")
        for key, value in claim.items():
            choice(key, (*_COMMON, *KINDS[kind]), (*path, key), "key")
            if key in ("policy", "than", "rivals"):
                for one in _names(value):
                    choice(one, policies, (*path, key), "policy")
            if key == "instance":
                for one in _names(value):
                    choice(one, instances, (*path, key), "instance")
            if key == "bound":
                choice(value, bounds.NAMES, (*path, key), "bound")
        for key in _NEEDED[kind]:
            if key not in claim:
                raise InvalidSpec(path, f"a claim of kind {kind!r} lacks {key!r}", f"add {key} = …")
        if kind in ("slope", "growth") and ("above" in claim) == ("below" in claim):
            raise InvalidSpec(path, "not one of above and below", "give one limit: above = … or below = …")


def judge(study: "Study") -> list[Verdict]:
    """Every claim of the experiment on every instance that it is about."""
    deciders: dict[str, Callable[..., list[Verdict]]] = {
        "less": _less,
        "towards": _towards,
        "best": _best,
        "slope": _slope,
        "growth": _growth,
        "bound": _bound,
        "reported": _reported,
    }
    return [verdict for claim in study.experiment.claims for verdict in deciders[claim["kind"]](study, claim)]


def _worlds(study: "Study", claim: Mapping[str, Any], *policies: str) -> list[str]:
    """The instances a claim is about, of which the cells are there."""
    meant = [label for label, case in study.worlds.items() if _about(claim, case.name)]
    return [world for world in meant if all((world, policy) in study.records for policy in policies)]


def _about(claim: Mapping[str, Any], instance: str) -> bool:
    return "instance" not in claim or instance in _names(claim["instance"])


def _names(value: Any) -> list[Any]:
    """One name, or several."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _labels(study: "Study", name: str) -> list[str]:
    return [label for label, case in study.policies.items() if case.name == name]


def _less(study: "Study", claim: Mapping[str, Any]) -> list[Verdict]:
    factor = float(claim.get("factor", 1.0))
    verdicts = []
    for policy in _labels(study, claim["policy"]):
        for than in _labels(study, claim["than"]):
            times = f"{factor:g}·" if factor != 1.0 else ""
            text = claim.get("text") or f"{policy} has less regret than {times}{than}"
            for world in _worlds(study, claim, policy, than):
                number = paired(study.final(world, policy), factor * study.final(world, than))
                measure = f"R({policy}) − {times}R({than}), paired"
                verdicts.append(Verdict(text, world, _side(number, below=0.0), measure, number))
    return verdicts


def _towards(study: "Study", claim: Mapping[str, Any]) -> list[Verdict]:
    """Whether a policy takes a share of the way from another to the best of some rivals, where they are better."""
    share = float(claim.get("share", 0.5))
    verdicts = []
    for policy, than in itertools.product(_labels(study, claim["policy"]), _labels(study, claim["than"])):
        for world, rival in _rivals(study, claim, policy, than):
            start, end = study.final(world, than), study.final(world, rival)
            text = claim.get("text") or f"{policy} is {share:g} of the way from {than} to the best rival, or further"
            if np.mean(end) >= np.mean(start):
                verdicts.append(Verdict(text, world, None, f"no rival is better than {than} here", None))
                continue
            number = paired(study.final(world, policy), (1.0 - share) * start + share * end)
            measure = f"R({policy}) − {1.0 - share:g}·R({than}) − {share:g}·R({rival}), paired"
            verdicts.append(Verdict(text, world, _side(number, below=0.0), measure, number))
    return verdicts


def _best(study: "Study", claim: Mapping[str, Any]) -> list[Verdict]:
    """Whether a policy's regret is below ``factor`` times that of the best of some rivals."""
    factor = float(claim.get("factor", 1.0))
    verdicts = []
    for policy in _labels(study, claim["policy"]):
        for world, rival in _rivals(study, claim, policy):
            text = claim.get("text") or f"{policy} has less regret than {factor:g} times the best rival's"
            number = paired(study.final(world, policy), factor * study.final(world, rival))
            measure = f"R({policy}) − {factor:g}·R({rival}), paired"
            verdicts.append(Verdict(text, world, _side(number, below=0.0), measure, number))
    return verdicts


def _rivals(study: "Study", claim: Mapping[str, Any], *policies: str) -> list[tuple[str, str]]:
    """The instances a claim is about, each with the rival that has the least mean regret there."""
    labels = [label for name in _names(claim["rivals"]) for label in _labels(study, name)]
    worlds = _worlds(study, claim, *policies, *labels)
    return [(world, min(labels, key=lambda label: float(np.mean(study.final(world, label))))) for world in worlds]


def _slope(study: "Study", claim: Mapping[str, Any]) -> list[Verdict]:
    verdicts = []
    for line in study.lines:
        mine = line.axis == claim["against"] and line.name in _labels(study, claim["policy"])
        if mine and _about(claim, line.group.partition(" (")[0]):
            text = claim.get("text") or f"slope of {line.name} against {line.axis} is {_limit(claim)}"
            measure = f"slope of log R({line.name}) in log {line.axis}"
            verdicts.append(Verdict(text, line.group, _limited(line.slope, claim), measure, line.slope))
    return verdicts


def _growth(study: "Study", claim: Mapping[str, Any]) -> list[Verdict]:
    verdicts = []
    for policy in _labels(study, claim["policy"]):
        for world in _worlds(study, claim, policy):
            record = study.records[world, policy]
            number = growth(record.rounds, record.regret)
            text = claim.get("text") or f"regret of {policy} a log t is {_limit(claim)}"
            measure = f"(R(T) − R(T/10)) / log 10 of {policy}"
            verdicts.append(Verdict(text, world, _limited(number, claim), measure, number))
    return verdicts


def _bound(study: "Study", claim: Mapping[str, Any]) -> list[Verdict]:
    verdicts = []
    for policy in _labels(study, claim["policy"]):
        for world in _worlds(study, claim, policy):
            record = study.records[world, policy]
            limit = bounds.curve(claim["bound"], study.instance(world), record.rounds)
            text = claim.get("text") or f"{policy} stays below {claim['bound']}"
            if limit is None:
                verdicts.append(Verdict(text, world, None, f"{claim['bound']} is not available here", None))
                continue
            positive = limit > 0.0  # a rate times log t says nothing of the first round
            if not positive.any():  # every batch is as good as the oracle promises
                verdicts.append(Verdict(text, world, None, f"{claim['bound']} is 0 here", None))
                continue
            shares = record.regret[:, positive] / limit[positive]
            number = mean(shares[:, int(np.argmax(shares.mean(axis=0)))])
            measure = f"largest R({policy}) / {claim['bound']} over rounds"
            verdicts.append(Verdict(text, world, _side(number, below=1.0), measure, number))
    return verdicts


def _reported(study: "Study", claim: Mapping[str, Any]) -> list[Verdict]:
    """Whether mean regret agrees with a published mean ``regret`` that has the standard error ``error``."""
    verdicts = []
    for policy in _labels(study, claim["policy"]):
        for world in _worlds(study, claim, policy):
            final = study.final(world, policy)
            own = float(np.std(final, ddof=1)) / math.sqrt(len(final)) if len(final) > 1 else math.nan
            between, room = float(np.mean(final)) - claim["regret"], _ERRORS * math.hypot(own, claim["error"])
            number = Estimate(between, between - room, between + room)
            text = claim.get("text") or f"{policy} has the reported regret {claim['regret']:g} ± {claim['error']:g}"
            measure = f"R({policy}) − {claim['regret']:g}, ± 3 combined standard errors"
            holds = None if math.isnan(room) else abs(between) <= room
            verdicts.append(Verdict(text, world, holds, measure, number))
    return verdicts


def _limit(claim: Mapping[str, Any]) -> str:
    return f"above {claim['above']:g}" if "above" in claim else f"below {claim['below']:g}"


def _limited(number: Estimate | None, claim: Mapping[str, Any]) -> bool | None:
    return None if number is None else _side(number, claim.get("below"), claim.get("above"))


def _side(number: Estimate, below: float | None = None, above: float | None = None) -> bool | None:
    """Whether the whole interval is on the claimed side; None where it lies on both."""
    if math.isnan(number.low):
        return None
    limit = below if below is not None else above
    if limit is None or number.low <= limit <= number.high:
        return None
    return number.high < limit if below is not None else number.low > limit
