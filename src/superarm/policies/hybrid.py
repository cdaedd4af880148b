"""HYBRID: follow the regularised leader with importance weights, for stochastic and adversarial losses alike."""

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.streams import uniform
from superarm.core.tally import Feedback, View
from superarm.policies.base import Policy
from superarm.policies.memory import Memory
from superarm.problem import Problem
from superarm.rewards import Linear

_X = np.concatenate([np.geomspace(1e-9, 0.5, 4000), 1.0 - np.geomspace(0.5, 1e-9, 4000)[1:]])
_SLOPE = -0.5 / np.sqrt(_X) - np.log(1.0 - _X)
"""The derivative of the regulariser at ``_X``, up to a constant, which the Lagrange multiplier takes up."""


def find_marginals(losses: Floats, t: int, k: int) -> Floats:
    """The probabilities (R, n_arms), of sum ``k``, that minimise the losses plus the regulariser in round ``t``."""
    scaled = losses / np.sqrt(t)
    equal = np.interp(k / losses.shape[1], _X, _SLOPE)  # at the least loss no arm has more than its share, at the most
    low, high = scaled.min(1, keepdims=True) + equal, scaled.max(1, keepdims=True) + equal  # none has less
    for _ in range(45):
        middle = 0.5 * (low + high)
        more = np.interp(middle - scaled, _SLOPE, _X).sum(1, keepdims=True) > k
        low, high = np.where(more, low, middle), np.where(more, middle, high)
    return np.interp(0.5 * (low + high) - scaled, _SLOPE, _X)


class HybridMemory(Memory):
    """The sums, and the estimated losses of all arms."""

    by_row = ("losses",)

    def __init__(self, policy: "Hybrid", problem: Problem, rows: int = 1, partial: bool = False) -> None:
        self.losses = np.zeros((rows, problem.n_arms))
        super().__init__(policy, problem, rows, partial)

    def note(self, feedback: Feedback, weight: float) -> None:
        if weight != 1.0:
            raise InvalidArgument("policy", "HYBRID takes no feedback back", "simulate it, or take sa.cts()")
        rows, chances = (
            np.arange(len(feedback.action))[:, None],
            find_marginals(self.losses, feedback.t, self.problem.k),
        )
        losses = 2.0 * (1.0 - feedback.outcome[:, :, 0]) / chances[rows, feedback.action]
        self.losses[rows, feedback.action] += losses


class Hybrid(Policy[HybridMemory]):
    r"""HYBRID on sets of k arms: the best of both worlds, by follow the regularised leader.

    .. math:: x = \arg\min_{\sum x = k} \langle x, \hat L\rangle + \sqrt t \sum_j \bigl(-\sqrt{x_j}
              + (1 - x_j)\log(1 - x_j)\bigr), \qquad P(j \in A) = x_j

    Implements [ZimmertLuoWei2019]_ (Algorithm 1) with losses :math:`2 (1 - X) / x` of the arms that were played. Sets
    are drawn by systematic sampling. For simulations: the probabilities of a decision are those that follow from the
    feedback before its own, so that late feedback would be weighed wrongly, and cannot be taken back.

    >>> find_marginals(np.array([[0.0, 0.0, 50.0]]), 4, 2).round(2)
    array([[1., 1., 0.]])
    """

    remembers = HybridMemory
    random = True

    def validate(self, problem: Problem) -> None:
        if not (problem.n_items == 1 and isinstance(problem.reward, Linear) and problem.actions.uniform):
            raise InvalidArgument("policy", "Hybrid is for Linear with one item on Subsets", "take sa.cts()")

    def choose(self, problem: Problem, view: View, memory: HybridMemory) -> Ints:
        x = find_marginals(memory.losses, view.t, problem.k)
        ends = np.cumsum(x * problem.k / x.sum(1, keepdims=True), 1)
        starts = np.concatenate([np.zeros((len(x), 1)), ends[:, :-1]], 1)
        place = uniform(view.keys, view.t, np.arange(1))[:, 0]
        hit = np.floor(ends - place + 1e-12) > np.floor(starts - place + 1e-12)
        return np.argsort(~hit, 1, kind="stable")[:, : problem.k]
