"""Contract checks for components, superarm's own and yours.

``check(component)`` finds the family of a component by its methods and runs that family's checks; a violation raises
``ContractViolation`` with a counterexample. Random trials have a fixed seed, so results are reproducible.
"""

import itertools
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from superarm._contract import ContractViolation, check_declaration, require, require_batch, require_number
from superarm.actions import Actions, Subsets, admits, capacity, cover, sample
from superarm.arrays import Ints
from superarm.candidates import Candidates
from superarm.describe import build, describe
from superarm.environments import AnswerBuffer, Environment, draw
from superarm.indices import Index, unclipped
from superarm.oracles import Oracle, maximize
from superarm.parameters import has_method
from superarm.policies import Policy, learn
from superarm.problem import Problem
from superarm.rewards import Coverage, Reward
from superarm.rewards.base import derivative, item_gain, join, start, worth
from superarm.rewards.traits import linear_gain, monotone
from superarm.simulation.engine import rounds
from superarm.streams import Stream, new_stream, run_streams, seek, uniform
from superarm.support import Support, length
from superarm.tally import Feedback

__all__ = [
    "ContractViolation",
    "check",
    "check_actions",
    "check_declaration",
    "check_environment",
    "check_index",
    "check_oracle",
    "check_plain",
    "check_policy",
    "check_reward",
]

_TRIALS = 300
"""How many random inputs a check of an index or a reward tries."""


def check(component: Any) -> None:
    """Run every check that applies to ``component``: of its declaration, and those of its family.

    >>> import superarm as sa
    >>> check(sa.Coverage())
    """
    families: dict[str, tuple[type, Callable[[Any], None]]] = {
        "score": (Index, check_index),
        "join": (Reward, check_reward),
        "admits": (Actions, check_actions),
        "maximize": (Oracle, check_oracle),
        "choose": (Policy, check_policy),
        "draw": (Environment, check_environment),
    }
    found = [both for method, both in families.items() if has_method(component, method)]
    require(found, f"a component has the methods of a family, one of {', '.join(families)}", component=component)
    check_declaration(component, *(family for family, _ in found))
    check_plain(component)
    for _, run in found:
        run(component)


def check_plain(component: Any) -> None:
    """Check that a component can be pickled, and described as plain data and built again."""
    repeated = pickle.loads(pickle.dumps(component))
    require(repr(repeated) == repr(component), "pickling keeps a component", component=component)
    require(repr(build(describe(component))) == repr(component), "describing keeps a component", component=component)


def check_index(index: Index) -> None:
    """Check that scores lie in [0, 1] and, unless sampled, are at least the mean and grow with level and t."""
    rng = np.random.default_rng(0)
    for _ in range(_TRIALS):
        mean = float(rng.choice([0.0, 1.0, rng.random()]))
        deviation = float(np.sqrt(mean * (1.0 - mean)) * rng.random())
        t = int(rng.choice([1, 2, 3, int(rng.integers(1, 10**6))]))  # the first rounds often have a case of their own
        pulls, share = float(rng.integers(1, 10_000)), float(rng.random())
        x, later = index.level(pulls, t, share), index.level(pulls, 2 * t, share)
        require_number(index, "level", x)
        require_number(index, "level", later)
        require(0.0 <= x <= later, "levels are not negative and grow with t", pulls=pulls, t=t)
        q, other = (index.score(mean, deviation, x, new_stream(np.random.SeedSequence(n))) for n in (1, 2))
        require_number(index, "score", q)
        clipped = q <= 1.0 or unclipped(index)
        require(0.0 <= q and clipped, "scores lie in [0, 1]", mean=mean, deviation=deviation, level=x, score=q)
        if q == other and later > x:
            more = index.score(mean, deviation, later, new_stream(np.random.SeedSequence(1)))
            sampled = more != index.score(mean, deviation, later, new_stream(np.random.SeedSequence(2)))
            require(sampled or q >= mean, "scores are at least the mean", mean=mean, level=x, score=q)
            require(sampled or more >= q, "scores grow with the level", mean=mean, levels=(x, later))


def check_reward(reward: Reward, k: int = 5, tolerance: float = 1e-9) -> None:
    """Check that the order of arms does not matter, that gains are differences of worth, and what is declared.

    Differences up to ``tolerance`` times the weight are taken for rounding.
    """
    rng = np.random.default_rng(0)
    smoothness = reward.smoothness(k)
    require_number(reward, "start", start(reward, 1.0))
    require_number(reward, "join", join(reward, start(reward, 1.0), 0.5))
    for _ in range(_TRIALS):
        qs, weight = rng.random(k), float(rng.uniform(0.1, 3.0))
        state, shuffled = start(reward, weight), start(reward, weight)
        for q, other in zip(qs[:-1], rng.permutation(qs[:-1]), strict=True):
            state, shuffled = join(reward, state, float(q)), join(reward, shuffled, float(other))
        require(np.isclose(state, shuffled, rtol=1e-9), "the order of joining does not matter", q=qs.tolist())
        q = float(qs[-1])
        difference = worth(reward, weight, join(reward, state, q)) - worth(reward, weight, state)
        gain = item_gain(reward, weight, state, q)
        require(abs(gain - difference) <= tolerance * weight, "item_gain is a difference of worth", state=state, q=q)
        increasing = gain >= 0.0 or not monotone(reward)
        require(increasing, "an arm never lowers the worth", state=state, q=q)
        early = item_gain(reward, weight, start(reward, weight), q)
        if reward.submodular:
            require(gain <= early + tolerance * weight, "gains shrink as the batch grows", q=qs.tolist())
        if reward.modular:
            require(np.isclose(gain, early), "an arm adds the same to every batch", q=qs.tolist())
        _check_derivatives(reward, weight, qs, smoothness)
        if linear_gain(reward):
            linear = abs(gain - q * derivative(reward, weight, state, 0.0)) <= tolerance * weight
            require(linear, "gains are linear in the parameters of the arm", q=qs.tolist())


def _check_derivatives(reward: Reward, weight: float, qs: Any, smoothness: Any) -> None:
    slopes = []
    for n, q in enumerate(qs):
        state = start(reward, weight)
        for other in np.delete(qs, n):
            state = join(reward, state, float(other))
        slopes.append(derivative(reward, weight, state, float(q)) / weight)
        rise = item_gain(reward, weight, state, float(q) + 5e-7) - item_gain(reward, weight, state, float(q) - 5e-7)
        smooth = abs(rise / 1e-6 - slopes[-1] * weight) <= 1e-3 * weight * (1.0 + slopes[-1])
        require(smooth or _has_kink(reward, weight, state, float(q)), "derivative is that of worth", state=state, q=q)
    gini = float(np.sqrt(np.sum(qs * (1.0 - qs) * np.square(slopes))))
    require(max(slopes) <= smoothness.gamma_inf + 1e-9, "gamma_inf bounds the derivatives", q=qs.tolist())
    require(gini <= smoothness.gamma_g + 1e-9, "gamma_g bounds the Gini-weighted gradient", q=qs.tolist(), gini=gini)


def _has_kink(reward: Reward, weight: float, state: float, q: float) -> bool:
    """Whether the derivative jumps near ``q``, where a finite difference does not approximate it."""
    below, above = (derivative(reward, weight, state, x) for x in (q - 1e-6, q + 1e-6))
    return abs(below - above) > 1e-3 * weight


def check_actions(actions: Actions, n_arms: int = 6) -> None:
    """Check that ``admits`` is true exactly if a batch contains all arms, and that listed batches may be played."""
    actions.validate(n_arms)
    batches = [frozenset(batch) for batch in actions.batches(n_arms)]
    require(len(batches) <= actions.n_batches(n_arms), "n_batches is a bound", batches=len(batches))
    largest = capacity(actions, n_arms)
    require(largest == max(map(len, batches)), "capacity is the size of the largest batch", capacity=largest)
    chosen = np.zeros(max(largest, n_arms), np.int64)
    for batch in batches:
        require(actions.includes(np.array(sorted(batch))), "a listed batch may be played", batch=sorted(batch))
        for size in range(len(batch)):
            for part in itertools.combinations(sorted(batch), size):
                chosen[:size] = part
                for arm in set(range(n_arms)) - set(part):
                    possible = any({*part, arm} <= other for other in batches)
                    admitted = admits(actions, chosen, size, arm)
                    require(
                        admitted == possible,
                        "admits is true exactly if some batch contains all arms",
                        chosen=part,
                        arm=arm,
                    )
    candidates = Candidates(np.zeros(n_arms), np.ones(n_arms, bool))
    for played in (cover(actions, candidates), sample(actions, candidates, new_stream(np.random.SeedSequence(0)))):
        require(actions.includes(played), "cover and sample may be played", batch=played.tolist())


def _small_problem(rng: np.random.Generator) -> Problem:
    return Problem(6, 4, Coverage(), Subsets(3), weights=rng.uniform(0.1, 1.0, 4))


def check_oracle(oracle: Oracle, problem: Callable[[np.random.Generator], Problem] = _small_problem) -> None:
    """Check that batches may be played, are eligible and reproducible, and reach alpha times the best if beta is 1."""
    rng = np.random.default_rng(0)
    for trial in range(60):
        task = problem(rng)
        ready = oracle.fit(task)
        promise = ready.guarantee(task)
        p = rng.random((task.n_arms, task.n_items)) * rng.choice([0.1, 1.0])
        eligible = np.ones(task.n_arms, bool)
        if trial % 2 and isinstance(task.actions, Subsets):
            eligible[rng.integers(task.n_arms)] = False
        candidates = Candidates(rng.integers(0, 3, task.n_arms).astype(float), eligible)
        q = task.entries(p)
        action, repeated = (
            maximize(ready, task, q, candidates, new_stream(np.random.SeedSequence(trial))) for _ in range(2)
        )
        require_batch(oracle, "maximize", action)
        require(np.array_equal(action, repeated), "the same stream gives the same batch", p=p.tolist())
        require(eligible[action].all(), "only eligible arms are picked", action=action.tolist())
        value = task.value(p, action)
        best = max(task.value(p, b) for b in task.actions.batches(task.n_arms) if eligible[list(b)].all())
        kept = promise.beta < 1.0 or value >= promise.alpha * best * (1.0 - 1e-12)
        require(kept, f"value is at least {promise.alpha:.3f} of the best", p=p.tolist(), value=value, best=best)


def check_policy(policy: Policy, problem: Problem | None = None, rounds: int = 40) -> None:
    """Check that batches may be played, that a seed reproduces them, and that undoing feedback is exact."""
    task = problem or Problem(5, 3, Coverage(), Subsets(2))
    ready = policy.fit(task)
    first, second = (_play(ready, task, rounds) for _ in range(2))
    for action, repeated in zip(first, second, strict=True):
        require(task.actions.includes(action), "batches may be played", action=action.tolist())
        require(np.array_equal(action, repeated), "the same seed gives the same batches", action=action.tolist())


class _AnyAnswer(NamedTuple):
    """An environment with random outcomes of which one entry in ten is not seen."""

    @property
    def partial(self) -> bool:
        return True

    def max_answer_entries(self, support: Support, n_arms: int, k: int) -> int:
        return max(length(support, np.array([j])) for j in range(n_arms)) * k

    def answer(self, support: Support, action: Ints, t: int, stream: Stream, sheet: AnswerBuffer) -> int:
        seek(stream, t, 0)
        for o in range(length(support, action)):
            sheet.outcome[o], sheet.seen[o] = uniform(stream), uniform(stream) < 0.9
        return -1


def _play(policy: Policy, problem: Problem, n_rounds: int) -> list[Any]:
    rng = np.random.default_rng(0)
    environment: Any = _AnyAnswer()
    actions = []
    for t, run, action, _ in rounds(problem, environment, policy, np.random.SeedSequence(0), n_rounds):
        require_batch(policy, "choose", action)
        size = length(problem.support, action)
        feedback = Feedback(t, action, rng.random(size), np.ones(size, bool))
        before = [values.copy() for values in run.tally]
        for sign in (1.0, -1.0):
            learn(policy, problem, run.tally, run.memory, feedback, run.streams.rounding, sign)
        same = all(np.array_equal(x, y) for x, y in zip(before, run.tally, strict=True))
        require(same, "undoing feedback restores the tally", action=action.tolist())
        actions.append(action)
    return actions


def check_environment(environment: Environment, problem: Problem | None = None, rounds: int = 4000) -> None:
    """Check that outcomes lie in [0, 1], depend on seed, round and arm alone, and average to the means.

    An average may be off by six standard errors: a correct environment fails with probability below 1e-7 per entry.
    Without a ``problem``, one of the shape of the environment's means is used, with ``Coverage``.
    """
    means = environment.means(1)
    n_arms, n_items = np.shape(means) if problem is None else (0, 0)
    task = problem or Problem(n_arms, n_items, Coverage(), Subsets(1))
    p = task.entries(means)
    all_arms, (answers, _, _) = np.arange(task.n_arms), run_streams(np.random.SeedSequence(0))
    size = length(task.support, all_arms)
    outcome, seen = np.empty(size), np.ones(size, bool)
    total, square, count = np.zeros(size), np.zeros(size), np.zeros(size)
    for t in range(1, rounds + 1):
        seen[:] = True
        draw(environment, task.support, all_arms, t, answers, outcome, seen)
        require(((outcome >= 0.0) & (outcome <= 1.0)).all(), "outcomes lie in [0, 1]", outcome=outcome.tolist())
        total += np.where(seen, outcome, 0.0)
        square += np.where(seen, outcome**2, 0.0)
        count += seen
    alone, part = np.empty(size), all_arms[-1:]
    last = length(task.support, part)
    for t in range(1, 31):  # several rounds: in a single one, a binary entry agrees by chance half of the time
        draw(environment, task.support, all_arms, t, answers, outcome, np.ones(size, bool))
        draw(environment, task.support, part, t, answers, alone, np.ones(size, bool))
        require(
            np.array_equal(alone[:last], outcome[-last:]), "the outcome of an arm does not depend on the others", t=t
        )
    mean = total / np.maximum(count, 1.0)
    error = np.sqrt(np.maximum(p * (1.0 - p), 1e-12) / np.maximum(count, 1.0))
    require((np.abs(mean - p) <= 6.0 * error + 1e-9).all(), "outcomes average to the means", mean=mean.tolist())
