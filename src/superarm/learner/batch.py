"""Several batches by one compiled call: what a call costs besides its work is paid once."""

from typing import Any

import numpy as np

from superarm._jit import kernel
from superarm.actions import capacity
from superarm.arrays import Ints
from superarm.policies import Policy, Round, choose
from superarm.problem import Problem
from superarm.streams import Stream


@kernel
def choose_each(policy: Policy, problem: Problem, current: Round, memory: Any, keys: Any) -> Ints:
    """One batch per stream key (uint64), for round ``current.t`` and those after it: (n, k), -1 where one is shorter.

    Each batch is pending for the next: ``current.candidates.counts`` grows as they are chosen.
    """
    batches = np.full((len(keys), capacity(problem.actions, problem.n_arms)), -1, np.int64)
    pulls = current.candidates.counts
    for n in range(len(keys)):
        key = keys[n : n + 1]
        now = Round(current.t + n, current.tally, current.candidates)
        action = choose(policy, problem, now, memory, Stream(key, key.copy()))
        for place in range(len(action)):
            batches[n, place] = action[place]
            pulls[action[place]] += 1.0
    return batches
