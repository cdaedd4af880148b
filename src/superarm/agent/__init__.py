"""Ask and tell: a learner with decision ids, in one process.

``agent`` holds :class:`Agent`; ``decisions`` which decisions are pending and which were told what; ``outcomes`` checks
what users report and turns it into the arrays that kernels take; ``digests`` recognises repeated feedback;
``explanations`` says why a batch was chosen; ``interface`` what an agent and a problem of a service have in common.
"""

from superarm.agent.agent import Agent
from superarm.agent.decisions import Decision
from superarm.agent.explanations import Explanation
from superarm.agent.interface import DecisionAgent

__all__ = ["Agent", "Decision", "DecisionAgent", "Explanation"]
