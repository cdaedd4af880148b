"""What the world answers: environments."""

from superarm.environments.base import Environment, Sheet, answer, draw, earn, means, respond, tells_worth, widest
from superarm.environments.bernoulli import Bernoulli
from superarm.environments.beta import Beta
from superarm.environments.cascade import Cascade, ConjunctiveCascade
from superarm.environments.correlated import CommonShock, Comonotone, Copula
from superarm.environments.free_samples import FreeSamples
from superarm.environments.influence import IndependentCascade
from superarm.environments.places import DependentClick, PositionBased
from superarm.environments.replay import Replay
from superarm.environments.swinging import Swinging
from superarm.environments.switching import Switching

__all__ = [
    "Bernoulli",
    "Beta",
    "Cascade",
    "CommonShock",
    "Comonotone",
    "ConjunctiveCascade",
    "Copula",
    "DependentClick",
    "Environment",
    "FreeSamples",
    "IndependentCascade",
    "PositionBased",
    "Replay",
    "Sheet",
    "Swinging",
    "Switching",
    "answer",
    "draw",
    "earn",
    "means",
    "respond",
    "tells_worth",
    "widest",
]
