"""Kernels that rounds do not reach, each in a small computation: ``tests/modes`` compares compiled and plain.

Every function returns numbers and arrays. ``FUNCTIONS`` holds them by name.
"""

import ast
import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import superarm as sa
from superarm.actions import admits, ceiling, cover, heaviest, remnant, sample
from superarm.actions.base import complete
from superarm.candidates import Candidates
from superarm.environments import draw, expected_reward, means
from superarm.experiments.analysis.summary import item_values
from superarm.indices import KL, UCB1, KLMoss, bound_by_tangents, bound_entries, unknown
from superarm.indices.beta_draws import draw_betas
from superarm.indices.kl import divergence, upper_confidence
from superarm.learner.context_batch import choose_in_contexts
from superarm.offline.estimators import entries, paired, slates
from superarm.oracles import certify, maximize
from superarm.oracles.ranged import RangedGreedy
from superarm.policies import Ascent
from superarm.policies.fast.fixed_point import fit_unit, new_fixed_point, sum_numbers, write_numbers
from superarm.policies.fast.linear_sieve import LinearSieve
from superarm.policies.fast.shared_sieve import SharedSieve
from superarm.policies.fast.tiles import new_tiles, refine_bounds
from superarm.policies.set_search import search
from superarm.rewards.base import _gain_by_difference as gain_by_difference
from superarm.rewards.traits import additive
from superarm.service.domain.intervals import gains_each
from superarm.service.domain.slate import joinable_arms
from superarm.simulation.engine import rounds
from superarm.core.streams import beta, new_stream, normal, quantile, round_key, seek, uniform
from superarm.theory.gaps import _search_gaps, gaps
from superarm.theory.search import prepare_search
from superarm.theory.upper.local import local_slopes
from tests.compositions import (
    ACTIONS,
    DIRECTIONAL_SIEVE,
    FEEDBACK,
    GRAPH,
    N_ARMS,
    REWARDS,
    SPARSE_SIEVE,
    WEIGHTS,
    P,
    supports_of,
)
from tests.policies import test_linear_sieve, test_scores_of_eight_arms, test_shared_sieve
from tests.simulation.test_contextual import GAMES as CONTEXTUAL
from tests.simulation.test_contextual import digest

ALL_ARMS = np.arange(N_ARMS)
COUNTS = np.array([2.0, 0.0, 1.0, 0.0, 3.0, 1.0])
THREE = np.array([1, 4, 5])


def numbers() -> list[Any]:
    """Draws, quantiles and KL bounds."""
    source, drawn = new_stream(np.random.SeedSequence(9)), []
    for t in range(40):
        seek(source, t, 2)
        drawn += [uniform(source), normal(source), beta(source, 0.3, 1.7), beta(source, 8.0, 3.0)]
    q, mean = np.zeros(40), np.linspace(0.0, 1.0, 40)
    for t in range(20):
        seek(source, t, 3)
        draw_betas(mean, 2.0**t, 0, 40, source, q)
        drawn += [*q, uniform(source)]
    drawn += [quantile(u) for u in (1e-300, 1e-20, 0.01, 0.4, 0.9, 1.0 - 1e-16)]
    chances = (0.0, 1e-12, 0.1, 0.7, 1 - 1e-12)
    bounds = [upper_confidence(p, x) for p in chances for x in (1e-30, 1e-9, 0.1, 5.0)]
    return [*drawn, *bounds, *(divergence(p, q) for p in chances for q in (0.2, 0.8))]


def bounds() -> list[Any]:
    """Bounds of KL scores, and of weighted sums."""
    mean, found = np.array([0.0, 0.02, 0.3, 0.97, 1.0]), []
    for index in (KL(), KLMoss()):
        q = np.zeros(5)
        bound_entries(index, mean, mean, 0, 5, 0.02, q)
        found.append(q.copy())
        bound_by_tangents(index, mean, 0, 5, q, 0.005, q)
        found.append(q)
    table = new_fixed_point(2, 5)
    start, sums, top = np.zeros(64, np.float32), np.zeros(64, np.float32), np.zeros(1, np.float32)
    for arm, scale in ((0, 0.01), (1, 1.0), (0, 0.1), (1, 0.1)):
        write_numbers(table, arm, scale * mean, 0, 5)
        fit_unit(table, 0)
    screen = new_tiles(2, 5)
    for arm, scale in ((0, 0.3), (1, 0.7)):
        screen.row[:] = scale * mean
        write_numbers(screen.z, arm, screen.row, 0, 5)
    screen.slope[:] = 1.0 - mean
    refine_bounds(screen, np.float32(0.0))
    found += [screen.reach, screen.top, screen.refined]
    problem, q = sa.Problem(N_ARMS, 3, sa.Coverage(), sa.Subsets(4)), 0.3 * P[:, :3].reshape(-1)
    found.append(maximize(RangedGreedy(), problem, q, problem.candidates(), new_stream(np.random.SeedSequence(0))))
    return [*found, sum_numbers(table, 1.0 - mean, start, sums, top), sums, top]


def of_actions(actions: Any) -> list[Any]:
    """What an action set answers beside the rounds of a policy."""
    everyone = Candidates(COUNTS, np.ones(N_ARMS, bool))
    best = heaviest(actions, P[:, 0].copy(), everyone)
    fewer = Candidates(COUNTS, ALL_ARMS != best[0])
    stream = new_stream(np.random.SeedSequence(1))
    start = best[:1].tolist()
    return [
        best,
        ceiling(actions, P[:, 0].copy(), everyone),
        remnant(actions, best, fewer),
        remnant(actions, best, everyone),
        cover(actions, everyone),
        sample(actions, everyone, stream),
        complete(actions, best, everyone),
        [admits(actions, best, 1, int(j)) for j in ALL_ARMS if j != best[0]],
        joinable_arms(actions, start, ALL_ARMS != best[0]),
    ]


def of_reward(reward: Any) -> list[Any]:
    """Values, gradients and certificates, and the kernels of the theory, the service and the offline estimators."""
    graph = sparse.csr_array(GRAPH) if not additive(reward) else None
    problem = sa.Problem(N_ARMS, N_ARMS, reward, sa.Subsets(3), weights=WEIGHTS, support=graph)
    q = P[GRAPH] if graph is not None else P.reshape(-1)
    found = [problem.value(q, THREE), problem.gain(q, THREE[:2], 5), problem.gradient(q, THREE)]
    if additive(reward):
        found += [*certify(problem, q, THREE), *_beside(problem, q)]
    return found


def _beside(problem: sa.Problem, q: Any) -> Iterator[Any]:
    reward, terms = problem.reward, problem.terms
    lists = np.array([[0, 1, 2], [3, 4, -1], [1, 4, 5]])
    yield item_values(reward, terms, q, THREE)
    yield from gains_each(reward, terms, q, np.array([3, 1, 2]))
    yield slates.value_each_slate(reward, terms, q, lists)
    yield slates.add_gradients(reward, terms, q, lists, np.array([0.5, 0.0, 0.5]))
    starts, slot, arm = np.array([0, 3, 5]), np.array([0, 1, -1, 0, 1]), np.array([2, 3, 1, 5, 0])
    outcome = P[:5].round()
    yield slates.realised_gains(reward, terms.weights, starts, slot, outcome, outcome >= 0.0)
    yield slates.row_derivatives(reward, terms, np.stack([q, q[::-1]]), np.array([0, 1]), starts, arm, slot)
    yield entries._invert(q, q * 0.1)
    for by_pairs in (False, True):
        yield from paired.difference_bounds(reward, terms, 0.5 * q, q, THREE, lists, by_pairs)


def of_environment(make: Callable[[Any], Any], thin: bool) -> list[Any]:
    """Means, outcomes of all arms, and the expected reward of a batch."""
    environment = make(P[GRAPH] if thin else P)
    graph = sparse.csr_array(GRAPH) if thin else None
    problem = sa.Problem(N_ARMS, N_ARMS, sa.Coverage(), sa.Subsets(3), weights=WEIGHTS, support=graph)
    outcome = np.zeros(problem.n_entries)
    seen, source = np.ones(problem.n_entries, bool), new_stream(np.random.SeedSequence(2))
    draw(environment, problem.support, ALL_ARMS, 3, source, outcome, seen)
    earned = expected_reward(environment, problem.weights, problem.support, THREE, 3, 1.5)
    return [means(environment, 3), outcome, seen, earned]


def theory() -> list[Any]:
    """Gaps by enumeration, by branch and bound, and bracketed."""
    found: list[Any] = []
    for reward in (sa.Coverage(), sa.Logistic(0.8)):
        instance = sa.Instance(sa.Problem(N_ARMS, 3, reward, sa.Subsets(3)), sa.environments.Bernoulli(P[:, :3]))
        found += local_slopes(instance, gaps(instance, 1.0))
        field = prepare_search(instance.problem, instance.p)
        for each in (gaps(instance, 1.0), _search_gaps(field, 1.0, 10**6), _search_gaps(field, 1.0, 1)):
            found += [part for part in dataclasses.astuple(each) if not isinstance(part, str)]
    return found


def agents() -> list[Any]:
    """Decisions one by one, after a restart from the stored state, and several at once."""
    problem, found = sa.Problem(N_ARMS, N_ARMS, sa.Coverage(), sa.Subsets(2)), []
    for policy in (sa.kl_ucb(), DIRECTIONAL_SIEVE):
        agent = sa.Agent(problem, policy, seed=3)
        for _ in range(4):
            decision = agent.ask()
            agent.tell(decision, P[decision.action].round())
            found.append(decision.action)
        agent = sa.Agent.from_state(agent.to_state())
        keys = np.arange(1, 5, dtype=np.uint64)
        found += [agent.ask().action, *agent.learner.choose_each(7, np.ones(N_ARMS, bool), keys)]
    return found


def defaults() -> list[Any]:
    """What components of one's own inherit, and the scores of arms that were never seen."""
    return [gain_by_difference(sa.Coverage(), 8.0, 4.0, 0.3), unknown(UCB1()), unknown(KL()), int(round_key(7))]


def ascent() -> list[Any]:
    """The approximate search of ESCB, and an oracle under a budget with pinned arms."""
    bag = sa.Pinned(sa.Knapsack([1.0, 2.0, 3.0, 2.0, 1.0, 1.5], budget=4.0), [4])
    problem = sa.Problem(N_ARMS, 1, sa.Linear(), bag)
    stream = new_stream(np.random.SeedSequence(0))
    table = sa.KnapsackTable().fit(problem)
    return [
        search(Ascent(), problem, P[:, 0].copy(), P[:, 1].copy(), problem.candidates()),
        maximize(table, problem, P[:, 0].copy(), problem.candidates(), stream),
    ]


def sparse_sieve_of_many_arms() -> list[Any]:
    """A sieve whose blocks hold more than eight arms."""
    rng = np.random.default_rng(8)
    support, p = rng.random((30, N_ARMS)) < 0.5, rng.uniform(0.0, 0.5, (30, N_ARMS))
    problem = sa.Problem(30, N_ARMS, sa.Coverage(), sa.Subsets(3), support=sparse.csr_array(support))
    environment = sa.environments.Bernoulli(p[support])
    played = rounds(problem, environment, SPARSE_SIEVE.fit(problem), np.random.SeedSequence(3), 40)
    return [each.action.copy() for each in played]


def linear_sieve() -> list[Any]:
    """The sieve of linear policies with a model per entry."""
    return _sieved(test_linear_sieve.make(), LinearSieve, test_linear_sieve.play)


def shared_sieve() -> list[Any]:
    """The sieve of linear policies with a shared model."""
    return _sieved(test_shared_sieve.make(), SharedSieve, test_shared_sieve.play)


def _sieved(problem: sa.Problem, sieve: Callable[[Any], Any], play: Callable[..., Any]) -> list[Any]:
    """A simulation, and an agent, which keeps the weights of its decisions."""
    policy = sieve(sa.vac2_ucb(0.01).plain(problem))
    run, earned = play(policy, problem, 40, 0)
    agent = sa.Agent(problem, policy, seed=1)
    for t in range(4):
        decision = agent.ask(context=np.full(problem.context.features.d, 0.2 * t))
        if t != 1:  # this one stays pending
            agent.tell(decision, np.full((len(decision.action), problem.n_items), 0.5))
    return [*run.tally, earned, *agent.learner.tally]


def scores_of_eight_arms() -> list[Any]:
    """Scores of entries, for eight arms at a time and for arms with different items."""
    n, irregular = test_scores_of_eight_arms.N_ARMS, test_scores_of_eight_arms.IRREGULAR
    found = [
        test_scores_of_eight_arms.Scores(True, range(n)),
        test_scores_of_eight_arms.Scores("arms", range(n)),
        test_scores_of_eight_arms.Scores(True, range(n), support=irregular),
    ]
    return [part for scores in found for part in (scores.ridge.q, scores.ridge.low)]


def kept_observations() -> list[Any]:
    """Room for a few observations of a logistic model, feedback taken back, and a frame that begins after 16 rounds."""
    arms = [[1.0, 0.5], [0.0, -0.5], [0.25, 0.0], [-1.0, 1.0], [0.5, 0.5]]
    model = sa.models.Logistic(shared=True, prior_mean=0.2, kept=50)
    context = sa.Context(sa.Features(numeric=["age"]), arms=arms, model=model)
    problem = sa.Problem(5, 2, sa.Coverage(), sa.Subsets(2), context=context)
    agent = sa.Agent(problem, sa.logistic_kl_ucb(ridge=2**-6), seed=1)
    for n in range(18):
        decision, outcome = agent.ask(context={"age": 20.0 + n * n % 37}), [[0.0, n % 2], [n % 3 / 2, 1.0]]
        agent.tell(decision, outcome)
        if n % 4 == 0:
            agent.untell(decision, outcome)
    assert agent.learner.contexts.frames.frame.version == 1
    kept = agent.learner.memory.kept
    return [
        *agent.learner.tally,
        kept.point,
        kept.precision,
        kept.response,
        kept.information,
        *agent.learner.state.kept,
    ]


def contexts_together() -> list[Any]:
    """Batches for several contexts by one call, of segments and of regressions with and without shifts."""
    features = sa.Features(categorical={"country": ["NO", "other"]}, numeric={"age": (0, 100)})
    found = list[Any]()
    for model, policy in (
        (sa.models.Segments(), sa.kl_ucb()),
        (sa.models.Linear(shared="arms"), sa.vac2_ucb()),
        (sa.models.Logistic(shared=True), sa.logistic_kl_ucb()),
    ):
        context = sa.Context(
            features, model=model, arms=[[0.5], [0.0], [-1.0], [0.25]] if policy == sa.logistic_kl_ucb() else None
        )
        agent = sa.Agent(sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2), context=context), policy, seed=1)
        for n in range(3):
            agent.tell(agent.ask(context={"age": 30 * n, "country": "NO"}), [[1.0, 0.0], [n % 2, 0.5]])
        agent.ask(context={"age": 50})
        learner, keys = agent.learner, np.arange(5, dtype=np.uint64)
        encoded = [learner.contexts.encode(learner.problem, {"age": 20 * n}, None) for n in range(5)]
        found += [part for parts in choose_in_contexts(learner, 5, np.ones(4, bool), keys, encoded) for part in parts]
    return found


def _named() -> Iterator[tuple[str, Callable[[], list[Any]]]]:
    for function in (
        numbers,
        bounds,
        theory,
        agents,
        defaults,
        ascent,
        sparse_sieve_of_many_arms,
        linear_sieve,
        shared_sieve,
        scores_of_eight_arms,
        kept_observations,
        contexts_together,
    ):
        yield function.__name__.replace("_", " "), function
    for name in CONTEXTUAL:
        yield f"contexts, {name}", functools.partial(digest, name)
    for family, ask in ((ACTIONS, of_actions), (REWARDS, of_reward)):
        for parts in family.values():
            for name, part in parts.items():
                yield name, functools.partial(ask, part)
    for parts in FEEDBACK.values():
        for name, make in parts.items():
            for support in supports_of(name):
                yield f"{name}, {support}", functools.partial(of_environment, make, support == "sparse")


FUNCTIONS = dict(_named())


def kernels() -> Iterator[tuple[str, str]]:
    """File and name of every function and method of the package that is compiled, found by its decorators."""
    package = Path(sa.__file__).parent
    for file in sorted(set(package.rglob("*.py")) - set((package / "next").rglob("*.py"))):  # next has twins instead
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef) and _decorators(node) & COMPILING:
                yield str(file), node.name
            if isinstance(node, ast.ClassDef) and "component" in _decorators(node):
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and not _stays_plain(method):
                        yield str(file), f"{node.name}.{method.name}"


COMPILING = {"kernel", "lean", "inlined", "separate", "shared", "wrapping", "for_kernels"}


def _stays_plain(method: ast.FunctionDef) -> bool:
    return method.name.startswith("_") or bool(_decorators(method) & {"interpreted", "property"})


def _decorators(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    return {one.id for one in node.decorator_list if isinstance(one, ast.Name)}
