"""Designs: where the features of an entry are in its vector, and which entries share a parameter vector.

The features of entry (j, i) are :math:`[u_j, e_i]`: ``u_j`` depends on the user and the arm, and ``e_i`` indicates the
item. ``u_j`` is a linear function of the arm's own numbers :math:`v_j = [z_j, pair_j]`: it is :math:`B(x)\\,v_j`, so a
quadratic form in ``u_j`` for every arm costs one small quadratic form in ``v_j`` per arm.
"""

import math
from typing import NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined, kernel, lean
from superarm.arrays import Floats
from superarm.context.context import Context, EncodedContext
from superarm.context.encoding import COORDINATE_GRID
from superarm.context.models import ALL, ARMS, ENTRIES
from superarm.support import Support, size

PER_ENTRY, PER_ARM, SHARED = 0, 1, 2


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
        Which entries share a parameter vector: PER_ENTRY (none), PER_ARM or SHARED (all).
    """

    arms: Floats
    n_user: int
    n_pair: int
    n_item: int
    crossed: bool
    sharing: int


def make_design(context: Context, n_arms: int, n_items: int) -> Design:
    """The design of a problem with that context."""
    model = context.model
    shared = model.shared == ALL
    one = np.ones((n_arms, 1 if model.intercept or not (shared and context.interactions) else 0))
    arms = np.concatenate([one, context.arms], axis=1) if shared else one
    n_user = len(context.vector(np.zeros(context.features.size)))
    sharing = {ENTRIES: PER_ENTRY, ARMS: PER_ARM, ALL: SHARED}[model.shared]
    crossed = context.interactions or not shared
    return Design(arms, n_user, context.pairs, context.n_indicators(n_items), crossed, sharing)


def longest_features(context: Context, design: Design) -> float:
    """The largest squared length that the features of an entry can have."""
    user = context.features.longest + (1.0 if design.n_user > context.features.size else 0.0)
    arm = float((design.arms**2).sum(axis=1).max())
    own = user * arm if design.crossed else user + arm - 1.0
    return own + design.n_pair + (1.0 if design.n_item else 0.0)


@inlined
def own_size(design: Design) -> int:
    """The length of the part of an entry's features that does not depend on its item."""
    arm = design.arms.shape[1]
    outer = design.n_user * arm if design.crossed else design.n_user + arm - 1
    return int(outer + design.n_pair)


@inlined
def feature_size(design: Design) -> int:
    """The length of the features of an entry."""
    return own_size(design) + design.n_item


@for_kernels
def group_count(design: Design, support: Support) -> int:
    """How many parameter vectors there are."""
    if design.sharing == PER_ENTRY:
        return size(support)
    return support.n_arms if design.sharing == PER_ARM else 1


@inlined
def group_of(design: Design, arm: int, entry: int) -> int:
    """The number of the parameter vector of an entry of ``arm``."""
    if design.sharing == PER_ENTRY:
        return entry
    return arm if design.sharing == PER_ARM else 0


@inlined
def most_observations(design: Design, k: int, n_items: int) -> int:
    """How many entries of a batch of ``k`` arms have the same parameter vector, at most."""
    if design.sharing == PER_ENTRY:
        return 1
    return n_items if design.sharing == PER_ARM else k * n_items


@lean
def fill_own_features(design: Design, context: EncodedContext, arm: int, u: Floats) -> None:
    """Write the part of the features of ``arm`` that does not depend on the item into ``u``, rounded to the grid."""
    at = fill_outer_features(design, context.x, arm, u)
    for o in range(design.n_pair):
        u[at + o] = context.pairs[arm * design.n_pair + o]


@lean
def fill_outer_features(design: Design, x: Floats, arm: int, u: Floats) -> int:
    """Write the features of user and arm into ``u``, rounded to the grid; where those of the pair begin."""
    n_user, n_arm = design.n_user, design.arms.shape[1]
    if design.crossed:
        for k in range(n_arm):
            z = design.arms[arm, k]
            for o in range(n_user):
                u[k * n_user + o] = math.floor(x[o] * z * COORDINATE_GRID + 0.5) / COORDINATE_GRID
        return int(n_arm * n_user)
    for o in range(n_user):
        u[o] = x[o]
    for k in range(1, n_arm):
        u[n_user + k - 1] = design.arms[arm, k]
    return int(n_user + n_arm - 1)


@kernel
def arm_to_own(design: Design, context: EncodedContext) -> Floats:
    """The matrix B with ``u_j = B v_j``, where ``v_j`` has the arm's numbers and then the features of the pair."""
    n_user, n_arm = design.n_user, design.arms.shape[1]
    matrix = np.zeros((own_size(design), n_arm + design.n_pair))
    for k in range(n_arm):
        if design.crossed or k == 0:
            for o in range(n_user):
                matrix[k * n_user + o, k] = context.x[o]
        else:
            matrix[n_user + k - 1, k] = 1.0
    at = own_size(design) - design.n_pair
    for o in range(design.n_pair):
        matrix[at + o, n_arm + o] = 1.0
    return matrix
