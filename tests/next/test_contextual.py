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


LOGISTIC = {
    "logistic_kl_ucb": (lambda: old.logistic_kl_ucb(0.2, 0.1, 0.02), lambda: new.logistic_kl_ucb(0.2, 0.1, 0.02)),
    "logistic_ts": (lambda: old.logistic_ts(0.7, 0.02), lambda: new.logistic_ts(0.7, 0.02)),
}


@pytest.mark.parametrize("name", LOGISTIC)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("options", [{}, {"interactions": False, "sparse": True}], ids=str)
def test_logistic_policies_decide_and_refit_as_before(name, kind, options):
    before, after = problems("Logistic", kind | {"prior_mean": 0.2, "kept": 130}, **options)
    pair = [make() for make in LOGISTIC[name]]
    runs, run = compare(before, after, pair, list(USERS), horizon=40)
    same_sums(runs, run)
    for theirs, ours in zip(runs, run.memory.kept, strict=True):
        kept = theirs.memory.kept
        n = kept.size[0]
        assert (kept.until > 0).any()
        np.testing.assert_array_equal(ours.until, kept.until)
        np.testing.assert_array_equal(ours.information, kept.information.T)
        np.testing.assert_allclose(ours.point, kept.point, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours.precision, kept.precision, atol=1e-8)
        assert (len(ours.rows), ours.limit) == (n, kept.size[1])
