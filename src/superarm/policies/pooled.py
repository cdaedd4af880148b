"""Pooled Thompson sampling: a policy that starts from what all arms have in common, and from the present list."""

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.actions.base import total_worth
from superarm.core.arrays import Bools, Floats, Ints, arms, count
from superarm.core.component import named
from superarm.core.errors import InvalidArgument
from superarm.core.tally import Tally, View
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default
from superarm.policies.base import Policy
from superarm.policies.pooling import Observed, Posterior, Prior, fit

if TYPE_CHECKING:
    from superarm.core.problem import Problem

CAP, CAP_WITH_LIST = 16.0, 4.0
"""The most events that a prior counts for, without and with a list."""
TRIED = 3.0
"""An arm is known once one as good as the worst of the slate would have had so many events."""
TRIAL_SHARE = 0.02
GROUPS_LATER = 0.0
DECAY = 0.0
Z = 1.0
ZL = 1.0
BACK = 0.0


class Pool:
    """The memory of a pooled policy: the tally, the prior that was fitted to it last, and when the next fit is due.

    ``prior`` is None until the first decision was handed out.
    """

    prior: Prior | None = None

    def __init__(self, tally: Tally, n_segments: int = 1) -> None:
        self.tally, self.n_segments, self.due = tally, n_segments, 0


class PooledThompson(Policy):
    sharpness: float = 2.0
    baseline: Any = ()
    loss: float = 0.03
    later_loss: float = 0.05
    cautious: int = 1000
    oracle: Oracle = Default()
    caveat = "It assumes that outcomes of one round are independent, and has no regret bound."

    def check(self) -> None:
        self.require_family("oracle", Oracle, "Greedy()")
        self.require("sharpness", 0.0 < self.sharpness < np.inf, "give a finite number > 0")
        self.convert("baseline", tuple(int(j) for j in self.baseline))
        self.convert("cautious", count(self.cautious, "cautious", 0))
        for name in ("loss", "later_loss"):
            self.require(name, 0.0 <= getattr(self, name) <= 1.0, "give a share in [0, 1]")

    def validate(self, problem: "Problem") -> None:
        self.oracle.validate(problem)
        arms(self.baseline, "baseline", problem.n_arms)

    def prepare(self, problem: "Problem", tally: Tally) -> Pool:
        return Pool(tally)

    def choose(self, problem: "Problem", view: View, memory: Pool) -> Ints:
        whole, own = self.posteriors(problem, view, memory)
        batch = self.oracle.maximize(problem, own.draw(self.sharpness, view.keys, view.t), view)
        return Limit(self, problem, view, memory, whole, own).keep(batch) if self.baseline else batch

    def posteriors(self, problem: "Problem", view: View, memory: Pool) -> tuple[Posterior, Posterior]:
        """What is known of all entries, and of those of the user's segment, which are all without segments."""
        prior = self.fit(problem, memory) if memory.prior is None else memory.prior
        whole = Posterior(self.observed(problem, memory), prior)
        alone = memory.n_segments == 1
        return whole, whole if alone else whole.in_segment(view.context.segment, memory.n_segments)

    def observed(self, problem: "Problem", memory: Pool) -> Observed:
        """What a prior is fitted to."""
        listed = np.zeros(problem.n_arms, bool)
        if GROUPS_LATER or memory.due <= self.cautious * 1.25:
            listed[list(self.baseline[: problem.k])] = True
        return Observed.of(memory.tally, listed, memory.n_segments)

    def fit(self, problem: "Problem", memory: Pool) -> Prior:
        """The prior that suits the tally now."""
        return fit(self.observed(problem, memory), CAP_WITH_LIST if self.baseline and (GROUPS_LATER or memory.due <= 1.25 * self.cautious) else CAP)

    def refit(self, problem: "Problem", memory: Pool, t: int) -> None:
        if t >= memory.due:
            memory.prior = self.fit(problem, memory)
            memory.due = 5 * (t // 5 + 1) if t < 50 else -(-5 * t // 4)

    def estimates(self, problem: "Problem", view: View, memory: Pool) -> tuple[Floats, Floats]:
        """The posterior means of entries, and the draw at which the oracle chooses; for explanations."""
        own = self.posteriors(problem, view, memory)[1]
        return own.means(), own.draw(self.sharpness, view.keys, view.t)

    def guarantee(self, problem: "Problem") -> Guarantee:
        return self.oracle.guarantee(problem)

    def save_state(self, memory: Pool) -> dict[str, Any] | None:
        """The last prior, and when the next one is due; None before the first."""
        return None if memory.prior is None else {"due": memory.due, "prior": list(memory.prior)}

    def restore_state(self, memory: Pool, held: dict[str, Any]) -> None:
        if "prior" in held:
            memory.due, prior = int(held["due"]), Prior(*held["prior"])
            lift = prior.lift.reshape(len(prior.lift), memory.n_segments, -1)
            new = memory.tally.support.n_items - lift.shape[2]
            lift = np.pad(lift, ((0, 0), (0, 0), (0, new)), constant_values=1.0)
            memory.prior = prior._replace(lift=lift.reshape(len(lift), -1))


class Limit:
    def __init__(self, policy, problem, view, memory, whole, own) -> None:
        self.policy, self.problem, self.view = policy, problem, view
        by_segment = (len(whole.n), memory.n_segments, problem.n_arms)
        self.means = own.means()
        worth = self._worth(problem, whole, by_segment)
        on = list(policy.baseline[: problem.k])
        worth[:, :, on] *= (1.0 + (Z if view.t <= policy.cautious else ZL) / np.sqrt(whole.shape[:, None, on]))
        counts = memory.tally.pulls.reshape(by_segment).copy()
        rows, segment = np.arange(len(view)), np.zeros(len(view), int) if memory.n_segments == 1 else view.context.segment
        counts[rows, segment] = view.counts
        self.worth = worth[rows, segment]
        self.listed = self._list()
        kept = 1.0 - (policy.loss if view.t <= policy.cautious else policy.later_loss * (policy.cautious / view.t) ** DECAY)
        list_worth = np.stack([total_worth(worth[:, s], self.listed) for s in range(by_segment[1])], 1)
        visits = np.cumsum(counts, 2)[:, :, -1] / problem.k
        visits[rows, segment] += 1.0
        self.earned = np.cumsum(np.cumsum(counts * worth, 2)[:, :, -1], 1)[:, -1]
        self.due = np.cumsum(visits * list_worth, 1)[:, -1]
        self.room = self.earned - kept * self.due
        self.known = np.cumsum(counts, 1)[:, -1]
        self.counts = counts[rows, segment]

    def _worth(self, problem, whole, shape):
        means = whole.means()
        if means.ndim != 3:
            return problem.support.sum_items(means * problem.support.by_item(problem.weights[None]))[:, None]
        weighted = means.reshape(*shape[:2], problem.n_items, problem.n_arms) * problem.weights[:, None]
        return np.cumsum(weighted, 2)[:, :, -1]

    def _list(self) -> Ints:
        """The present list: the first eligible arms of the ranking, then the best of the others."""
        ranking = np.array(self.policy.baseline)
        order = self.worth / (1.0 + self.worth.max())
        order[:, ranking] = 1.0 + np.arange(len(ranking), 0, -1)
        return self.problem.actions.heaviest(order, self.view)

    def keep(self, drawn: Ints) -> Ints:
        view, k = self.view, self.problem.k
        cautious = view.t <= self.policy.cautious
        out = self.listed.copy() if cautious else self.policy.oracle.maximize(self.problem, self.means, view)
        room = self.room + total_worth(self.worth, out)
        if BACK and not cautious:
            back = room < 0.0
            out[back] = self.listed[back]
            room = self.room + total_worth(self.worth, out)
        rows, places = np.arange(len(out)), np.full(len(out), -(-k // 3) if cautious else k)
        fixed = (out[:, :, None] == drawn[:, None, :]).any(2) | (out < 0)
        fixed[:, : view.pinned.shape[1]] = True
        value = np.where(fixed, np.inf, np.take_along_axis(self.worth, np.maximum(out, 0), 1))
        swapped = np.zeros(len(out), bool)
        for j in drawn.T:
            worst = value.argmin(1)
            left = room - value[rows, worst] + self.worth[rows, j]
            go = (j >= 0) & ~(out == j[:, None]).any(1) & (places > 0) & (left >= 0.0)
            room = np.where(go, left, room)
            out[rows[go], worst[go]] = j[go]
            value[rows[go], worst[go]] = np.inf
            places = places - go
            swapped |= go
        if TRIAL_SHARE:
            out = self.trial(out, room, swapped)
        return out

    def trial(self, out, room, swapped):
        view, rows = self.view, np.arange(len(out))
        free = view.eligible.copy()
        free[rows[:, None], np.maximum(out, 0)] = False
        least = np.where(free, self.known - self.worth / (1.0 + self.worth.max()), np.inf).argmin(1)
        value = np.take_along_axis(self.worth, np.maximum(out, 0), 1)
        value[:, : view.pinned.shape[1]] = np.inf
        worst = value.argmin(1)
        low = value[rows, worst]
        spare = room - low + self.worth[rows, least] - (0.0 if view.t <= self.policy.cautious else max(0.0, self.policy.later_loss * (self.policy.cautious / view.t) ** DECAY - TRIAL_SHARE) * self.due)
        go = ~swapped & free[rows, least] & (spare >= 0.0) & (self.known[rows, least] * low < TRIED)
        out[rows[go], worst[go]] = least[go]
        return out


@named
def pooled_thompson(
    sharpness: float = 2.0,
    baseline: Any = (),
    loss: float = 0.03,
    later_loss: float = 0.05,
    cautious: int = 1000,
    oracle: Oracle = Default(),  # noqa: B008
) -> PooledThompson:
    """Thompson sampling under a prior that is fitted to what was observed of all arms: it earns from early on."""
    return PooledThompson(sharpness, baseline, loss, later_loss, cautious, oracle)
