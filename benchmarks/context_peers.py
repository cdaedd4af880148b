"""One arm per decision with features: superarm against MABWiser's LinUCB and river's LinUCBDisjoint.

``python -m benchmarks.context_peers`` prints microseconds of processor time per decision with feedback, with one linear
model per arm (50 arms, 16 features). superarm takes part twice: as an agent that is asked and told from Python, and as
the compiled loop of a simulation. Peers take part if installed: ``pip install mabwiser river``.
"""

import importlib.util
import statistics
import time

import numpy as np

import superarm as sa
from superarm.policies.contextual import for_context
from superarm.simulation import context_table
from superarm.simulation.contextual import advance_run, begin_run

N_ARMS, D, USERS = 50, 15, 20
TURNS, DECISIONS = 9, 20


def make_instance():
    rng = np.random.default_rng(0)
    context = sa.Context(sa.Features(d=D), model=sa.models.Linear(shared="arms"))
    problem = sa.Problem(N_ARMS, 1, sa.Linear(), sa.Subsets(1), context=context)
    users = rng.uniform(-1, 1, (USERS, D))
    return sa.Instance(problem, context_table(problem, list(users), rng.uniform(0, 0.2, (USERS, N_ARMS, 1)))), users


class Loop:
    """The compiled loop."""

    def __init__(self):
        self.instance, _ = make_instance()
        self.policy = for_context(sa.c2_ucb(), self.instance.problem).fit(self.instance.problem)
        self.run, self.t = begin_run(self.instance, self.policy, np.random.SeedSequence(0)), 0

    def play(self, n):
        advance_run(self.instance, self.policy, self.run, np.array([self.t, self.t + n]), np.zeros(1))
        self.t += n


class OneByOne:
    """A contestant that is asked and told from Python."""

    def __init__(self):
        instance, self.users = make_instance()
        self.p, self.rng = instance.environment.p, np.random.default_rng(1)
        self.start(instance.problem)

    def play(self, n):
        for _ in range(n):
            row = self.rng.integers(USERS)
            self.step(self.users[row], lambda arm, row=row: float(self.rng.random() < self.p[row, arm]))


class AskAndTell(OneByOne):
    def start(self, problem):
        self.agent = sa.Agent(problem, sa.c2_ucb(), seed=0)

    def step(self, x, outcome):
        decision = self.agent.ask(context=x)
        self.agent.tell(decision, [[outcome(int(decision.action[0]))]])


class MABWiser(OneByOne):
    def start(self, problem):
        from mabwiser.mab import MAB, LearningPolicy

        self.mab = MAB(list(range(N_ARMS)), LearningPolicy.LinUCB(alpha=1.0))
        self.mab.fit([0], [0.0], [np.append(1.0, self.users[0])])

    def step(self, x, outcome):
        features = [np.append(1.0, x)]
        arm = self.mab.predict(features)
        self.mab.partial_fit([arm], [outcome(arm)], features)


class River(OneByOne):
    def start(self, problem):
        from river import bandit

        self.policy, self.arms = bandit.LinUCBDisjoint(alpha=1.0, seed=0), list(range(N_ARMS))

    def step(self, x, outcome):
        features = dict(enumerate(np.append(1.0, x).tolist()))
        arm = self.policy.pull(self.arms, context=features)
        self.policy.update(arm, features, outcome(arm))


def main():
    peers = [cls for name, cls in (("mabwiser", MABWiser), ("river", River)) if importlib.util.find_spec(name)]
    contestants = [cls() for cls in (Loop, AskAndTell, *peers)]
    seconds = [[] for _ in contestants]
    for contestant in contestants:
        contestant.play(N_ARMS)
    for _ in range(TURNS):
        for times, contestant in zip(seconds, contestants, strict=True):
            started = time.process_time()
            contestant.play(DECISIONS)
            times.append((time.process_time() - started) / DECISIONS)
    for times, contestant in zip(seconds, contestants, strict=True):
        median = statistics.median(times)
        ratio = median / statistics.median(seconds[0])
        print(f"{type(contestant).__name__:<12} {1e6 * median:10.1f} µs per decision   {ratio:8.1f} times the loop")


if __name__ == "__main__":
    main()
