"""One small experiment, run once: three policies on one instance at two batch sizes."""

import pytest

from superarm.experiments import Experiment, Threads, run

HORIZON = 100
SPEC = {
    "name": "small",
    "instances": {"random": {"generator": "random_coverage", "n_arms": 8, "n_items": 3, "k": {"sweep": [2, 3]}}},
    "policies": {"CUCB": {"policy": "cucb"}, "BC-UCB": {"policy": "bc_ucb"}, "uniform": {"policy": "uniform"}},
    "horizon": HORIZON,
    "replications": 4,
    "seed": 5,
    "checkpoints": 20,
    "claims": [
        {"kind": "less", "policy": "CUCB", "than": "uniform", "text": "learning helps"},
        {"kind": "slope", "policy": "CUCB", "against": "k", "below": 100.0},
        {"kind": "growth", "policy": "CUCB", "above": 1e9},
        {"kind": "bound", "policy": "BC-UCB", "bound": "upper_bound"},
    ],
}


@pytest.fixture(scope="session")
def experiment():
    return Experiment(**SPEC)


@pytest.fixture(scope="session")
def study(experiment, tmp_path_factory):
    return run(experiment, tmp_path_factory.mktemp("small"), Threads(1), progress=False)
