"""Oracles that exchange arms: local search, and continuous greedy with swap rounding."""

import math

import numpy as np

from superarm.actions.base import add_arms, joinable_after, take_rows
from superarm.core.arrays import Floats, Ints, best_arms, count
from superarm.core.support import Dense
from superarm.core.tally import View
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.greedy import Greedy, greedy_by_steps
from superarm.problem import Problem
from superarm.rewards import Coverage


class LocalSearch(Oracle):
    r"""Exchange one arm of ``start``'s batch for another while that adds at least ``step`` of its value.

    .. math:: A \leftarrow A - i + j \quad\text{while}\quad r(A - i + j; q) > (1 + step)\, r(A; q)

    Never worse than the batch it starts from, whose guarantee it keeps: with ``Greedy``, :math:`1 - 1/e` on
    ``Subsets`` and 1/2 on a matroid. Exchanges alone guarantee no more than 1/2 on a matroid, and that is tight,
    [FisherNemhauserWolsey1978]_; ``ContinuousGreedy`` comes close to :math:`1 - 1/e` there. Certificates show the
    improvement over greedy. Arms that can join after an exchange, which may lower the cost or free a node, are added
    greedily.

    Parameters
    ----------
    start
        The oracle that finds the first batch.
    step
        By which share of the value an exchange has to improve it.
    rounds
        How many exchanges are made at most.

    Examples
    --------
    >>> from superarm import oracles, rewards
    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> problem = Problem(n_arms=3, n_items=2, reward=rewards.Coverage(), actions=Subsets(2))
    >>> p = [[0.6, 0.6], [1.0, 0.0], [0.0, 1.0]]
    >>> [oracles.solve(problem, p, oracle).tolist() for oracle in (Greedy(), LocalSearch())]
    [[0, 1], [2, 1]]
    """

    start: Oracle = Greedy()
    step: float = 1e-6
    rounds: int = 100

    def check(self) -> None:
        self.require_family("start", Oracle, "Greedy()")
        self.require("step", 0.0 <= self.step < 1.0, "give a number in [0, 1)")
        self.convert("rounds", count(self.rounds, "rounds", 1, "LocalSearch"))

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        out = self.start.maximize(problem, q, view)
        played = np.any(out >= 0, axis=1, keepdims=True)
        for r in np.flatnonzero(played):
            own, one = q[[r % len(q)]], take_rows(view, [r])
            action = out[r, out[r] >= 0]
            for _ in range(self.rounds):
                if not _exchange(problem, own, one, action, self.step):
                    break
            out[r, : len(action)] = action
        return np.where(played, greedy_by_steps(problem, q, view, out), -1)

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.start.guarantee(problem)

    def validate(self, problem: Problem) -> None:
        right = problem.actions.exchange < math.inf or problem.actions.budgeted
        self.needs(right, "batches whose arms can be exchanged one by one", "take Linearised()")
        self.start.validate(problem)


def _exchange(problem: Problem, q: Floats, view: View, action: Ints, step: float) -> bool:
    """Make the best exchange of one arm in place; return whether one improved the value enough."""
    places = np.flatnonzero(~np.isin(action, view.pinned))
    if not len(places):
        return False
    rests = np.array([np.delete(action, n) for n in places]).reshape(len(places), -1)
    gains = problem.reward.gains(problem, problem.reward.states(problem, q, rests), q)
    extra = gains - gains[np.arange(len(places)), action[places]][:, None]
    free = joinable_after(problem.actions, rests, np.repeat(view.eligible, len(rests), 0))
    free[:, action] = False
    arm = best_arms(np.where(free, extra, -np.inf), np.repeat(view.counts, len(rests), 0))
    most = np.where(arm >= 0, extra[np.arange(len(arm)), arm], -np.inf)
    best = int(most.argmax())
    if most[best] <= max(0.0, step * problem.values(q, action[None])[0]):
        return False
    action[places[best]] = arm[best]
    return True


class ContinuousGreedy(Oracle):
    r"""Raise fractional shares of arms, then round: alpha close to :math:`1 - 1/e` for ``Coverage`` on any matroid.

    The expected coverage by arms that are present independently with probabilities y has a closed form,

    .. math:: F(y) = \sum_i w_i \Bigl[1 - \prod_j (1 - y_j q_{ij})\Bigr]

    In each of ``steps`` = T steps a batch is built greedily by :math:`F(y; y_j = 1) - F(y)`, and the share of each arm
    that joins is raised by 1/T at once; hence :math:`F(y_{t+1}) - F(y_t) \ge (r_{\max} - F(y_{t+1}))/T` and
    :math:`\alpha = 1 - (1 + 1/T)^{-T}`, [BadanidiyuruVondrak2014]_, without its thresholds. The T batches are
    merged by exchanging arms, each time in the direction in which F does not fall, which exists since F is convex
    along it, [ChekuriVondrakZenklusen2010]_ (swap rounding). Differs: rounding chooses the better direction instead
    of a random one.

    Parameters
    ----------
    steps
        T: more steps raise alpha towards 1 - 1/e, and the time in proportion.

    Examples
    --------
    >>> round(1 - (1 + 1 / 10) ** -10, 3)
    0.614
    """

    steps: int = 10

    def check(self) -> None:
        self.convert("steps", count(self.steps, "steps", 1, "ContinuousGreedy"))

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        rows = [self._one(problem, q[[r % len(q)]], take_rows(view, [r])) for r in range(len(view))]
        return np.array(rows)

    def _one(self, problem: Problem, q: Floats, view: View) -> Ints:
        share = np.zeros(problem.n_arms)
        bases = [_build_batch(problem, q, view, share, 1.0 / self.steps) for _ in range(self.steps)]
        size = int((bases[0] >= 0).sum())
        merged = bases[0][:size]
        for step in range(1, self.steps):
            _swap_round(problem, q, view, share, (merged, bases[step][:size]), (step / self.steps, 1.0 / self.steps))
        return bases[0]

    def guarantee(self, problem: Problem) -> Guarantee:
        fits = isinstance(problem.reward, Coverage) and problem.actions.matroid
        return Guarantee(1.0 - (1.0 + 1.0 / self.steps) ** -self.steps if fits else 0.0)

    def validate(self, problem: Problem) -> None:
        right = isinstance(problem.reward, Coverage) and problem.actions.matroid
        self.needs(right, "Coverage on a matroid", "take Greedy()")


def _uncovered(problem: Problem, q: Floats, share: Floats) -> Floats:
    """The expected uncovered weight of each item, (1, n_items)."""
    left = 1.0 - q[0] * problem.support.by_arm(share[None])[0]
    if isinstance(problem.support, Dense):
        return (problem.weights * np.prod(left, axis=1))[None]
    uncovered = problem.weights.copy()
    np.multiply.at(uncovered, problem.support.items, left)
    return uncovered[None]


def _build_batch(problem: Problem, q: Floats, view: View, share: Floats, part: float) -> Ints:
    """Build a batch (K,), and raise the share of each of its arms by ``part``."""
    support = problem.support

    def gains() -> Floats:
        y = support.by_arm(share[None])
        with np.errstate(invalid="ignore"):
            rise = np.where(y < 1.0, q * (1.0 - y) / (1.0 - y * q), 0.0)
        return support.sum_items(support.by_item(_uncovered(problem, q, share)) * rise)

    def joined(arm: Ints) -> None:
        share[arm[arm >= 0]] = np.minimum(1.0, share[arm[arm >= 0]] + part)

    return add_arms(problem.actions, view, gains, joined)[0]


def _swap_round(
    problem: Problem, q: Floats, view: View, share: Floats, bases: tuple[Ints, Ints], mass: tuple[float, float]
) -> None:
    """Exchange arms between two bases of these masses, the first of which is the result, until they are equal."""
    (a, b), (heavy, light) = bases, mass
    for n, i in enumerate(a.tolist()):
        if i in b:
            continue
        fits_a = joinable_after(problem.actions, np.delete(a, n)[None], view.eligible)[0]
        for m, j in enumerate(b.tolist()):
            if j in a or not fits_a[j]:
                continue
            if joinable_after(problem.actions, np.delete(b, m)[None], view.eligible)[0, i]:
                to_i, to_j = share.copy(), share.copy()
                to_i[i], to_i[j] = min(1.0, share[i] + light), max(0.0, share[j] - light)
                to_j[i], to_j[j] = max(0.0, share[i] - heavy), min(1.0, share[j] + heavy)
                if _uncovered(problem, q, to_i).sum() <= _uncovered(problem, q, to_j).sum():
                    b[m], share[:] = i, to_i
                else:
                    a[n], share[:] = j, to_j
                break
