"""One greedy call for coverage: superarm's oracle against submodlib, apricot, NumPy and C++ on the same matrices.

Peers take part if installed: ``pip install submodlib-py apricot-select``. submodlib keeps single precision, and
apricot's functions are others: square roots of sums, which like coverage never saturate, and sums cut off at 1, which
on iid matrices do after a few picks. Times can be compared, batches not. apricot compiles its kernels anew in every
``fit``; here it compiles them once.
"""

import functools
import importlib
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import superarm as sa
from benchmarks import literal, native, sparse
from benchmarks.states import parameters
from superarm.candidates import Candidates
from superarm.oracles import Default, maximize
from superarm.core.streams import new_stream

SIZES = ((1_000, 200, 20), (10_000, 500, 20))
K = 20
Call = Callable[[], Any]


def ours(problem: sa.Problem, q: Any) -> Call:
    """superarm's default oracle on flat parameters."""
    oracle = Default().fit(problem)
    candidates = Candidates(np.zeros(problem.n_arms), np.ones(problem.n_arms, bool))
    chance = new_stream(np.random.SeedSequence(0))
    return lambda: maximize(oracle, problem, q, candidates, chance)


def submodlib_dense(q: Any, k: int, optimizer: str) -> Call:
    """submodlib's probabilistic set cover, built beforehand."""
    from submodlib import ProbabilisticSetCoverFunction

    n, m = q.shape
    made = ProbabilisticSetCoverFunction(n=n, num_concepts=m, probs=q.tolist(), concept_weights=[1.0] * m)
    return lambda: made.maximize(
        budget=k, optimizer=optimizer, stopIfZeroGain=False, stopIfNegativeGain=False, show_progress=False
    )


def submodlib_sparse(p: Any, k: int) -> Call:
    """submodlib's set cover on the sets of items, built beforehand."""
    from submodlib import SetCoverFunction

    rows = np.split(p.indices, p.indptr[1:-1])
    made = SetCoverFunction(n=p.shape[0], cover_set=[set(map(int, row)) for row in rows], num_concepts=p.shape[1])
    return lambda: made.maximize(
        budget=k, optimizer="LazyGreedy", stopIfZeroGain=False, stopIfNegativeGain=False, show_progress=False
    )


def apricot(module: str, selection: str, q: Any, k: int) -> Call:
    """A selection of apricot's, its kernels compiled once."""
    functions = importlib.import_module(f"apricot.functions.{module}")
    for name in ("calculate_gains", "calculate_gains_sparse", "calculate_gains_sieve", "calculate_gains_sieve_sparse"):
        compiled = getattr(functions, name)
        if not hasattr(compiled, "cache_info"):
            setattr(functions, name, functools.cache(compiled))
    return lambda: getattr(functions, selection)(k, optimizer="two-stage").fit(q)


def has(name: str) -> bool:
    """Whether a peer is installed."""
    return importlib.util.find_spec(name) is not None


def compare(label: str, calls: dict[str, Call], samples: int = 7) -> None:
    """Print medians of processor time, taking turns, and how many times superarm's each is."""
    for call in calls.values():
        call()
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(samples):
        for name, call in calls.items():
            started = time.process_time()
            call()
            taken[name].append(time.process_time() - started)
    base = np.array(taken["superarm"])
    for name, times in taken.items():
        low, middle, high = np.percentile(np.array(times) / base, [25, 50, 75])
        print(
            f"{label:28s} {name:30s} {np.median(times) * 1e3:10.3f} ms  {middle:7.2f}x [{low:.2f}-{high:.2f}]",
            flush=True,
        )


def dense(kind: str) -> None:
    """Dense matrices of the given kind."""
    for n, m, k in SIZES:
        q = np.clip(parameters(kind, n, m) + 0.05, 0.0, 1.0)
        problem = sa.Problem(n, m, sa.Coverage(), sa.Subsets(k))
        calls = {"superarm": ours(problem, q.reshape(-1))}
        calls["NumPy"] = lambda q=q, problem=problem: literal.greedy(q, problem.weights, np.zeros(len(q)), problem.k)
        if native.available():
            calls["C++"] = lambda q=q, problem=problem: native.pick(problem.k, problem.weights, q, np.zeros(len(q)))
        if has("submodlib"):
            calls["submodlib naive, maximise only"] = submodlib_dense(q, k, "NaiveGreedy")
            calls["submodlib lazy, maximise only"] = submodlib_dense(q, k, "LazyGreedy")
        if has("apricot"):
            calls["apricot, roots of sums"] = apricot("featureBased", "FeatureBasedSelection", q, k)
            calls["apricot, sums cut off"] = apricot("maxCoverage", "MaxCoverageSelection", q, k)
        compare(f"({n},{m},{k}) {kind}", calls)


def thin() -> None:
    """10⁵ arms × 10⁶ items × 20 entries; submodlib covers sets, so all parameters are 1."""
    p = sparse.support("uniform")
    problem = sa.Problem(*p.shape, sa.Coverage(), sa.Subsets(K), support=p)
    calls = {"superarm": ours(problem, np.ones(p.nnz))}
    if has("submodlib"):
        calls["submodlib lazy, maximise only"] = submodlib_sparse(p, K)
    compare("sparse 100000 x 1000000 x 20", calls)


def main() -> None:
    missing = [
        package for module, package in (("submodlib", "submodlib-py"), ("apricot", "apricot-select")) if not has(module)
    ]
    if missing:
        print(f"not installed and left out: pip install {' '.join(missing)}")
    for kind in ("iid", "clustered"):
        dense(kind)
    thin()


if __name__ == "__main__":
    main()
