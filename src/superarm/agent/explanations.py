"""Why a batch was chosen: estimates, widths and marginal gains of its arms, and the features that mattered most."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from superarm.agent.decisions import Decision, DecisionEntry
from superarm.arrays import Floats
from superarm.learner import Learner
from superarm.learner.explanations import entry_estimates, feature_effects
from superarm.rewards.base import gain, initial_states, join_arm
from superarm.streams import Stream
from superarm.support import rows


@dataclass(frozen=True)
class ExplainedArm:
    """An arm of a batch: its estimated and its optimistic parameters, one per item that it can touch.

    ``gain`` is what the arm added to the arms before it at the optimistic parameters, ``estimated_gain`` at the
    estimates; ``features`` are the features that changed its estimate most, the largest effect first.
    """

    name: str
    estimate: Floats
    optimistic: Floats
    gain: float
    estimated_gain: float
    features: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Why a batch was chosen, from what is known now: ``arms`` are in the order in which they were picked."""

    decision: Decision
    arms: tuple[ExplainedArm, ...] = field(default=())

    def __str__(self) -> str:
        lines = [f"decision {self.decision.id!r}, from what is known now:"]
        for arm in self.arms:
            means = f"mean {arm.estimate.mean():.4f}, optimistic {arm.optimistic.mean():.4f}"
            effects = ", ".join(f"{name} {effect:+.4f}" for name, effect in arm.features)
            lines.append(f"  {arm.name}: gain {arm.gain:.4f} ({means})" + (f"; {effects}" if effects else ""))
        return "\n".join(lines)


def explain_decision(learner: Learner, made: DecisionEntry, most: int, stream: Stream) -> Explanation:
    """Explain a decision by the present state of the learner, with the ``most`` largest effects of features."""
    problem, action = learner.problem, made.decision.action
    estimate, optimistic = entry_estimates(learner, made.decision.t, made.context, stream)
    gains = [_gains(problem, values, action) for values in (optimistic, estimate)]
    arms = tuple(
        ExplainedArm(
            learner.arms.all[j],
            rows(problem.support, estimate, np.array([j])),
            rows(problem.support, optimistic, np.array([j])),
            gains[0][n],
            gains[1][n],
            feature_effects(learner, made.context, int(j), most, made.words or {}),
        )
        for n, j in enumerate(action)
    )
    return Explanation(made.decision, arms)


def _gains(problem: Any, values: Floats, action: Any) -> list[float]:
    """What each arm adds to the arms before it."""
    states, found = initial_states(problem.reward, problem.terms), []
    for j in action:
        found.append(float(gain(problem.reward, problem.terms, states, values, int(j))))
        join_arm(problem.reward, problem.terms, states, values, int(j))
    return found
