r"""Designs: where the features of an entry are in its vector, and which entries share a parameter vector.

The features of entry (j, i) are :math:`[u_j, e_i]`: ``u_j`` depends on the user and the arm, and ``e_i`` indicates the
item. ``u_j`` is a linear function of the arm's own numbers :math:`v_j = [z_j, pair_j]`: it is :math:`B(x)\,v_j`, so a
quadratic form in ``u_j`` for every arm costs one small quadratic form in ``v_j`` per arm.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.context.encoding import COORDINATE_GRID
from superarm.context.models import ALL, ENTRIES
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.support import AnySupport, Dense

if TYPE_CHECKING:
    from superarm.context.context import Context
    from superarm.problem import Problem


class Design(NamedTuple):
    """How the features of entries are laid out.

    Parameters
    ----------
    arms
        The numbers :math:`z_j` of each arm, (n_arms, n), the first 1 unless the model has no intercept.
    n_user, n_pair, n_item
        The lengths of the user's vector, of the features of a pair, and of the indicator of the item (0 if there is
        none).
    crossed
        Whether the features of user and arm are multiplied.
    sharing
        Which entries share a parameter vector: ``ENTRIES`` (none), ``ARMS`` (those of an arm) or ``ALL``.
    longest
        The largest squared length that the features of an entry can have.
    """

    arms: Floats
    n_user: int
    n_pair: int
    n_item: int
    crossed: bool
    sharing: str
    longest: float

    @property
    def own(self) -> int:
        """The length of the part of an entry's features that does not depend on its item."""
        arm = self.arms.shape[1]
        return (self.n_user * arm if self.crossed else self.n_user + arm - 1) + self.n_pair

    @property
    def d(self) -> int:
        """The length of the features of an entry."""
        return self.own + self.n_item

    def n_groups(self, support: AnySupport) -> int:
        """How many parameter vectors there are."""
        return {ENTRIES: support.size, ALL: 1}.get(self.sharing, support.n_arms)

    def groups_of(self, support: AnySupport, arms: Ints) -> Ints:
        """The parameter vectors of the entries of ``arms`` (…): (…, widest), -1 where there is no entry."""
        there = places(support, arms)
        same = {ENTRIES: there.entries, ALL: np.zeros_like(there.entries)}.get(self.sharing, arms[..., None])
        return np.where(there.there, same, -1)

    def observations(self, k: int, n_items: int) -> int:
        """How many entries of a batch of ``k`` arms have the same parameter vector, at most."""
        return {ENTRIES: 1, ALL: k * n_items}.get(self.sharing, n_items)

    def own_features(self, x: Floats, arm: Ints, pair: Floats) -> Floats:
        """``u`` of each arm, rounded to the grid: x (…, n_user), arm (…) and pair (…, n_pair) give (…, own)."""
        z = self.arms[arm]
        x = np.broadcast_to(x, (*z.shape[:-1], self.n_user))
        if self.crossed:
            outer = np.floor(x[..., None, :] * z[..., None] * COORDINATE_GRID + 0.5) / COORDINATE_GRID
            outer = outer.reshape(*z.shape[:-1], -1)
        else:
            outer = np.concatenate([x, z[..., 1:]], -1)
        return np.concatenate([outer, pair], -1) if self.n_pair else outer

    def with_items(self, u: Floats, items: Ints) -> Floats:
        """The features of entries: ``u`` (…, own) and the indicator of the items (…)."""
        if not self.n_item:
            return np.broadcast_to(u, (*items.shape, self.own))
        u = np.broadcast_to(u, (*items.shape, self.own))
        return np.concatenate([u, (items[..., None] == np.arange(self.n_item)).astype(float)], -1)

    def map_frame(self, phi: Floats, factors: Floats) -> None:
        """Take each block of ``phi`` (n, d) that holds features of the user to another frame, in place."""
        for block in range(self.arms.shape[1] if self.crossed else 1):
            first, last = block * self.n_user, (block + 1) * self.n_user
            moved = factors[..., 1:, 0] * phi[:, first : first + 1] + factors[..., 1:, 1] * phi[:, first + 1 : last]
            phi[:, first + 1 : last] = moved


def make_design(context: "Context", n_arms: int, n_items: int) -> Design:
    """The design of a problem with that context."""
    arms, n_user, n_item = context.arm_vectors(n_arms), context.n_user, context.n_indicators(n_items)
    user = context.features.longest + (1.0 if n_user > context.features.size else 0.0)
    arm = float((arms**2).sum(axis=1).max())
    own = user * arm if context.crossed else user + arm - 1.0
    longest = own + context.pairs + (1.0 if n_item else 0.0)
    return Design(arms, n_user, context.pairs, n_item, context.crossed, context.model.shared, longest)


def design_of(problem: "Problem") -> Design:
    """The design of a problem with a regression model; made once."""
    held = problem.__dict__.get("_design")
    if held is None:
        held = problem.__dict__["_design"] = make_design(problem.context, problem.n_arms, problem.n_items)
    return held


class Places(NamedTuple):
    """The entries of arms (…), one row of ``widest`` per arm: their items, numbers arm after arm, and which exist."""

    items: Ints
    entries: Ints
    there: Bools


def places(support: AnySupport, action: Ints) -> Places:
    """The entries of the arms of ``action``, which may be -1."""
    there = (action >= 0)[..., None]
    if isinstance(support, Dense):
        items = np.broadcast_to(np.arange(support.n_items), (*action.shape, support.n_items))
        return Places(items, action[..., None] * support.n_items + items, np.broadcast_to(there, items.shape))
    entries = support.row_entries[action]
    return Places(support.items[np.maximum(entries, 0)], entries, there & (entries >= 0))


def arm_major(support: AnySupport, values: Any) -> Any:
    """Numbers of every entry, arm after arm (R, n_entries), as entries of the support."""
    if isinstance(support, Dense):
        table = values.reshape(len(values), support.n_arms, support.n_items)
        return np.ascontiguousarray(table.swapaxes(1, 2))
    return values


def by_pair(support: AnySupport, table: Floats) -> Any:
    """Numbers of every arm and item, (R, n_arms, n_items), as entries of the support."""
    return table.swapaxes(1, 2) if isinstance(support, Dense) else table[:, support.arm_of, support.items]
