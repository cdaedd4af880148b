"""Why a batch was chosen: estimates, optimistic parameters and gains of its arms; and an agent as text and HTML."""

import html
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.agent.decisions import Decision, MadeDecision
from superarm.agent.learner import Learner
from superarm.core.arrays import Floats, Ints
from superarm.core.tally import View
from superarm.core.totals import TotalTally, Worth
from superarm.decisions import to_flat
from superarm.problem import Problem

if TYPE_CHECKING:
    from superarm.agent.agent import Agent

SHOWN_ARMS, SHOWN_ITEMS = 20, 8
"""A table in a notebook has at most so many rows and columns."""


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
    """Why a batch was chosen, from what is known now: ``arms`` are in the order in which they were picked.

    ``worth`` is what the batch is worth, where totals are told: the parameters of its arms are their shares of it.
    """

    decision: Decision
    arms: tuple[ExplainedArm, ...] = ()
    worth: Worth | None = None

    def __str__(self) -> str:
        lines = [f"decision {self.decision.id!r}, from what is known now:"]
        for arm in self.arms:
            means = f"mean {arm.estimate.mean():.4f}, optimistic {arm.optimistic.mean():.4f}"
            effects = ", ".join(f"{name} {effect:+.4f}" for name, effect in arm.features)
            lines.append(f"  {arm.name}: gain {arm.gain:.4f} ({means})" + (f"; {effects}" if effects else ""))
        if self.worth is not None:
            value, low, high = self.worth
            lines.append(f"  together {value:.4f} ({low:.4f} to {high:.4f}: ±2 deviations, as far as arms add up)")
        return "\n".join(lines)


def explain_decision(learner: Learner, made: MadeDecision, most: int, key: Any) -> Explanation:
    """Explain a decision by the present state of the learner, with the ``most`` largest effects of features."""
    problem, action = learner.problem, made.decision.action
    view = learner.view(made.decision.t, key, context=made.context)
    estimate, optimistic = _estimates(learner, view)
    gains = [_gains(problem, values, action) for values in (optimistic, estimate)]
    arms = []
    for n, j in enumerate(action.tolist()):
        own = np.array([j])
        mean, high = (
            to_flat(problem.support, own, problem.support.rows(q, own[None])[0]) for q in (estimate, optimistic)
        )
        effects = _largest_effects(learner, made, j, most)
        arms.append(ExplainedArm(learner.arms.all[j], mean, high, gains[0][n], gains[1][n], effects))
    worth = learner.tally.model.worth(action) if isinstance(learner.tally, TotalTally) else None
    return Explanation(made.decision, tuple(arms), worth)


def _estimates(learner: Learner, view: View) -> tuple[Floats, Floats]:
    """The estimates of all entries, and the parameters at which the oracle chooses, as entries."""
    estimate, optimistic = learner.policy.estimates(learner.problem, view, learner.memory.at(view.t))
    shape = learner.problem.support.shape(1)
    return np.broadcast_to(estimate, shape), np.broadcast_to(optimistic, shape)


def _largest_effects(learner: Learner, made: MadeDecision, arm: int, most: int) -> tuple[tuple[str, float], ...]:
    """The features that change the estimates of ``arm`` most."""
    if made.context is None:
        return ()
    effects = learner.contexts.effects(learner.policy, learner.memory, made.context, arm, made.words)
    largest = sorted(effects.items(), key=lambda effect: -abs(effect[1]))[:most]
    return tuple((name, effect) for name, effect in largest if effect != 0.0)


def _gains(problem: Problem, q: Floats, action: Ints) -> list[float]:
    """What each arm adds to the arms before it."""
    worth = [float(problem.values(q, action[None, :n])[0]) for n in range(len(action) + 1)]
    return [after - before for before, after in itertools.pairwise(worth)]


def describe_agent(agent: "Agent") -> str:
    """What an agent learns, how, and how far it is."""
    size = f"{len(agent.arms)} arms, {len(agent.items)} items"
    return f"<Agent: {size}, {agent.policy!r}, {agent.t} decisions, {len(agent.pending)} pending>"


def show_agent(agent: "Agent") -> str:
    """HTML: the line of text, and the estimates of the arms that were played most."""
    head = f"<p><code>{html.escape(describe_agent(agent))}</code></p>"
    if agent.problem.context is not None:
        return head
    mean, _ = agent.estimates()
    if mean.ndim != 2:
        return head  # the entries of sparse problems are no table
    names = "".join(f"<th>{html.escape(item)}</th>" for item in agent.items[:SHOWN_ITEMS])
    pulls = agent.tally.pulls[0]
    rows = []
    for j in np.argsort(-pulls, kind="stable")[:SHOWN_ARMS]:
        values = "".join(f"<td>{'' if np.isnan(x) else f'{x:.3f}'}</td>" for x in mean[j, :SHOWN_ITEMS])
        rows.append(f"<tr><td>{html.escape(agent.arms[j])}</td><td>{pulls[j]:g}</td>{values}</tr>")
    more = max(0, len(agent.arms) - SHOWN_ARMS), max(0, len(agent.items) - SHOWN_ITEMS)
    foot = f"<p>… and {more[0]} more arms, {more[1]} more items</p>" if any(more) else ""
    return f"{head}<table><tr><th>arm</th><th>pulls</th>{names}</tr>{''.join(rows)}</table>{foot}"
