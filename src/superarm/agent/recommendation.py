"""Which policy to take for a problem, and why: one table."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from superarm.context.models import LinearModel, LogisticModel, Model
from superarm.policies.base import Policy
from superarm.problem import Problem

MANY_ENTRIES = 1_000_000
"""From so many entries on, a draw of all of them takes longer than a web page waits."""


class Advice(NamedTuple):
    """A policy, the reason for it in a sentence or two, and its name."""

    policy: Policy[Any]
    reason: str
    name: str


class Situation(NamedTuple):
    """When a policy is recommended, and where it is; the first situation that applies counts."""

    applies: Callable[[Problem, bool, bool], Any]
    package: str
    policy: str
    reason: str


def _adds_up(problem: Problem) -> bool:
    return problem.reward.linear_gain and problem.reward.additive


def _is_plain(problem: Problem) -> bool:
    return problem.n_items == 1 and problem.context is None and problem.actions.matroid


def _has_model(problem: Problem, model: type[Model]) -> bool:
    return problem.context is not None and isinstance(problem.context.model, model)


SITUATIONS = (
    Situation(
        lambda problem, whole, listed: problem.reward.totals,
        "policies",
        "total_thompson",
        "Only totals are seen: this policy learns what each arm adds. It earned most in ten held-out worlds "
        "(docs/guides/scores.md). With 500 arms and totals of 0 and 1, expect nothing from the first 2,000 decisions: "
        "wait for 20 times as many decisions as there are arms. No frequentist regret bound is known for it.",
    ),
    Situation(
        lambda problem, whole, listed: _has_model(problem, LinearModel),
        "contextual",
        "vac2_ucb",
        "The context has a linear model: a policy on that model is needed, and this one weighs observations by their "
        "variance (docs/guides/context.md).",
    ),
    Situation(
        lambda problem, whole, listed: _has_model(problem, LogisticModel),
        "contextual",
        "logistic_ts",
        "The context has a logistic model: a policy on that model is needed, and sampling its parameters explores "
        "least (docs/guides/context.md).",
    ),
    Situation(
        lambda problem, whole, listed: problem.reward.triggers,
        "policies",
        "bcucb_t",
        "Arms trigger others, as along the edges of a graph: the policy must not insist on playing every arm "
        "(docs/theory/triggered.md).",
    ),
    Situation(
        lambda problem, whole, listed: problem.n_entries >= MANY_ENTRIES,
        "policies",
        "kl_ucb",
        "There are a million entries or more: this policy skips arms that cannot win, while sampling draws all.",
    ),
    Situation(
        lambda problem, whole, listed: problem.thresholds is not None and not listed,
        "policies",
        "shapes",
        "Items are thresholds of scores: this policy samples whole distributions of scores, and found the best sets in "
        "the first 1,000 decisions (python -m dev.benchmarks.scores). No regret bound is known for it; cucb, which is "
        "SDCB here, and kl_ucb have one, and explore for longer.",
    ),
    Situation(
        lambda problem, whole, listed: whole and problem.n_items > 1 and problem.context is None and _adds_up(problem),
        "policies",
        "directional_kl_moss",
        "Every decision shows what its arms do for all items: this policy uses how items vary together, and had 40 % "
        "less regret than kl_moss on 20 held-out instances (docs/background/choosing-a-policy.md). If you know that "
        "items are independent, cts is as good; it fails where they depend on one another. No regret bound is known "
        "for directional_kl_moss.",
    ),
    Situation(
        lambda problem, whole, listed: not listed and _is_plain(problem),
        "policies",
        "kl_moss",
        "With one item, no context and no list to start from, it earned more than pooled_thompson in the first 1,000 "
        "visits of simulated shops, and as much in 20,000 (python -m dev.benchmarks.from_nothing). If you show a list "
        "today, start from it: with baseline, pooled_thompson earns more from the first visits on. No regret bound is "
        "known for kl_moss; kl_ucb is the choice with a proof.",
    ),
    Situation(
        lambda problem, whole, listed: whole,
        "policies",
        "pooled_thompson",
        "It earned most in the contest of policies in shops (python -m dev.earnings, docs/background/earnings.md). "
        "That decisions show all items changes nothing here: directional_kl_moss, which uses it, needs several "
        "items, a reward with linear gains, as Coverage or Linear, and no context. It has no regret bound; kl_ucb is "
        "the choice with a proof.",
    ),
    Situation(
        lambda problem, whole, listed: True,
        "policies",
        "pooled_thompson",
        "It earned most in the contest of policies in shops (python -m dev.earnings, docs/background/earnings.md). Its "
        "regret bound is for one item and arm; kl_ucb is the choice with a proof. If a decision shows what its arms do "
        "for all items at once, take directional_kl_moss; if rates change, a policy that forgets; if single items "
        "succeed more often than not, kl_moss (docs/background/choosing-a-policy.md).",
    ),
)
"""The table, in the order in which it is read."""


def recommend(problem: Problem, whole: bool = False, listed: bool = False) -> Advice:
    """The policy that earned most on problems of this kind, and why it is recommended.

    ``Agent(problem)`` takes it, and with ``baseline`` the one for ``listed``. The evidence is on the pages
    ``docs/background/earnings.md`` and ``docs/background/choosing-a-policy.md``.

    Parameters
    ----------
    problem
        What is to be learnt.
    whole
        Whether a decision shows what its arms do for all items at once, as sensors that cover places do. In a shop it
        shows what one visitor does.
    listed
        Whether learning starts from a list that is shown today.

    Examples
    --------
    >>> from superarm.actions import Subsets
    >>> from superarm.rewards import Coverage
    >>> found = recommend(Problem(100, 4, Coverage(), Subsets(6)))
    >>> found.policy
    pooled_thompson(sharpness=2, optimism=0.5)
    >>> found.reason[:16]
    'It earned most i'
    """
    found = next(one for one in SITUATIONS if one.applies(problem, whole, listed))
    return Advice(getattr(import_module(f"superarm.{found.package}"), found.policy)(), found.reason, found.policy)
