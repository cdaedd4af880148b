"""What the products of one page do to one another, and what the place of a product does to it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from superarm.core.arrays import Floats, Ints


@dataclass(frozen=True)
class Visitors:
    """Visitors who look at each product alone: the chances that they take products are those of the products.

    ``p`` (…, K) are the chances of the products of ``slates`` (…, K) alone.
    """

    def chances(self, p: Floats, slates: Ints) -> Floats:
        """The chance that each product of the slates is taken, (…, K)."""
        return p

    def take(self, p: Floats, slates: Ints, u: Floats) -> Floats:
        """Which products one visitor of each slate takes, 0 or 1, from uniform numbers ``u`` (…, K)."""
        return (u < self.chances(p, slates)).astype(float)


@dataclass(frozen=True)
class Readers(Visitors):
    """Visitors who look at place s of a page with the chance ``looks[s]``."""

    looks: Sequence[float] = (1.0,)

    def chances(self, p: Floats, slates: Ints) -> Floats:
        return p * np.array(self.looks[: p.shape[-1]])


@dataclass(frozen=True)
class Choosers(Visitors):
    r"""Visitors who take at most one product of a kind: a logit model within each of the ``kinds`` of products.

    .. math:: P(j) = need \cdot \frac{a_j}{1 + \sum_{l\ of\ the\ same\ kind} a_l}, \qquad a_j = \frac{p_j}{need - p_j}

    so that a product alone is taken with its chance :math:`p_j`, which is less than the ``needs`` of its kind: which
    share of visitors look for one.
    """

    kinds: tuple[int, ...] = ()
    needs: tuple[float, ...] = (1.0,)

    def _kind(self, slates: Ints) -> Ints:
        return np.array(self.kinds)[slates] if self.kinds else np.zeros_like(slates)

    def _same(self, slates: Ints) -> Floats:
        kind = self._kind(slates)
        return np.asarray(kind[..., :, None] == kind[..., None, :], float)

    def chances(self, p: Floats, slates: Ints) -> Floats:
        need = np.array(self.needs)[self._kind(slates)]
        a = p / np.maximum(need - p, 1e-9)
        return np.asarray(need * a / (1.0 + (self._same(slates) @ a[..., None])[..., 0]))

    def take(self, p: Floats, slates: Ints, u: Floats) -> Floats:
        """One number decides for all products of a kind: that of the first of them on the page."""
        each, same = self.chances(p, slates), self._same(slates)
        high = (np.tril(np.ones(same.shape[-2:])) * same @ each[..., None])[..., 0]
        one = np.take_along_axis(u, same.argmax(-1), -1)
        return ((high - each <= one) & (one < high)).astype(float)


ALONE = Visitors()
