"""``testing.check`` passes superarm's components and says in a sentence what is wrong with broken ones."""

import itertools
from dataclasses import MISSING, fields

import numpy as np
import pytest
from scipy.sparse import csr_array

from superarm import actions as sets
from superarm import (
    context,
    contextual,
    describe,
    diffusion,
    environments,
    indices,
    oracles,
    policies,
    rewards,
    testing,
)
from superarm.actions import Subsets
from superarm.core.component import Component
from superarm.core.streams import uniform
from superarm.environments import Answer, Environment
from superarm.indices import Index
from superarm.items.counts import KLMossWithPrior
from superarm.oracles import Default, Greedy, Oracle
from superarm.policies import IndexPolicy, Policy, policy
from superarm.policies.directional import Covariance
from superarm.policies.memory import Memory
from superarm.problem import Problem
from superarm.rewards import Reward, Smoothness
from superarm.simulation import Instance
from superarm.simulation.lanes import Lanes
from superarm.testing import ContractViolation, check
from superarm.thresholds import Thresholds
from tests.action_sets import NoNeighbours

P = np.linspace(0.05, 0.95, 12).reshape(4, 3)


def _by_default(module, family):
    """Every public component of a module that needs no parameters: a new one is checked without being listed here."""
    classes = [value for name, value in vars(module).items() if isinstance(value, type) and not name.startswith("_")]
    found = [one for one in classes if issubclass(one, family) and one is not family]
    return [one() for one in found if all(part.default is not MISSING for part in fields(one))]


SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
RARE = csr_array(np.array([[0.0, 0.3], [0.6, 0.0]]))
CONTEXT = context.Context(context.Features(categorical={"country": ["NO", "other"]}), arms=[[0.5], [1.0]])
GOOD = [
    *(*_by_default(indices, Index), *_by_default(rewards, Reward)),
    *(rewards.ClippedLinear(2.0, 0.25), rewards.Logistic(0.7), rewards.Logistic(3.0), Greedy(), Default()),
    *(Subsets(3), sets.Explicit([[0, 1], [2, 3, 4], [5, 0]]), sets.Laminar([([0, 1, 2], 2), (range(6), 3)])),
    *(
        sets.GraphicMatroid(4, SQUARE),
        sets.SpanningTrees(4, SQUARE),
        sets.Knapsack([1.0, 2.0, 3.0, 2.0, 1.0, 1.5], 4.0),
        sets.Copies({"a": 4, "b": 2}, 3),
    ),
    *(sets.Matching(3, 3, [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 2)]), sets.Pinned(Subsets(3), [4])),
    sets.Intersection(
        [sets.PartitionMatroid("aabbcc", {}, 3, {"a": 1}), sets.PartitionMatroid("xyxyxy", {"x": 1, "y": 2})]
    ),
    *(sets.PartitionMatroid("aabbcc", {"a": 1, "b": 2, "c": 1}), sets.Slots([[0, 1, 5], [1, 2, 3], [3, 4, 5]])),
    sets.Paths(4, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 3)], 0, 3),
    *(oracles.Exhaustive(), oracles.LocalSearch(), oracles.ContinuousGreedy(4), oracles.Linearised()),
    oracles.StochasticGreedy(),
    *(IndexPolicy(indices.KL()), IndexPolicy(indices.BetaPosterior(), rounding="coin"), policies.bcucb_t()),
    *(policies.total_thompson(), policies.discounted(policies.total_thompson(), 8)),
    *(policies.pooled_thompson(), policies.pooled_thompson(baseline=[3, 0, 2, 1], caution=(0.025, 0.05, 10, 0.6))),
    *(
        policies.directional_kl_moss(Covariance()),
        policies.escb_delta(),
        policies.uniform(),
    ),
    *(policies.epsilon_greedy(0.3, 0.5), policies.sliding_window(policies.kl_ucb(), 12, 3), policies.shared_cts()),
    *(environments.Bernoulli(P), environments.Comonotone(P), environments.CommonShock(P, 0.3), environments.Beta(P)),
    *(environments.Copula(P, 0.2, 0.2), environments.Swinging(P, P[::-1], 9.0), environments.Cascade(P)),
    *(environments.ConjunctiveCascade(P), environments.DependentClick(P, [0.9, 0.4])),
    *(environments.PositionBased(P, [0.9, 0.4]), KLMossWithPrior(10.0, 3)),
    environments.Blocks(P, np.tile([1, -1, 0], (4, 1)), shock=[0.5] * 4),
    *(indices.LLR(3), indices.BoostedGaussian(3)),
]
TOTAL = Problem(5, reward=rewards.Total(), actions=Subsets(2))
LINEAR = Problem(5, 3, rewards.Linear(), Subsets(2))
ON_A_PROBLEM = [
    (oracles.Modular(), lambda one: testing.check_oracle(one, lambda rng: LINEAR)),
    *(
        (oracle, lambda one: testing.check_oracle(one, lambda rng: Problem(6, 1, rewards.Coverage(), Subsets(3))))
        for oracle in (oracles.TopArms(), oracles.Reversed(), oracles.Ladder([0.1] * 6))
    ),
    *(
        (oracle, lambda one: testing.check_oracle(one, lambda rng: bag(rng, rewards.Linear())))
        for oracle in (oracles.KnapsackTable(), oracles.KnapsackScheme())
    ),
    *(
        (oracle, lambda one: testing.check_oracle(one, lambda rng: bag(rng, rewards.Coverage())))
        for oracle in (oracles.GreedyMax(), oracles.PartialEnumeration())
    ),
    (policies.greedy_then_commit(50_000), lambda one: testing.check_policy(one, TOTAL)),
    (policies.escb(), lambda one: testing.check_policy(one, LINEAR)),
    (policies.ols_ucb_c(0.5), lambda one: testing.check_policy(one, LINEAR)),
    (policies.SpendSet(0.5), lambda one: testing.check_policy(one, Problem(6, 2, rewards.Coverage(), Subsets(3)))),
    (policies.SpendLadder(0.5), lambda one: testing.check_policy(one, Problem(6, 2, rewards.Coverage(), Subsets(3)))),
    (policies.ts_cascade(), lambda one: testing.check_policy(one, Problem(6, 1, rewards.Coverage(), Subsets(3)))),
    (environments.CostlyCascade(P[:, 0], [0.1, 0.2, 0, 1]), lambda one: testing.check_environment(one, LADDER)),
    (environments.Gaussian(P - 0.5), lambda one: testing.check_environment(one, REAL)),
    (policies.bg_cts(2), lambda one: testing.check_policy(one, LINEAR)),
    (environments.Switching([P, P[:, ::-1]], [1, 5000]), lambda one: testing.check_environment(one, FOUR)),
    (environments.Cohorts(P[:, [0, 1, 2, 0]], [0, 1, 3, 4]), lambda one: testing.check_environment(one, FOUR)),
    (policies.shapes(), lambda one: testing.check_policy(one, SCORED)),
    (environments.Scores([[0, 5], {"norm": [4, 2]}, [9], [1, 2]]), lambda one: testing.check_environment(one, SCORED)),
    (environments.FreeSamples(environments.Bernoulli(P)), lambda one: testing.check_environment(one, FOUR)),
    (
        environments.ContextTable(np.ones((2, 1)), [0, 0], [P.reshape(-1), P[::-1].reshape(-1)], [1.0, 1.0]),
        lambda one: testing.check_environment(one, FOUR),
    ),
]
FOUR = Problem(4, 3, rewards.Coverage(), Subsets(1))
REAL = Problem(4, 3, rewards.Linear(), Subsets(1), bounds=(-9, 9))
SCORED = Problem(n_arms=4, items=Thresholds(0, 10), actions=Subsets(1))
LADDER = Problem(4, 2, rewards.Coverage(), Subsets(1))
VALUES = [
    *(CONTEXT, CONTEXT.features, context.models.Linear(shared=True), context.models.Logistic(prior_mean=0.1)),
    *(context.models.Segments(by=["country"]), contextual.SegmentPolicy(policies.kl_ucb()), contextual.vac2_ucb()),
    contextual.logistic_ts(0.5),
    *(contextual.GroupedPolicy(indices.KL()), contextual.Ellipsoid(), contextual.GaussianPosterior()),
    *(contextual.VarianceWeighted(), policies.escb_delta().bonus, Covariance()),
    *(policies.directional_kl_moss().spread, policies.escb_c().region, policies.ols_ucb_c().region),
    *(
        SCORED.thresholds,
        FOUR,
        FOUR.support,
        Problem(2, 2, rewards.Coverage(), Subsets(1), support=RARE).support,
        policy(print),
    ),
    *(diffusion.IMM(), diffusion.IndependentCascade(RARE), diffusion.Spread(), environments.Replay(P[None])),
    environments.Totals(environments.Bernoulli(P), rewards.Coverage()),
    *(indices.Plays(indices.KL(c=0.0), 3), policies.Hybrid()),
    Lanes((environments.Beta(P, 2.0), environments.Beta(P, 3.0)), (1, 1)),
    Instance(FOUR, environments.Bernoulli(P)),
]
"""Components that other tests compare with definitions, on problems that suit them."""


def bag(rng, reward):
    """A problem with a budget."""
    costs = rng.integers(1, 6, 6) / 2.0
    return Problem(6, 3, reward, sets.Knapsack(costs, 5.0))


@pytest.mark.parametrize("component", GOOD, ids=repr)
def test_components_of_superarm_pass(component):
    check(component)


@pytest.mark.parametrize(("component", "check_it"), ON_A_PROBLEM, ids=lambda value: type(value).__name__)
def test_components_for_certain_problems_pass(component, check_it):
    testing.check_value(component)
    check_it(component)


@pytest.mark.parametrize("component", VALUES, ids=lambda value: type(value).__name__)
def test_other_components_are_values(component):
    testing.check_value(component)


def test_every_component_is_checked():
    describe._import_components()
    own = [cls for name, cls in Component.classes.items() if name.startswith("superarm.")]
    bases = {base for cls in own for base in cls.__mro__[1:]} - {sets.GraphicMatroid, environments.Cascade}
    concrete = {cls for cls in own if not cls.__name__.startswith("_")} - bases
    checked = {type(one) for one in (*GOOD, *VALUES, *(one for one, _ in ON_A_PROBLEM))}
    assert concrete - checked == set(), "list an example of it in GOOD"


class LogLog(Index):
    c: float = 0.5
    monotone = True

    def level(self, pulls, t, share):
        return self.c * np.log(np.log(t + 2.0) + 1.0) / pulls

    def score(self, mean, deviation, level, chance):
        return np.minimum(1.0, mean + np.sqrt(level))


class Capped(Reward):
    cap: float = 0.5
    submodular = True

    def start(self, weight):
        return 0.0 * weight

    def join(self, state, q):
        return state + q

    def worth(self, weight, state):
        return weight * np.minimum(state, self.cap)


class Pairs(Environment):
    p: np.ndarray

    def draw(self, problem, action, t, keys):
        u = uniform(keys, t, np.maximum(action, 0), 1)
        return Answer((u < self.p[action]).astype(float))

    def means(self, problem, t):
        return problem.entries(self.p)


class Newest(Policy):
    def choose(self, problem, view, memory):
        return np.argsort(view.counts, axis=1, kind="stable")[:, : problem.k]


def newest(problem, view, memory):
    return Newest().choose(problem, view, memory)


OWN = [LogLog(), Capped(), NoNeighbours(2), Pairs(P), Newest(), policy(newest)]


@pytest.mark.parametrize("own", OWN, ids=lambda own: type(own).__name__)
def test_components_of_ten_lines_pass(own):
    check(own)


class AboveOne(LogLog):
    def score(self, mean, deviation, level, chance):
        return mean + 2.0


class Forgets(LogLog):
    def score(self, mean, deviation, level, chance):
        mean + level


class Scalar(LogLog):
    def level(self, pulls, t, share):
        return np.array([1.0, 2.0])


class Shrinking(LogLog):
    def level(self, pulls, t, share):
        return 1.0 / (t * pulls)


class BelowMean(LogLog):
    def score(self, mean, deviation, level, chance):
        return mean * level / (1.0 + level)


class FallingScore(LogLog):
    def score(self, mean, deviation, level, chance):
        return mean + (1.0 - mean) / (1.0 + level)


class NegativeLevel(LogLog):
    def level(self, pulls, t, share):
        return np.log(t) / pulls - 0.1


class NoNumber(LogLog):
    def score(self, mean, deviation, level, chance):
        return mean * np.nan


class Harmful(rewards.Linear):
    def worth(self, weight, state):
        return -weight * state

    def gain(self, weight, state, q):
        return -weight * q


class Indebted(rewards.Coverage):
    """Without arms, an item costs its weight."""

    def worth(self, weight, state):
        return -state


class NotSubmodular(rewards.Logistic):
    submodular = True


class NotModular(rewards.Coverage):
    modular = True


class NotLinear(rewards.Logistic):
    linear_gain = True


class WrongDerivative(rewards.Coverage):
    def derivative(self, weight, state, q):
        return 0.9 * state


class TooSmooth(rewards.Linear):
    def smoothness(self, k):
        return Smoothness(0.9, 10.0)


class TooGini(rewards.Linear):
    def smoothness(self, k):
        return Smoothness(1.0, 0.1)


class TooGiniInACorner(rewards.Coverage):
    """No random point refutes it: the largest value is at (1/2, 0, 0, …)."""

    def smoothness(self, k):
        return Smoothness(1.0, 0.45)


class TooFewBatches(Subsets):
    def n_batches(self, n_arms):
        return 3.0


class RefusesItsOwn(Subsets):
    def includes(self, action, n_arms):
        return 0 not in action


class AdmitsTooLittle(Subsets):
    def joinable(self, state, eligible):
        return super().joinable(state, eligible) & (np.arange(eligible.shape[1]) > 0)


class PlaysTooMany(Subsets):
    def heaviest(self, worth, view):
        return np.tile(np.arange(worth.shape[1]), (len(worth), 1))


class Ineligible(Oracle):
    def maximize(self, problem, q, view):
        return np.argsort(-q.sum(1), axis=1)[:, : problem.k]


COUNTER = itertools.count()


class Moody(Oracle):
    def maximize(self, problem, q, view):
        return np.flatnonzero(view.eligible[0])[next(COUNTER) % 2 :][None, : problem.k]


class Fickle(Policy):
    def choose(self, problem, view, memory):
        return np.full((len(view), problem.k), -1) + (np.arange(problem.k) == 0) * (1 + next(COUNTER) // 3 % 5)


class OutOfRange(environments.Bernoulli):
    def draw(self, problem, action, t, keys):
        return Answer(np.full((*action.shape, problem.n_items), 1.5))


class InCallOrder(environments.Bernoulli):
    def draw(self, problem, action, t, keys):
        return Answer(np.full((*action.shape, problem.n_items), float(next(COUNTER) % 2)))


class Ordered(Capped):
    def join(self, state, q):
        return 0.5 * state + q


class WrongGain(Capped):
    def gain(self, weight, state, q):
        return weight * q


class WrongCapacity(NoNeighbours):
    def capacity(self, n_arms):
        return n_arms


class Loose(NoNeighbours):
    def batches(self, n_arms):
        return iter([(0, 2), (1, 3)])


class NoMatroid(NoNeighbours):
    matroid = True


class Worst(Oracle):
    def maximize(self, problem, q, view):
        return np.argsort(q.sum(1), axis=1)[:, : problem.k]

    def guarantee(self, problem):
        return Greedy().guarantee(problem)


class Dependent(Pairs):
    def draw(self, problem, action, t, keys):
        answer = super().draw(problem, action, t, keys)
        return Answer(np.sort(answer.outcome, axis=1))


class Biased(Pairs):
    def means(self, problem, t):
        return problem.entries(0.9 * self.p)


class Twice(Policy):
    def choose(self, problem, view, memory):
        return np.zeros((len(view), problem.k), np.int64)


class TooShort(Policy):
    def choose(self, problem, view, memory):
        return np.zeros(problem.k, np.int64)[:1]


class TwiceTold(Memory):
    def learn(self, feedback, weight=1.0):
        super().learn(feedback, 1.0)


class Remembers(Newest):
    remembers = TwiceTold


BROKEN = [
    (AboveOne(), "scores lie in"),
    (Forgets(), "Forgets.score returned None; end it with: return"),
    (Scalar(), "Scalar.level returns an array of shape"),
    (Shrinking(), "grow with t"),
    (BelowMean(), "scores are at least the mean"),
    (FallingScore(), "scores grow with the level"),
    (NegativeLevel(), "levels are not negative"),
    (NoNumber(), "NoNumber.score returns numbers; it returned NaN"),
    (Harmful(), "an arm never lowers the worth"),
    (Indebted(), "worth is never negative"),
    (NotSubmodular(20.0), "gains shrink as the batch grows"),
    (NotModular(), "an arm adds the same to every batch"),
    (NotLinear(), "gains are linear in the parameters"),
    (WrongDerivative(), "derivative is that of worth"),
    (TooSmooth(), "gamma_inf bounds the derivatives"),
    (TooGini(), "gamma_g bounds the Gini-weighted gradient"),
    (TooGiniInACorner(), "gamma_g: claimed 0.45, but is 0.5 at x ="),
    (TooFewBatches(2), "n_batches is a bound"),
    (RefusesItsOwn(2), "a listed batch may be played"),
    (AdmitsTooLittle(2), "some batch contains"),
    (PlaysTooMany(2), "the heaviest batch may be played"),
    (Ineligible(), "only eligible arms are picked"),
    (Moody(), "the same key gives the same batch"),
    (Fickle(), "the same seed gives the same batches"),
    (OutOfRange(P), r"outcomes lie in \[0, 1\]"),
    (InCallOrder(P), "does not depend on the others"),
    (Ordered(), "order in which arms join"),
    (WrongGain(), "gain is a difference of worth"),
    (WrongCapacity(2), "capacity"),
    (Loose(2), "some batch contains"),
    (NoMatroid(3), "exchange arms"),
    (Worst(), "of the best"),
    (Dependent(P), "does not depend on the others"),
    (Biased(P), "average to the means"),
    (Twice(), "may be played"),
    (TooShort(), "TooShort.choose returns an array of shape"),
    (Remembers(), "undoing feedback"),
    (object(), "subclass of one of"),
    (LogLog, "subclass of one of"),
]


@pytest.mark.parametrize(("component", "said"), BROKEN, ids=lambda value: type(value).__name__)
def test_a_broken_component_is_told_what_is_wrong(component, said):
    with pytest.raises(ContractViolation, match=said):
        check(component)
