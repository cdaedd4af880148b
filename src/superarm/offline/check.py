"""What a log holds, and what can be concluded from it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from superarm.core.arrays import Floats
from superarm.items.need import Need, need
from superarm.offline.assumption import AssumptionTest
from superarm.offline.estimators.importance import effective_sample_size, last_prefix
from superarm.offline.estimators.methods import METHODS, NEEDS, has
from superarm.offline.result import warn_of_assumption, warn_of_outcomes
from superarm.rewards import Coverage

if TYPE_CHECKING:
    from superarm.offline.log import Log


@dataclass(frozen=True, repr=False)
class LogCheck:
    """A summary of a log: print it.

    Parameters
    ----------
    n_rounds, n_arms
        The size of the log.
    pulls
        How often each arm was observed, (n_arms,).
    unseen_arms
        The names of arms that were never observed.
    known
        Which probabilities all rounds have: those of whole slates, of each slot given those before it, of arms in
        slots, and of arms in the slate.
    deterministic
        The share of rounds in which the slate was chosen without chance.
    uniform_effective
        The effective sample size of slate IPS for a uniformly random slate: how far the log is from one; NaN without
        propensities, or without chance.
    unknown_rewards
        In how many rounds the realised reward is not known.
    assumption
        The test of the semi-bandit assumption.
    items
        Whether learnt items would be worth while; None for a log with several items.
    methods
        The estimators that the log allows.
    warnings
        What may be wrong, in plain words.
    """

    n_rounds: int
    n_arms: int
    pulls: Floats
    unseen_arms: tuple[str, ...]
    known: tuple[str, ...]
    deterministic: float
    uniform_effective: float
    unknown_rewards: int
    assumption: AssumptionTest
    items: Need | None
    methods: tuple[str, ...]
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        low, middle, high = (int(x) for x in np.quantile(self.pulls, [0.0, 0.5, 1.0]))
        lines = [
            f"{self.n_rounds} rounds; of {self.n_arms} arms {len(self.unseen_arms)} were never observed",
            f"observations per arm: {low} to {high}, median {middle}",
            f"known in every round: {', '.join(self.known) or 'no probabilities'}",
            f"chosen without chance: {100 * self.deterministic:.3g} % of the rounds",
        ]
        if not np.isnan(self.uniform_effective):
            lines.append(f"effective sample size for a uniformly random slate: {self.uniform_effective:.0f}")
        lines += [repr(self.assumption), *([] if self.items is None else [f"items: {self.items!r}"])]
        lines.append(f"methods: {', '.join(self.methods)}")
        return "\n".join(lines + [f"warning: {text}" for text in self.warnings])


def check_log(log: "Log") -> LogCheck:
    """Examine a log."""
    known = tuple(what for what in NEEDS if has(log, what))
    weights, chance = 1.0 / last_prefix(log), not log.deterministic.all()
    unseen = tuple(log.arms[j] for j in np.flatnonzero(log.tally.pulls[0] == 0.0))
    warnings = warn_of_outcomes(log) + warn_of_assumption(log)
    if log.deterministic.any() and "slate propensities" in known:
        warnings.append(
            "rounds that were chosen without chance have propensity 1; importance weighting is biased on them"
        )
    return LogCheck(
        log.n_rounds,
        log.problem.n_arms,
        log.tally.pulls[0].copy(),
        unseen,
        known,
        float(log.deterministic.mean()) if log.n_rounds else 0.0,
        effective_sample_size(weights) if "slate propensities" in known and chance else float("nan"),
        int(np.isnan(log.rewards).sum()),
        log.assumption_test,
        need(log) if log.problem.n_items == 1 and isinstance(log.problem.reward, Coverage) else None,
        tuple(name for name, method in METHODS.items() if not method.needs or method.needs in known),
        tuple(warnings),
    )
