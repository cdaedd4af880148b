"""Click models in which positions matter: dependent clicks, and examination by position.

The expected reward of a list depends on the order of its arms, so these environments define ``expected_reward``. The
reward of the problem (``Coverage`` or ``Linear``) is used by the learner only; it ranks arms in the same way.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.arrays import Bools, Floats, Ints, Probabilities, floats
from superarm.environments.base import flip_arm
from superarm.errors import InvalidArgument
from superarm.streams import Stream, seek, uniform
from superarm.support import Support, item, rows, span

_POSITIONS = 3 << 61
"""The first index, in the stream of a round, of the numbers of positions; arms have the indices from 0 on."""


def _parse_falling(value: Any, name: str) -> Floats:
    chances = np.atleast_1d(floats(value, name, low=0.0, high=1.0))
    if chances.ndim != 1 or not chances.size or (np.diff(chances) > 0.0).any():
        raise InvalidArgument(
            name, "not a list of falling probabilities", "give one probability per position, the largest first"
        )
    return chances


Falling = Annotated[Any, _parse_falling]
"""The type of a component's field of probabilities by position, from the top; the last holds for all further ones."""


@component
class DependentClick(NamedTuple):
    r"""The dependent-click model: after a click at position n the user leaves satisfied with probability ``leave[n]``.

    A user examines the list from the top, clicks on each attractive arm (probability ``p[j, i]``), and reads on unless
    they leave. What was examined is seen, as in a log of how far the user scrolled. The expected reward is the
    probability of leaving satisfied,

    .. math:: 1 - \prod_n (1 - leave_n\, p_{a_n})

    The model of [GuoLiuWang2009]_, as a bandit [KatariyaEtAl2016]_. Differs: there, only clicks are logged and
    everything up to the last click counts as examined, which favours arms that were clicked last.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    leave
        The probability of leaving after a click, by position from the top; must not rise.
    """

    p: Probabilities
    leave: Falling

    @property
    def partial(self) -> bool:
        return True

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        p = self.p.reshape(-1)
        gone = np.zeros(support.n_items, np.bool_)
        at = 0
        for n in range(len(action)):
            first, last = span(support, action[n])
            flip_arm(support, p, action[n], t, stream, outcome, at)
            seek(stream, t, _POSITIONS + n)
            leave = self.leave[min(n, len(self.leave) - 1)]
            for o in range(last - first):
                i = item(support, first, o)
                seen[at + o] = not gone[i]
                leaves = uniform(stream) < leave
                gone[i] = gone[i] or (leaves and outcome[at + o] == 1.0)
            at += last - first

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]

    def expected_reward(self, weights: Floats, support: Support, action: Ints, t: int, default: float) -> float:
        p = self.p.reshape(-1)
        left = weights.copy()
        r = 0.0
        for n in range(len(action)):
            first, last = span(support, action[n])
            leave = self.leave[min(n, len(self.leave) - 1)]
            for o in range(last - first):
                i = item(support, first, o)
                r += left[i] * leave * p[first + o]
                left[i] *= 1.0 - leave * p[first + o]
        return r

    @interpreted
    def best(self, problem: Any) -> tuple[float, float]:
        """Lower and upper bound of the best expected reward; equal with one item, [KatariyaEtAl2016]_ (section 3)."""
        table = _table(self.p, problem)
        chance = self.leave[np.minimum(np.arange(problem.k), len(self.leave) - 1)]
        order = np.argsort(-(table @ problem.weights), kind="stable")[: problem.k]
        low = float(self.expected_reward(problem.weights, problem.support, order, 1, 0.0))
        each = 1.0 - np.prod(1.0 - chance[:, None] * -np.sort(-table, axis=0)[: problem.k], axis=0)
        return low, low if problem.n_items == 1 else float(each @ problem.weights)


@component
class PositionBased(NamedTuple):
    r"""The position-based model: position n is examined with probability ``examine[n]``, whatever is above it.

    An arm that is examined attracts with probability ``p[j, i]``; what was examined is seen. The expected reward is the
    expected number of clicks,

    .. math:: \sum_n examine_n\, p_{a_n}

    The model of [RichardsonDominowskaRagno2007]_, as a bandit [LagreeVernadeCappe2016]_. Differs: there, whether a
    position was examined is not logged; only the probability is known.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    examine
        The probability of examination, by position from the top; must not rise.
    """

    p: Probabilities
    examine: Falling

    @property
    def partial(self) -> bool:
        return True

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        p = self.p.reshape(-1)
        at = 0
        for n in range(len(action)):
            first, last = span(support, action[n])
            flip_arm(support, p, action[n], t, stream, outcome, at)
            seek(stream, t, _POSITIONS + n)
            examine = self.examine[min(n, len(self.examine) - 1)]
            for o in range(last - first):
                seen[at + o] = uniform(stream) < examine
            at += last - first

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]

    def expected_reward(self, weights: Floats, support: Support, action: Ints, t: int, default: float) -> float:
        p = self.p.reshape(-1)
        r = 0.0
        for n in range(len(action)):
            first, last = span(support, action[n])
            examine = self.examine[min(n, len(self.examine) - 1)]
            for o in range(last - first):
                r += examine * weights[item(support, first, o)] * p[first + o]
        return r

    @interpreted
    def best(self, problem: Any) -> tuple[float, float]:
        """The best expected reward, twice: it is attained by the best arms in falling order."""
        order = np.argsort(-(_table(self.p, problem) @ problem.weights), kind="stable")[: problem.k]
        most = float(self.expected_reward(problem.weights, problem.support, order, 1, 0.0))
        return most, most


def _table(p: Floats, problem: Any) -> Floats:
    """The parameters as an array (n_arms, n_items); refuses action sets other than ``Subsets``."""
    if not problem.uniform:
        raise InvalidArgument(
            "target", "the best list is known for Subsets only", 'take the target "oracle", or Subsets'
        )
    table = np.zeros((problem.n_arms, problem.n_items))
    for j in range(problem.n_arms):
        first, last = span(problem.support, j)
        table[j, [item(problem.support, first, o) for o in range(last - first)]] = rows(
            problem.support, p.reshape(-1), np.array([j])
        )
    return table
