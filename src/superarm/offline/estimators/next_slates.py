"""The slates that a policy would show next, having learnt from a log: one mixture, or one for each segment of users."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.arrays import Bools, Floats, Ints
from superarm.context import EncodedContext, Segments
from superarm.errors import InvalidArgument
from superarm.learner import Learner
from superarm.learner.contexts import DecisionContext
from superarm.offline.inclusion import explore_slates
from superarm.policies import Policy, forgets
from superarm.streams import new_stream, seek
from superarm.tally import Feedback

if TYPE_CHECKING:
    from superarm.offline.log import Log

DRAWS = 256
"""A policy that draws slates at random is evaluated as the mixture of so many of them."""


class PolicyTarget(NamedTuple):
    """A policy with an exploration share: the probability of a random arm in each slot, as the service explores.

    ``eligible`` are the arms that it may show, by name or number; all if it is None; a dict has those of each group.
    ``learner`` has learnt by this policy already; without one, the policy learns from the log.
    """

    policy: Policy
    explore: float = 0.0
    eligible: Any = None
    learner: Learner | None = None


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
    stream = new_stream(np.random.SeedSequence(0))
    slates: list[Ints] = []
    for draw in range(DRAWS):
        seek(stream, t, draw)
        before = int(stream.state[0])
        slates.append(learner.choose(t, eligible, stream, context=context))
        if int(stream.state[0]) == before:  # it drew no random number
            break
    if not all(map(len, slates)):
        raise InvalidArgument("eligible", "no slate can be formed", "make enough arms eligible")
    return pad_slates(slates) if target.explore == 0.0 else _explore(learner, target.explore, eligible, slates)


def _explore(learner: Learner, share: float, eligible: Bools, slates: list[Ints]) -> Ints:
    """The slates with some slots filled at random."""
    if not 0.0 <= share <= 1.0 or not learner.problem.uniform:
        wrong = f"{share:g}" if learner.problem.uniform else "the slates are not any k arms"
        raise InvalidArgument("explore", wrong, "give a share from 0 to 1, with slates of any k arms; or leave it out")
    arms = np.flatnonzero(eligible)
    queues = pad_slates(slates if len(slates) > 1 else slates * DRAWS)
    found, _ = explore_slates(len(arms), np.searchsorted(arms, queues), share, np.random.default_rng(0))
    return np.asarray(arms[found])


def pad_slates(slates: list[Ints]) -> Ints:
    """Slates as one table, the shorter ones padded with -1."""
    width = max(len(slate) for slate in slates)
    return np.array([[*slate, *[-1] * (width - len(slate))] for slate in slates])


def _segments(log: "Log") -> list[EncodedContext]:
    """The segment of each group of the log, as policies take it."""
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
    if learner.contexts is not None:
        _learn_in_segments(log, learner)
    elif not forgets(policy):
        learner.warm_start(log.tally)
    else:
        stream = new_stream(np.random.SeedSequence(0))
        for t, feedback in enumerate(feedback_by_round(log), 1):
            learner.pend(feedback.action, t)
            learner.unpend(feedback.action)
            learner.apply(feedback._replace(t=t), stream)
    return learner


def _learn_in_segments(log: "Log", learner: Learner) -> None:
    """Let a learner see the log, each round in its segment."""
    contexts, found, stream = learner.contexts, _segments(log), new_stream(np.random.SeedSequence(0))
    assert contexts is not None
    sizes = np.bincount(log.groups, minlength=log.n_groups)
    if not forgets(learner.policy):
        for g, feedback in enumerate(_feedback_by_group(log)):
            made = DecisionContext(found[g], np.zeros(0), 0, int(sizes[g]))
            contexts.apply(learner, feedback, (feedback.action, made), stream, 1.0, learner.version)
            contexts.clock[found[g].segment] = sizes[g]
        learner.asked = log.n_rounds
        return
    for t, feedback in enumerate(feedback_by_round(log), 1):
        encoded = found[log.groups[t - 1]]
        made = DecisionContext(encoded, np.zeros(0), 0, int(contexts.clock[encoded.segment]) + 1)
        contexts.pend(learner, feedback.action, t, made)
        contexts.take_back(learner, (feedback.action, made), feedback.action)
        contexts.apply(learner, feedback._replace(t=t), (feedback.action, made), stream, 1.0, learner.version)


def feedback_by_round(log: "Log") -> list[Feedback]:
    """What was observed in each round, as policies take it."""
    ends = np.searchsorted(log.rows.round, np.arange(log.n_rounds + 1))
    outcome, inside = _outcomes(log)
    return [
        Feedback(n + 1, log.rows.arm[a:b].copy(), outcome[a:b][inside[a:b]], log.rows.seen[a:b][inside[a:b]])
        for n, (a, b) in enumerate(itertools.pairwise(ends))
    ]


def _feedback_by_group(log: "Log") -> Iterator[Feedback]:
    """What was observed in all rounds of each group, as if it were one round: for policies that do not forget."""
    outcome, inside = _outcomes(log)
    for g in range(log.n_groups):
        own = log.groups[log.rows.round] == g
        yield Feedback(1, log.rows.arm[own], outcome[own][inside[own]], log.rows.seen[own][inside[own]])


def _outcomes(log: "Log") -> tuple[Floats, Bools]:
    """The outcomes of each row and item, 0 where they were not seen, and which of them are in the support."""
    return np.where(log.rows.seen, log.rows.outcome, 0.0), np.asarray(log.entries >= 0)
