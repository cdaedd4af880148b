r"""Observations that logistic policies keep, and their refits by maximum likelihood.

An observation enters the sums of a tally by the quadratic approximation of its log-likelihood at the estimate of its
decision. The *point* of a parameter vector is its estimate of maximum likelihood at the last refit; the *correction* is
by how much the sums would differ if kept observations up to the round of that refit were approximated at the point
instead. Every term of it is a multiple of :math:`2^{-36}`, so that sums over up to :math:`2^{16}` observations are
exact: they do not depend on the order of observations, and are undone exactly, as long as all are kept. Once more came
than are kept, the oldest rows are gone for good: feedback that is taken back then leaves the correction of the others.

A parameter vector is refitted when the trace of its information, ridge included, has doubled since its last refit. The
step of Newton's method is

.. math:: s = \log(1 + D) / D, \qquad D = \max_n |\langle\phi_n, \Delta\rangle|

times the full step :math:`\Delta`: the logistic loss has :math:`|\ell'''| \le \ell''`, so along :math:`\Delta` the loss
is at most :math:`f - s\,c + c\,(e^{Ds} - Ds - 1)/D^2` with :math:`c = \Delta^\top H\Delta`, and s minimises this bound:
every step decreases the loss. The estimate is that of [LeeYunJun2024]_ with a ridge in place of a constraint.
"""

from typing import Any, NamedTuple

import numpy as np

from superarm.context.design import Design, places
from superarm.context.frames import Frames, same_frames
from superarm.context.sums import Layout, grow_groups, round_outcome, triangle, unpack
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.numeric import log1p, sigmoid
from superarm.core.ops import op
from superarm.core.support import AnySupport
from superarm.core.tally import Feedback

TERM_GRID = 2.0**36
"""Terms of corrections are multiples of 1 / TERM_GRID."""

_NO_LIMIT = 2.0**62
_MAX_STEPS = 100
_SMALL = 2.0**-30
"""A step that changes no log-odds by more than this is the last one."""

ROUND, ARM, PLACE, FRAME, OUTCOME, WEIGHT, SHIFT, FEATURES = range(8)
"""The columns of kept rows; those of the user's vector and of the pair follow."""


class Refit(NamedTuple):
    """The estimates of maximum likelihood of some parameter vectors, after the choice of round ``t``.

    ``groups`` are their numbers, ``points`` (len(groups), d) the estimates, and ``information`` the traces of the
    information that they rest on.
    """

    t: int
    groups: Ints
    points: Floats
    information: Floats


class Likelihood(NamedTuple):
    """The offset of the log-odds, and the penalty of the parameters."""

    offset: float
    ridge: float


class Kept:
    """The first observations by round, of one replication; the last refits; and the correction that follows from both.

    ``rows`` (n, 7 + n_user + n_pair) has for each observation its round, arm, place among the arm's entries, frame,
    outcome, weight and shift, then the features of user and pair. Those of the first rounds that fit into ``capacity``
    are kept, so that what is kept does not depend on the order in which feedback comes; from round ``limit`` on none
    is. ``maps`` takes the user's vector from each earlier frame to the one that is ``present``.

    ``point`` (n_groups, d) holds the points, ``until`` (n_groups,) the rounds of their refits, and ``information``
    (2, n_groups) the traces of the kept observations' information, now and at the refit. ``precision``, ``response``
    and ``stale`` are those of this replication in the policy's memory.
    """

    def __init__(
        self, capacity: int, design: Design, support: AnySupport, likelihood: Likelihood, sums: tuple[Any, Any, Bools]
    ) -> None:
        groups = design.n_groups(support)
        self.capacity, self.design, self.support, self.likelihood = capacity, design, support, likelihood
        self.precision, self.response, self.stale = sums
        self.rows = np.zeros((0, FEATURES + design.n_user + design.n_pair))
        self.limit, self.present = _NO_LIMIT, 0
        self.maps = same_frames(design.n_user)
        self.point, self.until = np.zeros((groups, design.d)), np.zeros(groups)
        self.information = np.zeros((2, groups))

    def record(self, feedback: Feedback, replication: int, sign: float) -> None:
        """Keep the observations of feedback, or drop those that are taken back."""
        rows = self._observed(feedback, replication)
        if sign < 0.0:
            self._drop([self._find(row) for row in rows])
            return
        while len(rows) and rows[0, ROUND] < self.limit:
            if len(self.rows) + len(rows) <= self.capacity:
                self.rows = np.concatenate([self.rows, rows])
                self._count(rows, 1.0)
                break
            self.limit = max(self.rows[:, ROUND].max(initial=0.0), rows[0, ROUND])
            self._drop(np.flatnonzero(self.rows[:, ROUND] == self.limit).tolist())

    def _observed(self, feedback: Feedback, replication: int) -> Floats:
        given, action = feedback.context, feedback.action[replication]
        counted = (given.weights[replication] > 0.0) & places(self.support, action).there
        if feedback.seen is not None:
            counted &= feedback.seen[replication]
        k, place = np.nonzero(counted)
        rows = np.empty((len(k), self.rows.shape[1]))
        rows[:, ROUND], rows[:, FRAME] = feedback.t, given.frame
        rows[:, ARM], rows[:, PLACE] = action[k], place
        rows[:, OUTCOME] = round_outcome(feedback.outcome[replication, k, place])
        rows[:, WEIGHT], rows[:, SHIFT] = (part[replication, k, place] for part in (given.weights, given.shifts))
        rows[:, FEATURES : FEATURES + self.design.n_user] = given.x[replication]
        rows[:, FEATURES + self.design.n_user :] = given.pairs[replication, action[k]]
        return rows

    def _find(self, row: Floats) -> int:
        """The number of a row that is equal to ``row``; -1 if it was not kept."""
        same = np.flatnonzero((self.rows == row).all(1))
        return int(same[0]) if len(same) else -1

    def _drop(self, numbers: list[int]) -> None:
        gone = np.array([n for n in numbers if n >= 0], np.int64)
        self._count(self.rows[gone], -1.0)
        self.rows = np.delete(self.rows, gone, 0)

    def features(self, rows: Floats) -> tuple[Floats, Ints]:
        """The features of rows in the present frame (n, d), and the parameter vectors they belong to (n,)."""
        design, end = self.design, FEATURES + self.design.n_user
        arm, place, frame = (rows[:, column].astype(np.int64) for column in (ARM, PLACE, FRAME))
        u = design.own_features(rows[:, FEATURES:end], arm, rows[:, end:])
        late = frame != self.present
        if late.any():
            mapped = u[late]
            design.map_frame(mapped, self.maps[frame[late]])
            u[late] = mapped
        every = np.arange(len(rows)), place
        items = places(self.support, arm).items[every]
        return design.with_items(u, items), design.groups_of(self.support, arm)[every]

    def _count(self, rows: Floats, sign: float) -> None:
        """Count rows in the information and the correction of their parameter vectors, or take them back."""
        if not len(rows):
            return
        phi, group = self.features(rows)
        self.stale[group] = True
        trace = np.cumsum(phi * phi, 1)[:, -1]
        np.add.at(self.information[0], group, sign * _round(rows[:, WEIGHT] * trace))
        early = rows[:, ROUND] <= self.until[group]
        if early.any():
            rows, phi, group = rows[early], np.ascontiguousarray(phi[early]), group[early]
            eta = np.cumsum(phi * self.point[group], 1)[:, -1]
            mean = sigmoid(self.likelihood.offset + eta)
            weight = mean * (1.0 - mean)
            shift = weight * eta - mean - rows[:, SHIFT]
            np.add.at(self.response, group, sign * _round(shift[:, None] * phi))
            add = op("add_terms", phi.size * phi.shape[1])
            add(phi, weight - rows[:, WEIGHT], group, TERM_GRID, sign, self.precision)

    def due(self) -> Ints:
        """The parameter vectors whose information, ridge included, has doubled since their last refit."""
        now, before = self.information
        return np.flatnonzero(now - before >= self.likelihood.ridge * self.design.d + before)

    def plan(self, t: int) -> Refit | None:
        """The refit that is due after the choice of round ``t``, if there is one."""
        groups = self.due()
        if not len(groups):
            return None
        phi, group = self.features(self.rows)
        points = [
            self._maximise(g, np.ascontiguousarray(phi[group == g]), self.rows[group == g, OUTCOME]) for g in groups
        ]
        return Refit(t, groups, np.array(points), self.information[0, groups])

    def _maximise(self, g: int, phi: Floats, x: Floats) -> Floats:
        """Newton's method for one parameter vector, from its point; sums are exact, whatever the order of rows."""
        theta, (offset, ridge), d = self.point[g].copy(), self.likelihood, self.design.d
        for _ in range(_MAX_STEPS):
            mean = sigmoid(offset + np.cumsum(phi * theta, 1)[:, -1])
            hessian, one = np.zeros((1, triangle(d))), np.zeros(len(phi), np.int64)
            op("add_terms", phi.size * d)(phi, mean * (1.0 - mean), one, TERM_GRID, 1.0, hessian)
            factor = unpack(hessian, d)
            factor[0, np.arange(d), np.arange(d)] += ridge
            step = _round((x - mean)[:, None] * phi).sum(0, keepdims=True) - ridge * theta
            op("factorise", d**3)(factor)
            op("solve_systems", d**2)(factor, step)
            largest = np.abs(np.cumsum(phi * step, 1)[:, -1]).max(initial=0.0)
            theta += (log1p(largest) / largest if largest > 0.0 else 1.0) * step[0]
            if largest <= _SMALL:
                break
        return theta

    def take(self, refit: Refit) -> None:
        """Take on the points of a refit, and correct the sums of their parameter vectors."""
        groups = refit.groups
        self.point[groups], self.until[groups] = refit.points, refit.t
        self.information[1, groups] = refit.information
        self._correct(groups)

    def _correct(self, groups: Ints) -> None:
        """Compute the information and the corrections of some parameter vectors anew."""
        self.precision[groups], self.response[groups], self.information[0, groups] = 0.0, 0.0, 0.0
        self.stale[groups] = True
        if len(self.rows):
            self._count(self.rows[np.isin(self.features(self.rows)[1], groups)], 1.0)

    def save(self) -> dict[str, Floats]:
        """The rows in an order of their own, and the refits: what a stored state holds.

        ``bounds`` are the limit and the present frame, ``marks`` (n_groups, 2) the round and the information of the
        refit of each parameter vector.
        """
        rows = self.rows[np.lexsort(self.rows.T[::-1])]
        marks = np.stack([self.until, self.information[1]], 1)
        bounds = np.array([self.limit, float(self.present)])
        return {"rows": rows, "bounds": bounds, "maps": self.maps, "point": self.point, "marks": marks}

    def restore(self, held: dict[str, Any]) -> None:
        """Take on what ``save`` returned."""
        self.rows, self.maps, self.point = held["rows"].copy(), held["maps"].copy(), held["point"].copy()
        self.limit, self.present = float(held["bounds"][0]), int(held["bounds"][1])
        self.until, self.information[1] = held["marks"][:, 0].copy(), held["marks"][:, 1]
        self._correct(np.arange(len(self.point)))


def carry_kept(held: dict[str, Any], frames: Frames) -> dict[str, Any]:
    """What ``Kept.save`` returned, for the present frame; points of an earlier one are given up."""
    bounds = np.array([held["bounds"][0], float(frames.frame.version)])
    nothing = {"point": 0.0 * held["point"], "marks": 0.0 * held["marks"]}
    return held | {"bounds": bounds, "maps": frames.user_maps()} | nothing


def grow_kept(held: dict[str, Any], before: Layout, after: Layout) -> dict[str, Any]:
    """What ``Kept.save`` returned, on a larger problem; rows name entries by arm and place, so they stay.

    Where features begin to tell items apart, earlier observations have others: none of them is kept.
    """
    point = grow_groups(held["point"][None], before, after, after[0].d - before[0].d)[0]
    marks = grow_groups(held["marks"][None], before, after)[0]
    if bool(before[0].n_item) == bool(after[0].n_item):
        return held | {"point": point, "marks": marks}
    nothing = {"rows": held["rows"][:0], "bounds": held["bounds"] * (0.0, 1.0)}
    return held | nothing | {"point": 0.0 * point, "marks": 0.0 * marks}


def _round(term: Any) -> Any:
    """The nearest multiple of 1 / TERM_GRID."""
    return np.floor(term * TERM_GRID + 0.5) / TERM_GRID
