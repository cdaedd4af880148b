"""``testing.check`` passes superarm's components and says in a sentence what is wrong with broken ones."""

from dataclasses import MISSING, fields

import numpy as np
import pytest

from superarm import environments, indices, rewards
from superarm.actions import Actions, Subsets
from superarm.core.streams import uniform
from superarm.environments import Answer, Environment
from superarm.indices import Index
from superarm.oracles import Default, Greedy, Oracle
from superarm.policies import IndexPolicy, Policy, policy
from superarm.rewards import Reward
from superarm.testing import ContractViolation, check

P = np.linspace(0.05, 0.95, 12).reshape(4, 3)


def _by_default(module, family):
    """Every public component of a module that needs no parameters: a new one is checked without being listed here."""
    classes = [value for name, value in vars(module).items() if isinstance(value, type) and not name.startswith("_")]
    found = [one for one in classes if issubclass(one, family) and one is not family]
    return [one() for one in found if all(part.default is not MISSING for part in fields(one))]


GOOD = [
    *(*_by_default(indices, Index), *_by_default(rewards, Reward)),
    *(rewards.ClippedLinear(2.0, 0.25), rewards.Logistic(0.7), rewards.Logistic(3.0), Subsets(3), Greedy(), Default()),
    *(IndexPolicy(indices.KL()), IndexPolicy(indices.BetaPosterior(), rounding="coin")),
    *(environments.Bernoulli(P), environments.Comonotone(P), environments.CommonShock(P, 0.3), environments.Beta(P)),
    *(environments.Copula(P, 0.2, 0.2), environments.Swinging(P, P[::-1], 9.0)),
    environments.Blocks(P, np.tile([1, -1, 0], (4, 1)), shock=[0.5] * 4),
]


@pytest.mark.parametrize("component", GOOD, ids=repr)
def test_components_of_superarm_pass(component):
    check(component)


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


class NoNeighbours(Actions):
    k: int

    def capacity(self, n_arms):
        return self.k

    def start(self, eligible):
        return eligible.copy()

    def joinable(self, free, eligible):
        return free

    def join(self, free, arm):
        return free & (np.abs(np.arange(free.shape[1]) - arm[:, None]) > 1)


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


class Remembers(Newest):
    def learn(self, problem, tally, memory, feedback, sign=1.0):
        tally.record(feedback, 1.0)


BROKEN = [
    (AboveOne(), "scores lie in"),
    (Forgets(), "Forgets.score returned None; end it with: return"),
    (Scalar(), "Scalar.level returns an array of shape"),
    (Shrinking(), "grow with t"),
    (Ordered(), "order in which arms join"),
    (WrongGain(), "gain is a difference of worth"),
    (WrongCapacity(2), "capacity"),
    (Loose(2), "some batch contains"),
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
