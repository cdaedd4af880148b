"""The tails of regret: quantiles, the largest of all replications, and runs that kept playing a wrong arm."""

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.arrays import Floats
from superarm.experiments.store import CellResults
from superarm.oracles.gains import gains
from superarm.rewards import initial_states
from superarm.simulation.instances import Instance

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study

LOCKED = 0.9
"""A run is locked if its regret per round in the second half exceeds this share of the gap to the second best arm."""


def summarise_tails(study: "Study") -> list[dict[str, Any]]:
    """One row per instance and policy: quantiles and maximum of the regret at the horizon, and the locked runs.

    ``locked`` is None where batches have more than one arm: there a slow policy cannot be told from a locked one.
    """
    rows = []
    for (instance, policy), record in study.records.items():
        final = record.regret[:, -1]
        median, high, highest = (float(q) for q in np.quantile(final, [0.5, 0.9, 0.99]))
        rows.append(
            {
                "instance": instance,
                "policy": policy,
                "regret": float(final.mean()),
                "median": median,
                "q90": high,
                "q99": highest,
                "largest": float(final.max()),
                "locked": count_locked(record, study.instance(instance)),
                "replications": len(final),
            }
        )
    return rows


def count_locked(record: CellResults, instance: Instance) -> int | None:
    """How many runs were locked; None if batches have more than one arm, or if two arms are equally good."""
    problem = instance.problem
    if problem.k > 1 or problem.n_arms == 1:
        return None
    values = np.sort(single_values(instance))
    gap = values[-1] - values[-2]
    if gap <= 0.0:
        return None
    last = record.rounds[-1]
    half = np.array([np.interp(last / 2, record.rounds, regret) for regret in record.regret])
    return int(((record.regret[:, -1] - half) > LOCKED * gap * (last - last / 2)).sum())


def single_values(instance: Instance) -> Floats:
    """The value of each arm alone at the true parameters, (n_arms,)."""
    problem = instance.problem
    return gains(problem, initial_states(problem.reward, problem.terms), instance.p, problem.candidates())
