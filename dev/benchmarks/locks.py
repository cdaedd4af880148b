"""A rare fault made frequent: ``python -m dev.benchmarks.locks``, two minutes.

The best of five arms has the rate 0.10, the others 0.08, and the log already has 200 pulls of each of these, with 16
clicks, and pulls of the best one without a click. For several numbers of such pulls and shares ``optimism`` it prints
how many of the runs are locked after 10,000 decisions (the best arm has less than a tenth of the second half of them),
and the mean regret with its standard error. Then the same without a log, in 20,000 decisions and more runs.
"""

import argparse

import numpy as np

import superarm as sa
from superarm.core.arrays import Floats
from superarm.core.streams import run_keys, uniform
from superarm.core.tally import Feedback
from superarm.policies import PooledThompson
from superarm.simulation.replicate import seeds

RATES = np.array([0.1, 0.08, 0.08, 0.08, 0.08])


def play(policy: PooledThompson, unlucky: int, runs: int, rounds: int, seed: int) -> Floats:
    """The regret of each run in both halves of the rounds, (runs, 2), after a log if ``unlucky`` is not 0."""
    problem, keys = sa.Problem(5, 1, sa.Coverage(), sa.Subsets(1)), run_keys(seeds(seed, runs))
    memory, regret, half = policy.new_memory(problem, runs), np.zeros((runs, 2)), rounds // 2
    if unlucky:
        shown = np.repeat(np.arange(5), [unlucky, 200, 200, 200, 200])
        clicked = (shown > 0) & (np.arange(len(shown)) % 25 < 2)
        past = problem.past(shown, clicked[:, None].astype(float))
        memory.warm(past.take(np.zeros(runs, int)), 1)
    for t in range(1, rounds + 1):
        memory.advance(t)
        chosen = policy.choose(problem, problem.view(memory.tally, t, keys.policy), memory)
        if (plan := memory.plan(t)) is not None:
            memory.accept(plan)
        clicks = uniform(keys.environment, t, chosen) < RATES[chosen][:, :, None]
        memory.learn(Feedback(t, chosen, clicks.astype(float)))
        regret[:, int(t > half)] += RATES[0] - RATES[chosen[:, 0]]
    return regret


def line(label: str, policy: PooledThompson, unlucky: int, runs: int, rounds: int, seed: int) -> str:
    """One row of the table."""
    regret = play(policy, unlucky, runs, rounds, seed)
    locked = int((regret[:, 1] > 0.9 * 0.02 * (rounds - rounds // 2)).sum())
    total = regret.sum(1)
    return f"{label:36} {locked:3} of {runs} locked, regret {total.mean():6.1f} ± {total.std() / runs**0.5:.1f}"


def main() -> None:
    """Print a line for each log and policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="after a log; without one there are 640")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for unlucky in (60, 80, 0):
        for optimism in (0.0, 0.5, 1.0):
            label = f"{unlucky} pulls without a click, optimism {optimism:g}"
            policy = sa.pooled_thompson(optimism=optimism)
            runs, rounds = (args.runs, 10_000) if unlucky else (640, 20_000)
            print(line(label, policy, unlucky, runs, rounds, args.seed), flush=True)


if __name__ == "__main__":
    main()
