r"""The family of rewards: :math:`r(A; p) = \sum_i w_i\, r_i(A; p_i)`.

A reward is defined item by item, as a state that arms update. Before any arm has joined, the state of an item is
``start(weight)``; an arm with parameter ``q`` changes it from ``state`` to ``join(state, q)``; the value of an item is
``worth(weight, state)``. The order in which arms join must not matter, and no arm may lower the value. A reward with
``monotone = False``, such as :class:`Conjunctive`, may; it is then for batches of one size. The functions below are the
only loops over items.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._jit import inlined, kernel, lean, separate, verb
from superarm._lanes import add_lanes
from superarm.arrays import Floats, Ints
from superarm.support import Support, item, span

_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_5, _6, _7, _8 = np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(8)


class Smoothness(NamedTuple):
    r"""The smoothness of a reward: :math:`\gamma_\infty`, and :math:`\gamma_g` as it is and as the paper bounds it."""

    gamma_inf: float
    gamma_g: float
    gamma_g_paper: float


class Reward(Protocol):
    """A reward, defined for one item of a given weight."""

    @property
    def submodular(self) -> bool:
        """Whether the gain of an arm never grows as the batch grows."""
        ...

    @property
    def modular(self) -> bool:
        """Whether an arm adds the same to every batch."""
        ...

    def start(self, weight: float) -> float:
        """The state of an item that no arm has joined."""
        ...

    def join(self, state: float, q: float) -> float:
        """The state after an arm with parameter ``q`` has joined."""
        ...

    def worth(self, weight: float, state: float) -> float:
        """w_i r_i of an item in ``state``."""
        ...

    def derivative(self, weight: float, state: float, q: float) -> float:
        """The derivative of ``worth(weight, join(state, q))`` in ``q``."""
        ...

    def smoothness(self, k: int) -> Smoothness:
        """The smoothness parameters of r_i for batches of at most ``k`` arms."""
        ...


class RewardHooks(Protocol):
    """Methods that a reward may define beyond :class:`Reward`; ``traits`` and the verbs below have the defaults."""

    monotone: bool
    """Whether no arm lowers the value; True by default."""

    gains_shrink: bool
    """Whether gains never grow as the batch grows even in rounded arithmetic; False by default."""

    linear_gain: bool
    """Whether gains are linear in the arm's parameters, ``derivative(weight, state, 0) * q``; False by default."""

    def item_gain(self, weight: float, state: float, q: float) -> float:
        """``worth(weight, join(state, q)) - worth(weight, state)``, without cancellation; grows with ``q``."""
        ...

    def transform(self, q: Floats) -> Floats:
        """The numbers that gains are computed from, (n_entries,); ``q`` itself by default.

        For gains that begin with a function of ``q`` alone: an oracle that computes many gains computes it once.
        """
        ...

    def transformed(self) -> "Reward":
        """The reward whose ``item_gain`` takes these numbers, with the same result; the reward itself by default."""
        ...

    def bound_argument(self, q: float) -> float:
        """How ``q`` enters ``bound_slope``'s bound: not negative, growing with ``q``; ``q`` itself by default."""
        ...

    def bound_slope(self, weight: float, state: float) -> float:
        """The slope of a bound: ``item_gain(weight, state, q) <= bound_slope(weight, state) * bound_argument(q)``.

        With it, policies can skip arms that cannot win.
        """
        ...

    def value(self, terms: "Terms", q: Floats, action: Ints) -> float:
        """r(action; q), for a reward that is not a sum over items."""
        ...


@kernel
def _gain_by_difference(reward: Any, weight: float, state: float, q: float) -> float:
    return worth(reward, weight, join(reward, state, q)) - worth(reward, weight, state)


@kernel
def _identity(reward: Any, q: float) -> float:
    return q


@kernel
def _same_parameters(reward: Any, q: Floats) -> Floats:
    return q


@kernel
def _same_reward(reward: Any) -> Any:
    return reward


start = verb(Reward.start)
join = verb(Reward.join)
worth = verb(Reward.worth)
item_gain: verb[..., float] = verb(RewardHooks.item_gain, default=_gain_by_difference)
transform: verb[..., Floats] = verb(RewardHooks.transform, default=_same_parameters)
transformed: verb[..., Any] = verb(RewardHooks.transformed, default=_same_reward)
bound_argument: verb[..., float] = verb(RewardHooks.bound_argument, default=_identity)
bound_slope = verb(RewardHooks.bound_slope)
derivative = verb(Reward.derivative)


def has_bound_slope(reward: Any) -> bool:
    """Whether ``reward`` defines the verb ``bound_slope``; ``ClippedLinear`` has a number of that name."""
    return callable(getattr(type(reward), "bound_slope", None))


class Terms(NamedTuple):
    """What a reward is computed from beside the parameters: ``weights`` (n_items,) and the ``support``."""

    weights: Floats
    support: Support


@kernel
def initial_states(reward: Reward, terms: Terms) -> Floats:
    """The state of every item before any arm has joined, (n_items,)."""
    states = np.empty(len(terms.weights))
    reset_states(reward, terms, states)
    return states


@inlined
def reset_states(reward: Reward, terms: Terms, states: Floats) -> None:
    """Set ``states`` to those of the empty batch."""
    for i in range(np.uint64(len(states))):
        states[i] = start(reward, terms.weights[i])


@inlined
def gain(reward: Reward, terms: Terms, states: Floats, q: Floats, arm: int) -> float:
    """r(A + arm; q) - r(A; q), where ``states`` are the item states of A and ``q`` (n_entries,) the parameters."""
    first, last = span(terms.support, arm)
    sums = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    blocks = (last - first) // 8
    for block in range(blocks):  # eight lanes in a fixed order: vectorised, and the same bits everywhere
        o = np.uint64(block) * _8  # unsigned, so that no test for negative indices breaks the vectors
        sums = add_lanes(
            sums,
            _term(reward, terms, states, q, first, o),
            _term(reward, terms, states, q, first, o + _1),
            _term(reward, terms, states, q, first, o + _2),
            _term(reward, terms, states, q, first, o + _3),
            _term(reward, terms, states, q, first, o + _4),
            _term(reward, terms, states, q, first, o + _5),
            _term(reward, terms, states, q, first, o + _6),
            _term(reward, terms, states, q, first, o + _7),
        )
    a0, a1, a2, a3, a4, a5, a6, a7 = sums
    for rest in range(8 * blocks, last - first):
        a0 += _term(reward, terms, states, q, first, np.uint64(rest))
    return ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7))


@inlined
def _term(reward: Reward, terms: Terms, states: Floats, q: Floats, first: int, offset: Any) -> float:
    i = item(terms.support, first, offset)
    return item_gain(reward, terms.weights[i], states[i], q[np.uint64(first) + offset])


@inlined
def join_arm(reward: Reward, terms: Terms, states: Floats, q: Floats, arm: int) -> None:
    """Update the item states of A to those of A + arm."""
    first, last = span(terms.support, arm)
    for o in range(np.uint64(last - first)):
        i = item(terms.support, first, o)
        states[i] = join(reward, states[i], q[np.uint64(first) + o])


@kernel
def value_of_states(reward: Reward, terms: Terms, states: Floats) -> float:
    """r(A; q), where ``states`` are the item states of A."""
    r = 0.0
    for i in range(len(states)):
        r += worth(reward, terms.weights[i], states[i])
    return r


@kernel
def value_by_items(reward: Any, terms: Terms, q: Floats, action: Ints) -> float:
    """r(action; q) as a sum over items."""
    states = initial_states(reward, terms)
    return value_of_states(reward, terms, states) + join_batch(reward, terms, states, q, action)


value: verb[..., float] = verb(RewardHooks.value, default=value_by_items)


@separate
def join_batch(reward: Reward, terms: Terms, states: Floats, q: Floats, action: Ints) -> float:
    """r(A + action; q) - r(A; q); updates the item states of A to those of A + action."""
    r = 0.0
    for j in action:
        r += gain(reward, terms, states, q, j)
        join_arm(reward, terms, states, q, j)
    return r


@lean
def clear_batch(reward: Reward, terms: Terms, states: Floats, action: Ints) -> None:
    """Reset the states of the items of ``action`` to those of the empty batch."""
    for j in action:
        first, last = span(terms.support, j)
        for o in range(np.uint64(last - first)):
            i = item(terms.support, first, o)
            states[i] = start(reward, terms.weights[i])


@kernel
def gradient(reward: Reward, terms: Terms, q: Floats, action: Ints) -> Floats:
    """The derivatives of r(action; q) with respect to q, (n_entries,); zero outside of ``action``."""
    result = np.zeros(len(q))
    for j in action:
        states = initial_states(reward, terms)
        for other in action:
            if other != j:
                join_arm(reward, terms, states, q, other)
        first, last = span(terms.support, j)
        for o in range(last - first):
            i = item(terms.support, first, o)
            result[first + o] = derivative(reward, terms.weights[i], states[i], q[first + o])
    return result
