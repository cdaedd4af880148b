"""What a control share costs: processor time to plan a decision, with and without it.

    python -m benchmarks.control [--rounds 60]

Bursts of 64 requests that arrive together, for a problem of 100 arms, 20 items and slates of 5 in which every arm was
pulled 60 times, by turns without a control share, with 5 % of control, and with 5 % planned one by one. Medians over
the rounds, and quotients within a round.
"""

import argparse
import time

import numpy as np

from superarm.service.domain.events import Created
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import ProblemSpec, Settings
from superarm.service.runtime import batcher
from superarm.service.runtime.batcher import Batcher, QueuedAsk
from superarm.service.runtime.gates import Gates
from superarm.service.schemas import AskBody

N_ARMS, N_ITEMS, K, PULLS, BURST = 100, 20, 5, 60, 64


def make_problem(control: float) -> ProblemState:
    """A problem in which every arm was pulled ``PULLS`` times."""
    arms, items = [f"a{j}" for j in range(N_ARMS)], [f"i{i}" for i in range(N_ITEMS)]
    settings = Settings(control=control, control_slate=arms[:K])
    state = ProblemState(Created(0, ProblemSpec(arms=arms, items=items, k=K, settings=settings), "key"))
    rng, learner = np.random.default_rng(0), state.learner
    tally = learner.tally
    tally.pulls[:] = PULLS
    tally.total[:] = tally.square[:] = rng.binomial(PULLS, rng.uniform(0.0, 0.2, N_ARMS * N_ITEMS))
    learner.restore(tally, learner.pending, N_ARMS * PULLS // K)
    return state


def plan_burst(plan: Batcher, state: ProblemState, n: int, together: bool) -> float:
    """Microseconds of processor time per decision of a burst."""
    asks = [QueuedAsk("t", "p", f"d{n}-{i}", AskBody(unit=f"u{n}-{i}"), "", state, None) for i in range(BURST)]
    began = time.process_time()
    for some in batcher._split(asks, together):
        plan._plan(some, together)
    took = time.process_time() - began
    for t in list(state.reserved):
        state.release(t)
    return 1e6 * took / BURST


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    plan = Batcher(lambda writes: None, lambda key: 0, Gates(), lambda: False)
    without, controlled = make_problem(0.0), make_problem(0.05)
    cases = [(without, True), (controlled, True), (controlled, False)]
    taken = np.array([[plan_burst(plan, state, n, together) for state, together in cases] for n in range(rounds)])[3:]
    for name, column in zip(("no control", "5 % control", "5 % control, one by one"), taken.T, strict=True):
        share = column / taken[:, 0]
        low, middle, high = np.percentile(share, [10, 50, 90])
        said = f"{np.median(column):.0f} µs per decision"
        print(f"{name:25} {said}, {middle:.2f} [{low:.2f}, {high:.2f}] of that without control")


if __name__ == "__main__":
    main()
