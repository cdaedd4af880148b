"""Any policy on the tally of the user's segment."""

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from superarm.context.context import Contexts
from superarm.context.features import Features
from superarm.context.models import Segments
from superarm.contextual.base import ContextPolicy
from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.streams import round_keys
from superarm.core.tally import Feedback, Tally, View
from superarm.oracles.base import Guarantee
from superarm.policies.base import Policy, choose_batches, fact_of
from superarm.policies.memory import NEVER, Arrays, Memory, SplitMemory, new_rows, one_or_many, segment_rows
from superarm.problem import Problem


class SegmentMemory(Memory):
    """A memory of all segments: ``inner`` is one of the policy, of whose rows a decision takes that of its segment.

    The policy sees the problem of one segment.
    """

    divisible = False

    def __init__(self, policy: Any, problem: Problem, replications: int = 1, partial: bool = False) -> None:
        self.policy, self.problem, self.n_segments = policy, problem, problem.context.n_segments
        self.inner = new_rows(policy.policy, of_one_segment(problem), replications * self.n_segments, partial)
        self._sums: Tally | None = None

    @property
    def tally(self) -> Tally:  # type: ignore[override]
        """The sums of all segments."""
        return self.inner.tally

    @property
    def begun(self) -> int:  # type: ignore[override]
        """That of the policy's memory."""
        return self.inner.begun

    def rows(self, given: Contexts) -> Ints:
        """The row of each replication's segment, (R,)."""
        return segment_rows(given, self.n_segments, len(self))

    def sums(self) -> Tally:
        """The sums over the segments of each replication."""
        if self._sums is None:
            self._sums = self.tally.take(slice(0, None, self.n_segments)).like()
            for segment in range(self.n_segments):
                self._sums.add(self.tally.take(slice(segment, None, self.n_segments)))
        return self._sums

    def _changed(self, inner: Memory) -> None:
        """Other sums are there, in a memory that others do not share."""
        self.inner, self._sums = inner, None

    def adopt(self, tally: Tally) -> None:
        self._changed(copy(self.inner))
        self.inner.adopt(tally)

    def refill(self, sums: Tally) -> None:
        self._changed(copy(self.inner))
        self.inner.refill(sums)

    def learn(self, feedback: Feedback, weight: float = 1.0) -> None:
        if feedback.seen is not None and not feedback.seen.all():
            self.tally.allow_missing()
        rows = one_or_many(self.rows(feedback.context))
        own = self.inner.take(rows)
        own.learn(replace(feedback, context=None), weight)
        self.inner.put(rows, own)
        if self._sums is not None:
            self._sums.record(feedback, weight)

    def warm(self, past: Tally, t: int, weight: float = 1.0) -> None:
        self.inner.warm(past, t, weight)
        self._sums = None

    def inherit(self, old: Memory, t: int) -> None:
        self.inner.inherit(old.inner if isinstance(old, SegmentMemory) else old, t)
        self._sums = None

    @property
    def due(self) -> int:  # type: ignore[override]
        """That of the policy's memory."""
        return self.inner.due

    def plan(self, t: int, within: int = NEVER) -> Arrays | None:
        return self.inner.plan(t, within)

    def accept(self, plan: Arrays) -> None:
        self.inner.accept(plan)

    def on(self, problem: Problem) -> Self:
        part = super().on(problem)
        part.inner = self.inner.on(of_one_segment(problem))
        return part

    def grown(self, problem: Problem, t: int) -> Self:
        new = copy(self)
        new.problem = problem
        new._changed(self.inner.grown(of_one_segment(problem), t))
        return new

    def beside(self) -> Arrays:
        return self.inner.beside()

    def take_beside(self, arrays: Mapping[str, Any]) -> None:
        self.inner.take_beside(arrays)


class SegmentPolicy(ContextPolicy[SegmentMemory]):
    r"""Any policy on segments: it chooses from the tally of the user's segment.

    The tally has one row for every replication and segment, those of a replication one after the other. With
    ``pooling`` c > 0 the tally of segment s is

    .. math:: N_j = N_j^{(s)} + f_j N_j^{(-s)}, \qquad \sum X_{ij} = \sum X_{ij}^{(s)} + f_j \sum X_{ij}^{(-s)},
              \qquad f_j = \min\{1, c / N_j^{(-s)}\}

    where (-s) are all other segments together: what they observed counts as at most c pulls of an arm. Partial pooling
    after [EfronMorris1975]_, with a strength that is given, not estimated.
    """

    policy: Policy[Any]
    pooling: float = 0.0
    learns = Segments
    remembers = SegmentMemory
    rounding = fact_of("policy", "rounding")
    random = fact_of("policy", "random")
    whole_batches = fact_of("policy", "whole_batches")
    cascade = fact_of("policy", "cascade")

    def check(self) -> None:
        self.require_family("policy", Policy, "kl_ucb()")
        self.require("pooling", self.pooling >= 0.0, "give a number >= 0")

    @property
    def caveat(self) -> str:  # type: ignore[override]
        pooled = "it is biased towards what other segments prefer while a segment has few observations"
        own = self.policy.caveat
        return own if not self.pooling else f"{own}; {pooled}" if own else pooled

    def validate(self, problem: Problem) -> None:
        super().validate(problem)
        if self.policy.counts_decisions:
            wrong = f"{self.policy!r} keeps one account of all decisions"
            raise InvalidArgument("policy", wrong, "leave out the context, or have one problem for each segment")
        self.policy.validate(problem)

    def choose(self, problem: Problem, view: View, memory: SegmentMemory) -> Ints:
        out = np.full((len(view), problem.k), -1)
        for some, own, part in self.views(view, memory):
            out[some] = choose_batches(self.policy, part.problem, own, part)
        return out

    def views(self, view: View, memory: SegmentMemory) -> Iterator[tuple[Ints, View, Memory]]:
        """What the policy of the segments sees and knows: of the replications of the same time, or one by one.

        The time is how many decisions the segment had. Random numbers are those of the round.
        """
        rows, given, keys = memory.rows(view.context), view.context, round_keys(view.keys, view.t)
        apart = isinstance(memory.inner, SplitMemory)
        for t in np.unique(given.t):
            same = np.flatnonzero(given.t == t)
            for some in same[:, None] if apart else [same]:
                part = memory.inner.take(one_or_many(rows[some]))
                part = part.parts[0] if isinstance(part, SplitMemory) else part
                counts = view.counts[some]
                if self.pooling:
                    waiting, sums, part = counts - part.tally.pulls, memory.sums(), copy(part)
                    sums = sums.take(some if len(sums) > 1 else np.zeros(len(some), int))
                    part.adopt(_pool(part.tally, sums, self.pooling))
                    counts = part.tally.pulls + waiting
                pinned = view.pinned[some] if len(view.pinned) > 1 else view.pinned
                yield some, View(int(t), part.tally, keys[some], counts, view.eligible[some], pinned), part

    def estimates(self, problem: Problem, view: View, memory: SegmentMemory) -> tuple[Floats, Floats]:
        """Those of the policy on the segment, of one decision."""
        ((_, own, part),) = self.views(view, memory)
        return self.policy.estimates(part.problem, own, part)

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.policy.guarantee(problem)


def of_one_segment(problem: Problem) -> Problem:
    """The problem of one segment alone: its context has the features of arms, if there are some; made once."""
    made: Problem | None = problem.__dict__.get("_one_segment")
    if made is None:
        context = (
            replace(problem.context, features=Features(), model=Segments()) if problem.context.arms.shape[1] else None
        )
        made = problem.__dict__["_one_segment"] = problem.changed(context=context)
    return made


def _pool(own: Tally, sums: Tally, strength: float) -> Tally:
    """The tally of segments, with the others counted as at most ``strength`` pulls per arm."""
    others = sums.pulls - own.pulls
    share = np.where(others > 0.0, np.minimum(1.0, strength / np.maximum(others, 1.0)), 0.0)
    by_entry, pooled = own.support.by_arm(share), own.take(np.arange(len(own)))
    if sums.partial:
        pooled.allow_missing()
    for name, part in (("pulls", share), ("total", by_entry), ("square", by_entry), ("missed", by_entry)):
        if getattr(sums, name).size:
            mine: Any = getattr(pooled, name)
            mine += part * (getattr(sums, name) - mine)
    pooled.refresh()
    return pooled
