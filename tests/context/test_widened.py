"""Inverses with the precision of pending decisions: computed once, and renewed where something has changed."""

import numpy as np
import pytest

from superarm.context.observations import ContextTally
from superarm.policies.contextual.linear_algebra import unpack
from superarm.policies.contextual.ridge import empty_ridge, no_correction, refresh, widen
from superarm.policies.contextual.systems import Correction

N_GROUPS, D = 21, 4
SIZE = D * (D + 1) // 2


def draw_precision(rng, n):
    features = rng.integers(-8, 9, (n, 6, D)) / 8.0
    return np.array([(rows.T @ rows)[np.tril_indices(D)] for rows in features])


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("n_changed", [1, 3, 5, 13, N_GROUPS])
def test_inverses_are_those_of_a_memory_that_begins_anew(n_changed, corrected):
    rng = np.random.default_rng(n_changed)
    tally = ContextTally(*(np.zeros(N_GROUPS) for _ in range(8)), draw_precision(rng, N_GROUPS), np.ones((N_GROUPS, D)))
    more = Correction(draw_precision(rng, N_GROUPS), np.ones((N_GROUPS, D))) if corrected else no_correction(tally)
    memory, pending = empty_ridge(tally), np.zeros((N_GROUPS, SIZE))
    for turn in range(5):
        some = rng.choice(N_GROUPS, n_changed, replace=False)
        pending[some] = draw_precision(rng, n_changed) if turn != 3 else 0.0
        tally.precision[turn] += draw_precision(rng, 1)[0]
        memory.stale[turn] = True
        refresh(memory, tally, more, 0.5)
        found = widen(memory, tally, more, pending, 0.5)
        anew = empty_ridge(tally)
        refresh(anew, tally, more, 0.5)
        np.testing.assert_array_equal(found, widen(anew, tally, more, pending, 0.5))
        for g in range(N_GROUPS):
            whole = tally.precision[g] + pending[g] + (more.precision[g] if corrected else 0.0)
            inverse = np.linalg.inv(unpack(whole, D) + 0.5 * np.eye(D))
            np.testing.assert_allclose(unpack(found[g], D), inverse, rtol=1e-9, atol=1e-12)
