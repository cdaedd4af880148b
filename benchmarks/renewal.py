"""What one decision takes while the bounds of a large problem are renewed: processor time, 10,000 arms and 100 items.

    python -m benchmarks.renewal [--rounds 600] [--policy kl_ucb]

The counters are as 60 pulls of every arm leave them. The first decision computes the bounds of all arms; it is printed
apart. After that, each decision renews a share of them, so the longest should be close to the median.
"""

import argparse
import time

import numpy as np

import superarm as sa
from superarm.candidates import Candidates
from superarm.policies.base import Round, choose, prepare
from superarm.core.streams import new_stream
from superarm.core.tally import empty

N_ARMS, N_ITEMS, K, PULLS = 10_000, 100, 10, 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=600)
    parser.add_argument("--policy", default="kl_ucb")
    chosen = parser.parse_args()
    problem = sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(K))
    rng, tally = np.random.default_rng(0), empty(problem.support)
    tally.pulls[:] = PULLS
    tally.total[:] = tally.square[:] = rng.binomial(PULLS, rng.uniform(0.0, 0.2, N_ARMS * N_ITEMS))
    policy = getattr(sa, chosen.policy)().fit(problem)
    memory, stream = prepare(policy, problem, tally), new_stream(np.random.SeedSequence(0))
    start, taken = N_ARMS * PULLS // K, []
    everyone = Candidates(tally.pulls, np.ones(N_ARMS, np.bool_))
    choose(policy, problem, Round(1, tally, everyone), prepare(policy, problem, tally), stream)  # compiles
    for t in range(start, start + chosen.rounds):
        began = time.thread_time()
        choose(policy, problem, Round(t, tally, everyone), memory, stream)
        taken.append(1000.0 * (time.thread_time() - began))
    later = np.array(taken[1:])
    print(f"{chosen.policy}, L={N_ARMS} M={N_ITEMS} K={K}, rounds {start} to {start + chosen.rounds - 1}")
    print(f"processor time of the first decision {taken[0]:.1f} ms; of the later ones")
    middle, most, longest = np.percentile(later, [50, 99, 100])
    print(f"median {middle:.1f} ms, 99th percentile {most:.1f} ms, longest {longest:.1f} ms")


if __name__ == "__main__":
    main()
