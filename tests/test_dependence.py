"""The dependence asked for is there, and no other; rounds are independent, and arms share their numbers.

Fixed seeds. Frequencies over 20,000 rounds may be off by 5.2 standard errors, p-values may be 2e-7: a true environment
fails one comparison with probability below 2e-7, and there are fewer than 300.
"""

import math

import numpy as np
import pytest
from scipy import stats

from superarm import environments
from superarm.actions import Subsets
from superarm.core.errors import InvalidArgument
from superarm.environments import Bernoulli, Beta, Blocks, Cohorts, CommonShock, Comonotone, Copula, Swinging
from superarm.problem import Problem
from superarm.rewards import Linear
from superarm.simulation import instances

N = 20_000
P = np.array([[0.0, 0.02, 0.3], [0.5, 0.5, 0.7], [0.3, 0.98, 1.0], [0.3, 0.5, 0.9]])
WORLDS = {
    "bernoulli": Bernoulli(P),
    "copula of items": Copula(P, items=0.6),
    "copula of all kinds": Copula(P, arms=0.3, items=0.4, all=0.3),
    "common shock": CommonShock(P, 0.4),
    "full shock": CommonShock(P),
    "comonotone": Comonotone(P),
    "beta": Beta(P, 2.0),
}


def played(environment, shape, n=N, t=1, arms=None, seed=11):
    """Outcomes (n, arms, items) of all arms in one round of ``n`` replications."""
    problem = Problem(*shape, Linear(), Subsets(shape[0]))
    keys = np.random.default_rng(seed).integers(0, 2**63, n).astype(np.uint64)
    action = np.tile(np.arange(shape[0]) if arms is None else arms, (n, 1))
    return environment.draw(problem, action, t, keys).outcome


def joint(x, y):
    return float((x * y).mean())


def close(found, wanted, n=N):
    return abs(found - wanted) <= 5.2 * math.sqrt(wanted * (1.0 - wanted) / n) + 1e-12


@pytest.mark.parametrize("name", [name for name in WORLDS if name != "beta"])
def test_binary_marginals_are_exact(name):
    outcome = played(WORLDS[name], P.shape)
    assert set(np.unique(outcome)) <= {0.0, 1.0}
    for hits, p in zip(outcome.sum(axis=0).ravel(), P.ravel(), strict=True):
        assert stats.binomtest(int(hits), N, p).pvalue > 2e-7


@pytest.mark.parametrize("name", WORLDS)
def test_rounds_and_replications_are_independent(name):
    first, second = (played(WORLDS[name], P.shape, 5000, t).reshape(5000, -1) for t in (1, 2))
    for x, y in zip(first.T, second.T, strict=True):
        if x.std() > 0.0:
            assert abs(np.corrcoef(x, y)[0, 1]) < 5.2 / math.sqrt(5000)
            assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 5.2 / math.sqrt(4999)


@pytest.mark.parametrize("name", WORLDS)
def test_an_arm_has_the_same_outcome_whatever_else_is_played(name):
    everyone = played(WORLDS[name], P.shape, 60)
    assert everyone.std(axis=0).max() > 0.0
    for arms in ([2], [3, 0], [1, 3, 2]):
        np.testing.assert_array_equal(played(WORLDS[name], P.shape, 60, arms=arms), everyone[:, arms])
    assert not np.array_equal(played(WORLDS[name], P.shape, 60, seed=1), everyone)


def test_independent_entries_are_independent():
    p = np.array([[0.2, 0.5], [0.5, 0.8]])
    x = played(Bernoulli(p), (2, 2)).reshape(N, 4)
    for a in range(4):
        for b in range(a):
            assert close(joint(x[:, a], x[:, b]), p.flat[a] * p.flat[b])


@pytest.mark.parametrize(
    ("arms", "items", "all_"), [(0.5, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, 0.5), (0.2, 0.3, 0.4), (0.0, 1.0, 0.0)]
)
def test_the_copula_has_the_correlations_of_its_parts(arms, items, all_):
    # At p = 1/2 both latents are below 0 with probability 1/4 + arcsin(rho) / (2 pi) (Sheppard 1899).
    x = played(Copula(np.full((2, 2), 0.5), arms, items, all_), (2, 2))
    for pair, rho in (
        ((x[:, 0, 0], x[:, 1, 0]), arms + all_),  # one item, two arms
        ((x[:, 0, 0], x[:, 0, 1]), items + all_),  # one arm, two items
        ((x[:, 0, 0], x[:, 1, 1]), all_),
        ((x[:, 0, 1], x[:, 1, 0]), all_),
    ):
        assert close(joint(*pair), 0.25 + math.asin(rho) / (2.0 * math.pi))


def test_the_copula_away_from_one_half():
    x = played(Copula([[0.1, 0.7]], items=0.6), (1, 2))
    law = stats.multivariate_normal(cov=[[1.0, 0.6], [0.6, 1.0]])
    assert close(joint(x[:, 0, 0], x[:, 0, 1]), law.cdf(stats.norm.ppf([0.1, 0.7])))


def test_full_copulas_are_comonotone():
    p = np.array([[0.3, 0.6], [0.3, 0.6]])
    by_arm, by_item, by_all = (played(Copula(p, **{kind: 1.0}), (2, 2), 2000) for kind in ("arms", "items", "all"))
    np.testing.assert_array_equal(by_arm[:, 0], by_arm[:, 1])
    assert (by_item[..., 0] <= by_item[..., 1]).all()
    np.testing.assert_array_equal(by_all[:, 0], by_all[:, 1])
    assert (by_all[..., 0] <= by_all[..., 1]).all()
    assert not np.array_equal(by_item[:, 0], by_item[:, 1])


@pytest.mark.parametrize("share", [0.0, 0.35, 1.0])
def test_the_common_shock_mixes_two_worlds(share):
    p = np.array([[0.2, 0.5], [0.5, 0.8]])
    x = played(CommonShock(p, share), (2, 2)).reshape(N, 4)
    for a in range(4):
        for b in range(a):
            low, high = sorted((p.flat[a], p.flat[b]))
            assert close(joint(x[:, a], x[:, b]), share * low + (1.0 - share) * low * high)


def test_comonotone_items_hang_together_and_arms_do_not():
    x = played(Comonotone([[0.2, 0.5], [0.5, 0.5]]), (2, 2))
    assert (x[:, 0, 0] <= x[:, 0, 1]).all()
    np.testing.assert_array_equal(x[:, 1, 0], x[:, 1, 1])  # the construction of the lower bound: X_ij = X_j
    assert close(joint(x[:, 0, 1], x[:, 1, 1]), 0.25)


@pytest.mark.parametrize("strength", [0.5, 2.0, 30.0])
def test_beta_outcomes_follow_their_law(strength):
    p = np.array([[0.1, 0.5, 0.9]])
    x = played(Beta(p, strength), (1, 3), 8000)[:, 0]
    for i in range(3):
        law = stats.beta(p[0, i] * strength, (1.0 - p[0, i]) * strength)
        assert law.var() == pytest.approx(p[0, i] * (1.0 - p[0, i]) / (strength + 1.0))
        cells = np.searchsorted([0.001, 0.1, 0.5, 0.9, 0.999], x[:, i])
        wanted = np.diff(law.cdf([0.0, 0.001, 0.1, 0.5, 0.9, 0.999, 1.0])) * len(x)
        occupied = wanted > 5.0
        found = np.bincount(cells, minlength=6)[occupied]
        assert stats.chisquare(found, wanted[occupied] * found.sum() / wanted[occupied].sum()).pvalue > 2e-7
        if min(p[0, i], 1.0 - p[0, i]) * strength >= 0.2:  # below, much of the law's mass is nearer to 1 than any float
            assert stats.kstest(x[:, i], law.cdf).pvalue > 2e-7
    assert np.abs(np.corrcoef(x.T)[np.triu_indices(3, 1)]).max() < 5.2 / math.sqrt(8000)


def test_beta_at_the_ends_is_certain():
    x = played(Beta([[0.0, 1.0]], 3.0), (1, 2), 100)
    assert not x[:, 0, 0].any()
    assert x[:, 0, 1].all()


# --- blocks

CHANCE = np.array([[0.3, 0.6, 0.3, 0.5], [0.5, 0.5, 0.5, 0.5], [0.2, 0.2, 0.2, 0.2]])
BLOCKS = Blocks(CHANCE, [[1, 1, 0, -1], [0, 0, 0, 0], [2, 2, 2, 2]], [0.0, 0.5, 0.0], [[0.0] * 4, [0.0] * 4, [0.5] * 4])


def test_blocks_move_together_and_against_each_other():
    x = played(BLOCKS, (3, 4))
    high = x == 1.0
    assert all(close(high[:, j, i].mean(), CHANCE[j, i]) for j in range(3) for i in range(4))
    assert set(np.unique(x[:, 2])) == {0.5, 1.0}
    assert not (high[:, 0, 0] & ~high[:, 0, 1]).any()  # 0.3 < 0.6 with one number
    assert not (high[:, 0, 0] & high[:, 0, 3]).any()  # u < 0.3 and 1 - u < 0.5
    assert close((high[:, 0, 0] & high[:, 0, 2]).mean(), 0.09)
    assert (high[:, 2] == high[:, 2, :1]).all()


def test_a_shock_lets_all_items_of_an_arm_agree_and_arms_are_independent():
    high = played(BLOCKS, (3, 4)) == 1.0
    assert close((high[:, 1, 0] & high[:, 1, 3]).mean(), 0.5 * 0.5 + 0.5 * 0.25)
    assert close((high[:, 0, 0] & high[:, 2, 0]).mean(), 0.06)


def test_generated_instances_have_the_dependence_that_they_name():
    rare = instances.dependent_coverage(4, 3, 1, "rare", high=0.4, seed=1)
    plain = instances.dependent_coverage(4, 3, 1, "independent", high=0.4, seed=1)
    assert rare.p == pytest.approx(plain.p)
    assert rare.environment.chance.max() <= 0.02
    assert instances.many_items(3, dependence="comonotone").environment.block.tolist() == [[1, 1, 1]] * 4
    for wrong in (
        lambda: instances.dependent_coverage(dependence="all"),
        lambda: instances.many_items(2, dependence="all"),
    ):
        with pytest.raises(InvalidArgument, match="dependence"):
            wrong()


# --- recorded people, and worlds that change


def test_cohorts_draw_one_person_of_each_group_for_all_arms():
    rng, n = np.random.default_rng(0), 3000
    table = (rng.random((7, 3)) < 0.5).astype(float)
    table[:, 2] = 1.0 - table[:, 0]  # nobody does the same with arms 0 and 2
    world = Cohorts(table, [0, 3, 7])
    assert world.average == pytest.approx(np.array([table[:3].mean(axis=0), table[3:].mean(axis=0)]).T)
    rounds = played(world, (3, 2), n)
    np.testing.assert_array_equal(rounds[:, 2], 1.0 - rounds[:, 0])
    for i, people in enumerate((table[:3], table[3:])):
        assert {tuple(row) for row in rounds[:, :, i]} == {tuple(row) for row in people}
    assert (np.abs(rounds.mean(axis=0) - world.average) < 5.2 * 0.5 / np.sqrt(n)).all()
    both = (rounds[:, 0, 0] * rounds[:, 0, 1]).mean()  # persons of different groups are independent
    assert both == pytest.approx(world.average[0].prod(), abs=5.2 * 0.5 / np.sqrt(n))


def test_a_swing_is_its_formula():
    p, problem = P[:3, :2], Problem(3, 2, Linear(), Subsets(1))
    environment = Swinging(p, p[::-1].copy(), 80.0, 10)
    for t in (1, 10, 11, 41, 77):
        share = (1.0 - math.cos(2.0 * math.pi * ((t - 1) // 10 * 10) / 80.0)) / 2.0
        assert problem.support.to_user(environment.means(problem, t)[0]) == pytest.approx(p + (p[::-1] - p) * share)
    assert environment.changes(35).tolist() == [1, 11, 21, 31]


WRONG = [
    (lambda: Blocks([[0.5, 0.5]], [[1]]), "block"),
    (lambda: Blocks([[0.5, 0.5]], [[1, 3]]), "block"),
    (lambda: Blocks([[0.5, 0.5]], [[1, 1]], [0.1, 0.2]), "shock"),
    (lambda: Blocks([[0.5, 0.5]], [[1, 1]], None, [[0.5]]), "base"),
    *((lambda first=first: Cohorts(np.zeros((7, 3)), first), "first") for first in ([0, 3], [1, 3, 7], [0, 3, 3, 7])),
    *((lambda since=since: environments.Switching([P, P], since), "since") for since in ([2, 5], [1, 1], [1])),
    (lambda: Swinging(P, P[:1], 10.0), "other"),
    (lambda: Copula(P, 0.6, 0.6), "arms + items + all"),
    (lambda: CommonShock(P, 1.5), "share"),
    (lambda: Beta(P, 0.0), "strength"),
    (lambda: environments.Replay(np.zeros((0, 2, 1))), "table"),
]


@pytest.mark.parametrize(("make", "argument"), WRONG)
def test_wrong_parameters_are_refused_by_name(make, argument):
    with pytest.raises(InvalidArgument) as refused:
        make()
    assert refused.value.argument == argument


def test_an_environment_keeps_its_own_copy():
    table = np.zeros((1, 2, 1))
    environment = environments.Replay(table)
    table[:] = 1.0
    assert not environment.table.any()
