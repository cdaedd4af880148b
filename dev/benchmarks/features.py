"""Real features: segments against shared against per-arm models, in one table.

``python -m dev.benchmarks.features DIRECTORY`` takes the data sets whose files are in the directory, as published:
``yeast.arff`` (MULAN), ``user_features.csv`` or ``user_features_small.csv`` with ``playlist_features.csv`` (Deezer),
and ``all.csv`` with ``item_context.csv`` (Open Bandit). In every round the same users come for all models. Regret is
against the best batch for each user, as a share of what that batch is worth: 0 is perfect, and a model that is wrong
keeps some.
"""

import sys
from pathlib import Path

import numpy as np

import superarm as sa
from superarm import data
from superarm.core.statistics import mean_and_standard_error

HORIZON, REPLICATIONS = 2000, 6
T_QUANTILE = 2.571  # of Student's distribution with five degrees of freedom
REGRESSIONS = {"C²-UCB 0.03": sa.contextual.c2_ucb(0.03), "CombLinTS 0.3": sa.contextual.comb_lin_ts(0.3)}
MODELS = {
    "segments": (sa.models.Segments(), {"KL-UCB": sa.kl_ucb()}),
    "segments, pooling 20": (sa.models.Segments(pooling=20), {"KL-UCB": sa.kl_ucb()}),
    "shared": (sa.models.Linear(shared=True), REGRESSIONS),
    "per arm": (sa.models.Linear(shared="arms"), REGRESSIONS),
}


def find_sets(directory):
    """The generators whose files are there, by name: functions of the model."""
    users = next((f for f in ("user_features.csv", "user_features_small.csv") if (directory / f).exists()), "")
    files = {
        "Yeast": (data.labels, ["yeast.arff"]),
        f"Deezer, {users}": (data.carousel, [users or "user_features.csv", "playlist_features.csv"]),
        "Open Bandit": (data.open_bandit_users, ["all.csv", "item_context.csv"]),
    }
    return {
        name: (generator, [str(directory / file) for file in needed])
        for name, (generator, needed) in files.items()
        if all((directory / file).exists() for file in needed)
    }


def shares(instance, policies):
    """Regret of each policy in all replications, as a share of what the best batches are worth."""
    results = sa.simulate(instance, policies, horizon=HORIZON, replications=REPLICATIONS, seed=0, progress=False)
    best = float(np.mean(instance.environment.best)) * HORIZON
    return {name: regret[:, -1] / best for name, regret in results.regret.items()}


def main():
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "data")
    sets = find_sets(directory)
    if not sets:
        print(f"No data set is in {directory}; see docs/guides/offline.md.")
    for name, (generator, files) in sets.items():
        print(f"\n{name}: regret in {HORIZON} rounds, in percent of the best batches' worth (95 % interval)")
        for model, (made, policies) in MODELS.items():
            for policy, share in shares(generator(*files, model=made), policies).items():
                mean, error = mean_and_standard_error(100.0 * share)
                print(f"  {model:<22} {policy:<14} {mean:6.1f} ± {T_QUANTILE * error:.1f}", flush=True)


if __name__ == "__main__":
    main()
