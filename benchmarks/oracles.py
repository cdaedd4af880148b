"""How long one oracle call takes on 1,000 arms, for every pair of reward and action set.

Prints the median and the slowest of some calls, warm, on fresh parameters each; the limit is 50 ms. Exact search is not
listed: it takes the time it is given.
"""

import sys
import time

import numpy as np

import superarm as sa
from superarm.oracles import Default, certify

LIMIT = 50.0
N_ARMS, N_ITEMS = 1_000, 50
CALLS = 20


def _layers(width, depth):
    """A layered network of ``depth`` complete steps between ``width`` nodes, and its ends."""
    inner = [
        (1 + width * layer + a, 1 + width * (layer + 1) + b)
        for layer in range(depth)
        for a in range(width)
        for b in range(width)
    ]
    last = 1 + width * (depth + 1)
    ends = [(0, 1 + a) for a in range(width)] + [(1 + width * depth + b, last) for b in range(width)]
    return sa.Paths(last + 1, [*inner, *ends], source=0, target=last)


def _graph(n_nodes, rng):
    ring = [(v, (v + 1) % n_nodes) for v in range(n_nodes)]
    chords = [tuple(rng.choice(n_nodes, 2, replace=False).tolist()) for _ in range(N_ARMS - n_nodes)]
    return ring + chords


def _pairs(left, right, rng):
    cells = rng.choice(left * right, N_ARMS, replace=False)
    return sa.Matching(left, right, [(int(c) // right, int(c) % right) for c in cells])


def action_sets():
    """Every kind of action set, on about 1,000 arms."""
    rng = np.random.default_rng(0)
    arms = np.arange(N_ARMS)
    shelves = [(arms[n : n + 50].tolist(), 2) for n in range(0, N_ARMS, 50)] + [(arms.tolist(), 20)]
    return {
        "Subsets(10)": sa.Subsets(10),
        "Subsets(100)": sa.Subsets(100),
        "PartitionMatroid, k=20": sa.PartitionMatroid((arms % 20).tolist(), [1] * 20),
        "Laminar, k=20": sa.Laminar(shelves),
        "GraphicMatroid, k=99": sa.GraphicMatroid(100, _graph(100, rng)),
        "SpanningTrees, k=199": sa.SpanningTrees(200, _graph(200, rng)),
        "Slots, k=20": sa.Slots(rng.random((20, N_ARMS)) < 0.5),
        "Matching 50x50": _pairs(50, 50, rng),
        "Matching 300x300": _pairs(300, 300, rng),
        "Paths, k=11": _layers(10, 9),
        "Knapsack, grid": sa.Knapsack(rng.integers(10, 100, N_ARMS), 1000),
        "Knapsack, off grid": sa.Knapsack(rng.uniform(10, 100, N_ARMS), 1000),
        "Pinned Subsets(10)": sa.Pinned(sa.Subsets(10), [3, 4]),
    }


def cases():
    """(name, problem, oracle) for every listed pair, and for the oracles that are not the default."""
    others = {
        "Subsets(10)": [sa.LazyGreedy(), sa.StochasticGreedy(0.1), sa.LocalSearch()],
        "PartitionMatroid, k=20": [sa.LocalSearch(), sa.ContinuousGreedy(10)],
        "Knapsack, grid": [sa.CostBenefit()],
    }
    for reward in (sa.Linear(), sa.Coverage()):
        for name, actions in action_sets().items():
            n_arms = len(actions.ends) if hasattr(actions, "ends") else N_ARMS
            problem = sa.Problem(n_arms, N_ITEMS, reward, actions)
            for oracle in [Default(), *(others.get(name, []) if isinstance(reward, sa.Coverage) else [])]:
                yield f"{type(reward).__name__:8s} {name}", problem, oracle.fit(problem)


def milliseconds(call, inputs):
    """The time of each call, after one that compiles."""
    call(inputs[0])
    spent = []
    for given in inputs:
        started = time.perf_counter()
        call(given)
        spent.append(1e3 * (time.perf_counter() - started))
    return spent


def main():
    """Print the table; the exit code is 1 if a call was slower than the limit."""
    rng = np.random.default_rng(1)
    slow = []
    print(f"{'pair':34s} {'oracle':20s} {'alpha':>6s} {'median ms':>10s} {'slowest':>8s}", end=" ")
    print(f"{'certificate':>12s} {'measured':>9s}")
    for name, problem, oracle in cases():
        inputs = [rng.uniform(0.0, 0.3, (problem.n_arms, N_ITEMS)) for _ in range(CALLS)]
        spent = milliseconds(lambda p, pr=problem, o=oracle: sa.solve(pr, p, o), inputs)
        action = sa.solve(problem, inputs[0], oracle)
        proof = milliseconds(lambda p, pr=problem, a=action: certify(pr, p, a), inputs[:5])
        measured = certify(problem, inputs[0], action).measured_alpha
        alpha = oracle.guarantee(problem).alpha
        print(
            f"{name:34s} {type(oracle).__name__:20s} {alpha:6.3f} {np.median(spent):10.2f} {max(spent):8.2f}"
            f" {np.median(proof):12.2f} {measured:9.3f}",
            flush=True,
        )
        if np.median(spent) > LIMIT:
            slow.append(name)
    print(f"slower than {LIMIT:g} ms: {', '.join(slow) or 'none'}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
