"""Compiled and plain Python agree to the bit.

The same short games are played compiled and, in a process of their own with NUMBA_DISABLE_JIT=1, as plain Python;
tally, pulls and expected rewards must be equal to the last bit. Under NUMBA_DISABLE_JIT=1 the roles are exchanged.
"""

import functools
import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import superarm as sa
from superarm.environments import Bernoulli, Beta, Blocks, CommonShock, Copula
from superarm.indices.kl_bound import upper_confidence
from superarm.simulation import advance, begin
from superarm.streams import beta as beta_number
from superarm.streams import new_stream, normal, seek, uniform

pytestmark = pytest.mark.compiled("it compares the passes")

N_ARMS, N_ITEMS, K, ROUNDS = 6, 5, 2, 60
RNG = np.random.default_rng(5)
P = np.round(RNG.uniform(0.05, 0.9, (N_ARMS, N_ITEMS)), 3)
MASK = RNG.random((N_ARMS, N_ITEMS)) < 0.6
BLOCK = RNG.integers(-N_ITEMS, N_ITEMS + 1, (N_ARMS, N_ITEMS))
WEIGHTS = np.round(RNG.uniform(0.5, 2.0, N_ITEMS), 3)


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


def play(name):
    """A digest of one game, and its tally and earnings as text for the eye."""
    problem, environment, policy = GAMES[name]()
    ready = policy.fit(problem)
    run = begin(problem, environment, ready, np.random.SeedSequence(3))
    rounds, earned = np.array([0, 1, ROUNDS // 2, ROUNDS]), np.empty(3)
    advance(problem, environment, ready, run, rounds, earned)
    memory = run.memory.sample if name.startswith("directional") else run.memory
    arrays = [*run.tally, memory.mean, memory.deviation, earned]
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()
    return {"digest": digest, "pulls": run.tally.pulls.tolist(), "earned": [x.hex() for x in earned.tolist()]}


def numbers():
    """Draws and KL bounds, to the bit."""
    source = new_stream(np.random.SeedSequence(9))
    drawn = []
    for t in range(40):
        seek(source, t, 2)
        drawn += [uniform(source), normal(source), beta_number(source, 0.3, 1.7), beta_number(source, 8.0, 3.0)]
    bounds = [upper_confidence(p, x) for p in (0.0, 1e-12, 0.1, 0.7, 1 - 1e-12) for x in (1e-30, 1e-9, 0.1, 5.0)]
    return [float(x).hex() for x in drawn + bounds]


def everything():
    return {"numbers": numbers(), **{name: play(name) for name in GAMES}}


@functools.cache
def other_mode():
    """``everything``, played in another process in the other mode."""
    plain_here = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0" if plain_here else "1"}
    command = [sys.executable, "-W", "error", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_modes_are_two():
    mine = hasattr(sa.Coverage.join, "signatures")
    assert other_mode()["compiled"] is not mine


@pytest.mark.parametrize("name", GAMES)
def test_games_agree(name):
    mine = play(name)
    assert mine == other_mode()[name]
    assert sum(mine["pulls"]) == K * ROUNDS
    assert all(pulls >= 1 for pulls in mine["pulls"])


def test_games_differ_from_each_other():
    digests = {play(name)["digest"] for name in GAMES}
    assert len(digests) == len(GAMES)


def test_numbers_agree():
    assert numbers() == other_mode()["numbers"]


if __name__ == "__main__":
    print(json.dumps({"compiled": hasattr(sa.Coverage.join, "signatures"), **everything()}))
