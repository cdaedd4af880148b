"""The tails of regret: quantiles, the largest of all replications, and runs that kept playing a wrong arm."""

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.arrays import Floats
from superarm.environments import Environment
from superarm.experiments.store import CellResults
from superarm.oracles import Default, solve
from superarm.oracles.certificate import upper_bound
from superarm.simulation.instances import Instance
from superarm.simulation.regret import Bracket, optimum

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study

MAX_ENUMERATED_BATCHES = 2_000
"""Up to so many batches r_max is found by enumeration, and otherwise bracketed by a certificate."""
LOCKED = 0.9
"""A run is locked if its regret per round in the second half exceeds this share of the gap to the second best arm."""


def summarise_tails(study: "Study") -> list[dict[str, Any]]:
    """One row per instance and policy: quantiles and maximum of the regret at the horizon, and the locked runs.

    ``earlier`` is the mean regret at a tenth of the horizon. ``optimal_low`` and ``optimal_high`` are the mean regret
    against r_max, which is known exactly or to lie in a bracket: targets differ by a constant per round. They are
    computed for experiments with a claim of the kind ``geometric``, which compare policies over instances.
    ``locked`` is None where batches have more than one arm: there a slow policy cannot be told from a locked one.
    """
    rows = []
    contest = any(claim["kind"] == "geometric" for claim in study.experiment.claims)
    best = {label: bracket_optimum(study.instance(label)) if contest else None for label in study.started_instances}
    for (instance, policy), record in study.records.items():
        final = record.regret[:, -1]
        median, high, highest = (float(q) for q in np.quantile(final, [0.5, 0.9, 0.99]))
        tenth = int(np.searchsorted(record.rounds, record.rounds[-1] / 10.0))
        given, bracket = float(record.metadata["target"]["value"]), best[instance]
        against = [float(final.mean() + record.rounds[-1] * (end - given)) for end in bracket or ()]
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
                "earlier": float(record.regret[:, tenth].mean()),
                "optimal_low": against[0] if against else None,
                "optimal_high": against[1] if against else None,
                "replications": len(final),
            }
        )
    return rows


def bracket_optimum(instance: Instance) -> Bracket | None:
    """The value of the best batch: exact for up to ``MAX_ENUMERATED_BATCHES`` batches, otherwise with a certificate.

    None where rounds have means or rewards of their own.
    """
    environment, problem = instance.environment, instance.problem
    moving = type(environment).changes is not Environment.changes
    if moving or environment.n_contexts or environment.own_reward:
        return None
    if problem.actions.n_batches(problem.n_arms) <= MAX_ENUMERATED_BATCHES:
        return optimum(problem, instance.p)
    action = solve(problem, instance.p, Default())
    low = float(problem.value(instance.p, action))
    return Bracket(low, max(low, upper_bound(problem, instance.p, action)))


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
    nothing = problem.reward.empty_states(problem, 1)
    return problem.reward.gains(problem, nothing, instance.environment.means(problem, 1))[0]
