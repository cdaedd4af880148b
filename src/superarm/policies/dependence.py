r"""The variance of an arm's outcome, as a share of that of binary items that move together.

An index adds a radius to every entry, and so the radii of an arm's items add up, as if all of them could err the same
way at once. How far they do is learnt: by Kish's *design effect*, [Kish1965]_ (section 5.4),

.. math:: \eta_j = \phi_j\Bigl(\rho_j + (1 - \rho_j)\frac{\sum_i (d_i\sigma_{ij})^2}{(\sum_i d_i\sigma_{ij})^2}\Bigr)
          \in [0, 1], \qquad \sigma_{ij}^2 = \tilde p_{ij}(1 - \tilde p_{ij}),\
          \tilde p_{ij} = \tfrac{S_{ij} + 1/2}{N_{ij} + 1},

the variance of :math:`\sum_i d_i X_{ij}` as a share of its Cauchy-Schwarz bound for binary items. The weights
:math:`d_i = \partial r / \partial q_i` are those that a last arm would meet: items that the rest of a good batch covers
already count little, and few are left to cancel out.
:math:`\rho_j`, the correlation between the items of an arm, and :math:`\phi_j`, the variance of its entries as a share
of a binary one's, are ratios of what was seen to what could have been:

.. math:: \rho_j \approx \frac{E_j}{R_j},\quad E_j = n_j\Bigl(m_j^2\,\widehat{Var}(\bar X_j) - \sum_i \hat V_{ij}\Bigr),
          \quad R_j = n_j\Bigl(\bigl(\textstyle\sum_i \sqrt{\hat V_{ij}}\bigr)^2 - \sum_i \hat V_{ij}\Bigr), \qquad
          \phi_j \approx \frac{n_j\sum_i \hat V_{ij}}{n_j\sum_i \hat p_{ij}(1 - \hat p_{ij})}

with :math:`m_j` entries and :math:`n_j` pulls seen whole. Few pulls say little, so both are shrunk twice: the ratio of
the sums over all arms towards 1, the cautious value, by ``pooled`` pulls; the ratio of one arm towards that of all by
``own`` pulls. Derived for superarm.
"""

import math
from typing import NamedTuple

import numpy as np

from superarm._jit import kernel, lean
from superarm.arrays import Floats
from superarm.problem import Problem
from superarm.support import item, span
from superarm.tally import Tally, seen_count


class Dependence(NamedTuple):
    """What was seen of each arm, (n_arms,) each; all of it follows from the tally.

    ``whole`` are the pulls seen whole, ``excess`` and ``room`` are E and R, ``actual`` and ``nominal`` the two parts
    of phi; ``sigma`` (n_entries,) is that of the formula.
    """

    whole: Floats
    excess: Floats
    room: Floats
    actual: Floats
    nominal: Floats
    sigma: Floats


@kernel
def dependence(problem: Problem, tally: Tally) -> Dependence:
    """The statistics of every arm, from ``tally``."""
    n = problem.n_arms
    seen = Dependence(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(len(tally.total)))
    for j in range(n):
        observe(problem, tally, seen, j)
    return seen


@lean
def observe(problem: Problem, tally: Tally, seen: Dependence, arm: int) -> None:
    """Bring what was seen of ``arm`` up to date."""
    first, last = span(problem.terms.support, arm)
    apart, roots, binary = 0.0, 0.0, 0.0
    for o in range(last - first):
        n = seen_count(tally, arm, first + o)
        if n > 0.0:
            m = tally.total[first + o] / n
            v = max(0.0, tally.square[first + o] / n - m * m)
            apart += v
            roots += math.sqrt(v)
            binary += m * (1.0 - m)
        smooth = (tally.total[first + o] + 0.5) / (n + 1.0)
        seen.sigma[first + o] = math.sqrt(smooth * (1.0 - smooth))
    whole = tally.joint[3 * arm] if tally.joint.size > 0 else 0.0
    average = tally.joint[3 * arm + 1] / whole if whole > 0.0 else 0.0
    variance = max(0.0, tally.joint[3 * arm + 2] / whole - average * average) if whole > 0.0 else 0.0
    seen.whole[arm] = whole
    seen.excess[arm] = whole * ((last - first) * (last - first) * variance - apart)
    seen.room[arm] = whole * (roots * roots - apart)
    seen.actual[arm] = whole * apart
    seen.nominal[arm] = whole * binary


@kernel
def effects(problem: Problem, seen: Dependence, weights: Floats, pooled: float, own: float) -> Floats:
    """The design effect eta of every arm, (n_arms,), for items of the given ``weights`` (n_items,)."""
    eta = _shrunk(seen.excess, seen.room, seen.whole, pooled, own)
    phi = _shrunk(seen.actual, seen.nominal, seen.whole, pooled, own)
    for j in range(len(eta)):
        first, last = span(problem.terms.support, j)
        total, squares = 0.0, 0.0
        for o in range(last - first):
            s = weights[item(problem.terms.support, first, o)] * seen.sigma[first + o]
            total += s
            squares += s * s
        least = squares / (total * total) if total > 0.0 else 1.0
        eta[j] = phi[j] * (eta[j] + (1.0 - eta[j]) * least)
    return eta


@kernel
def _shrunk(part: Floats, whole: Floats, pulls: Floats, pooled: float, own: float) -> Floats:
    """part / whole of every arm, in [0, 1]: all arms' shrunk to 1 by ``pooled`` pulls, each to all arms' by ``own``.

    A pseudo-pull of an arm weighs what a pull of it does; while it has few, what a pull of any arm does.
    """
    most, parts, count = 0.0, 0.0, 0.0
    for j in range(len(part)):
        parts += part[j]
        most += whole[j]
        count += pulls[j]
    found = np.ones(len(part))
    if most <= 0.0:
        return found
    common = _unit((pooled + count * parts / most) / (pooled + count))
    for j in range(len(part)):
        prior = own * (whole[j] + most / count) / (pulls[j] + 1.0)
        found[j] = _unit((prior * common + part[j]) / (prior + whole[j]))
    return found


@lean
def _unit(x: float) -> float:
    return min(1.0, max(0.0, x))
