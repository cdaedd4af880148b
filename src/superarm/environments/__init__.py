"""Environments: what draws the outcomes of batches and knows the true means; for simulation alone.

base: the contract · bernoulli: independent entries · gaussian: outcomes that are no shares · dependent: entries that
move together · click_models: lists ·
context_table: users with contexts · scores: scores of which the best one counts · totals: any of them, told as a whole
"""

from superarm.environments.base import Answer, Environment
from superarm.environments.bernoulli import Bernoulli, Beta, Swinging, Switching
from superarm.environments.click_models import (
    Cascade,
    ConjunctiveCascade,
    CostlyCascade,
    DependentClick,
    FreeSamples,
    PositionBased,
)
from superarm.environments.context_table import ContextTable, context_table
from superarm.environments.dependent import Blocks, Cohorts, CommonShock, Comonotone, Copula, Replay
from superarm.environments.gaussian import Gaussian
from superarm.environments.scores import Scores
from superarm.environments.totals import Totals

__all__ = [
    "Answer",
    "Bernoulli",
    "Beta",
    "Blocks",
    "Cascade",
    "Cohorts",
    "CommonShock",
    "Comonotone",
    "ConjunctiveCascade",
    "ContextTable",
    "Copula",
    "CostlyCascade",
    "DependentClick",
    "Environment",
    "FreeSamples",
    "Gaussian",
    "PositionBased",
    "Replay",
    "Scores",
    "Swinging",
    "Switching",
    "Totals",
    "context_table",
]
