r"""Rewards: :math:`r(A; p) = \sum_i w_i\, r_i(A; p_i)`, defined item by item as a state that arms update.

Before any arm has joined, the state of an item is ``start(weight)``; an arm with parameter ``q`` changes it to
``join(state, q)``; the value of the item is ``worth(weight, state)``. The three work on arrays of any shape, element by
element; sums over items are taken here. The order in which arms join must not matter.
"""

import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.component import Component
from superarm.core.errors import InvalidArgument
from superarm.core.numeric import fall
from superarm.core.ops import op
from superarm.core.support import Dense

if TYPE_CHECKING:
    from superarm.problem import Problem


class Smoothness(NamedTuple):
    r"""The smoothness of a reward: :math:`\gamma_\infty` and :math:`\gamma_g`."""

    gamma_inf: float
    gamma_g: float


class Reward(Component):
    """A reward. Subclass it and define ``start``, ``join`` and ``worth`` on arrays; the rest has defaults.

    >>> class Capped(Reward):
    ...     cap: float = 0.5
    ...     submodular = True
    ...     def start(self, weight): return 0.0 * weight
    ...     def join(self, state, q): return state + q
    ...     def worth(self, weight, state): return weight * np.minimum(state, self.cap)
    >>> Capped(1.0)
    Capped(cap=1)
    """

    modular: ClassVar[Any] = False
    """Whether an arm adds the same to every batch."""
    submodular: ClassVar[Any] = False
    """Whether the gain of an arm never grows as the batch grows."""
    monotone: ClassVar[bool] = True
    """Whether no arm lowers the value. If one does, only batches of one size can be compared."""
    linear_gain: ClassVar[bool] = False
    """Whether ``gain`` is linear in ``q``: ``gain(weight, state, 1) * q``."""
    additive: ClassVar[bool] = True
    """Whether the reward is a sum over items."""
    triggers: ClassVar[bool] = False
    """Whether arms of a batch trigger others, which count as well: no arm has to be played for its own sake."""
    any_outcome: ClassVar[bool] = False
    """Whether outcomes may be any numbers, and not only those in [0, 1]."""
    totals: ClassVar[bool] = False
    """Whether only the total of a batch, or of parts of it, is told, and not what each arm did."""
    proven: ClassVar[bool] = False
    """Whether ``smoothness`` has a proof, as that of superarm's rewards; otherwise it is called a claim."""

    def start(self, weight: Any) -> Any:
        """The state of items that no arm has joined."""
        raise NotImplementedError

    def join(self, state: Any, q: Any) -> Any:
        """The state after an arm with parameter ``q`` has joined."""
        raise NotImplementedError

    def worth(self, weight: Any, state: Any) -> Any:
        """w_i r_i of items in ``state``."""
        raise NotImplementedError

    def gain(self, weight: Any, state: Any, q: Any) -> Any:
        """What an arm with parameter ``q`` adds; override it to avoid cancellation."""
        return self.worth(weight, self.join(state, q)) - self.worth(weight, state)

    def derivative(self, weight: Any, state: Any, q: Any) -> Any:
        """The derivative of ``worth(weight, join(state, q))`` in ``q``; by default a central difference."""
        step = 1e-6
        high, low = np.minimum(1.0, q + step), np.maximum(0.0, q - step)
        rise = self.worth(weight, self.join(state, high)) - self.worth(weight, self.join(state, low))
        return rise / (high - low)

    def oracle(self, problem: "Problem") -> Any:
        """The oracle that this reward needs on ``problem``; None: the one that suits its properties."""
        return None

    def smoothness(self, k: int) -> Smoothness | None:
        """The smoothness of r_i for batches of at most ``k`` arms, for theory; None if it is not known."""
        return None

    # --- sums over items: the same for all rewards ---

    def states(self, problem: "Problem", q: Floats, action: Ints) -> Floats:
        """The item states (R, n_items) of the batches ``action`` (R, K) at the entries ``q``."""
        states = self.empty_states(problem, len(action))
        for arm in action.T:
            problem.support.join(states, q, arm, self.join)
        return states

    def empty_states(self, problem: "Problem", replications: int) -> Floats:
        """The item states (R, n_items) before any arm has joined."""
        return np.array(self.start(np.repeat(problem.weights[None], replications, 0)), float)

    def gains(self, problem: "Problem", states: Floats, q: Floats) -> Floats:
        """What each arm would add, (R, n_arms)."""
        support, weights = problem.support, problem.weights[None]
        gains = support.sum_items(self.gain(support.by_item(weights), support.by_item(states), q))
        return gains if len(gains) == len(states) else np.repeat(gains, len(states), 0)

    def prepared(self, q: Floats) -> "tuple[Reward, Floats]":
        """A reward and its parameters that are worth the same as this one at ``q``, for many steps; by default itself.

        A reward that transforms ``q`` in ``join`` and ``gain`` can do so once.
        """
        return self, q

    def values(self, problem: "Problem", q: Floats, action: Ints) -> Floats:
        """r(A; q) of the batches ``action`` (R, K), padded with -1: (R,)."""
        if not isinstance(problem.support, Dense):
            return self._sparse_values(problem, q, action)
        states = self.empty_states(problem, len(action))
        value = _natural_sum(self.worth(problem.weights[None], states))
        for arm in action.T:
            rows = problem.support.rows(q, arm[:, None])[:, 0]
            value = value + np.where(arm >= 0, _natural_sum(self.gain(problem.weights[None], states, rows)), 0.0)
            problem.support.join(states, q, arm, self.join)
        return value

    def _sparse_values(self, problem: "Problem", q: Floats, action: Ints) -> Floats:
        """The same, from the states of those items alone that the batch touches."""
        support, nothing = problem.support, problem.__dict__.get("_nothing")
        if nothing is None:
            nothing = _natural_sum(self.worth(problem.weights[None], self.empty_states(problem, 1)))[0]
            problem.__dict__["_nothing"] = nothing
        value = np.full(len(action), nothing)
        for r, batch in enumerate(action):
            arms = batch[batch >= 0]
            widths = support.widths[arms]
            ends = np.cumsum(widths)
            entries = np.arange(widths.sum()) + np.repeat(support.start[arms] - (ends - widths), widths)
            items, local = np.unique(support.items[entries], return_inverse=True)
            order = np.argsort(local, kind="stable")
            rank = np.empty(len(order), int)  # how many arms before touch the item of an entry
            rank[order] = np.arange(len(order)) - np.searchsorted(local[order], local[order])
            weights, own, gains = problem.weights[items], q[r if len(q) > 1 else 0, entries], np.empty(len(order))
            states = np.array(self.start(weights), float)
            for n in range(rank.max(initial=-1) + 1):
                here = np.flatnonzero(rank == n)
                at = local[here]
                gains[here] = self.gain(weights[at], states[at], own[here])
                states[at] = self.join(states[at], own[here])
            sums = np.bincount(np.repeat(np.arange(len(arms)), widths), gains, len(arms))
            value[r] = np.cumsum(np.concatenate([value[r : r + 1], sums]))[-1]
        return value

    def slopes(self, problem: "Problem", q: Floats, action: Ints) -> Floats:
        """The derivatives of r(A; q) in the entries of each arm of ``action`` (R, K), as rows (R, K, widest).

        They are 0 in rows of -1, and past the end of an arm's entries.
        """
        rows, slopes = problem.support.rows(q, action), np.zeros((*action.shape, problem.support.widest))
        weights = np.broadcast_to(problem.weights, (len(action), 1, problem.n_items))
        for place in range(action.shape[1]):
            own = action[:, place : place + 1]
            held = self.states(problem, q, np.delete(action, place, axis=1))[:, None]
            weight, state = (problem.support.items_to_rows(part, own) for part in (weights, held))
            slopes[:, place] = self.derivative(weight, state, rows[:, place : place + 1])[:, 0]
        if not isinstance(problem.support, Dense):
            slopes[problem.support.row_entries[action] < 0] = 0.0
        slopes[action < 0] = 0.0
        return slopes

    def gradient(self, problem: "Problem", q: Floats, action: Ints) -> Floats:
        """The derivatives of r(action; q) in every entry, like ``q`` (one replication); 0 outside of ``action``."""
        result, slopes = np.zeros(q.shape), self.slopes(problem, q, action[None])[0]
        if isinstance(problem.support, Dense):
            result[0][:, action] = slopes.T
        else:
            places = problem.support.row_entries[action]
            result[0, places[places >= 0]] = slopes[places >= 0]
        return result


def _natural_sum(rows: Any) -> Floats:
    """The sum of each row (R, n), from the first to the last; 0 if a row is empty."""
    return np.cumsum(rows, 1)[:, -1] if rows.shape[1] else np.zeros(len(rows))


class Coverage(Reward):
    r"""Probabilistic maximum coverage (PMC): an item counts if at least one arm of the batch covers it.

    .. math:: r_i(A; q) = 1 - \prod_{j \in A}(1 - q_{ij})

    The state of an item is its weight times the probability that it is still uncovered. Monotone and submodular.
    :math:`\gamma_\infty = 1` and :math:`\gamma_g = 1/2` exactly, for every batch size. Implements [MerlisMannor2019]_
    (section Preliminaries). Differs: the paper's :math:`\gamma_g = 1/\sqrt e` is an upper bound of the exact value.

    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> Problem(2, 1, Coverage(), Subsets(2)).value([[0.5], [0.5]], [0, 1])
    0.75
    """

    proven = True
    submodular = True
    linear_gain = True

    def start(self, weight: Any) -> Any:
        return weight

    def join(self, state: Any, q: Any) -> Any:
        return state * (1.0 - q)

    def worth(self, weight: Any, state: Any) -> Any:
        return weight - state

    def gain(self, weight: Any, state: Any, q: Any) -> Any:
        return state * q

    def derivative(self, weight: Any, state: Any, q: Any) -> Any:
        return state + 0.0 * q

    def smoothness(self, k: int) -> Smoothness:
        return Smoothness(1.0, 0.5)

    def values(self, problem: "Problem", q: Floats, action: Ints) -> Floats:
        if not isinstance(problem.support, Dense) or type(self) is not Coverage:
            return super().values(problem, q, action)
        value = np.empty(len(action))
        op("coverage_value", action.size * problem.n_items)(q, problem.weights, action, value)
        return value


class Linear(Reward):
    r"""The sum of the arms' parameters: the classical semi-bandit.

    .. math:: r_i(A; q) = \sum_{j \in A} q_{ij}

    Modular. :math:`\gamma_\infty = 1`, :math:`\gamma_g = \sqrt k / 2`. Implements [MerlisMannor2019]_ (section
    Preliminaries, the linear case).

    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> Problem(2, 1, Linear(), Subsets(2)).value([[0.5], [0.25]], [0, 1])
    0.75
    """

    proven = True
    modular = True
    submodular = True
    linear_gain = True
    any_outcome = True

    def start(self, weight: Any) -> Any:
        return 0.0 * weight

    def join(self, state: Any, q: Any) -> Any:
        return state + q

    def worth(self, weight: Any, state: Any) -> Any:
        return weight * state

    def gain(self, weight: Any, state: Any, q: Any) -> Any:
        return weight * q

    def derivative(self, weight: Any, state: Any, q: Any) -> Any:
        return weight + 0.0 * q

    def smoothness(self, k: int) -> Smoothness:
        return Smoothness(1.0, math.sqrt(k) / 2.0)


class Total(Linear):
    r"""Only the total of a batch is seen: the worth of the whole set, in [0, 1], or of parts of it.

    .. math:: r(A; q) = \sum_{j \in A} q_j

    What is learnt of an arm is its share q_j of the total, as far as arms add up. A share may be negative. Tell totals:
    ``agent.tell(decision, total=0.7)``.

    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> Problem(3, reward=Total(), actions=Subsets(2)).value([0.5, 0.25, -0.125], [0, 2])
    0.375
    """

    proven = True
    totals = True
    any_outcome = False


class ClippedLinear(Reward):
    r"""A sum of clipped linear functions: the two examples of the paper's introduction.

    .. math:: r_i(A; q) = \sum_{j \in A} \max\{0, \min\{1, slope\,(q_{ij} - shift)\}\}

    ``ClippedLinear(c)`` is :math:`\sum\min\{c\mu, 1\}`, ``ClippedLinear(c, 0.5)`` its translate
    :math:`\sum\max\{\min\{c(\mu - 1/2), 1\}, 0\}`. Both have the same Lipschitz constant, but the first is steep only
    where parameters are easy to estimate. Modular, monotone, not differentiable at its two kinks.
    :math:`\gamma_\infty = slope` and :math:`\gamma_g = slope\sqrt{k\,\max_x x(1-x)}`, the maximum over the x where the
    function is not clipped. Implements [MerlisMannor2019]_ (section Introduction).

    Parameters
    ----------
    slope
        The slope where the function is not clipped.
    shift
        The parameter from which on the function is positive.
    """

    proven = True
    slope: float
    shift: float = 0.0
    modular = True
    submodular = True

    def check(self) -> None:
        self.require("slope", 0.0 < self.slope < math.inf, "give a finite number > 0")
        self.require("shift", 0.0 <= self.shift < 1.0, "give a number in [0, 1)")

    def _clip(self, q: Any) -> Any:
        return np.maximum(0.0, np.minimum(1.0, self.slope * (q - self.shift)))

    def start(self, weight: Any) -> Any:
        return 0.0 * weight

    def join(self, state: Any, q: Any) -> Any:
        return state + self._clip(q)

    def worth(self, weight: Any, state: Any) -> Any:
        return weight * state

    def gain(self, weight: Any, state: Any, q: Any) -> Any:
        return weight * self._clip(q)

    def derivative(self, weight: Any, state: Any, q: Any) -> Any:
        inside = self.slope * (q - self.shift)
        return np.where((inside > 0.0) & (inside < 1.0), weight * self.slope, 0.0)

    def smoothness(self, k: int) -> Smoothness:
        steepest = min(max(0.5, self.shift), self.shift + 1.0 / self.slope, 1.0)
        gamma_g = self.slope * math.sqrt(k * steepest * (1.0 - steepest))
        return Smoothness(self.slope, gamma_g)


class Logistic(Reward):
    r"""A logistic function of the sum of the arms' parameters.

    .. math:: r_i(A; q) = \frac{1}{1 + c\,e^{-\sum_{j \in A} q_{ij}}}

    The state of an item is :math:`c\,e^{-\sum q}`. Monotone; submodular only for ``c <= 1``, where the function is
    concave on :math:`[0, \infty)`. Implements [MerlisMannor2019]_ (section Preliminaries). Differs: the paper's
    :math:`\gamma_\infty = 1/4` is attained only if :math:`0 \le \log c \le k`, and its
    :math:`\gamma_g = \frac14\sqrt{1 + \log c}` is a bound only for :math:`c \ge 0.485`; here both are exact.

    Parameters
    ----------
    c
        The value without any arm is 1 / (1 + c).

    Examples
    --------
    >>> Logistic(0.5).submodular, Logistic(2.0).submodular
    (True, False)
    """

    proven = True
    c: float = 1.0

    def check(self) -> None:
        self.require("c", 0.0 < self.c < math.inf, "give a finite number > 0")

    @property
    def submodular(self) -> bool:  # type: ignore[override]
        return self.c <= 1.0

    def start(self, weight: Any) -> Any:
        return self.c + 0.0 * weight

    def join(self, state: Any, q: Any) -> Any:
        return state * (1.0 - fall(q))

    def worth(self, weight: Any, state: Any) -> Any:
        return weight / (1.0 + state)

    def gain(self, weight: Any, state: Any, q: Any) -> Any:
        return _logistic_gain(weight, state, fall(q))

    def prepared(self, q: Floats) -> tuple[Reward, Floats]:
        return (_FallenLogistic(self.c), fall(q)) if type(self) is Logistic else (self, q)

    def derivative(self, weight: Any, state: Any, q: Any) -> Any:
        later = self.join(state, q)
        return weight * later / ((1.0 + later) * (1.0 + later))

    def smoothness(self, k: int) -> Smoothness:
        steepest = min(max(math.log(self.c), 0.0), float(k))
        return Smoothness(self._density(steepest), self._gini(float(k)))

    def _density(self, s: float) -> float:
        f = 1.0 / (1.0 + self.c * math.exp(-s))
        return f * (1.0 - f)

    def _gini(self, k: float) -> float:
        r"""The largest :math:`f(1-f)\sqrt{s(1-s/k)}` over the sums s of k equal parameters."""
        from scipy.optimize import minimize_scalar

        def gini(s: float) -> float:
            return self._density(s) * math.sqrt(max(0.0, s * (1.0 - s / k)))

        grid: Floats = np.linspace(0.0, k, 2049)
        best = int(np.argmax([gini(s) for s in grid]))
        ends = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
        found = minimize_scalar(lambda s: -gini(s), bounds=ends, method="bounded", options={"xatol": 1e-12})
        return float(-found.fun)


class _FallenLogistic(Logistic):
    """``Logistic`` with the parameters 1 - exp(-q) in place of q."""

    def join(self, state: Any, q: Any) -> Any:
        return state * (1.0 - q)

    def gain(self, weight: Any, state: Any, q: Any) -> Any:
        return _logistic_gain(weight, state, q)


def _logistic_gain(weight: Any, state: Any, drop: Any) -> Any:
    return weight * state * drop / ((1.0 + state * (1.0 - drop)) * (1.0 + state))


class Conjunctive(Reward):
    r"""The probability that all arms of the batch work: the conjunctive cascade.

    .. math:: r_i(A; q) = \prod_{j \in A} q_{ij}

    The state of an item is its weight times the probability that all arms so far work. Each further arm lowers the
    value, so that only batches of one size can be compared. With one item, the arms with the largest parameters are the
    best batch of a matroid. A monotone Boolean function of the outcomes: :math:`\gamma_\infty = 1` and
    :math:`\gamma_g = 1/2` exactly, for every batch size (``docs/theory/README.md``). The reward of combinatorial
    cascading bandits, [KvetonEtAl2015b]_.
    """

    proven = True
    monotone = False

    def start(self, weight: Any) -> Any:
        return weight

    def join(self, state: Any, q: Any) -> Any:
        return state * q

    def worth(self, weight: Any, state: Any) -> Any:
        return state

    def gain(self, weight: Any, state: Any, q: Any) -> Any:
        return -state * (1.0 - q)

    def derivative(self, weight: Any, state: Any, q: Any) -> Any:
        return state + 0.0 * q

    def smoothness(self, k: int) -> Smoothness:
        return Smoothness(1.0, 0.5)


def has_proof(reward: Reward) -> bool:
    """Whether the smoothness of the reward is proven: for its class, or for one of which it overrides nothing."""
    classes = type(reward).__mro__
    owner = next(cls for cls in classes if "proven" in vars(cls))
    own = {name for cls in classes[: classes.index(owner)] for name in vars(cls) if not name.startswith("__")}
    return bool(owner.proven) and own.isdisjoint({*dir(owner), *owner.__dataclass_fields__})  # type: ignore[attr-defined]


def smoothness_of(reward: Reward, k: int) -> Smoothness:
    """What the reward says of its own smoothness; a reward that says nothing is refused."""
    found = reward.smoothness(k)
    if found is None:
        wrong = f"{type(reward).__name__} does not say how smooth it is"
        raise InvalidArgument("reward", wrong, "define smoothness(k); theory.smoothness measures it")
    return found
