"""Environments: they draw the outcomes of a batch, and know the true means.

``base`` holds the family, its verbs and the defaults of its hooks; every other file holds one environment or a few.
"""

from superarm._renamed import old_names
from superarm.environments.base import (
    AnswerBuffer,
    Environment,
    answer,
    context,
    draw,
    expected_reward,
    max_answer_entries,
    means,
    pick_context,
    respond,
)
from superarm.environments.bernoulli import Bernoulli
from superarm.environments.beta import Beta
from superarm.environments.blocks import Blocks
from superarm.environments.cascade import Cascade, ConjunctiveCascade
from superarm.environments.cohorts import Cohorts
from superarm.environments.context_table import ContextTable
from superarm.environments.correlated import CommonShock, Comonotone, Copula
from superarm.environments.free_samples import FreeSamples
from superarm.environments.influence import IndependentCascade
from superarm.environments.positions import DependentClick, PositionBased
from superarm.environments.replay import Replay
from superarm.environments.swinging import Swinging
from superarm.environments.switching import Switching
from superarm.environments.traits import has_own_reward

__all__ = [
    "AnswerBuffer",
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
    "DependentClick",
    "Environment",
    "FreeSamples",
    "IndependentCascade",
    "PositionBased",
    "Replay",
    "Swinging",
    "Switching",
    "answer",
    "context",
    "draw",
    "expected_reward",
    "has_own_reward",
    "max_answer_entries",
    "means",
    "pick_context",
    "respond",
]

__getattr__ = old_names(
    __name__,
    {
        "Sheet": "AnswerBuffer",
        "earn": "expected_reward",
        "tells_worth": "has_own_reward",
        "widest": "max_answer_entries",
    },
)
