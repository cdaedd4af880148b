"""What is evaluated: a slate, a policy or the logged slates, as a mixture of slates for each group of rounds.

The slates of a policy are those that it would show next, having learnt from the log: one mixture, or one for each
segment of users.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.actions.explicit import tabulate
from superarm.agent import Learner
from superarm.context import Contexts, EncodedContext, Segments
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.tally import Feedback
from superarm.offline.inclusion import explore_slates
from superarm.policies import Policy

if TYPE_CHECKING:
    from superarm.offline.log import Log

DRAWS = 256
"""A policy that draws slates at random is evaluated as the mixture of so many of them."""
ALIKE = 32
"""If so many draws are alike, that slate alone counts: on average, a share of at most 1 / (32 e) = 1.2 % is missed."""

LOGGED = "logged"
"""The name of the target that is the slates of the log."""


class PolicyTarget(NamedTuple):
    """A policy with an exploration share: the probability of a random arm in each slot, as the service explores.

    ``eligible`` are the arms that it may show, by name or number; all if it is None; a dict has those of each group.
    ``learner`` has learnt by this policy already; without one, the policy learns from the log.
    """

    policy: Policy[Any]
    explore: float = 0.0
    eligible: Any = None
    learner: Learner | None = None


class SlateMixture(NamedTuple):
    """Slates (m, k), padded with -1, and the share of each in every group, (n_groups, m); shares add up to 1.

    ``logged`` says that they are the slates of the log itself.
    """

    slates: Ints
    shares: Floats
    logged: bool = False


def is_policy_target(target: Any) -> bool:
    """Whether ``target`` is a policy, with or without an exploration share."""
    return isinstance(target, PolicyTarget | Policy)


def mix_slates(log: "Log", target: Any) -> SlateMixture:
    """The mixture of slates that ``target`` means.

    For a policy, these are the slates that it would play in the round after the log, having learnt from all of it.
    """
    if isinstance(target, SlateMixture):
        return target
    if isinstance(target, str):
        if target != LOGGED:
            raise InvalidArgument("target", f"{target!r}", f"give {LOGGED!r}, a slate or a policy such as kl_ucb()")
        return logged_slates(log)
    if is_policy_target(target):
        return _mix_each_group(next_slates(log, target))
    if isinstance(target, dict):
        return _by_group(log, target)
    if not np.iterable(target):
        raise InvalidArgument("target", f"{target!r}", "give a slate, a dict of slates or a policy")
    return _mix_each_group([_not_empty(log.numbers(target))[None, :]] * log.n_groups)


def logged_slates(log: "Log") -> SlateMixture:
    """The distinct slates of the log, with their shares in each group."""
    slates, which = np.unique(log.slates, axis=0, return_inverse=True)
    counts = np.zeros((log.n_groups, len(slates)))
    np.add.at(counts, (log.groups, which.reshape(-1)), 1.0)
    return SlateMixture(slates, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0), True)


def _mix_each_group(slates: list[Ints]) -> SlateMixture:
    """The mixture of slates (m, k) drawn for each group, all of them with equal weights."""
    width = max(part.shape[1] for part in slates)
    padded = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in slates]
    distinct, which = np.unique(np.concatenate(padded), axis=0, return_inverse=True)
    shares = np.zeros((len(slates), len(distinct)))
    group = np.repeat(np.arange(len(slates)), [len(part) for part in slates])
    np.add.at(shares, (group, which.reshape(-1)), 1.0)
    return SlateMixture(distinct, shares / shares.sum(axis=1, keepdims=True))


def _by_group(log: "Log", target: dict[Any, Any]) -> SlateMixture:
    names = {str(name): slate for name, slate in target.items()}
    wrong = sorted(set(names) ^ set(log.group_names))
    if wrong:
        known = ", ".join(log.group_names[:5])
        raise InvalidArgument(
            "target", f"{wrong[0]!r} is in only one of target and log", f"give one slate for each group: {known}"
        )
    chosen = [_not_empty(log.numbers(names[name])) for name in log.group_names]
    return SlateMixture(tabulate(chosen), np.eye(len(chosen)))


def _not_empty(slate: Ints) -> Ints:
    if not len(slate):
        raise InvalidArgument("target", "an empty slate", "give at least one arm")
    return slate


# --- the slates that a policy would show next ---


def next_slates(log: "Log", target: Any) -> list[Ints]:
    """For each group of the log, the slates that a policy may play after it: one, or ``DRAWS`` if it draws at random.

    If the problem has segments, these are the groups, and the policy learns in each of them; otherwise it learns from
    all rounds together.
    """
    wanted = target if isinstance(target, PolicyTarget) else PolicyTarget(target)
    learner = wanted.learner or learn_from(log, wanted.policy)
    t = learner.t + 1 if wanted.learner else log.n_rounds + 1
    by_group = wanted.eligible if isinstance(wanted.eligible, dict) else {}
    masks = [learner.playable(by_group.get(name, wanted.eligible)) for name in log.group_names]
    if learner.contexts is None:
        return [_draw(learner, wanted, masks[0], t, None)] * log.n_groups
    found = zip(masks, _segments(log), strict=True)
    return [_draw(learner, wanted, mask, t, context) for mask, context in found]


def _draw(learner: Learner, target: PolicyTarget, eligible: Bools, t: int, context: EncodedContext | None) -> Ints:
    """The slates that may be shown in round ``t``, (m, k), padded with -1."""
    slates: list[Ints] = []
    for draw in range(DRAWS):
        if draw == ALIKE and all(np.array_equal(slate, slates[0]) for slate in slates):
            slates = slates[:1]
            break
        slates.append(learner.choose(learner.view(t, np.array([draw], np.uint64), eligible, context=context)))
    if not all(map(len, slates)):
        raise InvalidArgument("eligible", "no slate can be formed", "make enough arms eligible")
    return tabulate(slates) if target.explore == 0.0 else _explore(learner, target.explore, eligible, slates)


def _explore(learner: Learner, share: float, eligible: Bools, slates: list[Ints]) -> Ints:
    """The slates with some slots filled at random."""
    uniform = learner.problem.actions.uniform
    if not 0.0 <= share <= 1.0 or not uniform:
        wrong = f"{share:g}" if uniform else "the slates are not any k arms"
        raise InvalidArgument("explore", wrong, "give a share from 0 to 1, with slates of any k arms; or leave it out")
    arms = np.flatnonzero(eligible)
    queues = tabulate(slates if len(slates) > 1 else slates * DRAWS)
    found, _ = explore_slates(len(arms), np.searchsorted(arms, queues), share, np.random.default_rng(0))
    return np.asarray(arms[found])


def _segments(log: "Log") -> list[EncodedContext]:
    """The segment of each group of the log, as learners take it."""
    context: Any = log.problem.context
    if not isinstance(context.model, Segments):
        raise InvalidArgument(
            "target",
            f"a policy, and the problem has a {type(context.model).__name__}: logs do not hold contexts",
            "give one slate per group",
        )
    names = context.segment_names
    unknown = next((name for name in log.group_names if name not in names), None)
    if unknown is not None:
        raise InvalidArgument("group", f"{unknown!r} is no segment of the problem", f"give groups such as {names[0]!r}")
    return [EncodedContext(names.index(name), np.zeros(0), np.zeros(0)) for name in log.group_names]


def new_learner(log: "Log", policy: Any) -> Learner:
    """A learner for the problem of a log that has seen nothing yet."""
    return Learner(log.problem, policy, list(log.arms), list(log.items))


def learn_from(log: "Log", policy: Any) -> Learner:
    """A learner that has seen the whole log; a policy that forgets has seen it round by round."""
    learner = new_learner(log, policy)
    if learner.contexts is None and not learner.policy.forgets:
        learner.warm_start(log.tally)
    elif learner.policy.forgets or learner.policy.rounding == "coin":
        _learn_by_round(log, learner)
    else:
        for encoded, (n, feedback) in zip(_segments(log), _feedback_by_group(log), strict=True):
            made = Contexts.of([encoded], [n], log.problem.n_arms)
            learner.apply(replace(feedback, context=made), _KEY)
            learner.contexts.clock[encoded.segment] = n
        learner.asked = log.n_rounds
    return learner


_KEY = np.zeros(1, np.uint64)


def _learn_by_round(log: "Log", learner: Learner) -> None:
    """Let a learner see the log round by round, each in its segment if there are segments."""
    found = None if learner.contexts is None else _segments(log)
    for t, feedback in enumerate(feedback_by_round(log), 1):
        made = None
        if found is not None:
            encoded, clock = found[log.groups[t - 1]], learner.contexts.clock
            clock[encoded.segment] += 1
            made = Contexts.of([encoded], [clock[encoded.segment]], log.problem.n_arms)
        learner.pend(feedback.action[0], t)
        learner.unpend(feedback.action[0])
        learner.apply(replace(feedback, t=t, context=made), _KEY)


def feedback_by_round(log: "Log") -> Iterator[Feedback]:
    """What was observed in each round, as policies take it."""
    ends = np.searchsorted(log.rows.round, np.arange(log.n_rounds + 1))
    for n, (a, b) in enumerate(itertools.pairwise(ends.tolist())):
        yield log.feedback(slice(a, b), n + 1)


def _feedback_by_group(log: "Log") -> Iterator[tuple[int, Feedback]]:
    """How many rounds each group has, and what was observed in all of them, as if it were one round."""
    sizes = np.bincount(log.groups, minlength=log.n_groups)
    for g in range(log.n_groups):
        yield int(sizes[g]), log.feedback(np.flatnonzero(log.groups[log.rows.round] == g), 1)
