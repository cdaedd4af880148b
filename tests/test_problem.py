"""Problem: what it computes by hand, and that each bad input is answered with argument, fault and remedy."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import superarm as sa
from superarm.core.errors import InvalidArgument

GOOD = {"n_arms": 3, "n_items": 2, "reward": sa.Coverage(), "actions": sa.Subsets(2)}
P = [[0.5, 0.0], [0.5, 0.5], [0.0, 1.0]]


def problem(**changes):
    return sa.Problem(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_arms": 0}, "n_arms: 0 is not a positive whole number; give an int >= 1"),
        ({"n_arms": -2}, "n_arms: -2 is not a positive whole number; give an int >= 1"),
        ({"n_arms": 3.0}, "n_arms: 3.0 is not a positive whole number; give an int >= 1"),
        ({"n_arms": True}, "n_arms: True is not a positive whole number; give an int >= 1"),
        ({"n_items": "2"}, "n_items: '2' is not a positive whole number; give an int >= 1"),
        ({"n_items": 2**31}, "n_items: 2147483648 is too large"),
        ({"reward": sa.Coverage}, "Problem.reward: Coverage is a class; write Coverage(…); give e.g. Coverage()"),
        ({"reward": "coverage"}, "Problem.reward: 'coverage' is not a reward; give e.g. Coverage()"),
        ({"reward": None}, "Problem.reward: None is not a reward; give e.g. Coverage()"),
        ({"actions": 2}, "Problem.actions: 2 is not an action set; give e.g. Subsets(k)"),
        ({"actions": sa.Subsets(4)}, "Subsets.k: 4 arms of 3; choose k <= n_arms = 3"),
        ({"actions": sa.actions.Explicit([[0, 1], [3, 2]])}, "actions: arm 3 of 3; arms are 0 to 2"),
        ({"actions": sa.actions.Explicit([[0, 1]])}, "actions: arm 2 is in no batch; every arm must be playable"),
        ({"weights": [1.0]}, "weights: shape (1,); give one weight per item, shape (2,)"),
        ({"weights": 1.0}, "weights: shape (); give one weight per item, shape (2,)"),
        ({"weights": [1.0, -0.5]}, "weights: values range over [-0.5, 1]; give finite numbers >= 0"),
        ({"weights": [1.0, np.inf]}, "weights: values range over [1, inf]; give finite numbers >= 0"),
        ({"weights": [1.0, np.nan]}, "weights: contains NaN; give numbers"),
        ({"weights": [0.0, 0.0]}, "weights: all are zero; give at least one item a positive weight"),
        ({"support": np.eye(3, 2)}, "support: ndarray is not sparse; give a SciPy sparse matrix"),
        ({"support": sparse.eye_array(2, 3)}, "support: shape (2, 3); give shape (3, 2)"),
    ],
)
def test_bad_problems_are_refused(changes, said):
    with pytest.raises(InvalidArgument) as told:
        problem(**changes)
    assert str(told.value).startswith(said)
    assert "seen=" not in str(told.value)


@pytest.mark.parametrize(
    ("p", "action", "said"),
    [
        ([[0.5, 0.5]] * 2, [0], "p: shape (2, 2); give shape (3, 2), one row per arm"),
        (np.transpose(P), [0], "p: shape (2, 3); give shape (3, 2), one row per arm"),
        ([[0.5, 1.5]] * 3, [0], "p: values range over [0.5, 1.5]; give values in [0, 1]"),
        ([[0.5, np.nan]] * 3, [0], "p: contains NaN"),
        (P, [0, 1, 2], "action: [0, 1, 2] is outside the action set; play one of Subsets(k=2)"),
        (P, [], "action: [] is outside the action set"),
        (P, [1, 1], "action: the same arm appears twice"),
        (P, [0, 3], "action: unknown arm 3; arms are 0 to 2"),
        (P, 1, "action: 1 is not a flat list of arms"),
    ],
)
@pytest.mark.parametrize("method", ["value", "gradient"])
def test_bad_questions_are_refused(method, p, action, said):
    with pytest.raises(InvalidArgument) as told:
        getattr(problem(), method)(p, action)
    assert str(told.value).startswith(said)


def test_an_action_outside_an_explicit_set_is_refused():
    listed = problem(actions=sa.actions.Explicit([[0, 1], [2]]))
    assert listed.value(P, [1, 0]) == listed.value(P, [0, 1])
    with pytest.raises(InvalidArgument, match=r"action: \[0\] is outside the action set"):
        listed.value(P, [0])


def test_by_hand():
    weighted = problem(weights=[1, 3])
    # Item 0: 1 - 0.5 * 0.5 = 0.75; item 1: 0.5, times 3.
    assert weighted.value(P, [0, 1]) == 2.25
    assert weighted.gain(P, [0], 1) == 2.25 - 0.5
    assert weighted.gain(P, [], 2) == 3.0
    # d/dp_00 = 1 - p_10 = 0.5, d/dp_10 = 0.5, d/dp_01 = 3 (1 - p_11) = 1.5, d/dp_11 = 3 (1 - 0) = 3.
    assert weighted.gradient(P, [0, 1]).tolist() == [[0.5, 1.5], [0.5, 3.0], [0.0, 0.0]]
    assert (weighted.k, weighted.n_entries) == (2, 6)


def test_an_arm_of_the_batch_gains_nothing():
    assert problem().gain(P, [0, 1], 1) == 0.0


@pytest.mark.parametrize(
    ("action", "arm", "said"),
    [([0, 0], 1, "action: the same arm"), ([0], 7, "arm: unknown arm 7"), ([0], "x", "arm: ")],
)
def test_bad_gains_are_refused(action, arm, said):
    with pytest.raises(InvalidArgument, match=said):
        problem().gain(P, action, arm)


def test_weights_are_copied():
    weights = np.array([1.0, 2.0])
    made = problem(weights=weights)
    weights[0] = 100.0
    assert made.weights.tolist() == [1.0, 2.0]


def test_sparse_parameters_must_lie_on_the_support():
    mask = sparse.csr_array(np.array([[1, 0], [1, 1], [0, 1]]))
    thin = problem(support=mask)
    p = sparse.csr_array(np.array([[0.5, 0.0], [0.5, 0.5], [0.0, 1.0]]))
    assert thin.value(p, [0, 1]) == problem().value(P, [0, 1]) == 1.25
    assert thin.value([0.5, 0.5, 0.5, 1.0], [0, 1]) == 1.25
    elsewhere = sparse.csr_array(np.array([[0.5, 0.5], [0.5, 0.0], [0.0, 1.0]]))  # also four entries
    with pytest.raises(InvalidArgument, match="p: stores other entries than the support"):
        thin.value(elsewhere, [0])
    with pytest.raises(InvalidArgument, match=r"p: shape \(3, 2\); give shape \(4,\)"):
        thin.value(P, [0])


def test_pickle_keeps_everything():
    made = problem(weights=[1, 3], support=sparse.csr_array(np.array(P)))
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is sa.Problem
    assert repr(again) == repr(made)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sa.Subsets(0), "Subsets.k: 0 is not a positive whole number; give an int >= 1"),
        (lambda: sa.Subsets(2.0), "Subsets.k: 2.0 is not a positive whole number; give an int >= 1"),
        (lambda: sa.Logistic(0), "Logistic.c: 0.0; give a finite number > 0"),
        (lambda: sa.Logistic(float("nan")), "Logistic.c: nan; give a finite number > 0"),
        (lambda: sa.rewards.ClippedLinear(0), "ClippedLinear.slope: 0.0; give a finite number > 0"),
        (lambda: sa.rewards.ClippedLinear(1, 1), "ClippedLinear.shift: 1.0; give a number in [0, 1)"),
        (lambda: sa.rewards.ClippedLinear("a"), "ClippedLinear.slope: 'a' is not a number; give a number"),
        (lambda: sa.bc_ucb(0), "Bernstein.rho: 0.0; give a finite number > 0"),
        (lambda: sa.bc_ucb(10**400), "Bernstein.rho: 1000"),
        (lambda: sa.cucb(-1), "Hoeffding.rho: -1.0; give a finite number > 0"),
        (lambda: sa.kl_ucb(float("inf")), "KL.rho: inf; give a finite number > 0"),
        (lambda: sa.kl_ucb(c=-1), "KL.c: -1.0; give a finite number >= 0"),
        (lambda: sa.policies.ucb_v(zeta=0), "UCBV.zeta: 0.0; give a finite number > 0"),
        (lambda: sa.policies.ucb_v(c=float("nan")), "UCBV.c: nan; give a finite number >= 0"),
        (lambda: sa.policies.epsilon_greedy(1.5), "EpsilonGreedy.epsilon: 1.5; give a share in [0, 1]"),
        (lambda: sa.policies.epsilon_greedy(decay=-1), "EpsilonGreedy.decay: -1.0; give a finite number >= 0"),
        (lambda: sa.environments.Bernoulli([[2]]), "p: values range over [2, 2]; give values in [0, 1]"),
        (lambda: sa.environments.Bernoulli([["x"]]), "p: list is not an array of numbers"),
        (lambda: sa.environments.Beta([[0.5]], 0), "Beta.strength: 0.0; give a finite number > 0"),
        (lambda: sa.environments.Copula([[0.5]], arms=1.2), "Copula.arms: 1.2; give a share in [0, 1]"),
        (lambda: sa.environments.Copula([[0.5]], 0.5, 0.4, 0.3), "Copula.arms + items + all: above 1; give shares"),
        (lambda: sa.environments.CommonShock([[0.5]], -0.1), "CommonShock.share: -0.1; give a share in [0, 1]"),
        (lambda: sa.environments.Replay([0.5]), "Replay.table: shape (1,); give (n_rounds, n_arms, n_items)"),
        (lambda: sa.environments.Replay(np.zeros((0, 2, 2))), "Replay.table: shape (0, 2, 2)"),
        (lambda: sa.environments.Replay([[[0.5, 3]]]), "table: values range over [0.5, 3]"),
    ],
)
def test_every_constructor_says_what_was_wrong_and_what_would_be_right(make, said):
    with pytest.raises(InvalidArgument) as told:
        make()
    assert str(told.value).startswith(said)
    assert told.value.remedy
