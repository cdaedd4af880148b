"""Contract checks for components, superarm's own and yours.

``check(component)`` runs the checks of the component's family; a violation raises ``ContractViolation`` with a
counterexample, in a sentence. Random trials have a fixed seed, so results are reproducible.
"""

import copy
import itertools
import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from superarm.actions import Actions, Subsets
from superarm.agent import Agent
from superarm.core import streams
from superarm.core.arrays import Floats
from superarm.core.component import Component
from superarm.core.errors import SuperarmError
from superarm.core.support import Dense
from superarm.core.tally import Feedback, View
from superarm.core.totals import whole_feedback
from superarm.describe import build, describe
from superarm.environments import Answer, Environment
from superarm.indices import Chance, Index
from superarm.oracles import Oracle
from superarm.policies import Memory, Policy
from superarm.policies.base import choose_batches
from superarm.problem import Problem
from superarm.rewards import Coverage, Reward, Total
from superarm.simulation.engine import Run
from superarm.theory.smoothness import Refuted, check_own_claim

__all__ = [
    "ContractViolation",
    "check",
    "check_actions",
    "check_environment",
    "check_index",
    "check_memory",
    "check_oracle",
    "check_policy",
    "check_reward",
    "check_split",
    "check_store",
]

_TRIALS = 300
"""How many random inputs a check of an index or a reward tries."""


class ContractViolation(SuperarmError, AssertionError):
    """A component breaks the contract of its family; the message contains a counterexample."""


def require(holds: Any, promise: str, **example: Any) -> None:
    """Raise ``ContractViolation`` with the ``example`` unless ``promise`` ``holds``."""
    if not holds:
        shown = ", ".join(f"{name}={_shown(value)}" for name, value in example.items())
        raise ContractViolation(f"{promise}; violated with {shown}" if shown else promise)


def _shown(value: Any) -> str:
    return repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)


def require_array(component: Any, method: str, value: Any, shape: tuple[int, ...], kind: str = "f") -> None:
    """Refuse a result that is not a finite array of this shape; a method that forgets ``return`` is named."""
    name = f"{type(component).__name__}.{method}"
    require(value is not None, f"{name} returned None; end it with: return …")
    array = np.asarray(value)
    words = {"f": "numbers", "i": "whole numbers", "b": "True and False"}[kind]
    kinds = {"f": "fiu", "i": "iu", "b": "b"}[kind]
    require(array.dtype.kind in kinds, f"{name} returns {words}; it returned an array of {array.dtype}")
    exact = kind == "i" or array.ndim != len(shape)
    fits = array.shape == shape or (not exact and all(a in (1, n) for a, n in zip(array.shape, shape, strict=True)))
    require(fits, f"{name} returns an array of shape {shape}; it returned {array.shape}")
    require(kind != "f" or not np.isnan(array).any(), f"{name} returns numbers; it returned NaN")


def check(component: Any) -> None:
    """Run every check that applies to ``component``.

    >>> check(Coverage())
    """
    families: dict[type, Callable[[Any], None]] = {
        Index: check_index,
        Reward: check_reward,
        Actions: check_actions,
        Oracle: check_oracle,
        Policy: check_policy,
        Environment: check_environment,
    }
    found = [run for family, run in families.items() if isinstance(component, family)]
    names = ", ".join(family.__name__ for family in families)
    require(found, f"a component is a subclass of one of {names}; write e.g. class {_name(component)}(sa.Index)")
    check_value(component)
    for run in found:
        run(component)


def _name(component: Any) -> str:
    return component.__name__ if isinstance(component, type) else type(component).__name__


def check_value(component: Component) -> None:
    """Check that a component compares by value, and survives copying and pickling."""
    require(component == copy.copy(component), "a component equals its copy", component=component)
    if "<locals>" not in type(component).__qualname__ and type(component).__module__ != "__main__":
        require(pickle.loads(pickle.dumps(component)) == component, "pickling keeps a component", component=component)
    require(hash(component) == hash(copy.copy(component)), "equal components have equal hashes", component=component)


def check_index(index: Index) -> None:
    """Check that scores lie in [0, 1] and, unless sampled, are at least the mean and grow with level and t."""
    rng, n, support = np.random.default_rng(0), _TRIALS, Dense(1, _TRIALS)
    mean = np.where(rng.random(n) < 0.5, rng.random(n), rng.integers(0, 2, n))[None, None]
    deviation = np.sqrt(mean * (1.0 - mean)) * rng.random(n)
    pulls, share = rng.integers(1, 10_000, n).astype(float)[None, None], 0.3
    for t in (1, 2, 3, 1000, 10**6):
        x, later = index.level(pulls, t, share), index.level(pulls, 2 * t, share)
        for level in (x, later):
            require_array(index, "level", level, mean.shape)
        grows = bool(index.random or (later >= x).all())
        require((x >= 0.0).all() and grows, "levels are not negative and, unless sampled, grow with t", t=t)
        q, other, more = (
            index.score(mean, deviation, np.broadcast_to(level, mean.shape).copy(), _chance(seed, support))
            for level, seed in ((x, 1), (x, 2), (later, 1))
        )
        require_array(index, "score", q, mean.shape)
        bad = np.isnan(q) | (((q < 0.0) | (q > 1.0)) & (not index.unclipped))
        _require_everywhere(
            ~bad,
            "scores lie in [0, 1], unless it says unclipped = True",
            mean=mean,
            deviation=deviation,
            level=x,
            score=q,
        )
        if np.array_equal(q, other):
            _require_everywhere(q >= mean - 1e-12, "scores are at least the mean", mean=mean, level=x, score=q)
            _require_everywhere(more >= q - 1e-12, "scores grow with the level", mean=mean, level=x, later=later)


def _chance(seed: int, support: Dense) -> Chance:
    return Chance(np.array([seed], np.uint64), 5, support)


def _require_everywhere(holds: Any, promise: str, **arrays: Any) -> None:
    if not np.all(holds):
        at = int(np.argmin(np.asarray(holds).reshape(-1)))
        shape = np.shape(holds)
        require(False, promise, **{name: np.broadcast_to(a, shape).reshape(-1)[at] for name, a in arrays.items()})


def check_reward(reward: Reward, k: int = 5, tolerance: float = 1e-9) -> None:
    """Check that the order of arms does not matter, that gains are differences of worth, and what is declared.

    Differences up to ``tolerance`` times the weight are taken for rounding.
    """
    rng = np.random.default_rng(0)
    weight, q = rng.uniform(0.1, 3.0, _TRIALS), rng.random((k, _TRIALS))
    empty = reward.start(weight)
    require_array(reward, "start", empty, weight.shape)
    state, shuffled = empty, empty
    for own, other in zip(q[:-1], rng.permutation(q[:-1]), strict=True):
        state, shuffled = reward.join(state, own), reward.join(shuffled, other)
    require_array(reward, "join", state, weight.shape)
    require(np.allclose(state, shuffled, rtol=1e-9), "the order in which arms join does not matter", q=q[:, 0])
    gain = reward.gain(weight, state, q[-1])
    require_array(reward, "gain", gain, weight.shape)
    rise = reward.worth(weight, reward.join(state, q[-1])) - reward.worth(weight, state)
    near = np.abs(gain - rise) <= tolerance * weight
    _require_everywhere(near, "gain is a difference of worth", state=state, q=q[-1], gain=gain)
    _require_everywhere((gain >= 0.0) | (not reward.monotone), "an arm never lowers the worth", state=state, q=q[-1])
    least = np.minimum(reward.worth(weight, empty), reward.worth(weight, state))
    _require_everywhere(least >= -tolerance * weight, "worth is never negative", state=state, worth=least)
    early = reward.gain(weight, empty, q[-1])
    if reward.submodular:
        _require_everywhere(gain <= early + tolerance * weight, "gains shrink as the batch grows", q=q[-1])
    if reward.modular:
        _require_everywhere(np.isclose(gain, early), "an arm adds the same to every batch", q=q[-1])
    if reward.linear_gain:
        linear = q[-1] * reward.gain(weight, state, np.ones(_TRIALS))
        _require_everywhere(np.abs(gain - linear) <= tolerance * weight, "gains are linear in the parameters", q=q[-1])
    _check_derivatives(reward, weight, q)
    for size in (2, k):
        try:
            check_own_claim(reward, size)
        except Refuted as error:
            raise ContractViolation(f"smoothness({size}) bounds the slopes; {error}") from None


def _check_derivatives(reward: Reward, weight: Floats, q: Floats) -> None:
    smoothness, slopes = reward.smoothness(len(q)), []
    for n, own in enumerate(q):
        state = reward.start(weight)
        for other in np.delete(q, n, axis=0):
            state = reward.join(state, other)
        slope = reward.derivative(weight, state, own)
        rise = reward.gain(weight, state, own + 5e-7) - reward.gain(weight, state, own - 5e-7)
        below, above = (reward.derivative(weight, state, own + step) for step in (-1e-6, 1e-6))
        smooth = np.abs(rise / 1e-6 - slope) <= 1e-3 * weight * (1.0 + np.abs(slope))
        kink = np.abs(below - above) > 1e-3 * weight  # a finite difference does not approximate the derivative there
        _require_everywhere(smooth | kink, "derivative is that of worth", state=state, q=own)
        slopes.append(slope / weight)
    if smoothness is not None:
        gini = np.sqrt((q * (1.0 - q) * np.square(slopes)).sum(0))
        steepest = np.max(slopes, axis=0)
        _require_everywhere(steepest <= smoothness.gamma_inf + 1e-6, "gamma_inf bounds the derivatives", slope=steepest)
        bounded = gini <= smoothness.gamma_g + 1e-6
        _require_everywhere(bounded, "gamma_g bounds the Gini-weighted gradient", gini=gini)


def check_actions(actions: Actions, n_arms: int = 6) -> None:
    """Check that an arm may join exactly if a batch contains it and all arms so far, and that batches may be played."""
    actions.validate(n_arms)
    batches = [frozenset(batch) for batch in actions.batches(n_arms)]
    require(batches, "there is at least one batch")
    require(len(batches) <= actions.n_batches(n_arms), "n_batches is a bound", batches=len(batches))
    largest = actions.capacity(n_arms)
    require(largest == max(map(len, batches)), "capacity is the size of the largest batch", capacity=largest)
    eligible = np.ones((2, n_arms), bool)
    for batch in batches:
        require(actions.includes(np.array(sorted(batch)), n_arms), "a listed batch may be played", batch=sorted(batch))
        for size in range(len(batch)):
            for part in itertools.combinations(sorted(batch), size):
                if not set(actions.pins) <= set(part):  # pinned arms come first
                    continue
                state = actions.start(eligible)
                for arm in part:
                    state = actions.join(state, np.array([arm, arm]))
                free = actions.joinable(state, eligible)
                require_array(actions, "joinable", free, eligible.shape, "b")
                for arm in set(range(n_arms)) - set(part):
                    possible = any({*part, arm} <= other for other in batches)
                    promise = "an arm may join exactly if some batch contains it and all arms so far"
                    require((free[:, arm] == possible).all(), promise, chosen=part, arm=arm)
    if actions.matroid:
        _check_exchanges({batch for batch in batches if not any(batch < other for other in batches)})
    problem = Problem(n_arms, 1, Coverage(), actions)
    view = problem.view()
    played = actions.heaviest(np.random.default_rng(0).random((1, n_arms)), view)[0]
    require(actions.includes(played[played >= 0], n_arms), "the heaviest batch may be played", batch=played)


def _check_exchanges(bases: set[frozenset[int]]) -> None:
    """The largest sets of a matroid: for any two, an arm of the first can be replaced by one of the second."""
    for one, other in itertools.permutations(bases, 2):
        for arm in one - other:
            possible = any(one - {arm} | {new} in bases for new in other - one)
            require(possible, "the sets of a matroid exchange arms", one=sorted(one), other=sorted(other), arm=arm)


def _small_problem(rng: np.random.Generator) -> Problem:
    return Problem(6, 4, Coverage(), Subsets(3), weights=rng.uniform(0.1, 1.0, 4))


def check_oracle(oracle: Oracle, problem: Callable[[np.random.Generator], Problem] = _small_problem) -> None:
    """Check that batches may be played, are eligible and reproducible, and reach alpha times the best if beta is 1."""
    rng = np.random.default_rng(0)
    for trial in range(60):
        task = problem(rng)
        oracle.validate(task)
        promise = oracle.guarantee(task)
        p = rng.random((task.n_arms, task.n_items)) * rng.choice([0.1, 1.0])
        view = task.view(keys=np.array([trial], np.uint64))
        view.counts = rng.integers(0, 3, (1, task.n_arms)).astype(float)
        if trial % 2 and isinstance(task.actions, Subsets):
            view.eligible[0, rng.integers(task.n_arms)] = False
        first, second = (oracle.maximize(task, task.entries(p), view) for _ in range(2))
        require_array(oracle, "maximize", first, (1, task.k), "i")
        require(np.array_equal(first, second), "the same key gives the same batch", p=p)
        action = first[0][first[0] >= 0]
        require(view.eligible[0, action].all(), "only eligible arms are picked", action=action)
        value = task.value(p, action)
        eligible = view.eligible[0]
        best = max(task.value(p, b) for b in task.actions.batches(task.n_arms) if eligible[list(b)].all())
        kept = promise.beta < 1.0 or value >= promise.alpha * best * (1.0 - 1e-12)
        require(kept, f"value is at least {promise.alpha:.3f} of the best", p=p, value=value, best=best)


class _AnyAnswer(Environment):
    """Random outcomes of which one entry in ten is not seen."""

    partial = True

    def draw(self, problem: Problem, action: Any, t: int, keys: Any) -> Answer:
        numbers = streams.uniform(keys, t, np.maximum(action, 0), 2 * problem.support.widest)
        half = problem.support.widest
        if problem.reward.totals:
            return Answer(numbers[:, :, :half], total=numbers[:, 0, 0])
        return Answer(numbers[:, :, :half], numbers[:, :, half:] < 0.9)

    def means(self, problem: Problem, t: int) -> Floats:
        return np.full(problem.support.shape(1), 0.5)


def check_policy(policy: Policy[Any], problem: Problem | None = None, rounds: int = 40) -> None:
    """Check that batches may be played, that a seed reproduces them, and that undoing feedback is exact.

    Without a ``problem``, policies that learn from totals are told totals, all others what each arm did.
    """
    whole = Problem(5, reward=Total(), actions=Subsets(2))
    task = problem or (whole if policy.learns_totals else Problem(5, 3, Coverage(), Subsets(2)))
    policy.validate(task)
    first, second = (_play(policy, task, rounds) for _ in range(2))
    for batches, repeated in zip(first, second, strict=True):
        require(np.array_equal(batches, repeated), "the same seed gives the same batches", action=batches)
    if task.context is None:
        check_split(policy, task)
        check_memory(policy, task)


def check_memory(policy: Policy[Any], problem: Problem, contexts: Sequence[Any] = (None,), rounds: int = 24) -> None:
    """Check that what a policy knows follows from what it was told: early or late, in any order, once or again.

    One of two agents is told in another order, takes feedback back and gets it again, is saved and restored, and gets
    new arms after feedback that the other one gets later.
    """
    agents = one, other = Agent(problem, policy, seed=0), Agent(problem, policy, seed=0)
    rng, waiting = np.random.default_rng(0), list[tuple[str, Any, Any]]()
    for t in range(rounds):
        made = [agent.ask(context=contexts[t % len(contexts)]) for agent in agents]
        same = np.array_equal(made[0].action, made[1].action)
        require(same, "the same history gives the same batches", first=made[0].action, second=made[1].action)
        dense = isinstance(problem.support, Dense)
        entries = made[0].action.size * problem.n_items if dense else int(problem.support.widths[made[0].action].sum())
        waiting.append((made[0].id, (rng.random(entries) < 0.4).astype(float), rng.random(entries) < 0.8 + t % 3))
        if t % 6 == 5:
            told, waiting = waiting[::2], waiting[1::2]
            for feedback in told:
                one.tell(*feedback)
            if t == 11 and dense and isinstance(problem.actions, Subsets):
                one.add_arms(1, features=_new_features(problem))
                _tell_again(other, told, rng)
                other.add_arms(1, features=_new_features(problem))
            else:
                _tell_again(other, told, rng)
            require_equal_memories(one.learner.memory, other.learner.memory, "whatever the order of feedback")
            before = other.learner.memory.to_arrays()
            stored = {name: build(json.loads(json.dumps(describe(part)))) for name, part in before.items()}
            other.learner.restore(stored, other.learner.asked, other.learner.pending)
            require_equal_memories(one.learner.memory, other.learner.memory, "after it was saved and restored")


def _new_features(problem: Problem) -> Any:
    size = 0 if problem.context is None else problem.context.arms.shape[1]
    return np.full((1, size), 0.5) if size else None


def _tell_again(agent: Agent, told: list[tuple[str, Any, Any]], rng: np.random.Generator) -> None:
    """Tell in another order, take half of it back, and tell that again."""
    for n in rng.permutation(len(told)):
        agent.tell(*told[n])
        if n % 2:
            agent.untell(*told[n])
            agent.tell(*told[n])


def require_equal_memories(first: Memory, second: Memory, when: str) -> None:
    """Raise unless two memories have equal arrays."""
    a, b = first.to_arrays(), second.to_arrays()
    differ = sorted(a.keys() ^ b.keys()) + [
        name for name in a.keys() & b.keys() if not np.array_equal(a[name], b[name])
    ]
    require(not differ, f"a memory is the same {when}", differ=differ[:3])


def check_split(policy: Policy[Any], problem: Problem) -> None:
    """Check that rows of a memory that can be split learn alone what they learn together."""
    whole, parts = policy.new_memory(problem, 2, True), policy.new_memory(problem, 2, True)
    if not whole.divisible:
        return
    rng, keys = np.random.default_rng(0), np.arange(2).astype(np.uint64)
    for t in range(1, 7):
        everyone, nobody = np.ones((2, problem.n_arms), bool), np.empty((2, 0), np.int64)
        view = View(t, whole.tally, keys, whole.tally.pulls, everyone, nobody)
        batches = choose_batches(policy, problem, view, whole)
        feedback = _any_feedback(problem, t, batches, rng)
        whole.learn(feedback)
        for r in range(2):
            rows = slice(r, r + 1)
            part = parts.take(rows)
            part.learn(feedback.of_rows(rows))
            parts.put(rows, part)
    require_equal_memories(whole, parts, "when its rows learn alone")


def _any_feedback(problem: Problem, t: int, batches: Any, rng: np.random.Generator) -> Feedback:
    outcome = rng.random((*batches.shape, problem.support.widest)).round(1)
    return whole_feedback(t, batches, outcome[:, 0, 0]) if problem.reward.totals else Feedback(t, batches, outcome)


def _play(policy: Policy[Any], problem: Problem, n_rounds: int) -> list[Any]:
    run = Run(problem, _AnyAnswer(), policy, streams.run_keys(np.random.SeedSequence(0).spawn(2)))
    rng, played = np.random.default_rng(0), []
    for t in range(1, n_rounds + 1):
        view = View(t, run.tally, run.keys.policy, run.tally.pulls, run.eligible, run.pinned)
        batches = choose_batches(policy, problem, view, run.memory)
        require_array(policy, "choose", batches, (2, problem.k), "i")
        for batch in batches:
            arms = batch[batch >= 0]
            may = problem.actions.includes(arms, problem.n_arms) and len(set(arms.tolist())) == len(arms)
            require(may, "batches may be played", action=arms)
        before = [getattr(run.tally, name).copy() for name in ("pulls", "total", "square")]
        feedback = _any_feedback(problem, t, batches, rng)
        for sign in (1.0, -1.0):
            run.memory.learn(feedback, sign)
        after = [getattr(run.tally, name) for name in ("pulls", "total", "square")]
        same = all(np.array_equal(x, y) for x, y in zip(before, after, strict=True))
        require(same, "undoing feedback restores the tally", action=batches)
        run.play_round()
        played.append(run.last.copy())
    return played


def check_environment(environment: Environment, problem: Problem | None = None, rounds: int = 4000) -> None:
    """Check that outcomes lie within bounds, depend on key, round and arm alone, and average to the means.

    An average may be off by six standard errors: a correct environment fails with probability below 1e-7 per entry.
    Without a ``problem``, one of the shape of the environment's ``p`` is used, with ``Coverage``.
    """
    shape = np.shape(getattr(environment, "p", ()))
    require(problem is not None or len(shape) == 2, "without p (n_arms, n_items), give a problem to check_environment")
    task = problem or Problem(int(shape[0]), int(shape[1]), Coverage(), Subsets(1))
    environment.validate(task)
    keys, arms = np.arange(rounds).astype(np.uint64), np.arange(task.n_arms)
    answer = environment.draw(task, np.tile(arms, (rounds, 1)), 1, keys)
    require(isinstance(answer, Answer), "draw returns an Answer(outcome, seen, observed)")
    require_array(environment, "draw", answer.outcome, (rounds, task.n_arms, task.support.widest))
    low, high = task.bounds
    right = (answer.outcome >= low) & (answer.outcome <= high)
    _require_everywhere(right, f"outcomes lie in [{low:g}, {high:g}]", outcome=answer.outcome)
    seen = np.ones(answer.outcome.shape, bool) if answer.seen is None else answer.seen
    lone = environment.draw(task, np.full((rounds, 1), task.n_arms - 1), 1, keys)
    alone, together = lone.outcome[:, 0], answer.outcome[:, -1]
    unseen = ~seen[:, -1] | (False if lone.seen is None else ~lone.seen[:, 0])
    same = (alone == together) | unseen
    _require_everywhere(same, "the outcome of an arm does not depend on the others where both are seen", outcome=alone)
    count = np.maximum(seen.sum(0), 1)
    mean = np.where(seen, answer.outcome, 0.0).sum(0) / count
    p = task.support.rows(environment.means(task, 1), arms[None])[0]
    variance = answer.outcome.var(0) if task.real else p * (1.0 - p)
    error = np.sqrt(np.maximum(variance, 1e-12) / count)
    _require_everywhere(np.abs(mean - p) <= 6.0 * error + 1e-9, "outcomes average to the means", mean=mean, p=p)


def check_store(open_store: Callable[[], Any]) -> None:
    """Check that a store of the service keeps what was committed, in order and once, and that a state outlives it.

    ``open_store`` opens an empty database, and when it is called again, the same one, as a new process would.
    """
    from superarm.service.storage.checking import check_store as check_it

    check_it(open_store)
