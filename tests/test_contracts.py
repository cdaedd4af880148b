"""Every component keeps the contract of its family, and ``superarm.testing`` finds those that do not.

A new component needs an entry in ``EXAMPLES``; the test of that name says so. Broken components below are sound but
for one promise each.
"""

import importlib
import itertools
import pkgutil
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

import superarm
from superarm import actions, context, environments, indices, intake, oracles, policies, rewards, support, testing
from superarm._jit import component, components, interpreted
from superarm.actions import Explicit, Subsets
from superarm.actions.explicit import SumOfWeights
from superarm.policies.catalog import bc_ucb, bcucb_t, cts, epsilon_greedy, kl_ucb
from superarm.environments import Bernoulli
from superarm.indices import Bernstein
from superarm.oracles import Greedy, Guarantee
from superarm.oracles.exhaustive import RewardAt
from superarm.oracles.ranged import RangedGreedy
from superarm.policies import Uniform, contextual
from superarm.policies.contextual import forgetting_contexts
from superarm.policies.fast import directional_sieve, linear_sieve, shared_sieve, sieve, sparse_sieve
from superarm.policies.set_search import SumAndBonus
from superarm.rewards import Coverage, Linear, Smoothness
from superarm.core.streams import uniform
from superarm.core.support import Sparse
from superarm.testing import ContractViolation, check

P = np.array([[0.1, 0.5, 0.9], [0.3, 0.3, 0.3]])
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
CONTEXT = context.Context(context.Features(categorical={"country": ["NO", "other"]}), arms=[[0.5], [1.0]])
RARE = sparse.csr_array(np.array([[1, 0, 1], [0, 1, 0]]))

EXAMPLES = {
    "superarm.actions.explicit:SumOfWeights": SumOfWeights(np.array([0.5, 2.0, 1.0])),
    "superarm.oracles.exhaustive:RewardAt": RewardAt(
        Coverage(), superarm.Problem(2, 3, Coverage(), Subsets(1)).terms, P.reshape(-1)
    ),
    "superarm.policies.set_search:SumAndBonus": SumAndBonus(np.array([0.5, 2.0]), np.array([1.0, 3.0])),
    "superarm.actions.explicit:Explicit": Explicit([[0, 1], [2, 3, 4], [5, 0]]),
    "superarm.actions.graphic:GraphicMatroid": actions.GraphicMatroid(4, SQUARE),
    "superarm.actions.knapsack:Knapsack": actions.Knapsack([1.0, 2.0, 3.0, 2.0, 1.0, 1.5], budget=4.0),
    "superarm.actions.laminar:Laminar": actions.Laminar([([0, 1, 2], 2), (range(6), 3)]),
    "superarm.actions.matching:Matching": actions.Matching(3, 3, [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 2)]),
    "superarm.actions.partition:PartitionMatroid": actions.PartitionMatroid("aabbcc", {"a": 1, "b": 2, "c": 1}),
    "superarm.actions.paths:Paths": actions.Paths(4, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 3)], 0, 3),
    "superarm.actions.pinned:Pinned": actions.Pinned(Subsets(3), [4]),
    "superarm.actions.slots:Slots": actions.Slots([[0, 1, 5], [1, 2, 3], [3, 4, 5]]),
    "superarm.actions.subsets:Subsets": Subsets(3),
    "superarm.actions.trees:SpanningTrees": actions.SpanningTrees(4, SQUARE),
    "superarm.environments.bernoulli:Bernoulli": Bernoulli(P),
    "superarm.environments.beta:Beta": environments.Beta(P, 3.0),
    "superarm.environments.cascade:Cascade": environments.Cascade(P),
    "superarm.environments.cascade:ConjunctiveCascade": environments.ConjunctiveCascade(P),
    "superarm.environments.context_table:ContextTable": environments.ContextTable(
        np.ones((2, 1)), [0, 0], [P.reshape(-1), P[::-1].reshape(-1)], [1.0, 1.0]
    ),
    "superarm.environments.cohorts:Cohorts": environments.Cohorts(
        [[0, 1], [1, 0.5], [0, 0], [1, 1], [0.2, 0]], [0, 2, 3, 5]
    ),
    "superarm.environments.correlated:CommonShock": environments.CommonShock(P, 0.5),
    "superarm.environments.blocks:Blocks": environments.Blocks(P, [[1, 1, -1], [0, 2, 2]], [0.0, 0.1], 0.5 * P),
    "superarm.environments.correlated:Comonotone": environments.Comonotone(P),
    "superarm.environments.correlated:Copula": environments.Copula(P, 0.2, 0.3, 0.4),
    "superarm.environments.free_samples:FreeSamples": environments.FreeSamples(Bernoulli(P)),
    "superarm.environments.influence:IndependentCascade": environments.IndependentCascade(
        sparse.csr_array(np.array([[0.0, 0.3], [0.6, 0.0]]))
    ),
    "superarm.environments.positions:DependentClick": environments.DependentClick(P, [0.9, 0.4]),
    "superarm.environments.positions:PositionBased": environments.PositionBased(P, [0.9, 0.4]),
    "superarm.environments.replay:Replay": environments.Replay(np.random.default_rng(0).random((4, 2, 3))),
    "superarm.environments.swinging:Swinging": environments.Swinging(P, P[:, ::-1].copy(), 1e5, 5000),
    "superarm.environments.switching:Switching": environments.Switching([P, P[:, ::-1]], [1, 5000]),
    "superarm.context.context:Context": CONTEXT,
    "superarm.context.features:Features": CONTEXT.features,
    "superarm.context.models:LinearModel": context.LinearModel(shared=True),
    "superarm.context.models:LogisticModel": context.LogisticModel(shared="arms", prior_mean=0.1),
    "superarm.context.models:Segments": context.Segments(by=["country"]),
    "superarm.indices.bernstein:Bernstein": Bernstein(),
    "superarm.indices.hoeffding:Hoeffding": indices.Hoeffding(),
    "superarm.indices.kl:KL": indices.KL(),
    "superarm.indices.kl:KLMoss": indices.KLMoss(),
    "superarm.indices.mean:Mean": indices.Mean(),
    "superarm.indices.posterior:AnglePosterior": indices.AnglePosterior(),
    "superarm.indices.posterior:BetaPosterior": indices.BetaPosterior(),
    "superarm.indices.posterior:GaussianSample": indices.GaussianSample(),
    "superarm.indices.ucb1:UCB1": indices.UCB1(),
    "superarm.indices.ucb_v:UCBV": indices.UCBV(),
    "superarm.intake:Coin": intake.Coin(),
    "superarm.intake:Exact": intake.Exact(),
    "superarm.oracles.continuous:ContinuousGreedy": oracles.ContinuousGreedy(),
    "superarm.oracles.cost_benefit:CostBenefit": oracles.CostBenefit(),
    "superarm.oracles.default:Default": oracles.Default(),
    "superarm.oracles.exhaustive:Exhaustive": oracles.Exhaustive(),
    "superarm.oracles.failing:Failing": oracles.Failing(Greedy(), 0.7),
    "superarm.oracles.greedy:Greedy": Greedy(),
    "superarm.oracles.greedy_max:GreedyMax": oracles.GreedyMax(),
    "superarm.oracles.imm:IMM": oracles.IMM(),
    "superarm.oracles.knapsack_scheme:KnapsackScheme": oracles.KnapsackScheme(),
    "superarm.oracles.knapsack_table:KnapsackTable": oracles.KnapsackTable(),
    "superarm.oracles.lazy:LazyGreedy": oracles.LazyGreedy(),
    "superarm.oracles.linearised:Linearised": oracles.Linearised(),
    "superarm.oracles.local_search:LocalSearch": oracles.LocalSearch(),
    "superarm.oracles.modular:Modular": oracles.Modular(),
    "superarm.oracles.partial_enumeration:PartialEnumeration": oracles.PartialEnumeration(),
    "superarm.oracles.ranged:RangedGreedy": RangedGreedy(),
    "superarm.oracles.stochastic:StochasticGreedy": oracles.StochasticGreedy(),
    "superarm.oracles.top_arms:Reversed": oracles.Reversed(),
    "superarm.oracles.top_arms:TopArms": oracles.TopArms(),
    "superarm.policies.batch_bonus:Delta": policies.Delta(),
    "superarm.policies.batch_bonus:LeastPlayed": policies.LeastPlayed(),
    "superarm.policies.batch_policy:BatchPolicy": policies.BatchPolicy(policies.Delta()),
    "superarm.policies.covariance_policy:CovariancePolicy": superarm.ols_ucb_c(0.5),
    "superarm.policies.covariance_regions:CovarianceBox": policies.CovarianceBox(),
    "superarm.policies.covariance_regions:CovarianceEllipsoid": policies.CovarianceEllipsoid(),
    "superarm.policies.directional_policy:DirectionalPolicy": superarm.directional_kl_moss(policies.Covariance()),
    "superarm.policies.directions:Covariance": policies.Covariance(),
    "superarm.policies.directions:Triangle": policies.Triangle(),
    "superarm.policies.contextual.forgetting_contexts:ContextForgetting": contextual.ContextForgetting(
        superarm.vac2_ucb(), 4, np.ones(3)
    ),
    "superarm.policies.contextual.forgetting_contexts:RegressionLayout": forgetting_contexts.RegressionLayout(),
    "superarm.policies.contextual.forgetting_contexts:SegmentLayout": forgetting_contexts.SegmentLayout(),
    "superarm.policies.contextual.grouped:GroupedPolicy": contextual.GroupedPolicy(indices.KL(), Greedy(), None),
    "superarm.policies.contextual.logistic:LogisticPolicy": superarm.logistic_ts(0.5),
    "superarm.policies.contextual.regression:LinearPolicy": superarm.vac2_ucb(),
    "superarm.policies.contextual.rules:Ellipsoid": contextual.Ellipsoid(),
    "superarm.policies.contextual.rules:GaussianPosterior": contextual.GaussianPosterior(),
    "superarm.policies.contextual.rules:VarianceWeighted": contextual.VarianceWeighted(),
    "superarm.policies.contextual.segment_policy:SegmentPolicy": contextual.SegmentPolicy(kl_ucb()),
    "superarm.policies.epsilon_greedy:EpsilonGreedy": epsilon_greedy(0.3, 0.5),
    "superarm.policies.forgetting:Forgetting": superarm.sliding_window(kl_ucb(), 12, blocks=3),
    "superarm.policies.index_policy:IndexPolicy": cts(),
    "superarm.policies.joint_policy:JointPolicy": policies.JointPolicy(indices.KLMoss()),
    "superarm.policies.one_gaussian:OneGaussian": policies.OneGaussian(),
    "superarm.policies.start:NoStart": policies.NoStart(),
    "superarm.policies.start:TryEveryArm": policies.TryEveryArm(),
    "superarm.policies.fast.listed:Screened": policies.screened(bc_ucb()),
    "superarm.policies.set_bonus:SetBonus": policies.SetBonus(),
    "superarm.policies.shared_draw:SharedDraw": superarm.shared_cts(),
    "superarm.policies.set_search:Ascent": policies.Ascent(),
    "superarm.policies.set_search:EveryBatch": policies.EveryBatch(np.array([[0, 1]]), np.array([2])),
    "superarm.policies.fast.directional_sieve:DirectionalSieve": directional_sieve.DirectionalSieve(
        indices.KLMoss(), policies.Triangle(), Greedy()
    ),
    "superarm.policies.fast.linear_sieve:EntryScorer": linear_sieve.EntryScorer(None, None, 1.0),
    "superarm.policies.fast.linear_sieve:LinearSieve": linear_sieve.LinearSieve(superarm.vac2_ucb()),
    "superarm.policies.fast.shared_sieve:SharedScorer": shared_sieve.SharedScorer(None, None),
    "superarm.policies.fast.shared_sieve:SharedSieve": shared_sieve.SharedSieve(superarm.vac2_ucb()),
    "superarm.policies.fast.sieve:Sieve": sieve.Sieve(Bernstein(), Greedy(), intake.Exact()),
    "superarm.policies.fast.sparse_sieve:SparseSieve": sparse_sieve.SparseSieve(
        Bernstein(), oracles.LazyGreedy(), intake.Exact()
    ),
    "superarm.policies.uniform:Uniform": Uniform(),
    "superarm.rewards.conjunctive:Conjunctive": rewards.Conjunctive(),
    "superarm.rewards.coverage:Coverage": Coverage(),
    "superarm.rewards.linear:ClippedLinear": rewards.ClippedLinear(2.5, 0.3),
    "superarm.rewards.linear:Linear": Linear(),
    "superarm.rewards.logistic:Logistic": rewards.Logistic(2.0),
    "superarm.rewards.spread:Spread": rewards.Spread(),
    "superarm.core.support:Dense": support.Dense(2, 3),
    "superarm.core.support:Sparse": Sparse(RARE),
}
PLAIN_ONLY = {
    "superarm.intake",
    "superarm.core.support",
    "superarm.policies.set_search",
    "superarm.policies.batch_bonus",
    "superarm.policies.covariance_regions",
    "superarm.policies.directions",
    "superarm.policies.start",
    "superarm.context.context",
    "superarm.context.features",
    "superarm.context.models",
    "superarm.policies.contextual.regression",  # tests/context compares contextual policies with naive references
    "superarm.policies.contextual.forgetting_contexts",
    "superarm.policies.contextual.grouped",
    "superarm.policies.contextual.logistic",
    "superarm.policies.contextual.rules",
    "superarm.policies.contextual.segment_policy",
    "superarm.policies.fast.linear_sieve",
    "superarm.policies.fast.shared_sieve",  # tests/policies compares both sieves with the plain policy
}  # families of their own files
BRUTE_FORCED = {  # oracles for certain action sets: tests/oracles compares each with brute force on those
    "continuous", "cost_benefit", "greedy_max", "imm", "knapsack_scheme", "knapsack_table", "linearised",
    "local_search", "partial_enumeration", "stochastic",
}  # fmt: skip


def list_problem(rng):
    return superarm.Problem(6, 1, Coverage(), Subsets(3))


def linear_problem(rng):
    return superarm.Problem(6, 4, Linear(), Subsets(3), weights=rng.uniform(0.1, 1.0, 4))


def found():
    """The components of the package itself; service and laboratory may need extras and hold none."""
    for module in pkgutil.walk_packages(superarm.__path__, "superarm."):
        if module.name.split(".")[1] in {"indices", "rewards", "actions", "environments", "oracles", "policies"}:
            importlib.import_module(module.name)
    return sorted(name for name in components if name.startswith("superarm."))


@pytest.mark.parametrize("name", found())
def test_components_keep_their_contract(name):
    assert name in EXAMPLES, f"{name} is new: give an example of it in EXAMPLES"
    example = EXAMPLES[name]
    assert type(example) is components[name]
    module = name.partition(":")[0]
    if hasattr(example, "value_of"):  # a family of one method: tests/oracles compares the best batch with brute force
        testing.check_plain(example)
        assert example.value_of(np.array([0, 1])) > example.value_of(np.array([0]))
    elif module in PLAIN_ONLY or module.removeprefix("superarm.oracles.") in BRUTE_FORCED:
        testing.check_plain(example)
    elif module in ("superarm.policies.set_bonus", "superarm.policies.covariance_policy"):  # for modular rewards only
        testing.check_policy(example, superarm.Problem(5, 3, Linear(), Subsets(2)))
    elif module == "superarm.policies.fast.sparse_sieve":
        thin = superarm.Problem(2, 3, Coverage(), Subsets(1), support=RARE)
        testing.check_policy(example, thin)
    elif name == "superarm.oracles.modular:Modular":  # for modular rewards only
        testing.check_plain(example)
        testing.check_oracle(example, linear_problem)
    elif module == "superarm.environments.context_table":
        testing.check_plain(example)
        testing.check_environment(example, superarm.Problem(2, 3, Coverage(), Subsets(1)))
    elif module == "superarm.environments.influence":
        table = sparse.csr_array(np.array([[0.0, 0.3], [0.6, 0.0]]))
        testing.check_plain(example)
        testing.check_environment(example, superarm.Problem(2, 2, Coverage(), Subsets(1), support=table))
    elif module == "superarm.oracles.top_arms":  # for one item only
        testing.check_plain(example)
        testing.check_oracle(example, list_problem)
    elif module == "superarm.policies.one_gaussian":
        testing.check_policy(example, list_problem(None), rounds=20)
    elif name == "superarm.policies.fast.listed:Screened":  # for listed batches only
        testing.check_plain(example)
        testing.check_policy(example, superarm.Problem(5, 3, Coverage(), Explicit([[0, 1], [2, 3, 4], [1, 4], [3]])))
    else:
        check(example)


def test_every_example_is_of_a_component():
    assert set(EXAMPLES) <= set(components)


def test_a_policy_without_a_start_keeps_the_contract():
    testing.check_policy(bcucb_t())


def test_a_policy_with_a_failing_oracle_keeps_the_contract():
    testing.check_policy(policies.IndexPolicy(indices.KL(), oracles.Failing(Greedy(), 0.5)), rounds=15)


# ---- broken on purpose; interpreted, since compiling them would prove nothing more


@component
class AboveOne(Bernstein):
    @interpreted
    def score(self, mean, deviation, level, stream):
        return mean + level


@component
class BelowMean(Bernstein):
    @interpreted
    def score(self, mean, deviation, level, stream):
        return mean * level / (1.0 + level)


@component
class FallingScore(Bernstein):
    @interpreted
    def score(self, mean, deviation, level, stream):
        return mean + (1.0 - mean) / (1.0 + level)


@component
class FallingLevel(Bernstein):
    @interpreted
    def level(self, pulls, t, share):
        return 1.0 / (pulls * t)


@component
class NegativeLevel(Bernstein):
    @interpreted
    def level(self, pulls, t, share):
        return np.log(t) / pulls - 0.1


@component
class Ordered(Linear):
    @interpreted
    def join(self, state, q):
        return 0.5 * state + q


@component
class WrongLift(Coverage):
    @interpreted
    def item_gain(self, weight, state, q):
        return weight * q


@component
class Harmful(Linear):
    @interpreted
    def worth(self, weight, state):
        return -weight * state

    @interpreted
    def item_gain(self, weight, state, q):
        return -weight * q


@component
class NotSubmodular(rewards.Logistic):
    @property
    def submodular(self):
        return True


@component
class NotModular(Coverage):
    @property
    def modular(self):
        return True


@component
class WrongDerivative(Coverage):
    @interpreted
    def derivative(self, weight, state, q):
        return 0.9 * state


@component
class TooSmooth(Linear):
    @interpreted
    def smoothness(self, k):
        return Smoothness(0.9, 10.0, 10.0)


@component
class TooGini(Linear):
    @interpreted
    def smoothness(self, k):
        return Smoothness(1.0, 0.1, 0.1)


@component
class WrongCapacity(Subsets):
    @interpreted
    def capacity(self, n_arms):
        return self.k + 1


@component
class TooFewBatches(Subsets):
    @interpreted
    def n_batches(self, n_arms):
        return 3.0


@component
class RefusesItsOwn(Subsets):
    @interpreted
    def includes(self, action):
        return 0 not in action


@component
class AdmitsTooLittle(Subsets):
    @interpreted
    def admits(self, chosen, size, arm):
        return size < self.k and arm != 0


@component
class AdmitsTooMuch(Subsets):
    @interpreted
    def batches(self, n_arms):
        return (b for b in itertools.combinations(range(n_arms), self.k) if b != (0, 1))


@component
class CoversTooMuch(Subsets):
    @interpreted
    def cover(self, candidates):
        return np.arange(len(candidates.counts))


@component
class SamplesNothing(Subsets):
    @interpreted
    def sample(self, candidates, stream):
        return np.zeros(0, np.int64)


@component
class Worst(Greedy):
    @interpreted
    def maximize(self, problem, q, candidates, stream):
        worth = q.reshape(problem.n_arms, -1).sum(axis=1)
        return np.argsort(np.where(candidates.eligible, worth, np.inf))[:3]


@component
class Ineligible(Greedy):
    @interpreted
    def maximize(self, problem, q, candidates, stream):
        return np.argsort(-q.reshape(problem.n_arms, -1).sum(axis=1))[:3]

    @interpreted
    def guarantee(self, problem):
        return Guarantee(0.0, 1.0)


COUNTER = itertools.count()


@component
class Moody(Greedy):
    @interpreted
    def maximize(self, problem, q, candidates, stream):
        return np.flatnonzero(candidates.eligible)[next(COUNTER) % 2 :][:3]


@component
class PlaysTooMany(Uniform):
    @interpreted
    def choose(self, problem, current, memory, stream):
        return np.arange(problem.n_arms)


@component
class Fickle(Uniform):
    @interpreted
    def choose(self, problem, current, memory, stream):
        return np.array([next(COUNTER) // 3 % problem.n_arms])


@component
class NeverForgets(Uniform):
    @interpreted
    def learn(self, problem, tally, memory, feedback, stream, sign):
        tally.pulls[feedback.action] += 1.0


@component
class OutOfRange(Bernoulli):
    @interpreted
    def draw(self, support, action, t, stream, outcome, seen):
        outcome[:] = 1.5


@component
class Contagious(Bernoulli):
    @interpreted
    def draw(self, support, action, t, stream, outcome, seen):
        outcome[:] = (t + len(action)) % 2

    @interpreted
    def means(self, t):
        return np.full(self.p.shape, 0.5)


@component
class LiesAboutMeans(Bernoulli):
    @interpreted
    def draw(self, support, action, t, stream, outcome, seen):
        outcome[:] = 0.2


@component
class InCallOrder(Bernoulli):
    @interpreted
    def draw(self, support, action, t, stream, outcome, seen):
        for place in range(len(action) * self.p.shape[1]):  # without seek: what was drawn before decides
            outcome[place] = float(uniform(stream) < 0.5)

    @interpreted
    def means(self, t):
        return np.full(self.p.shape, 0.5)


@component
class Swollen(NamedTuple):
    rho: Annotated[Any, lambda value, name: value + 1.0] = 0.0

    @interpreted
    def score(self, mean, deviation, level, stream):
        return mean

    @interpreted
    def level(self, pulls, t, share):
        return 0.0


@component
class Idle(NamedTuple):
    pass


BROKEN = [
    (AboveOne(), r"scores lie in \[0, 1\]"),
    (BelowMean(), "scores are at least the mean"),
    (FallingScore(), "scores grow with the level"),
    (FallingLevel(), "levels are not negative and grow with t"),
    (NegativeLevel(), "levels are not negative and grow with t"),
    (Ordered(), "the order of joining does not matter"),
    (WrongLift(), "item_gain is a difference of worth"),
    (Harmful(), "an arm never lowers the worth"),
    (NotSubmodular(20.0), "gains shrink as the batch grows"),
    (NotModular(), "an arm adds the same to every batch"),
    (WrongDerivative(), "derivative is that of worth"),
    (TooSmooth(), "gamma_inf bounds the derivatives"),
    (TooGini(), "gamma_g bounds the Gini-weighted gradient"),
    (WrongCapacity(2), "capacity is the size of the largest batch"),
    (TooFewBatches(2), "n_batches is a bound"),
    (RefusesItsOwn(2), "a listed batch may be played"),
    (AdmitsTooLittle(2), "admits is true exactly if some batch contains all arms"),
    (AdmitsTooMuch(2), "admits is true exactly if some batch contains all arms"),
    (CoversTooMuch(2), "cover and sample may be played"),
    (SamplesNothing(2), "cover and sample may be played"),
    (Worst(), "value is at least 0.704 of the best"),
    (Ineligible(), "only eligible arms are picked"),
    (Moody(), "the same stream gives the same batch"),
    (PlaysTooMany(), "batches may be played"),
    (Fickle(), "the same seed gives the same batches"),
    (NeverForgets(), "undoing feedback restores the tally"),
    (OutOfRange(P), r"outcomes lie in \[0, 1\]"),
    (Contagious(P), "the outcome of an arm does not depend on the others"),
    (InCallOrder(P), "the outcome of an arm does not depend on the others"),
    (LiesAboutMeans(P), "outcomes average to the means"),
    (Swollen(), "pickling keeps a component"),
    (Idle(), "a component has the methods of a family"),
]


@pytest.mark.parametrize(("broken", "promise"), BROKEN, ids=[type(broken).__name__ for broken, _ in BROKEN])
def test_broken_components_are_caught(broken, promise):
    with pytest.raises(ContractViolation, match=promise):
        check(broken)
