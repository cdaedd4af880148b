"""Compiled and plain Python agree to the bit.

The covering set of compositions (``tests/compositions.py``), whole simulations and single functions are played compiled
and, in a process of their own, as plain Python; batches, tallies and numbers must be equal to the last bit. So every
other test may run as plain Python.
"""

import functools
import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import superarm as sa
from superarm.environments import Bernoulli, Beta, Blocks, CommonShock, Copula
from superarm.simulation import advance, begin
from superarm.simulation.engine import rounds
from tests.compositions import covering_set, kinds_of, missing, ready
from tests.mode_functions import FUNCTIONS, kernels
from tests.passes import PLAIN

N_ARMS, N_ITEMS, K, ROUNDS = 6, 5, 2, 60
RNG = np.random.default_rng(5)
P = np.round(RNG.uniform(0.05, 0.9, (N_ARMS, N_ITEMS)), 3)
MASK = RNG.random((N_ARMS, N_ITEMS)) < 0.6
BLOCK = RNG.integers(-N_ITEMS, N_ITEMS + 1, (N_ARMS, N_ITEMS))
WEIGHTS = np.round(RNG.uniform(0.5, 2.0, N_ITEMS), 3)
COMPOSITIONS = {" × ".join(one): one for one in covering_set()}


def dense(reward):
    return sa.Problem(N_ARMS, N_ITEMS, reward, sa.Subsets(K), weights=WEIGHTS)


def thin(reward):
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
    "epsilon_greedy, linear, shock": lambda: (dense(sa.Linear()), CommonShock(P, 0.5), sa.epsilon_greedy(0.3, 0.2)),
}


def digest(arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def simulate(name):
    """A simulation in one compiled loop: a digest of it, and its pulls and earnings as text for the eye."""
    problem, environment, policy = GAMES[name]()
    fitted = policy.fit(problem)
    run = begin(problem, environment, fitted, np.random.SeedSequence(3))
    checkpoints, earned = np.array([0, 1, ROUNDS // 2, ROUNDS]), np.empty(3)
    advance(problem, environment, fitted, run, checkpoints, earned)
    memory = run.memory.sample if name.startswith("directional") else run.memory
    arrays = [*run.tally, memory.mean, memory.deviation, earned]
    pulls, shown = run.tally.pulls.tolist(), [x.hex() for x in earned.tolist()]
    return {"digest": digest(arrays), "pulls": pulls, "earned": shown}


def play(name):
    """Rounds of a composition, verb by verb, as an agent plays them: a digest, and the batches for the eye."""
    problem, environment, policy = ready(COMPOSITIONS[name])
    batches, arrays = [], []
    for played in rounds(problem, environment, policy, np.random.SeedSequence(3), 25):
        batches.append(played.action.tolist())
        arrays += [played.feedback.action, played.feedback.outcome, played.feedback.seen]
    return {"digest": digest([*arrays, *played.run.tally]), "batches": batches}


def compute(name):
    """A computation beside the rounds, as text to the last bit."""
    return [np.asarray(found).tobytes().hex() for found in FUNCTIONS[name]()]


@functools.cache
def as_plain_python():
    """All of it, played in another process as plain Python."""
    command = [sys.executable, "-W", "error", "-m", "tests.test_modes"]
    done = subprocess.run(command, env=PLAIN, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_compiled():
    return hasattr(sa.Coverage.join, "signatures")


def test_together_they_call_every_kernel():
    called = set()

    def note(frame, event, _):
        if event == "call":
            called.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        for names, run in ((COMPOSITIONS, play), (GAMES, simulate), (FUNCTIONS, compute)):
            for name in names:
                run(name)
    finally:
        sys.setprofile(None)
    assert sorted(set(kernels()) - called) == [], "play it in a composition, or compute it in tests/mode_functions.py"


def test_the_covering_set_covers_every_pair_that_the_library_supports():
    assert missing(covering_set()) == [], "run: python -m tests.compositions"


def test_what_is_not_covered_is_found():
    rest = [one for one in covering_set() if one.actions != "Paths" or kinds_of(one).oracle != "by gains"]
    assert ((2, "paths"), (3, "by gains")) in missing(rest)
    assert ((3, "IMM"),) in missing([one for one in rest if one.oracle != "IMM"])


@pytest.mark.compiled("it compares the passes")
def test_the_modes_are_two():
    assert is_compiled()
    assert not as_plain_python()["compiled"]


@pytest.mark.compiled("it compares the passes")
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_compositions_agree(name):
    mine, plain = play(name), as_plain_python()[name]
    assert mine["batches"] == plain["batches"]
    assert mine == plain


@pytest.mark.compiled("it compares the passes")
@pytest.mark.parametrize("name", GAMES)
def test_simulations_agree(name):
    mine = simulate(name)
    assert mine == as_plain_python()[name]
    assert sum(mine["pulls"]) == K * ROUNDS
    assert all(pulls >= 1 for pulls in mine["pulls"])


@pytest.mark.compiled("it compares the passes")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree(name):
    assert compute(name) == as_plain_python()[name]


@pytest.mark.compiled("it compares the passes")
def test_digests_differ():
    digests = {found["digest"] for name, found in as_plain_python().items() if name in {**COMPOSITIONS, **GAMES}}
    assert len(digests) == len(COMPOSITIONS) + len(GAMES)


if __name__ == "__main__":
    found = {name: play(name) for name in COMPOSITIONS} | {name: simulate(name) for name in GAMES}
    print(json.dumps({"compiled": is_compiled(), **found, **{name: compute(name) for name in FUNCTIONS}}))
