"""Index policies: score every entry, then maximise."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from superarm.actions.subsets import Subsets
from superarm.core.arrays import Floats, Ints, require_scores
from superarm.core.errors import InvalidArgument
from superarm.core.support import Dense
from superarm.core.tally import Feedback, Tally, View
from superarm.environments.bernoulli import Bernoulli
from superarm.indices import KL, Bernstein, Chance, Index
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default
from superarm.oracles.greedy import Greedy
from superarm.policies.base import Policy, fact_of, try_every_arm
from superarm.policies.memory import Memory
from superarm.policies.screen import new_screen
from superarm.problem import Problem
from superarm.rewards import Coverage

if TYPE_CHECKING:
    from superarm.environments.base import Environment


class IndexMemory(Memory):
    """The sums, and a screen of the arms that can win, where it pays."""

    def adopt(self, tally: Tally) -> None:
        super().adopt(tally)
        vars(self).pop("screen", None)

    @cached_property
    def screen(self) -> Any:
        """The screen, made when it is first needed; None where the plain way is as fast or the only one."""
        policy = self.policy
        screens = policy.start and isinstance(policy.oracle, Default | Greedy)
        return new_screen(policy.index, self.problem, self.tally) if screens else None

    @property
    def only_sums(self) -> bool:
        return self.screen is None

    def note(self, feedback: Feedback, weight: float) -> None:
        if (screen := vars(self).get("screen")) is not None:
            screen.observe(feedback.action)

    def on(self, problem: Problem) -> Self:
        part = super().on(problem)
        vars(part).pop("screen", None)
        return part


class IndexPolicy(Policy[IndexMemory]):
    r"""Score every entry, then maximise: BC-UCB, CUCB, KL-UCB, CTS and their kin.

    While an arm has no pull, play a batch that contains one, unless ``start`` is False. Otherwise

    .. math:: q_{ij}(t) = score(\hat p_{ij}(t-1), \hat V_{ij}(t-1), N_j(t-1), t), \qquad A_t = Oracle(q(t))

    Implements [MerlisMannor2019]_ (Algorithm 1), for any index and oracle. An entry that was never seen, though its arm
    was pulled, scores 1, and so does an arm that was never observed: without ``start`` it is not played for its own
    sake, as [WangChen2017]_ (Algorithm 1) for triggered arms. An index with a prior draws such entries from it.

    Parameters
    ----------
    index
        The rule that scores entries.
    oracle
        The algorithm that finds a batch for the scores.
    rounding
        How outcomes are recorded: ``exact``, or as a ``coin`` flip with that bias.
    start
        Whether every arm is played before the index decides.

    Examples
    --------
    >>> IndexPolicy(KL(rho=2.0))
    IndexPolicy(index=KL(rho=2, c=3), oracle=Default(), rounding='exact', start=True)
    """

    index: Index
    oracle: Oracle = Default()
    rounding: str = "exact"
    start: bool = True
    remembers = IndexMemory
    random = fact_of("index", "random")
    cascade = fact_of("oracle", "cascade")

    def check(self) -> None:
        self.require_family("index", Index, "Bernstein()")
        self.require_family("oracle", Oracle, "Greedy()")
        self.require("rounding", self.rounding in ("exact", "coin"), "give 'exact' or 'coin'")

    @property
    def any_outcome(self) -> bool:  # type: ignore[override]
        return bool(self.index.any_outcome and self.rounding == "exact")

    @property
    def consistent(self) -> Any:  # type: ignore[override]
        return self.index.consistent

    @property
    def caveat(self) -> str:  # type: ignore[override]
        return self.index.caveat

    def validate(self, problem: Problem) -> None:
        self.oracle.validate(problem)
        sums = problem.reward.modular and self.oracle.guarantee(problem).alpha == 1.0
        if self.index.unclipped and not (self.oracle.ranking or sums):
            remedy = "take one that only ranks arms, as TopArms() does, or an exact one for a reward that adds up"
            raise InvalidArgument("oracle", "the index lies above 1", remedy)

    def scores(self, problem: Problem, view: View) -> Floats:
        """The scores of every entry."""
        tally, share = view.tally, problem.k / problem.n_arms
        counts, unknown = tally.counts(view.counts), tally.unknown()
        known = counts if unknown is None else np.where(unknown, 0.0 if self.index.prior else 1.0, counts)
        chance = Chance(view.keys, view.t, problem.support)
        level = self.index.level(known, view.t, share)
        mean, deviation = tally.mean, tally.deviation
        if len(view) > len(mean):  # one tally for many views, whose counts differ
            mean, deviation = (np.repeat(part, len(view), 0) for part in (mean, deviation))
        q: Any = self.index.score(mean, deviation, level, chance)
        return q if unknown is None or self.index.prior else np.where(unknown, self.index.unknown, q)

    def choose(self, problem: Problem, view: View, memory: IndexMemory) -> Ints:
        def choose() -> Ints:
            screen = memory.screen
            if screen is not None and screen.suits(view):
                return screen.choose(view)
            scores, support = self.scores(problem, view), problem.support
            require_scores(scores, None if isinstance(support, Dense) else support.arm_of)
            return self.oracle.maximize(problem, scores, view)

        return try_every_arm(problem, view, choose) if self.start else choose()

    def estimates(self, problem: Problem, view: View, memory: IndexMemory) -> tuple[Floats, Floats]:
        return view.tally.mean, self.scores(problem, view)

    def fused(self, problem: Problem, environment: "Environment") -> int | None:
        types = (type(problem.reward), type(problem.actions), type(environment))
        plain = self.start and isinstance(self.oracle, Default | Greedy) and isinstance(problem.support, Dense)
        known = plain and types == (Coverage, Subsets, Bernoulli) and type(self.index) in (Bernstein, KL)
        return self.index.kind if known else None

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)
