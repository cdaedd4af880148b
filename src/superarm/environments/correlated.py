import math
from typing import NamedTuple

from superarm._jit import component
from superarm.arrays import Bools, Floats, Ints, Probabilities
from superarm.errors import InvalidArgument
from superarm.parameters import fraction
from superarm.streams import Stream, normal, seek, uniform
from superarm.support import Support, item, span

_ROOT_HALF = math.sqrt(0.5)
_SHARED = 1 << 62
"""The index, in the stream of a round, of the numbers that all arms share; arms have the indices from 0 on."""

_ITEMS = _SHARED + 1
"""The first index of the numbers that belong to items."""


@component
class Copula(NamedTuple):
    r"""Binary outcomes with exact marginals ``p`` and a Gaussian dependence.

    .. math:: X_{ij} = 1\{\Phi(Z_{ij}) < p_{ij}\}, \qquad
              Z_{ij} = \sqrt{all}\,G + \sqrt{arms}\,G_i + \sqrt{items}\,G'_j + \sqrt{1 - all - arms - items}\,G''_{ij}

    with independent standard normals.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    arms
        The correlation of the latent variables of one item between arms.
    items
        The correlation of the latent variables of one arm between items.
    all
        The correlation between all latent variables.
    """

    p: Probabilities
    arms: float = 0.0
    items: float = 0.0
    all: float = 0.0

    def _check(self) -> None:
        fraction(self, "arms", "items", "all")
        if self.arms + self.items + self.all > 1.0:
            raise InvalidArgument(
                "arms + items + all", "above 1", "give shares of variance that add up to at most 1", "Copula"
            )

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        p = self.p.reshape(-1)
        own = math.sqrt(max(0.0, 1.0 - self.arms - self.items - self.all))
        seek(stream, t, _SHARED)
        shared = math.sqrt(self.all) * normal(stream)
        at = 0
        for j in action:
            first, last = span(support, j)
            for o in range(last - first):
                z = shared
                if self.arms > 0.0:
                    seek(stream, t, _ITEMS + item(support, first, o))
                    z += math.sqrt(self.arms) * normal(stream)
                outcome[at + o] = z
            seek(stream, t, j)
            arm = math.sqrt(self.items) * normal(stream)
            for o in range(last - first):
                z = outcome[at + o] + arm + own * normal(stream)
                outcome[at + o] = 1.0 if 0.5 * math.erfc(-z * _ROOT_HALF) < p[first + o] else 0.0
            at += last - first

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]


@component
class CommonShock(NamedTuple):
    """Binary outcomes with exact marginals ``p`` that, in a share of the rounds, all depend on one uniform number.

    With probability ``share`` a round is comonotone: ``X[j, i] = U < p[j, i]`` with one ``U`` for all arms and
    items; otherwise all entries are independent.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    share
        The probability of a comonotone round; 1 is full dependence.
    """

    p: Probabilities
    share: float = 1.0

    def _check(self) -> None:
        fraction(self, "share")

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        p = self.p.reshape(-1)
        seek(stream, t, _SHARED)
        shock = uniform(stream) < self.share
        common = uniform(stream)
        at = 0
        for j in action:
            seek(stream, t, j)
            first, last = span(support, j)
            for e in range(first, last):
                u = uniform(stream)
                outcome[at] = 1.0 if (common if shock else u) < p[e] else 0.0
                at += 1

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]


@component
class Comonotone(NamedTuple):
    """Binary outcomes that depend on one uniform number per arm and round: items fully dependent, arms independent.

    ``X[j, i] = U[j] < p[j, i]``. If the parameters of an arm are equal, its items are identical,
    ``X[j, i] = X[j]``: the construction of the lower bound in [MerlisMannor2019]_ (section Lower Bounds).

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    """

    p: Probabilities

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        p = self.p.reshape(-1)
        at = 0
        for j in action:
            seek(stream, t, j)
            u = uniform(stream)
            first, last = span(support, j)
            for e in range(first, last):
                outcome[at] = 1.0 if u < p[e] else 0.0
                at += 1

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]
