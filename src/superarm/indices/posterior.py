import math
from typing import NamedTuple

from superarm._jit import component
from superarm.arrays import Floats
from superarm.indices.beta_draws import draw_betas
from superarm.parameters import positive
from superarm.streams import Stream, beta, normal


@component
class BetaPosterior(NamedTuple):
    r"""A sample from the posterior of a Bernoulli parameter under a uniform prior: Thompson sampling.

    .. math:: q \sim Beta(1 + S,\ 1 + N - S), \qquad S = mean \cdot N,\ N = pulls

    Implements [WangChen2018]_ (CTS, Algorithm 1). Here the level of an arm is its number of pulls.
    """

    @property
    def caveat(self) -> str:
        return "It samples every entry independently, as if arms and items were; its analysis assumes that they are."

    def level(self, pulls: float, t: int, share: float) -> float:
        return pulls

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        successes = mean * level
        return beta(stream, 1.0 + successes, 1.0 + (level - successes))

    def score_entries(
        self, mean: Floats, deviation: Floats, first: int, n: int, level: float, stream: Stream, q: Floats
    ) -> None:
        draw_betas(mean, level, first, n, stream, q)


@component
class AnglePosterior(NamedTuple):
    r"""A Gaussian sample of the angle :math:`\arcsin\sqrt p`, whose variance 1/(4N) does not depend on p.

    .. math:: q = \sin^2\Bigl(\arcsin\sqrt{\tfrac{S + 3/8}{N + 3/4}} + \tfrac{Z}{2\sqrt N}\Bigr), \qquad Z \sim N(0, 1)

    with the angle clipped to :math:`[0, \pi/2]`. The transform is that of [Anscombe1948]_; as a sampled index it is
    superarm's own, without a regret bound. Here the level of an arm is its number of pulls.
    """

    @property
    def caveat(self) -> str:
        return "It samples every entry independently, as if arms and items were."

    @property
    def inverts(self) -> bool:
        return True

    def level(self, pulls: float, t: int, share: float) -> float:
        return pulls

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        centre = math.asin(math.sqrt((mean * level + 0.375) / (level + 0.75)))
        root = math.sqrt(level) if level > 0.0 else 1.0  # at level 0 nothing was seen; the score is not used
        angle = min(0.5 * math.pi, max(0.0, centre + 0.5 * normal(stream) / root))
        return math.sin(angle) ** 2


@component
class GaussianSample(NamedTuple):
    r"""A Gaussian sample around the empirical mean, clipped to [0, 1].

    .. math:: q = \min\Bigl\{1, \max\Bigl\{0, mean + \frac{scale\,Z}{\sqrt{N + 1}}\Bigr\}\Bigr\}, \qquad Z \sim N(0, 1)

    Thompson sampling after [AgrawalGoyal2012]_ with a Gaussian in place of the Beta law. Here the level of an arm is
    its number of pulls.

    Parameters
    ----------
    scale
        The standard deviation after no pull. 1/2 is that of a sub-Gaussian bound of outcomes in [0, 1].
    """

    scale: float = 0.5

    def _check(self) -> None:
        positive(self, "scale")

    @property
    def caveat(self) -> str:
        return "It samples every entry independently, as if arms and items were."

    @property
    def inverts(self) -> bool:
        return True

    def level(self, pulls: float, t: int, share: float) -> float:
        return pulls

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        return min(1.0, max(0.0, mean + self.scale * normal(stream) / math.sqrt(level + 1.0)))
