r"""The chances of the arms of a slate: exact where a formula is known, otherwise counted from draws.

Slot by slot, given the slots before (``propensities``), and of being in the slate at all (``inclusion``). With n arms
that may fill K slots besides pinned arms:

- uniform: :math:`1/(n - s)` in slot s, from 0; inclusion K/n.
- epsilon-greedy: the beginning :math:`a_1 \dots a_s` has the chance
  :math:`(1 - \epsilon)\,[it\ begins\ the\ greedy\ slate] + \epsilon \prod_{i < s} 1/(n - i)`, a slot the quotient of
  two of these; inclusion :math:`(1 - \epsilon)\,[j \in greedy] + \epsilon K/n`.
- an exploration share over a policy without chance: the recursion of ``superarm.offline.explored_inclusion``.
- otherwise, if the settings ask for ``propensity_draws`` = n: :math:`(B_j + 1)/(n + 1)`, where :math:`B_j` of n fresh
  slates held the arm. The mean of its inverse is :math:`(1 - (1 - e_j)^{n+1})/e_j`: that of geometric resampling, see
  ``docs/theory/offline.md``.
"""

import math
from typing import NamedTuple

import numpy as np

from superarm.actions import Actions, Subsets
from superarm.core.arrays import Bools
from superarm.offline.inclusion import explored_inclusion
from superarm.policies import EpsilonGreedy, Uniform
from superarm.service.domain.problem import ProblemState


class Drawn(NamedTuple):
    """A slate before its chances are known.

    ``action`` begins with the ``pinned`` arms; ``queue`` are the policy's picks after them, of ``free`` arms, within
    ``actions``, and ``slots`` the chances with which slots were explored. ``within`` is the action set of the request;
    None if it is the problem's own.
    """

    action: tuple[int, ...]
    pinned: tuple[int, ...]
    queue: tuple[int, ...]
    free: Bools
    actions: Actions
    within: Actions | None = None
    slots: tuple[float, ...] = ()


class Chances(NamedTuple):
    """Of each arm of a slate: given the slots before, and of being in the slate; None where that is not known."""

    propensities: tuple[float, ...] | None
    inclusion: tuple[float, ...] | None = None


def exact_chances(learner: ProblemState, drawn: Drawn) -> Chances | None:
    """The chances of a slate where a formula is known, else None."""
    policy, share = learner.policy, learner.settings.explore
    own = learner.is_random
    if not drawn.queue or (not own and share == 0.0):
        return Chances((1.0,) * len(drawn.action))
    if not isinstance(drawn.actions, Subsets):
        return None
    if isinstance(policy, Uniform):
        return _uniform(drawn)
    if isinstance(policy, EpsilonGreedy) and share == 0.0:
        return _epsilon_greedy(learner, policy, drawn)
    return None if own else _explored(drawn, share)


def _uniform(drawn: Drawn) -> Chances:
    n, k, certain = int(drawn.free.sum()), len(drawn.queue), (1.0,) * len(drawn.pinned)
    return Chances((*certain, *(1.0 / (n - s) for s in range(k))), (*certain, *(k / n,) * k))


def _epsilon_greedy(learner: ProblemState, policy: EpsilonGreedy, drawn: Drawn) -> Chances:
    epsilon = min(1.0, policy.epsilon * math.pow(learner.t, -policy.decay))
    greedy = greedy_queue(learner, policy, drawn)
    n, k, shown = int(drawn.free.sum()), len(drawn.queue), drawn.action[len(drawn.pinned) :]
    begin, uniform, chain = 1.0, 1.0, list[float]()
    for s in range(k):
        uniform /= n - s
        now = (1.0 - epsilon) * (shown[: s + 1] == greedy[: s + 1]) + epsilon * uniform
        chain.append(now / begin)
        begin = now
    inclusion = ((1.0 - epsilon) * (arm in greedy) + epsilon * k / n for arm in shown)
    certain = (1.0,) * len(drawn.pinned)
    return Chances((*certain, *chain), (*certain, *inclusion))


def greedy_queue(learner: ProblemState, policy: EpsilonGreedy, drawn: Drawn) -> tuple[int, ...]:
    """The arms that the leader of an epsilon-greedy policy adds to the pinned ones."""
    eligible = drawn.free.copy()
    eligible[list(drawn.pinned)] = True
    batch = learner.choose(learner.key("mind", ""), eligible, drawn.pinned, drawn.within, policy=policy.policy)
    return tuple(j for j in batch if j not in drawn.pinned)[: len(drawn.queue)]


def _explored(drawn: Drawn, share: float) -> Chances:
    n, k = int(drawn.free.sum()), len(drawn.queue)
    ranks = explored_inclusion(n, np.arange(k), share)
    outside = float(ranks[-1])  # of no interest if every arm is in the queue
    inclusion = (float(ranks[drawn.queue.index(j)]) if j in drawn.queue else outside for j in drawn.action[-k:])
    certain = (1.0,) * len(drawn.pinned)
    return Chances((*certain, *drawn.slots), (*certain, *inclusion))
