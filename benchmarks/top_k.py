"""Rounds of linear top-K, one number an arm: superarm's CUCB against UCB in SMPyBandits and river, interleaved.

Peers take part if they can be imported. Their round goes from choosing to learning, answers come from Python's own
generator; superarm's has the expected reward besides. river chooses one arm a round, so it plays where K = 1.
"""

import importlib
import random
import time
from typing import Any

import superarm as sa
from benchmarks.rounds import Timer, compare, row, superarm_timer
from benchmarks.states import State, jumped, parameters

SIZES = ((20, 1), (100, 1), (1000, 1), (20, 3), (100, 10), (1000, 20))
ROUNDS = 20_000
PEERS = {
    "SMPyBandits": ("SMPyBandits.Policies", "pip install SMPyBandits 'scipy<1.14'"),
    "river": ("river.bandit", "pip install river"),
}


def smpybandits_timer(state: State) -> Timer:
    """Seconds of CPU time for n rounds of SMPyBandits' UCB, as a policy loop."""
    policies = importlib.import_module("SMPyBandits.Policies")
    p, k = state.environment.p.ravel().tolist(), state.problem.k
    policy = policies.UCB(len(p))
    policy.startGame()
    for arm, chance in enumerate(p):
        policy.getReward(arm, chance)

    def timer(n: int) -> float:
        started = time.thread_time()
        for _ in range(n):
            for arm in policy.choiceMultiple(k):
                policy.getReward(arm, float(random.random() < p[arm]))
        return time.thread_time() - started

    return timer


def river_timer(state: State) -> Timer:
    """The same for river's UCB, which chooses one arm."""
    bandit = importlib.import_module("river.bandit")
    p = state.environment.p.ravel().tolist()
    policy, arms = bandit.UCB(delta=1.0, seed=0), list(range(len(p)))
    for arm, chance in enumerate(p):
        policy.update(arm, chance)

    def timer(n: int) -> float:
        started = time.thread_time()
        for _ in range(n):
            arm = policy.pull(arms)
            policy.update(arm, float(random.random() < p[arm]))
        return time.thread_time() - started

    return timer


def absent() -> list[str]:
    """The peers that cannot be imported, after a line on how to install each."""
    missing = []
    for name, (home, command) in PEERS.items():
        try:
            importlib.import_module(home)
        except ImportError as error:
            print(f"{name} is left out ({error}): {command}", flush=True)
            missing.append(name)
    return missing


def contestants(state: State, missing: list[str]) -> dict[str, Timer]:
    """superarm and those of its peers that are here and can play."""
    timers: dict[str, Any] = {"superarm": superarm_timer(state, sa.cucb().fit(state.problem))}
    if "SMPyBandits" not in missing:
        timers["SMPyBandits"] = smpybandits_timer(state)
    if "river" not in missing and state.problem.k == 1:
        timers["river"] = river_timer(state)
    return timers


def main() -> None:
    missing = absent()
    for n_arms, k in SIZES:
        problem = sa.Problem(n_arms, 1, sa.Linear(), sa.Subsets(k))
        state = jumped(problem, parameters("iid", n_arms, 1), ROUNDS, ROUNDS * k // n_arms)
        print(row(f"{k} of {n_arms} arms, linear", compare(contestants(state, missing))), flush=True)


if __name__ == "__main__":
    main()
