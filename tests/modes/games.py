"""What is played in both modes, compiled and as plain Python, and compared to the last bit.

The covering set of compositions (``tests/compositions.py``), whole simulations, and single functions. Every test file
of this folder compares a part of them, so that the processes of a test run share the work. A file compares action sets
that have kernels in common.

    python -m tests.modes.games NAME ...    print results of these as JSON
"""

import functools
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

import superarm as sa
from superarm.environments import Bernoulli, Beta, Blocks, CommonShock, Copula
from superarm.indices import Bernstein
from superarm.intake import Exact
from superarm.policies.fast.sieve import Sieve
from superarm.simulation import advance, begin
from superarm.simulation.engine import rounds
from tests.compositions import covering_set, ready
from tests.mode_functions import FUNCTIONS
from tests.passes import PLAIN

N_ARMS, N_ITEMS, K, ROUNDS = 6, 5, 2, 60
RNG = np.random.default_rng(5)
P = np.round(RNG.uniform(0.05, 0.9, (N_ARMS, N_ITEMS)), 3)
MASK = RNG.random((N_ARMS, N_ITEMS)) < 0.6
BLOCK = RNG.integers(-N_ITEMS, N_ITEMS + 1, (N_ARMS, N_ITEMS))
WEIGHTS = np.round(RNG.uniform(0.5, 2.0, N_ITEMS), 3)
COMPOSITIONS = {" × ".join(one): one for one in covering_set()}
PARTS = {
    "listed and matroids": ("Explicit", "GraphicMatroid", "Laminar", "Slots"),
    "budgets": ("Knapsack",),
    "matchings and partitions": ("Matching", "PartitionMatroid"),
    "paths and trees": ("Paths", "SpanningTrees"),
    "pinned": ("Pinned",),
    "subsets": ("Subsets",),
}
"""The action sets that one file compares."""


def list_part(part: str) -> list[str]:
    """The compositions of one file."""
    return [name for name, composition in COMPOSITIONS.items() if composition.actions in PARTS[part]]


WITH_CONTEXTS = [
    name
    for name in FUNCTIONS
    if name.startswith("contexts") or name in ("linear sieve", "shared sieve", "kept observations")
]
"""The functions on contexts have kernels of their own: one file compares them, and another one all others."""
WITHOUT_CONTEXTS = [name for name in FUNCTIONS if name not in WITH_CONTEXTS]


def dense(reward: Any) -> sa.Problem:
    return sa.Problem(N_ARMS, N_ITEMS, reward, sa.Subsets(K), weights=WEIGHTS)


def thin(reward: Any) -> sa.Problem:
    return sa.Problem(N_ARMS, N_ITEMS, reward, sa.Subsets(K), weights=WEIGHTS, support=sparse.csr_array(MASK))


GAMES = {
    "bc_ucb, coverage, bernoulli": lambda: (dense(sa.Coverage()), Bernoulli(P), sa.bc_ucb(0.3)),
    "kl_ucb, sparse logistic, beta": lambda: (thin(sa.Logistic(0.8)), Beta(P[MASK], 4.0), sa.kl_ucb()),
    "cts, linear, beta": lambda: (dense(sa.Linear()), Beta(P, 0.7), sa.cts()),
    "angle_ts, coverage, copula": lambda: (dense(sa.Coverage()), Copula(P, 0.2, 0.3, 0.1), sa.angle_ts()),
    "directional_kl_moss, coverage, blocks": lambda: (
        dense(sa.Coverage()),
        Blocks(P, BLOCK, P[:, 0] / 9.0, P[:, ::-1] / 3.0),
        sa.directional_kl_moss(sa.policies.Covariance()),
    ),
    "directional_kl_ucb, sparse coverage, beta": lambda: (
        thin(sa.Coverage()),
        Beta(P[MASK], 4.0),
        sa.directional_kl_ucb(),
    ),
    "sieve, coverage, beta": lambda: (dense(sa.Coverage()), Beta(P, 4.0), Sieve(Bernstein(0.3), sa.Greedy(), Exact())),
    "epsilon_greedy, linear, shock": lambda: (dense(sa.Linear()), CommonShock(P, 0.5), sa.epsilon_greedy(0.3, 0.2)),
}


def digest(arrays: Iterable[Any]) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def simulate(name: str) -> dict[str, Any]:
    """A simulation in one compiled loop: a digest of it, and its pulls and earnings as text for the eye."""
    problem, environment, policy = GAMES[name]()
    fitted = policy.fit(problem)
    run = begin(problem, environment, fitted, np.random.SeedSequence(3))
    checkpoints, earned = np.array([0, 1, ROUNDS // 2, ROUNDS]), np.empty(3)
    advance(problem, environment, fitted, run, checkpoints, earned)
    memory = run.memory.sample if name.startswith("directional") else run.memory
    memory = memory.estimates if name.startswith("sieve") else memory
    arrays = [*run.tally, memory.mean, memory.deviation, earned]
    pulls, shown = run.tally.pulls.tolist(), [x.hex() for x in earned.tolist()]
    return {"digest": digest(arrays), "pulls": pulls, "earned": shown}


def play(name: str) -> dict[str, Any]:
    """Rounds of a composition, verb by verb, as an agent plays them: a digest, and the batches for the eye."""
    problem, environment, policy = ready(COMPOSITIONS[name])
    batches, arrays = [], []
    for played in rounds(problem, environment, policy, np.random.SeedSequence(3), 25):
        batches.append(played.action.tolist())
        arrays += [played.feedback.action, played.feedback.outcome, played.feedback.seen]
    return {"digest": digest([*arrays, *played.run.tally]), "batches": batches}


def compute(name: str) -> list[str]:
    """A computation beside the rounds, as text to the last bit."""
    return [np.asarray(found).tobytes().hex() for found in FUNCTIONS[name]()]


def run_by_name(name: str) -> Any:
    """The result of a composition, a simulation or a function."""
    return play(name) if name in COMPOSITIONS else simulate(name) if name in GAMES else compute(name)


@functools.cache
def as_plain_python(*names: str) -> dict[str, Any]:
    """The results of ``names`` in another process, as plain Python."""
    command = [sys.executable, "-W", "error", "-m", "tests.modes.games", *names]
    done = subprocess.run(command, env=PLAIN, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert not found["compiled"]
    return found


def is_compiled() -> bool:
    return hasattr(sa.Coverage.join, "signatures")


if __name__ == "__main__":
    print(json.dumps({"compiled": is_compiled(), **{name: run_by_name(name) for name in sys.argv[1:]}}))
