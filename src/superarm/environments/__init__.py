"""What the world answers: environments."""

from superarm.environments.base import Environment, draw, means
from superarm.environments.bernoulli import Bernoulli
from superarm.environments.beta import Beta
from superarm.environments.correlated import CommonShock, Comonotone, Copula
from superarm.environments.replay import Replay
from superarm.environments.swinging import Swinging
from superarm.environments.switching import Switching

__all__ = [
    "Bernoulli",
    "Beta",
    "CommonShock",
    "Comonotone",
    "Copula",
    "Environment",
    "Replay",
    "Swinging",
    "Switching",
    "draw",
    "means",
]
