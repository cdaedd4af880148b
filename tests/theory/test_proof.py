import math

import numpy as np
import pytest

import superarm as sa
from superarm.theory import follow
from superarm.theory.bound import setting
from superarm.theory.proof import _ProofSteps
from superarm.theory.sequences import best_sequences, geometric


@pytest.fixture(scope="module")
def instance():
    return sa.instances.lower_bound(8, 4, n_items=2, epsilon=0.3)


@pytest.fixture(scope="module")
def trace(instance):
    return follow(instance, 1500, seed=3)


def test_it_is_the_simulated_run(instance, trace):
    found = sa.simulate(instance, {"BC-UCB": sa.bc_ucb()}, 1500, 1, seed=3, target="optimal", progress=False)
    initial = 1500 - len(trace.t)
    early = sum(0.6 for j in range(3, 8) if j < 7)  # every batch once, of which four are suboptimal
    assert initial == 5
    assert trace.gap.sum() + early == pytest.approx(found.regret["BC-UCB"][0, -1])


def test_no_lemma_is_contradicted(trace):
    assert trace.contradictions == 0
    good = ~(trace.bad_mean | trace.bad_variance)
    assert (trace.gap[good] <= trace.radius[good]).all()
    assert (trace.level[trace.gap > 0] >= 1).all()
    assert (trace.width[good] <= 1.0 + 1e-9).all()
    assert (trace.allowed[good] >= 1.0).all()


def test_events_by_their_definition(instance, trace):
    # the first round after the initial ones: every free arm was played once, the empty ones five times
    t = int(trace.t[0])
    assert t == 6
    share = (3 / 5 + 1) * math.log(t)
    gamma_g = 1 / math.sqrt(math.e)
    assert trace.radius[0] == pytest.approx(2 * (12 * math.sqrt(6) * gamma_g * math.sqrt(share) + 34 * share))
    assert trace.fewest[0] == 1
    gap = trace.gap[trace.gap > 0][0]
    when = np.flatnonzero(trace.gap > 0)[0]
    g = (864 / math.e + 68 * gap / 2) * 4 * 4 * 5
    assert trace.threshold[when] == pytest.approx(0.2 * g * math.log(trace.t[when]) / gap**2)
    assert np.isinf(trace.threshold[trace.gap <= 0]).all()
    assert trace.few.shape == (len(trace.t), 1)


class Shifted(sa.environments.Replay):
    """An environment that lies about its means."""

    def means(self, problem, t):
        return np.full((1, 2, 8), 0.01)


def test_failing_intervals_are_noticed(instance):
    # replayed outcomes that are all 1 for arms that are said to have p = 1/2 can only break the intervals' events
    table = np.zeros((2, 8, 2))
    table[:, 3:] = 1.0
    honest = sa.Instance(instance.problem, sa.environments.Replay(table))
    assert not follow(honest, 60).bad_mean.any()
    shifted = Shifted(table)
    assert follow(sa.Instance(instance.problem, shifted), 300).bad_mean.any()


def test_variances_that_are_too_large_are_noticed(instance):
    # outcomes that alternate between 0 and 1 have variance 1/4, far above 2 p (1 - p) at p = 0.01
    table = np.zeros((2, 8, 2))
    table[1, 3:] = 1.0
    shifted = Shifted(table)
    trace = follow(sa.Instance(instance.problem, shifted), 700)
    assert trace.bad_variance.any()
    assert not trace.bad_variance[:20].any()  # V is at most 1/4, and 3.5 log t / N is larger at first


def test_levels_beyond_the_first():
    # six arms need two levels; S^1 and S^2 and the first k with |S^k| >= K b_k, by the definition
    instance = sa.instances.lower_bound(10, 6, epsilon=0.3)
    known = sa.theory.gaps(instance)
    steps = _ProofSteps(instance, setting(instance, known), known, geometric(6))
    g = (864 / math.e + 68 * 0.3) * 6 * 9  # l = 4 k0 + 1 = 9, Mbar = 1
    limits = np.array([0.2, 0.04]) * g * math.log(50) / 0.3**2
    for pulls, level in (
        (np.full(6, 1.0), 1),
        (np.array([limits[1] - 1, *[limits[0] + 1] * 5]), 2),  # one arm of six is below 6 * 0.2, but not 6 * 0.04
        (np.array([limits[1] - 1, limits[0] - 1, *[limits[0] + 1] * 4]), 1),
        (np.full(6, limits[0] + 1), 0),
    ):
        few, found, threshold = steps._levels(0.3, math.log(50), pulls)
        assert found == level
        assert few.tolist() == [int((pulls <= limit).sum()) for limit in limits]
        assert threshold == pytest.approx(limits[0])
    trace = follow(instance, 60)
    assert trace.few.shape[1] == 2
    assert trace.contradictions == 0


def test_other_sequences(instance):
    other = follow(instance, 300, sequences=best_sequences(4))
    assert other.contradictions == 0
    assert "rounds; H^p in 0" in str(other)


def test_refusals(instance):
    with pytest.raises(sa.InvalidArgument, match="rounds do not"):
        follow(instance, 3)
    from scipy.sparse import csr_array

    p = csr_array(np.eye(3) * 0.5)
    sparse = sa.Instance(sa.Problem(3, 3, sa.Coverage(), sa.Subsets(1), support=p), sa.environments.Bernoulli(p))
    with pytest.raises(sa.InvalidArgument, match="dense"):
        follow(sparse, 10)


def test_a_larger_instance():
    instance = sa.instances.random_coverage(64, 32, 2)
    trace = follow(instance, 40)
    assert len(trace.t) == 8  # after 32 rounds every arm has been played once
    assert trace.contradictions == 0


def test_only_index_policies_have_the_scores_that_the_proof_speaks_of(instance):
    with pytest.raises(sa.InvalidArgument, match="index policy"):
        follow(instance, 10, policy=sa.policies.directional_kl_ucb())
