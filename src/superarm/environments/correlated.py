import math
from typing import NamedTuple

from superarm._jit import component
from superarm.arrays import Bools, Floats, Ints, Probabilities
from superarm.errors import InvalidArgument
from superarm.parameters import fraction
from superarm.streams import Stream, normal, seek, uniform
from superarm.support import Support, item, span

_ROOT_HALF = math.sqrt(0.5)
_EVERYONE = 1 << 62  # the place, in a round's stream, of what all arms share; arms have the places from 0 up
_ITEMS = _EVERYONE + 1  # and items those from here up


@component
class Copula(NamedTuple):
    r"""Binary outcomes with exact marginals ``p`` and a Gaussian dependence.

    .. math:: X_{ij} = 1\{\Phi(Z_{ij}) < p_{ij}\}, \qquad
              Z_{ij} = \sqrt{all}\,G + \sqrt{arms}\,G_i + \sqrt{items}\,G'_j + \sqrt{1 - all - arms - items}\,G''_{ij}

    with independent standard normals. ``arms`` is the correlation of the latent variables of one item across
    arms, ``items`` that of one arm across items, ``all`` what everything shares.
    """

    p: Probabilities
    arms: float = 0.0
    items: float = 0.0
    all: float = 0.0

    def _check(self) -> None:
        fraction(self, "arms", "items", "all")
        if self.arms + self.items + self.all > 1.0:
            raise InvalidArgument(
                "arms + items + all", "above 1", "the shares of variance add up to at most 1", "Copula"
            )

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        p = self.p.reshape(-1)
        own = math.sqrt(max(0.0, 1.0 - self.arms - self.items - self.all))
        seek(stream, t, _EVERYONE)
        everyone = math.sqrt(self.all) * normal(stream)
        at = 0
        for j in action:
            first, last = span(support, j)
            for o in range(last - first):
                z = everyone
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
    """Binary outcomes with exact marginals ``p`` that, in a share of the rounds, all hang on one uniform number.

    With probability ``share`` a round is comonotone: ``X[j, i] = U < p[j, i]`` with one ``U`` for all arms and
    items; otherwise all entries are independent. ``share=1`` is full dependence.
    """

    p: Probabilities
    share: float = 1.0

    def _check(self) -> None:
        fraction(self, "share")

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        p = self.p.reshape(-1)
        seek(stream, t, _EVERYONE)
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
    """Binary outcomes that hang on one uniform number an arm and round: items fully dependent, arms independent.

    ``X[j, i] = U[j] < p[j, i]``. With equal parameters in a row the items of an arm are identical,
    ``X[j, i] = X[j]``: the construction of the lower bound in [MerlisMannor2019]_ (section Lower Bounds).
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
