"""Problem: what is to be learnt, without the true parameters."""

from typing import Any, NamedTuple

import numpy as np

from superarm._renamed import old_attributes
from superarm.actions import Actions
from superarm.actions.traits import is_action_set, uniform
from superarm.arrays import Floats, Ints, arms, count, floats, probabilities
from superarm.candidates import Candidates
from superarm.context import Context
from superarm.errors import InvalidArgument
from superarm.labels import align, is_frame, numbered
from superarm.past_data import from_data, from_prior
from superarm.rewards import Reward, Terms, base
from superarm.rewards.traits import is_reward
from superarm.support import Dense, Sparse, Support, size
from superarm.tally import Tally

MAX_DIMENSION = 2**31
"""Dimensions of a problem are below this, so that indices of entries cannot overflow."""


class _Fields(NamedTuple):
    n_arms: int
    n_items: int
    reward: Reward
    actions: Actions
    terms: Terms


@old_attributes(ranks="candidates")
class Problem(_Fields):
    """A combinatorial semi-bandit problem: arms, items, weights, reward and action set.

    Parameters
    ----------
    n_arms, n_items
        How many arms there are to choose from, and how many items they can touch.
    reward
        The function from batches to numbers: ``Coverage()``, ``Logistic(c)``, ``Linear()``, ``ClippedLinear(slope)``,
        or your own.
    actions
        Which batches may be played, e.g. ``Subsets(k)`` or ``Explicit([...])``.
    weights
        The weight of each item, (n_items,), not negative; all 1 by default.
    support
        Which items each arm can touch: a SciPy sparse matrix of shape (n_arms, n_items) whose stored entries are the
        support. By default every arm can touch every item.
    context
        What is known of users and arms, if outcomes depend on it: ``superarm.Context(…)``. It is not part of the tuple
        that kernels take; policies read it when they are fitted.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or the action set does not fit the number of arms.

    Examples
    --------
    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=4, n_items=2, reward=sa.Coverage(), actions=sa.Subsets(2), weights=[1, 3])
    >>> p = [[0.5, 0.0], [0.5, 0.5], [0.0, 1.0], [0.1, 0.1]]
    >>> float(problem.value(p, [0, 1]))
    2.25
    """

    context: Context | None = None

    def __new__(
        cls,
        n_arms: int,
        n_items: int,
        reward: Reward,
        actions: Actions,
        weights: Any = None,
        support: Any = None,
        context: Context | None = None,
    ) -> "Problem":
        for name, value in (("n_arms", n_arms), ("n_items", n_items)):
            if count(value, name, 1) >= MAX_DIMENSION:
                raise InvalidArgument(name, f"{value!r} is too large", f"give an int below {MAX_DIMENSION}")
        if not is_reward(reward):
            raise InvalidArgument("reward", f"{reward!r} is not a reward", "give e.g. Coverage()")
        if not is_action_set(actions):
            raise InvalidArgument("actions", f"{actions!r} is not an action set", "give e.g. Subsets(k)")
        actions.validate(int(n_arms))
        terms = Terms(_parse_weights(weights, int(n_items)), _parse_support(support, int(n_arms), int(n_items)))
        made = super().__new__(cls, int(n_arms), int(n_items), reward, actions, terms)
        return made if context is None else made.with_context(context)

    def __reduce__(self) -> Any:
        return type(self)._make, (tuple(self),), vars(self)

    def __repr__(self) -> str:
        low, high = float(self.weights.min()), float(self.weights.max())
        weights = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        parts = (
            f"{self.n_arms} arms, {self.n_items} items of weight {weights}, {self.reward!r}, {_shorten(self.actions)}"
        )
        entries = "" if isinstance(self.support, Dense) else f", {self.n_entries} entries"
        return f"<Problem: {parts}{entries}{', with a context' if self.context is not None else ''}>"

    def _replace(self, **changes: Any) -> "Problem":
        """The same problem with other fields, and the same context."""
        made = type(self)._make(changes.get(field, value) for field, value in zip(self._fields, self, strict=True))
        return made if self.context is None else made.with_context(self.context)

    def with_context(self, context: Context) -> "Problem":
        """The same problem with another context."""
        if not isinstance(context, Context):
            raise InvalidArgument("context", f"{context!r} is not a context", "give superarm.Context(…)")
        context.validate(self.n_arms, self.n_items)
        made = type(self)._make(self)
        made.context = context
        return made

    @property
    def uniform(self) -> bool:
        """Whether any k arms may be played."""
        return uniform(self.actions)

    @property
    def k(self) -> int:
        """The size of the largest batch, K."""
        return int(self.actions.capacity(self.n_arms))

    @property
    def weights(self) -> Floats:
        """The weight of each item, (n_items,)."""
        return self.terms.weights

    @property
    def support(self) -> Support:
        """Which entries each arm has."""
        return self.terms.support

    @property
    def n_entries(self) -> int:
        """How many parameters there are: n_arms * n_items, or the stored entries of the support."""
        return size(self.support)

    def entries(self, p: Any, name: str = "p") -> Floats:
        """Convert parameters to the flat array (n_entries,) that kernels take; refuse a wrong shape or range."""
        if is_frame(p):
            p, _ = align(p, numbered("arms", self.n_arms), numbered("items", self.n_items), name=name)
        values = probabilities(p, name)
        dense = isinstance(self.support, Dense)
        right = (self.n_arms, self.n_items) if dense else (self.n_entries,)
        if values.shape not in (right, (self.n_entries,)):
            raise InvalidArgument(name, f"shape {values.shape}", f"give shape {right}, one row per arm")
        if hasattr(p, "tocsr") and not dense and not _same_entries(Sparse(p), self.support):
            raise InvalidArgument(
                name,
                "stores other entries than the support",
                "store exactly the entries of the support, zeros included",
            )
        return values.reshape(-1)

    def value(self, p: Any, action: Any) -> float:
        """The reward r(action; p) at the parameters ``p`` (n_arms, n_items)."""
        return base.value(self.reward, self.terms, self.entries(p), self.action(action))

    def gradient(self, p: Any, action: Any) -> Floats:
        """The derivatives of r(action; p) with respect to p, in the shape of p; zero for arms outside of ``action``."""
        flat = base.gradient(self.reward, self.terms, self.entries(p), self.action(action))
        return flat.reshape(self.n_arms, self.n_items) if isinstance(self.support, Dense) else flat

    def gain(self, p: Any, action: Any, arm: int) -> float:
        """The marginal gain r(action + arm; p) - r(action; p); 0 for an arm of ``action``."""
        q = self.entries(p)
        batch, new = arms(action, "action", self.n_arms), int(arms([arm], "arm", self.n_arms)[0])
        if new in batch:
            return 0.0
        states = base.initial_states(self.reward, self.terms)
        for j in batch:
            base.join_arm(self.reward, self.terms, states, q, int(j))
        return base.gain(self.reward, self.terms, states, q, new)

    def action(self, action: Any) -> Ints:
        """Convert ``action`` to an array of arms; refuse a batch that may not be played."""
        batch = arms(action, "action", self.n_arms)
        if not self.actions.includes(batch):
            raise InvalidArgument(
                "action", f"{batch.tolist()} is outside the action set", f"play one of {self.actions}"
            )
        return batch

    def past(self, arms: Any, outcomes: Any, seen: Any = None) -> Tally:
        """The tally of past observations, for a warm start.

        Parameters
        ----------
        arms
            The arm of each observation, (n,).
        outcomes
            One row per observation, (n, n_items); in a sparse problem, a row has the entries of its arm.
        seen
            Which outcomes were observed, in the same shape; all by default.
        """
        return from_data(self.support, arms, outcomes, seen)

    def prior(self, mean: Any, strength: int) -> Tally:
        """The tally of ``strength`` imagined binary observations of each arm with means ``mean`` (n_arms, n_items)."""
        return from_prior(self.support, self.entries(mean, "mean"), strength)

    def candidates(self) -> Candidates:
        """The candidates before the first round: no arm was pulled, all are eligible."""
        return Candidates(np.zeros(self.n_arms), np.ones(self.n_arms, bool))


def _parse_weights(weights: Any, n_items: int) -> Floats:
    if weights is None:
        return np.ones(n_items)
    values = floats(weights, "weights", low=0.0, high=np.finfo(float).max)
    if values.shape != (n_items,):
        raise InvalidArgument("weights", f"shape {values.shape}", f"give one weight per item, shape ({n_items},)")
    if not values.any():
        raise InvalidArgument("weights", "all are zero", "give at least one item a positive weight")
    return values


def _same_entries(a: Any, b: Any) -> bool:
    return np.array_equal(a.start, b.start) and np.array_equal(a.items, b.items) and a.n_items == b.n_items


def _parse_support(support: Any, n_arms: int, n_items: int) -> Support:
    if support is None:
        return Dense(n_arms, n_items)
    sparse = support if isinstance(support, Sparse) else Sparse(support)
    if (sparse.n_arms, sparse.n_items) != (n_arms, n_items):
        raise InvalidArgument(
            "support", f"shape ({sparse.n_arms}, {sparse.n_items})", f"give shape ({n_arms}, {n_items})"
        )
    return sparse


def _shorten(component: Any) -> str:
    """A component as it is written, or its name alone if its fields are long."""
    text = " ".join(repr(component).split())
    return text if len(text) <= 80 else f"{type(component).__name__}(…)"
