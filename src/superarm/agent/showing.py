"""An agent as one line of text, and as a table for notebooks."""

import html
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from superarm.agent.agent import Agent

SHOWN_ARMS = 20
SHOWN_ITEMS = 8
"""A table in a notebook has at most so many rows and columns."""


def describe_agent(agent: "Agent") -> str:
    """What an agent learns, how, and how far it is."""
    size = f"{len(agent.arms)} arms, {len(agent.items)} items"
    told = f"{agent.t} decisions, {len(agent.pending)} pending"
    policy: Any = agent.policy  # a component is a NamedTuple, which its Protocol does not say
    fields = policy._asdict()
    index = f" with {fields['confidence']!r}" if "confidence" in fields else ""
    return f"<Agent: {size}, {type(policy).__name__}{index}, {told}>"


def show_agent(agent: "Agent") -> str:
    """HTML: the line of text, and the estimates of the arms that were played most."""
    head = f"<p><code>{html.escape(describe_agent(agent))}</code></p>"
    mean, _ = agent.estimates()
    if mean.ndim != 2 or agent.problem.context is not None:
        return head  # the entries of sparse problems and of contexts are no table
    names = "".join(f"<th>{html.escape(item)}</th>" for item in agent.items[:SHOWN_ITEMS])
    pulls = agent.tally.pulls
    rows = []
    for j in np.argsort(-pulls, kind="stable")[:SHOWN_ARMS]:
        values = "".join(f"<td>{'' if np.isnan(x) else f'{x:.3f}'}</td>" for x in mean[j, :SHOWN_ITEMS])
        rows.append(f"<tr><td>{html.escape(agent.arms[j])}</td><td>{pulls[j]:g}</td>{values}</tr>")
    more = max(0, len(agent.arms) - SHOWN_ARMS), max(0, len(agent.items) - SHOWN_ITEMS)
    foot = f"<p>… and {more[0]} more arms, {more[1]} more items</p>" if any(more) else ""
    return f"{head}<table><tr><th>arm</th><th>pulls</th>{names}</tr>{''.join(rows)}</table>{foot}"
