"""Contextual policies decide as those of the compiled engine, round by round."""

import numpy as np
import pytest

import superarm as old
from superarm.next import contextual as new
from tests.next.contexts import USERS, compare, problems

KINDS = [{"shared": True}, {"shared": "arms"}, {"shared": False}, {"shared": True, "intercept": False}]
LINEAR = {
    "c2_ucb": (lambda: old.c2_ucb(0.3), lambda: new.c2_ucb(0.3)),
    "vac2_ucb": (lambda: old.vac2_ucb(0.05), lambda: new.vac2_ucb(0.05)),
    "comb_lin_ts": (lambda: old.comb_lin_ts(0.7, prior=0.5), lambda: new.comb_lin_ts(0.7, ridge=2.0)),
}


def same_sums(runs, run):
    for r, theirs in enumerate(runs):
        np.testing.assert_array_equal(run.tally.moments.precision[r], theirs.tally.precision)
        np.testing.assert_array_equal(run.tally.moments.response[r], theirs.tally.response)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("options", [{}, {"interactions": False}, {"sparse": True}, {"n_items": 1}], ids=str)
def test_linear_policies_decide_as_before(name, kind, options):
    before, after = problems("Linear", kind, **options)
    pair = [make() for make in LINEAR[name]]
    same_sums(*compare(before, after, pair, list(USERS), horizon=40, cascade=name == "c2_ucb"))
