"""Drive a policy of the old engine and its successor with the same feedback, and compare every decision."""

import numpy as np

from superarm.candidates import Candidates
from superarm.core.tally import Feedback, View
from superarm.policies import Round
from superarm.policies import choose as old_choose
from superarm.policies import learn as old_learn
from superarm.policies import prepare as old_prepare
from superarm.policies.traits import empty_tally
from superarm.core.streams import new_stream
from superarm.core.tally import Feedback as OldFeedback
from superarm.core.tally import allow_missing


class Both:
    """The same policy in both engines, R replications: the old one as R separate runs."""

    def __init__(self, old, new, old_problem, problem, replications=2, partial=False):
        self.new, self.problem, self.old_problem, self.R = new, problem, old_problem, replications
        new.validate(problem)
        self.tally = new.new_tally(problem, replications, partial)
        self.memory = new.prepare(problem, self.tally)
        self.old = old.fit(old_problem)
        self.stream = new_stream(np.random.SeedSequence(0))
        tallies = [empty_tally(self.old, old_problem) for _ in range(replications)]
        self.old_tallies = [allow_missing(tally) for tally in tallies] if partial else tallies
        self.old_memories = [old_prepare(self.old, old_problem, tally) for tally in self.old_tallies]

    def choose(self, t, waiting=None, eligible=None):
        """The batches of both engines, (R, K) each."""
        shape = self.tally.pulls.shape
        waiting = np.zeros(shape) if waiting is None else waiting
        eligible = np.ones(shape, bool) if eligible is None else eligible
        counts, nothing = self.tally.pulls + waiting, np.empty((self.R, 0), int)
        view = View(t, self.tally, np.arange(self.R).astype(np.uint64), counts, eligible, nothing)
        batch, before = self.new.choose(self.problem, view, self.memory), np.full((self.R, self.problem.k), -1)
        for r, (tally, memory) in enumerate(zip(self.old_tallies, self.old_memories, strict=True)):
            current = Round(t, tally, Candidates(tally.pulls + waiting[r], eligible[r].copy()))
            action = old_choose(self.old, self.old_problem, current, memory, self.stream)
            before[r, : len(action)] = action
        return batch, before

    def learn(self, t, action, outcome, seen=None, sign=1.0):
        """Let both engines learn the same; ``outcome`` is (R, K, widest)."""
        self.new.learn(self.problem, self.tally, self.memory, Feedback(t, action, outcome, seen), sign)
        widths = getattr(self.problem.support, "widths", np.full(self.problem.n_arms, self.problem.n_items))
        for r, (tally, memory) in enumerate(zip(self.old_tallies, self.old_memories, strict=True)):
            arms = action[r][action[r] >= 0]
            marks = np.ones(outcome.shape, bool) if seen is None else seen
            x, s = (np.concatenate([part[r, k, : widths[j]] for k, j in enumerate(arms)]) for part in (outcome, marks))
            old_learn(self.old, self.old_problem, tally, memory, OldFeedback(t, arms, x, s), self.stream, sign)

    def play(self, rounds, draw, undo=0, first=1):
        """Compare every batch of ``rounds`` rounds; ``draw(t, action)`` gives outcome and seen. Undo every ``undo``."""
        told = []
        for t in range(first, first + rounds):
            batch, before = self.choose(t)
            assert batch.tolist() == before.tolist(), f"round {t}"
            outcome, seen = draw(t, batch)
            self.learn(t, batch, outcome, seen)
            told.append((t, batch, outcome, seen))
            if undo and t % undo == 0:
                self.learn(*told.pop(-min(3, len(told))), -1.0)
        return told
