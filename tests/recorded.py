"""Decisions that were recorded with another implementation of the same policies, and their replay.

``fixtures/decisions.json`` has one string of arms for each test that asks for it: a digit is an arm, a point is no arm.
"""

import functools
import gzip
import json
from pathlib import Path

import numpy as np

from superarm.core.tally import Feedback, View

FIXTURES = Path(__file__).parent / "fixtures"


@functools.cache
def _decisions():
    return json.loads((FIXTURES / "decisions.json").read_text())


def recorded(request):
    """What was recorded for this test."""
    return _decisions()[f"{request.path.stem}::{request.node.name}"]


def stored(name):
    """A compressed JSON file of the fixtures."""
    return json.loads(gzip.decompress((FIXTURES / name).read_bytes()))


def write(batches):
    """Batches in the form of the recording."""
    return "".join("." if arm < 0 else str(arm) for arm in np.asarray(batches).reshape(-1).tolist())


def independent(seed, p, share=1.0):
    """Outcomes in {0, 0.6, 1} with means near ``p`` (n_arms, n_items), of which a share is seen."""
    rng = np.random.default_rng(seed)

    def draw(t, action):
        x = (rng.random((*action.shape, p.shape[1])) < p[action]) * rng.choice([1.0, 0.6], (*action.shape, 1))
        return x, None if share == 1.0 else rng.random(x.shape) < share

    return draw


class Replay:
    """A policy with R replications whose every decision is compared with a recorded one."""

    def __init__(self, policy, problem, expected, replications=2, partial=False):
        self.policy, self.problem, self.expected, self.R = policy, problem, expected, replications
        policy.validate(problem)
        self.memory = policy.new_memory(problem, replications, partial)

    @property
    def tally(self):
        return self.memory.tally

    def choose(self, t, waiting=None, eligible=None):
        """The batches (R, K) of round ``t``, as recorded."""
        self.memory.advance(t)
        shape = self.tally.pulls.shape
        counts = self.tally.pulls + (0.0 if waiting is None else waiting)
        eligible = np.ones(shape, bool) if eligible is None else eligible
        keys, nothing = np.arange(self.R).astype(np.uint64), np.empty((self.R, 0), int)
        batch = self.policy.choose(self.problem, View(t, self.tally, keys, counts, eligible, nothing), self.memory)
        now, self.expected = self.expected[: batch.size], self.expected[batch.size :]
        assert write(batch) == now, f"round {t}"
        return batch

    def learn(self, t, action, outcome, seen=None, sign=1.0):
        self.memory.learn(Feedback(t, action, outcome, seen), sign)

    def play(self, rounds, draw, undo=0, first=1):
        """Play; ``draw(t, action)`` gives outcome and seen. Every ``undo`` rounds take back a late observation."""
        told = []
        for t in range(first, first + rounds):
            batch = self.choose(t)
            outcome, seen = draw(t, batch)
            self.learn(t, batch, outcome, seen)
            told.append((t, batch, outcome, seen))
            if undo and t % undo == 0:
                self.learn(*told.pop(-min(3, len(told))), -1.0)
        return told
