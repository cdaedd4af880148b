"""Pooled Thompson sampling: a policy that starts from what all arms have in common, and from the present list."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from superarm.core.arrays import Floats, Ints, arms, count
from superarm.core.component import named
from superarm.core.errors import InvalidArgument
from superarm.core.moments import JointTally
from superarm.core.streams import shared_uniform
from superarm.core.tally import Feedback, Tally, View
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default
from superarm.policies.base import Policy
from superarm.policies.baseline import Account, trial_loss
from superarm.policies.memory import NEVER, Arrays, Memory, inside, record_rows, under
from superarm.policies.pooling import Covariates, Observed, Posterior, Prior, fit
from superarm.problem import Problem

CAP, CAP_WITH_LIST = 16.0, 4.0
"""The most events that a prior counts for, without a list and while one is followed."""

CAUTION = {"careful": (0.0125, 0.025, 3000, 1.0), "normal": (0.025, 0.05, 1000, 0.6), "bold": (0.05, 0.2, 300, 0.3)}
"""The share of the list's earnings that learning may cost at first, that share later, and when later begins; and how
many standard deviations of what arms off the list earned are luck, which is not spent."""

MAX_ARM_FEATURES = 32
"""With so many a fit takes half a second for 2,000 arms, and its time grows with their square."""


class PoolMemory(Memory):
    """The sums, of all segments if there are some; the prior that was fitted to them last; when the next fit is due.

    ``known`` is what is known of the arms in advance. ``prior`` is None until the first decision was handed out;
    ``early`` is one that was fitted before, with the sums that it was fitted to.
    """

    tally: JointTally
    prior: Prior | None = None
    early: tuple[tuple[Floats, ...], Prior] | None = None
    due = 0

    def __init__(self, policy: Any, problem: Problem, replications: int = 1, partial: bool = False) -> None:
        self.n_segments = 1 if problem.context is None else problem.context.n_segments
        super().__init__(policy, problem, replications * self.n_segments, partial)

    def new_tally(self, rows: int, partial: bool) -> Tally:
        return JointTally(self.problem.support, rows, partial)

    def adopt(self, tally: Tally) -> None:
        super().adopt(tally)
        context = self.problem.context
        features = None if context is None else context.arms
        self.known = Covariates.of(self.problem.n_arms, self.policy.baseline, features)

    def learn(self, feedback: Feedback, weight: float = 1.0) -> None:
        record_rows(self.tally, feedback, self.n_segments, weight, feedback.t > self.begun)

    def warm(self, past: Tally, t: int, weight: float = 1.0) -> None:
        super().warm(past, t, weight)
        self.prior, self.due = None, 0

    def inherit(self, old: Memory, t: int) -> None:
        self.begun = old.begun if self.tally.take_over(old.tally, t) else t
        self.adopt(self.tally)
        self.prior, self.due = None, 0
        if isinstance(old, PoolMemory):
            self._keep(old.due, old.prior)

    def _keep(self, due: int, prior: Prior | None) -> None:
        """Keep a prior of earlier, unless it is for other features or another kind of list."""
        if prior is None or prior.effects.shape[1] != len(self.known.x):
            self.prior, self.due = None, 0
            return
        lift = prior.lift.reshape(len(prior.lift), self.n_segments, -1)
        new = self.problem.n_items - lift.shape[2]  # items that were added since
        lift = np.pad(lift, ((0, 0), (0, 0), (0, new)), constant_values=1.0)
        self.due, self.prior = due, prior._replace(lift=lift.reshape(len(lift), -1))

    def plan(self, t: int, within: int = NEVER) -> Arrays | None:
        if t < self.due:
            return None
        due = 5 * (t // 5 + 1) if t < 50 else -(-5 * t // 4)
        return {"due": np.array(float(min(due, t + within))), **self.policy.fit(self, due)._asdict()}

    def accept(self, plan: Arrays) -> None:
        self.due = int(plan["due"])
        self.prior = Prior(**{name: plan[name] for name in Prior._fields})

    def take(self, rows: Any) -> Self:
        part = super().take(rows)
        if self.prior is not None:
            part.prior = Prior(*(values[rows] for values in self.prior))
        return part

    def grown(self, problem: Problem, t: int) -> Self:
        new = super().grown(problem, t)
        new._keep(self.due, self.prior)
        return new

    def beside(self) -> Arrays:
        fitted = {} if self.prior is None else {"due": np.array(float(self.due)), **self.prior._asdict()}
        return super().beside() | under("prior", fitted)

    def take_beside(self, arrays: Mapping[str, Any]) -> None:
        super().take_beside(arrays)
        if fitted := inside(arrays, "prior"):
            self.accept(fitted)


class PooledThompson(Policy[PoolMemory]):
    r"""Thompson sampling under a prior that is fitted to the tally: effects of arms, lifts of items, own effects.

    The model is that of ``policies.pooling``: what is known of an arm in advance, its rank in ``baseline`` and features
    of arms in the problem's context, says what to expect of it, as far as the tally bears that out. Each decision draws
    one effect :math:`\tilde\theta_j` for all entries of an arm, then every entry, from posteriors with ``sharpness``
    :math:`\gamma` times as many observations as there are:

    .. math:: \tilde\theta_j \sim \frac{Gamma(\gamma(\alpha_j + S_j))}{\gamma(\alpha_j/\mu_j + E_j)}, \qquad
              q_{ji} \sim Beta\bigl(\gamma(c m + s_{ji}),\ \gamma(c(1 - m) + n_{ji} - s_{ji})\bigr)

    with :math:`\mu_j = e^{\langle x_j, \eta\rangle}` what is expected of the arm, :math:`m = \tilde\theta_j\lambda_i`,
    :math:`c = \kappa(1 - m)/m`, and :math:`S_j`, :math:`E_j` the events of the arm and how often it was shown, where
    each entry counts for at most :math:`\kappa` events. The oracle chooses at q.

    The prior is fitted anew after decisions 1, 5, 10, …, 50, then each time that there are a quarter more; what is
    observed in between counts at once. Decisions depend on the tally, the last prior, which is part of the saved state,
    and the random numbers of the round. After [GelmanEtAl2013]_ and [ChapelleLi2011]_, who sharpen posteriors, too.

    Without a list and with one item, the share ``optimism`` of decisions is made at upper bounds of that posterior
    (``Posterior.upper``). With draws alone, regret grows like a power of T on some instances; with bounds and one arm
    per decision it is O(log T) (docs/theory/lower-bounds.md). ``python -m dev.earnings`` measures what it earns.

    Parameters
    ----------
    sharpness
        How many times an observation counts in draws: 1 is Thompson sampling. 2 earned more. It is at most 1 where
        decisions show several items of an arm at once; there, entries share random numbers as often as the arm's items
        were seen to vary together (``core.moments.JointTally``).
    baseline
        The present ranking of arms, best first, if there is one; the first k eligible arms are shown today. Decisions
        then start from these, as ``policies.baseline`` describes. Ranks beyond k say what to expect of the others: give
        as many as you have, and leave out arms of which nothing is known, such as new ones.
    caution
        How much learning may cost: ``careful``, for a short horizon or a list that is trusted, ``normal``, or ``bold``,
        for a long one. It stands for four numbers (``CAUTION``), which can be given instead: the share of what the
        list would have earned that learning may cost at first; that share later, where it is half of what the best
        batch promises beyond the list, and at least 2 %, which falls with the square root of the decisions from the
        thousandth on; in how many first
        decisions at most a third of the list, rounded up, is replaced at once; and how much of the success of arms off
        the list is taken for luck, in standard deviations.
    optimism
        The share of decisions that are made at upper bounds, without a list and with one item. With 0, some runs keep
        to a wrong arm (``python -m dev.benchmarks.locks``).
    oracle
        The algorithm that finds a batch.
    """

    sharpness: float = 2.0
    baseline: Any = ()
    caution: Any = "normal"
    optimism: float = 0.5
    oracle: Oracle = Default()
    remembers = PoolMemory
    budget: ClassVar[tuple[float, float, int, float]]
    shares_segments = True
    random = True
    caveat = "It assumes that the outcomes of one decision are independent; its regret bound is for one arm a decision."

    @classmethod
    def of_fields(cls, fields: dict[str, Any]) -> Self:
        return cls(**read_earlier(fields))

    def check(self) -> None:
        self.require_family("oracle", Oracle, "Greedy()")
        self.require("sharpness", 0.0 < self.sharpness <= 1e6, "give a number > 0, at most 1e6")
        self.convert("baseline", tuple(int(j) for j in self.baseline))
        self.convert("budget", _read_caution(self.caution))
        self.require("optimism", 0.0 <= self.optimism <= 1.0, "give a share in [0, 1]")

    def validate(self, problem: Problem) -> None:
        self.oracle.validate(problem)
        arms(self.baseline, "baseline", problem.n_arms)
        if problem.context is not None and problem.context.arms.shape[1] > MAX_ARM_FEATURES:
            wrong = f"{problem.context.arms.shape[1]} features of arms"
            raise InvalidArgument("arms", wrong, f"give at most {MAX_ARM_FEATURES}, or a linear model", "Context")

    def choose(self, problem: Problem, view: View, memory: PoolMemory) -> Ints:
        whole, own, waiting = self.posteriors(problem, view, memory)
        batch = self.oracle.maximize(problem, self.scores(own, view, waiting), view)
        if not self.baseline:
            return batch
        loss, later_loss, decisions, luck = self.budget
        account = Account(problem, view, memory, whole, self.baseline, luck)
        cautious = account.counts.sum(1) < decisions * problem.k
        base, most = account.listed, np.where(cautious, loss, later_loss)
        places, share = np.where(cautious, -(-problem.k // 3), problem.k), most
        if not cautious.all():
            best = self.oracle.maximize(problem, account.careful(own), view)
            base = np.where((cautious | account.overdrawn(best, most))[:, None], base, best)
            least = np.minimum(trial_loss(account.t), most)
            share = np.where(cautious, most, np.clip(account.promise(own.means(), base) / 2.0, least, most))
        kept = np.where(account.poor, base, account.keep(base, batch, places, share))
        due = account.trial_due(~cautious, most)
        return np.where(due, account.trial(base, batch), kept) if due.any() else kept

    def scores(self, own: Posterior, view: View, waiting: Floats) -> Floats:
        """The entries at which the oracle chooses: a draw, or upper bounds in the share ``optimism`` of decisions."""
        draw = own.draw(self.sharpness, view.keys, view.t, waiting)
        bounded = shared_uniform(view.keys, view.t, 5)[:, 4] < self.optimism
        if self.baseline or own.observed.support.n_items > 1 or not bounded.any():
            return draw
        return np.where(own.observed.across(bounded), own.upper(view.counts), draw)

    def posteriors(self, problem: Problem, view: View, memory: PoolMemory) -> tuple[Posterior, Posterior, Floats]:
        """What is known of all entries and of those of the user's segment, and the pending pulls of the arms in it."""
        whole = Posterior(self.observed(memory), self.first(memory) if memory.prior is None else memory.prior)
        if memory.n_segments == 1:
            return whole, whole, view.counts - memory.tally.pulls
        segment, rows = view.context.segment, memory.tally.pulls.reshape(-1, memory.n_segments, problem.n_arms)
        own = rows[np.arange(len(segment)) if len(rows) > 1 else 0, segment]
        return whole, whole.in_segment(segment, memory.n_segments), view.counts - own

    def observed(self, memory: PoolMemory) -> Observed:
        """What a prior is fitted to."""
        return Observed.of(memory.tally, memory.known, memory.n_segments)

    def fit(self, memory: PoolMemory, due: int) -> Prior:
        """The prior that suits the tally now, and that is kept until round ``due``."""
        return fit(self.observed(memory), CAP_WITH_LIST if self.baseline and due <= self.budget[2] else CAP)

    def first(self, memory: PoolMemory) -> Prior:
        """The prior of decisions before the first one that stays: fitted once for all that see the same tally."""
        seen = self.observed(memory)
        sums = (seen.pulls, seen.n, seen.total, seen.square.copy())
        if memory.early is None or not all(map(np.array_equal, sums, memory.early[0])):
            memory.early = sums, self.fit(memory, memory.due)
        return memory.early[1]

    def estimates(self, problem: Problem, view: View, memory: PoolMemory) -> tuple[Floats, Floats]:
        """The posterior means of entries, and the draw at which the oracle chooses; for explanations."""
        _, own, waiting = self.posteriors(problem, view, memory)
        return own.means(), self.scores(own, view, waiting)

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


def read_earlier(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters with a word in place of the three numbers that stood for caution before, if they are there."""
    names = ("loss", "later_loss", "cautious")
    if not any(name in given for name in names):
        return given
    normal = CAUTION["normal"]
    numbers = (*(given.get(name, x) for name, x in zip(names, normal, strict=False)), normal[-1])
    rest = {name: value for name, value in given.items() if name not in names}
    return rest | {"caution": "normal" if numbers == normal else numbers}


def _read_caution(caution: Any) -> tuple[float, float, int, float]:
    """The numbers that a word for caution stands for."""
    known: Any = CAUTION.get(caution) if isinstance(caution, str) else caution
    try:
        loss, later_loss, decisions, luck = known
        if 0.0 <= loss <= 1.0 and 0.0 <= later_loss <= 1.0 and 0.0 <= luck <= 10.0:
            return float(loss), float(later_loss), count(decisions, "caution", 0), float(luck)
    except (TypeError, ValueError):
        pass
    raise InvalidArgument("caution", f"{caution!r}", f"give one of {', '.join(CAUTION)}", "PooledThompson")


@named
def pooled_thompson(
    sharpness: float = 2.0,
    baseline: Any = (),
    caution: Any = "normal",
    optimism: float = 0.5,
    oracle: Oracle = Default(),  # noqa: B008
) -> PooledThompson:
    """Thompson sampling under a prior that is fitted to what was observed of all arms: it earns from early on.

    With ``baseline``, the present ranking of arms, best first, it starts from the first k, and learning costs a small
    share of what the list would have earned: ``caution`` is "careful", "normal" or "bold". See ``PooledThompson``.

    Examples
    --------
    >>> pooled_thompson(baseline=[3, 1, 2]).baseline
    (3, 1, 2)
    """
    return PooledThompson(sharpness, baseline, caution, optimism, oracle)
