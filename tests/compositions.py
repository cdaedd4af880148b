"""Compositions of policy, reward, action set, oracle, feedback and support, and a small set that covers all pairs.

Every composition has machine code of its own, so not all of them can be compiled in a test. Components of one kind
use the same code around them: the covering set holds every pair of kinds that the library supports, and every component
at least once. ``tests/modes`` plays it compiled and as plain Python.

    python -m tests.compositions    write the covering set anew, to tests/covering_set.tsv
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import superarm as sa
from superarm import environments as world
from superarm import indices, intake, oracles, policies
from superarm.oracles.ranged import RangedGreedy
from superarm.policies.fast import directional_sieve, sieve, sparse_sieve
from superarm.policies.fast.sieving import decides_alike
from superarm.rewards.traits import linear_gain
from superarm.core.support import Dense

FILE = Path(__file__).with_name("covering_set.tsv")
N_ARMS, N_ITEMS = 6, 3
RNG = np.random.default_rng(5)
P = np.round(RNG.uniform(0.05, 0.9, (N_ARMS, N_ARMS)), 3)
WEIGHTS = np.round(RNG.uniform(0.5, 2.0, N_ARMS), 3)
GRAPH = sparse.csr_array(([True] * 9, ([*range(6), 0, 2, 5], [1, 2, 3, 4, 5, 0, 3, 5, 1]))).toarray()
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
STAGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 3)]
READ = [0.9, 0.7, 0.5, 0.4, 0.3, 0.2]


class Composition(NamedTuple):
    """One component of each family, by its name in ``KINDS``."""

    policy: str
    reward: str
    actions: str
    oracle: str
    feedback: str
    support: str


_SIEVE = sieve.Sieve(indices.Bernstein(0.3), sa.Greedy(), intake.Exact())
SPARSE_SIEVE = sparse_sieve.SparseSieve(indices.KL(), sa.LazyGreedy(), intake.Exact())
DIRECTIONAL_SIEVE = directional_sieve.DirectionalSieve(indices.KLMoss(), policies.Triangle(), sa.Greedy())
POLICIES: dict[str, dict[str, Callable[..., Any]]] = {
    "scores": {
        "bc_ucb": lambda oracle: sa.bc_ucb(0.3, oracle=oracle),
        "kl_ucb": lambda oracle: sa.kl_ucb(oracle=oracle),
        "cucb": lambda oracle: sa.cucb(oracle=oracle),
        "ucb_v": lambda oracle: sa.ucb_v(oracle=oracle),
        "kl_moss": sa.kl_moss,
        "joint_kl_moss": lambda oracle: sa.joint_kl_moss(oracle=oracle),
        "angle_ts": sa.angle_ts,
        "gaussian_cts": lambda oracle: sa.gaussian_cts(oracle=oracle),
        "shared_cts": lambda oracle: sa.shared_cts(oracle=oracle),
        "cts": sa.cts,
        "follow_the_leader": sa.follow_the_leader,
        "cucb_t": lambda oracle: sa.cucb_t(oracle=oracle),
        "cascade_ucb1": lambda oracle: sa.cascade_ucb1(oracle=oracle),
        "ts_cascade": sa.ts_cascade,
        "directional_kl_moss": lambda oracle: sa.directional_kl_moss(policies.Covariance(), oracle=oracle),
        "directional_kl_ucb": lambda oracle: sa.directional_kl_ucb(oracle=oracle),
    },
    "around another": {
        "epsilon_greedy": lambda oracle: sa.epsilon_greedy(0.3, 0.2, oracle),
        "sliding_window": lambda oracle: sa.sliding_window(sa.kl_ucb(oracle=oracle), 12, blocks=3),
        "discounted": lambda oracle: sa.discounted(sa.cts(oracle), 4),
    },
    "without oracle": {
        "uniform": sa.uniform,
        "escb": lambda: sa.escb(0.3),
        "escb_delta": sa.escb_delta,
        "escb_c": lambda: sa.escb_c(0.3, 0.0, 0.1),
        "ols_ucb_c": lambda: sa.ols_ucb_c(0.3),
        "least_played": lambda: sa.least_played(0.3),
    },
    "fast": {
        "Sieve": lambda: _SIEVE,
        "SparseSieve": lambda: SPARSE_SIEVE,
        "DirectionalSieve": lambda: DIRECTIONAL_SIEVE,
        "Screened": lambda: policies.screened(sa.bc_ucb(0.3)),
    },
}
WITHOUT_ORACLE = {*POLICIES["without oracle"], *POLICIES["fast"]}
REWARDS = {
    "modular": {"Linear": sa.Linear()},
    "submodular": {"Coverage": sa.Coverage(), "ClippedLinear": sa.rewards.ClippedLinear(2.5, 0.3)},
    "other": {"Logistic": sa.Logistic(0.8), "Conjunctive": sa.rewards.Conjunctive()},
    "spread": {"Spread": sa.Spread(20)},
}
ACTIONS = {
    "subsets": {"Subsets": sa.Subsets(3)},
    "listed": {"Explicit": sa.Explicit([[0, 1], [2, 3, 4], [5, 0], [1, 5]])},
    "matroid": {
        "PartitionMatroid": sa.PartitionMatroid("aabbcc", {"a": 1, "b": 2, "c": 1}),
        "Laminar": sa.Laminar([([0, 1, 2], 2), (range(6), 3)]),
        "GraphicMatroid": sa.GraphicMatroid(4, SQUARE),
        "Slots": sa.Slots([[0, 1, 5], [1, 2, 3], [3, 4, 5]]),
    },
    "bases": {"SpanningTrees": sa.SpanningTrees(4, SQUARE)},
    "matching": {"Matching": sa.Matching(3, 3, [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 2)])},
    "paths": {"Paths": sa.Paths(4, STAGES, 0, 3)},
    "budget": {"Knapsack": sa.Knapsack([1.0, 2.0, 3.0, 2.0, 1.0, 1.5], budget=4.0)},
    "pinned": {"Pinned": sa.Pinned(sa.Subsets(3), [4])},
}
ORACLES: dict[str, dict[str, Any]] = {
    "of the policy": {"none": None},
    "by gains": {
        "Greedy": sa.Greedy(),
        "LazyGreedy": sa.LazyGreedy(),
        "RangedGreedy": RangedGreedy(),
        "StochasticGreedy": sa.StochasticGreedy(0.2),
        "Failing": oracles.Failing(sa.Greedy(), 0.7),
        "LocalSearch": sa.LocalSearch(),
        "ContinuousGreedy": sa.ContinuousGreedy(3),
    },
    "by weights or values": {
        "Modular": sa.Modular(),
        "Linearised": sa.Linearised(),
        "TopArms": sa.TopArms(),
        "Reversed": sa.Reversed(),
        "Exhaustive": sa.Exhaustive(),
    },
    "under a budget": {
        "KnapsackTable": sa.KnapsackTable(),
        "KnapsackScheme": sa.KnapsackScheme(0.2),
        "CostBenefit": sa.CostBenefit(),
        "GreedyMax": sa.GreedyMax(),
        "PartialEnumeration": sa.PartialEnumeration(),
    },
    "influence": {"IMM": sa.IMM()},
}
RANKING = {"TopArms", "Reversed"}
FEEDBACK: dict[str, dict[str, Callable[[Any], Any]]] = {
    "of all entries": {
        "Bernoulli": world.Bernoulli,
        "Beta": lambda p: world.Beta(p, 3.0),
        "CommonShock": lambda p: world.CommonShock(p, 0.5),
        "Comonotone": world.Comonotone,
        "Copula": lambda p: world.Copula(p, 0.2, 0.3, 0.4),
        "Blocks": lambda p: world.Blocks(p, np.where(p < 0.4, 1, -1), p[:, 0] / 9.0, p[:, ::-1] / 3.0),
    },
    "recorded": {
        "Replay": lambda p: world.Replay(np.random.default_rng(0).random((4, *p.shape))),
        "Cohorts": lambda p: world.Cohorts(np.repeat(p.T, 2, axis=0), np.arange(p.shape[1] + 1) * 2),
    },
    "of a part": {
        "Cascade": world.Cascade,
        "ConjunctiveCascade": world.ConjunctiveCascade,
        "DependentClick": lambda p: world.DependentClick(p, READ),
        "PositionBased": lambda p: world.PositionBased(p, READ),
    },
    "free samples": {"FreeSamples": lambda p: world.FreeSamples(world.Cascade(p))},
    "triggered": {"IndependentCascade": lambda p: world.IndependentCascade(sparse.csr_array(np.where(GRAPH, P, 0.0)))},
    "changing": {
        "Switching": lambda p: world.Switching([p, p[..., ::-1]], [1, 9]),
        "Swinging": lambda p: world.Swinging(p, p[..., ::-1].copy(), 20, 3),
    },
}
ONLY_DENSE, ONLY_SPARSE = ("Replay", "Cohorts", "Blocks"), ("IndependentCascade",)
SUPPORTS = {"dense": {"dense": None}, "sparse": {"sparse": None}}
KINDS: tuple[dict[str, dict[str, Any]], ...] = (POLICIES, REWARDS, ACTIONS, ORACLES, FEEDBACK, SUPPORTS)
PARTS: list[dict[str, Any]] = [dict(itertools.chain(*(k.items() for k in kinds.values()))) for kinds in KINDS]
"""For each family, its components by name."""
KIND_OF = [{name: kind for kind, parts in kinds.items() for name in parts} for kinds in KINDS]


def ready(composition: Composition) -> tuple[sa.Problem, Any, Any]:
    """The problem, the environment and the fitted policy of a composition that is supported."""
    found = fitted(composition._replace(feedback=""))
    assert found, composition
    problem, policy = found
    p = P[GRAPH] if composition.support == "sparse" else P[:, : problem.n_items].copy()
    return problem, PARTS[4][composition.feedback](p), policy


@functools.cache
def fitted(composition: Composition) -> tuple[sa.Problem, Any] | None:
    """The problem, and the policy made ready for it, whatever the feedback; None if the library refuses the policy."""
    make, oracle = PARTS[0][composition.policy], PARTS[3][composition.oracle]
    thin = composition.support == "sparse"
    if (composition.policy in WITHOUT_ORACLE) != (oracle is None):  # it has one of its own, or needs one
        return None
    if composition.reward == "Spread" and not thin:  # it needs a graph
        return None
    problem = _problem(composition.reward, composition.actions, thin, composition.oracle in RANKING)
    try:
        policy = (make() if oracle is None else make(oracle)).fit(problem)
    except sa.InvalidArgument:
        return None
    other = composition.policy == ("Sieve" if thin else "SparseSieve")
    return None if other or not _fit_would_take(policy, problem) else (problem, policy)


@functools.cache
def _problem(reward: str, actions: str, thin: bool, lists: bool) -> sa.Problem:
    items = N_ARMS if thin else 1 if lists else N_ITEMS
    graph = sparse.csr_array(GRAPH) if thin else None
    return sa.Problem(N_ARMS, items, PARTS[1][reward], PARTS[2][actions], weights=WEIGHTS[:items], support=graph)


def _fit_would_take(policy: Any, problem: sa.Problem) -> bool:
    """Whether ``fit`` takes this sieve on such a problem, if it is large; True for any other policy."""
    if isinstance(policy, directional_sieve.DirectionalSieve):
        suits = isinstance(problem.support, Dense) and isinstance(problem.actions, sa.Subsets)
        return suits and linear_gain(problem.reward)
    sieved = isinstance(policy, sieve.Sieve | sparse_sieve.SparseSieve)
    return not sieved or decides_alike(policy.confidence, policy.oracle, problem)


def kinds_of(composition: Composition) -> Composition:
    return Composition(*(kinds.get(name, "") for kinds, name in zip(KIND_OF, composition, strict=True)))


Goal = tuple[tuple[int, str], ...]
"""What compositions are to cover: two kinds, or one component, each with the number of its family."""

BARE = (0, 1, 2, 3, 5)
"""The families without feedback: environments are compiled apart from the rest."""


def goals(composition: Composition, families: Iterable[int] = range(6)) -> set[Goal]:
    """The pairs of kinds and the components that a composition covers."""
    kinds = kinds_of(composition)
    pairs = itertools.combinations([(n, kinds[n]) for n in families], 2)
    return {*pairs, *(((n, composition[n]),) for n in families)}


def supported(*fixed: tuple[int, str]) -> Iterator[Composition]:
    """Every composition that the library supports, without feedback, or those that hold the ``fixed`` kinds."""
    kinds = dict(fixed)
    names = [KINDS[n][kinds[n]] if n in kinds else PARTS[n] for n in BARE]
    for policy, reward, actions, oracle, support in itertools.product(*names):
        composition = Composition(policy, reward, actions, oracle, "", support)
        if fitted(composition):
            yield composition


def supports_of(name: str) -> list[str]:
    """The supports on which an environment plays."""
    return ["dense"] * (name not in ONLY_SPARSE) + ["sparse"] * (name not in ONLY_DENSE)


def with_feedback(composition: Composition) -> list[Composition]:
    """The composition with each feedback that its support allows."""
    return [composition._replace(feedback=x) for x in PARTS[4] if composition.support in supports_of(x)]


def missing(compositions: Iterable[Composition]) -> list[Goal]:
    """The components and the pairs of kinds that the library supports and that none of the compositions holds."""
    covered = set().union(*(goals(one) for one in compositions))
    components = {((n, name),) for n in range(6) for name in PARTS[n]}
    pairs = {pair for n, m in itertools.combinations(range(6), 2) for pair in itertools.product(_kinds(n), _kinds(m))}
    return [*sorted(components - covered), *filter(_supports, sorted(pairs - covered))]


def _kinds(family: int) -> list[tuple[int, str]]:
    return [(family, kind) for kind in KINDS[family]]


def _supports(pair: Goal) -> bool:
    """Whether the library supports a composition that holds both kinds."""
    others, feedback = [one for one in pair if one[0] in BARE], [one for one in pair if one[0] not in BARE]
    return any({*feedback} <= _feedback_kinds(composition) for composition in supported(*others))


def _feedback_kinds(composition: Composition) -> set[tuple[int, str]]:
    return {(4, kinds_of(each).feedback) for each in with_feedback(composition)}


def generate() -> list[Composition]:
    """A covering set, greedily: first without feedback, then with the feedback that covers most."""
    every = {one: goals(one, BARE) for one in supported()}
    bare, left = [], set().union(*every.values())
    while left:
        bare.append(max(every, key=lambda one: len(every[one] & left)))
        left -= every[bare[-1]]
    found: list[Composition] = []
    left = {goal for one in every for each in with_feedback(one) for goal in goals(each)}
    while left:
        one = bare[len(found)] if len(found) < len(bare) else max(bare, key=lambda one: max(_gains(one, left)))
        found.append(with_feedback(one)[int(np.argmax(_gains(one, left)))])
        left -= goals(found[-1])
    return found


def _gains(composition: Composition, left: set[Goal]) -> list[int]:
    return [len(goals(each) & left) for each in with_feedback(composition)]


def covering_set() -> list[Composition]:
    """The covering set as it is stored."""
    return [Composition(*line.split("\t")) for line in FILE.read_text().splitlines()]


if __name__ == "__main__":
    FILE.write_text("".join("\t".join(one) + "\n" for one in sorted(generate(), key=lambda one: one.actions)))
    print(f"{len(covering_set())} compositions, written to {FILE}")
