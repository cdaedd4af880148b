"""Agents: ask for a batch, tell what came of it. The service learns by the same ``Learner``.

agent: ask and tell · decisions: which are pending · outcomes: feedback as users give it ·
learner: one problem being learnt · growth: new arms and items · names ·
scores: those beyond the scale, and claims beside what came · recommendation: which policy to take ·
explanations: why a batch was chosen · state: learners on disk ·
publishing: the slates of tables
"""

from superarm.agent.agent import Agent
from superarm.agent.decisions import Decision
from superarm.agent.explanations import ExplainedArm, Explanation
from superarm.agent.learner import Learner
from superarm.agent.outcomes import Scale
from superarm.agent.recommendation import Advice, recommend

__all__ = ["Advice", "Agent", "Decision", "ExplainedArm", "Explanation", "Learner", "Scale", "recommend"]
