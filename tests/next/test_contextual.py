"""Contextual policies decide as those of the compiled engine, round by round."""

import numpy as np
import pytest

import superarm as old
from superarm.next import contextual as new
from superarm.next import indices
from superarm.next.policies import IndexPolicy
from tests.next.contexts import LEVELS, N_ARMS, USERS, compare, problems

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


@pytest.mark.parametrize("pooling", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("options", [{}, {"sparse": True}, {"cascade": True}], ids=str)
@pytest.mark.parametrize("index", ["KL", "Bernstein"])
def test_policies_on_segments_decide_as_before(pooling, options, index):
    of_problem = {name: value for name, value in options.items() if name == "sparse"}
    features = {"categorical": LEVELS | {"device": ["phone", "other"]}}
    before, after = problems("Segments", {"pooling": pooling}, features, **of_problem)
    contexts = [{"country": country, "device": "phone"} for country in ("NO", "SE", "DK")]
    theirs = old.IndexPolicy(getattr(old.indices, index)(0.1))
    ours = new.for_context(IndexPolicy(getattr(indices, index)(0.1)), after)
    runs, run = compare(before, after, (theirs, ours), contexts, 60, cascade=options.get("cascade", False))
    for r, one in enumerate(runs):
        np.testing.assert_array_equal(run.tally.pulls[6 * r : 6 * (r + 1)].reshape(-1), one.tally.pulls)


@pytest.mark.parametrize("kind", [{"shared": False}, {"shared": "arms"}, {"shared": True}], ids=str)
def test_one_hot_logistic_models_decide_as_kl_ucb(kind):
    hot = np.eye(N_ARMS)
    shared = kind["shared"] is True
    features = {"categorical": {"country": ["NO", "SE", "DK"]}}
    before, after = problems(
        "Logistic",
        kind | {"intercept": False},
        features,
        n_items=1 if kind["shared"] else 3,
        arms=hot if shared else None,
    )
    contexts = [{"country": country} for country in ("NO", "SE", "DK")]
    policy = new.for_context(new.logistic_kl_ucb(), after)
    assert isinstance(policy, new.GroupedPolicy)
    compare(before, after, (old.logistic_kl_ucb(), policy), contexts)
    sampled = new.for_context(new.logistic_ts(), after)
    assert type(sampled.index).__name__ == "BetaPosterior"


class Forget(IndexPolicy):
    """What a window or a discount around a policy has, until policies that forget are here."""

    policy: object = None
    block: int = 7
    weights: tuple = (1.0, 0.5, 0.25)


@pytest.mark.parametrize("model", ["Linear", "Logistic", "Segments"])
def test_policies_that_forget_decide_as_before(model):
    segments = model == "Segments"
    features = {"categorical": LEVELS} if segments else None
    before, after = problems(model, {} if segments else {"shared": True}, features)
    theirs, ours = {
        "Linear": (old.vac2_ucb(0.05), new.vac2_ucb(0.05)),
        "Logistic": (old.logistic_kl_ucb(0.2), new.logistic_kl_ucb(0.2)),
        "Segments": (old.IndexPolicy(old.indices.KL(0.3)), IndexPolicy(indices.KL(0.3))),
    }[model]
    contexts = [{"country": country} for country in ("NO", "SE", "DK")] if segments else list(USERS)
    weights = np.array([1.0, 0.5, 0.25])
    theirs = old.policies.Forgetting(theirs, 7, weights)
    ours = new.for_context(Forget(indices.KL(), policy=ours), after)
    assert isinstance(ours, new.ContextForgetting)
    compare(before, after, (theirs, ours), contexts, 60)


def test_c3_ucb_learns_less_from_lower_positions():
    before, after = problems("Linear", {"shared": True}, n_items=1, weights=[1.0])
    pair = (old.c3_ucb(0.3, discount=0.8), new.c3_ucb(0.3, discount=0.8))
    same_sums(*compare(before, after, pair, list(USERS), cascade=True))
