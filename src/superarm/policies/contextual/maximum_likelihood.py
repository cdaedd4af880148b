r"""Maximum likelihood for logistic models: Newton's method on the observations that a policy keeps.

A parameter vector is refitted when the trace of its information, ridge included, has doubled since its last refit; in
between, observations are added as rank-one terms at the estimates of their decisions. The step of Newton's method is

.. math:: s = \log(1 + D) / D, \qquad D = \max_n |\langle\phi_n, \Delta\rangle|

times the full step :math:`\Delta`: the logistic loss has :math:`|\ell'''| \le \ell''`, so along :math:`\Delta` the loss
is at most :math:`f - s\,c + c\,(e^{Ds} - Ds - 1)/D^2` with :math:`c = \Delta^\top H\Delta`, and s minimises this bound:
every step decreases the loss. It starts at the point of the last refit, and all sums are exact, so that the result does
not depend on the order of the rows. The estimate is that of [LeeYunJun2024]_ with a ridge in place of a constraint.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import kernel, lean
from superarm.arrays import Bools, Floats, Ints
from superarm.context.design import Design
from superarm.policies.contextual.kept_observations import (
    KeptObservations,
    Likelihood,
    count_row,
    fill_row,
    is_due,
    round_term,
    row_group,
    sigmoid,
)
from superarm.policies.contextual.linear_algebra import factorise, solve_factor
from superarm.support import Support

_MAX_STEPS = 100
_SMALL = 2.0**-30
"""A step that changes no log-odds by more than this is the last one."""


class Refit(NamedTuple):
    """The estimates of maximum likelihood of some parameter vectors, after the choice of round ``t``.

    ``groups`` are their numbers, ``points`` (len(groups), d) the estimates, and ``information`` the traces of the
    information that they rest on.
    """

    t: int
    groups: Ints
    points: Floats
    information: Floats


@kernel
def fit_due(kept: KeptObservations, design: Design, support: Support, likelihood: Likelihood) -> tuple[Any, Any, Any]:
    """The numbers, estimates and information of the parameter vectors whose information has doubled."""
    n = 0
    for g in range(len(kept.point)):
        if is_due(kept, g, likelihood.ridge):
            n += 1
    groups, points, information = np.zeros(n, np.int64), np.zeros((n, kept.point.shape[1])), np.zeros(n)
    n = 0
    for g in range(len(kept.point)):
        if is_due(kept, g, likelihood.ridge):
            groups[n], information[n] = g, kept.information[g, 0]
            points[n] = kept.point[g]
            _maximise(kept, design, support, g, likelihood, points[n])
            n += 1
    return groups, points, information


@kernel
def _maximise(
    kept: KeptObservations, design: Design, support: Support, group: int, likelihood: Likelihood, theta: Floats
) -> None:
    """Newton's method for one parameter vector, in place."""
    d, n = len(theta), 0
    rows = np.zeros(kept.size[0], np.int64)
    for row in range(len(rows)):
        if row_group(kept, design, support, row) == group:
            rows[n] = row
            n += 1
    rows = rows[:n]
    phi, step, hessian = np.zeros(d), np.zeros(d), np.zeros(d * (d + 1) // 2)
    for _ in range(_MAX_STEPS):
        hessian[:] = 0.0
        step[:] = 0.0
        for row in rows:
            fill_row(kept, design, support, row, phi)
            _add_row(kept.value[row, 0], phi, theta, likelihood.offset, step, hessian)
        at = 0
        for r in range(d):
            step[r] -= likelihood.ridge * theta[r]
            hessian[at + r] += likelihood.ridge
            at += r + 1
        factorise(hessian, d, phi)
        solve_factor(hessian, d, step)
        largest = 0.0
        for row in rows:
            fill_row(kept, design, support, row, phi)
            change = 0.0
            for r in range(d):
                change += phi[r] * step[r]
            largest = max(largest, abs(change))
        scale = math.log1p(largest) / largest if largest > 0.0 else 1.0
        for r in range(d):
            theta[r] += scale * step[r]
        if largest <= _SMALL:
            break


@lean
def _add_row(x: float, phi: Floats, theta: Floats, offset: float, gradient: Floats, hessian: Floats) -> None:
    """Add one observation to the gradient of the log-likelihood and to minus its second derivative."""
    eta = offset
    for r in range(len(phi)):
        eta += phi[r] * theta[r]
    mean = sigmoid(eta)
    rest, weight = x - mean, mean * (1.0 - mean)
    at = 0
    for r in range(len(phi)):
        gradient[r] += round_term(rest * phi[r])
        scaled = weight * phi[r]
        for c in range(r + 1):
            hessian[at + c] += round_term(scaled * phi[c])
        at += r + 1


@kernel
def take_points(
    kept: KeptObservations, stale: Bools, design: Design, support: Support, refit: Refit, likelihood: Likelihood
) -> None:
    """Take on the points of a refit, and correct the sums of their parameter vectors."""
    for n in range(len(refit.groups)):
        g = refit.groups[n]
        kept.point[g] = refit.points[n]
        kept.until[g] = refit.t
        kept.information[g, 1] = refit.information[n]
        stale[g] = True
    correct_groups(kept, design, support, refit.groups, likelihood)


@kernel
def correct_groups(
    kept: KeptObservations, design: Design, support: Support, groups: Ints, likelihood: Likelihood
) -> None:
    """Compute the corrections of some parameter vectors anew, and whether another refit is due."""
    changed = np.zeros(len(kept.point), np.bool_)
    for g in groups:
        changed[g] = True
        kept.precision[g] = 0.0
        kept.response[g] = 0.0
        kept.information[g, 0] = 0.0
    phi = np.zeros(kept.point.shape[1])
    for row in range(kept.size[0]):
        if changed[row_group(kept, design, support, row)]:
            count_row(kept, design, support, row, phi, likelihood.offset, 1.0)
    kept.due[0] = False
    for g in range(len(kept.point)):
        if is_due(kept, g, likelihood.ridge):
            kept.due[0] = True
