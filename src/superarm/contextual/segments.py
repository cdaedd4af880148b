"""Any policy on the tally of the user's segment."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.actions.base import take_rows
from superarm.context.context import Contexts
from superarm.context.models import Segments
from superarm.contextual.base import ContextPolicy
from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.streams import round_keys
from superarm.core.tally import Feedback, Tally, View
from superarm.oracles.base import Guarantee
from superarm.policies.base import Policy

if TYPE_CHECKING:
    from superarm.core.problem import Problem


class SegmentMemory:
    """What is known beside the tally: the sums over all segments, and a memory for each of its ``rows``.

    There are sums if segments are pooled, and rows if the policy keeps a memory of its own.
    """

    def __init__(self, sums: Tally | None, rows: list[Any]) -> None:
        self.sums, self.rows = sums, rows


class SegmentPolicy(ContextPolicy):
    r"""Any policy on segments: it chooses from the tally of the user's segment.

    The tally has one row for every replication and segment, those of a replication one after the other. With
    ``pooling`` c > 0 the tally of segment s is

    .. math:: N_j = N_j^{(s)} + f_j N_j^{(-s)}, \qquad \sum X_{ij} = \sum X_{ij}^{(s)} + f_j \sum X_{ij}^{(-s)},
              \qquad f_j = \min\{1, c / N_j^{(-s)}\}

    where (-s) are all other segments together: what they observed counts as at most c pulls of an arm. Partial pooling
    after [EfronMorris1975]_, with a strength that is given, not estimated.
    """

    policy: Policy
    pooling: float = 0.0
    learns = Segments

    def check(self) -> None:
        self.require_family("policy", Policy, "kl_ucb()")
        self.require("pooling", self.pooling >= 0.0, "give a number >= 0")

    @property
    def rounding(self) -> str:  # type: ignore[override]
        """How the policy on the segment records outcomes."""
        return self.policy.rounding

    @property
    def own_memory(self) -> bool:
        return self.policy.own_memory

    @property
    def caveat(self) -> str:  # type: ignore[override]
        pooled = "it is biased towards what other segments prefer while a segment has few observations"
        own = self.policy.caveat
        return own if not self.pooling else f"{own}; {pooled}" if own else pooled

    def validate(self, problem: "Problem") -> None:
        super().validate(problem)
        self.policy.validate(problem)
        moments = self.policy.new_tally(problem, 1).moments
        if moments is not None and not hasattr(moments, "take"):
            wrong = f"{type(self.policy).__name__} needs moments of items, which segments do not keep"
            raise InvalidArgument("policy", wrong, "take an index policy, e.g. kl_ucb()")

    def new_tally(self, problem: "Problem", replications: int, partial: bool = False) -> Tally:
        return self.policy.new_tally(problem, replications * problem.context.n_segments, partial)

    def prepare(self, problem: "Problem", tally: Tally) -> Any:
        """None where nothing is pooled and the policy keeps no memory of its own."""
        if not (self.pooling or self.own_memory):
            return None
        sums, n, rows = None, problem.context.n_segments, []
        if self.pooling:
            sums = tally.take(slice(0, None, n)).like()
            for segment in range(n):
                sums.add(tally.take(slice(segment, None, n)))
        if self.own_memory:
            tally.allow_missing()  # so that parts of it share its arrays from now on
            rows = [self.policy.prepare(problem, tally.take(slice(r, r + 1))) for r in range(len(tally))]
        return SegmentMemory(sums, rows)

    def choose(self, problem: "Problem", view: View, memory: Any) -> Ints:
        out = np.full((len(view), problem.k), -1)
        rows = segment_rows(problem, view.context, view.tally)
        for some, own in self.views(problem, view, memory):
            if not self.own_memory:
                out[some] = self.policy.choose(problem, own, self.policy.prepare(problem, own.tally))
                continue
            for n, r in enumerate(some):
                one = replace(take_rows(own, [n % len(own.pinned)]), tally=own.tally.take(slice(n, n + 1)))
                out[r] = self.policy.choose(problem, one, memory.rows[rows[r]])[0]
        return out

    def views(self, problem: "Problem", view: View, memory: Any) -> Iterator[tuple[Ints, View]]:
        """What the policy of the segments sees: views of those replications that have the same time.

        The time is how many decisions the segment had. Random numbers are those of the round.
        """
        rows, given = segment_rows(problem, view.context, view.tally), view.context
        keys = round_keys(view.keys, view.t)
        for t in np.unique(given.t):
            some = np.flatnonzero(given.t == t)
            at = slice(rows[some[0]], rows[some[0]] + 1) if len(some) == 1 else rows[some]
            own, counts = view.tally.take(at), view.counts[some]
            if self.pooling:
                waiting = counts - own.pulls
                sums = memory.sums.take(some if len(memory.sums) > 1 else np.zeros(len(some), int))
                own = _pool(own, sums, self.pooling)
                counts = own.pulls + waiting
            pinned = view.pinned[some] if len(view.pinned) > 1 else view.pinned
            yield some, View(int(t), own, keys[some], counts, view.eligible[some], pinned)

    def learn(self, problem: "Problem", tally: Tally, memory: Any, feedback: Feedback, sign: float = 1.0) -> None:
        rows = segment_rows(problem, feedback.context, tally)
        if feedback.seen is not None and not feedback.seen.all():
            tally.allow_missing()
        if self.own_memory and feedback.in_moments:
            self._learn_by_row(problem, tally, memory, feedback, sign)
        else:
            at = slice(rows[0], rows[0] + 1) if len(rows) == 1 else rows
            own = tally.take(at)
            own.record(feedback, sign)
            tally.put(at, own)
        if self.pooling:
            memory.sums.record(feedback, sign)

    def _learn_by_row(self, problem: "Problem", tally: Tally, memory: Any, feedback: Feedback, sign: float) -> None:
        for r, row in enumerate(segment_rows(problem, feedback.context, tally).tolist()):
            own, at = tally.take(slice(row, row + 1)), slice(r, r + 1)
            one = replace(feedback, action=feedback.action[at], outcome=feedback.outcome[at], context=None)
            one.seen = None if feedback.seen is None else feedback.seen[at]
            one.share = None if feedback.share is None else feedback.share[at]
            self.policy.learn(problem, own, memory.rows[row], one, sign)
            tally.put(slice(row, row + 1), own)

    def refit(self, problem: "Problem", memory: Any, t: int) -> None:
        for row in memory.rows if self.own_memory else ():
            self.policy.refit(problem, row, t)

    def keep(self, memory: Any, before: Any) -> Any:
        if self.own_memory:
            memory.rows = before.rows
        return memory

    def save_state(self, memory: Any) -> dict[str, Any] | None:
        """What the policy keeps of each row; None if that is nothing."""
        states = [self.policy.save_state(row) for row in memory.rows] if self.own_memory else []
        return {"segments": states} if any(state is not None for state in states) else None

    def restore_state(self, memory: Any, held: dict[str, Any]) -> None:
        for row, state in zip(memory.rows, held["segments"], strict=True) if "segments" in held else ():
            if state is not None:
                self.policy.restore_state(row, state)

    def estimates(self, problem: "Problem", view: View, memory: Any) -> tuple[Floats, Floats]:
        """Those of the policy on the segment, of one decision."""
        policy: Any = self.policy
        ((_, own),) = self.views(problem, view, memory)
        if hasattr(policy, "estimates"):
            row = segment_rows(problem, view.context, view.tally)[0]
            inner = memory.rows[row] if self.own_memory else policy.prepare(problem, own.tally)
            return policy.estimates(problem, own, inner)  # type: ignore[no-any-return]
        if hasattr(policy, "scores"):
            return own.tally.mean, policy.scores(problem, own)
        return super().estimates(problem, view, memory)

    def guarantee(self, problem: "Problem") -> Guarantee:
        return self.policy.guarantee(problem)


def segment_rows(problem: "Problem", given: Contexts, tally: Tally) -> Ints:
    """The row of each replication's segment in a tally of all segments, (R,); the tally may be that of one."""
    n = problem.context.n_segments
    first = np.arange(len(given.segment)) * n if len(tally) > n else 0
    return given.segment + first


def _pool(own: Tally, sums: Tally, strength: float) -> Tally:
    """The tally of segments, with the others counted as at most ``strength`` pulls per arm."""
    others = sums.pulls - own.pulls
    share = np.where(others > 0.0, np.minimum(1.0, strength / np.maximum(others, 1.0)), 0.0)
    by_entry, pooled = own.support.by_arm(share), own.take(slice(None))
    pooled.pulls = own.pulls + share * others
    pooled.total = own.total + by_entry * (sums.total - own.total)
    pooled.square = own.square + by_entry * (sums.square - own.square)
    if sums.partial:
        missed = own.missed if own.partial else np.zeros_like(own.total)
        pooled.missed = missed + by_entry * (sums.missed - missed)
    pooled.refresh()
    return pooled


class PooledSegments(SegmentPolicy):
    """Pooled Thompson sampling on segments: the entries of all segments are those of one model.

    An arm has one effect for all segments, and every segment its own lift and its own effects of entries. How much one
    segment says about another is estimated, so the ``pooling`` of the problem's model is not used. ``policy`` is
    ``pooled_thompson()``, or a wrapper of it.
    """

    policy: Any
    own_memory = False

    def check(self) -> None:
        super().check()
        self.require("policy", bool(self.policy.shares_segments), "give pooled_thompson()")

    def prepare(self, problem: "Problem", tally: Tally) -> Any:
        memory = self.policy.prepare(problem, tally)
        memory.n_segments = problem.context.n_segments
        return memory

    def choose(self, problem: "Problem", view: View, memory: Any) -> Ints:
        return self.policy.choose(problem, view, memory)

    def learn(self, problem: "Problem", tally: Tally, memory: Any, feedback: Feedback, sign: float = 1.0) -> None:
        super().learn(problem, tally, None, feedback, sign)

    def refit(self, problem: "Problem", memory: Any, t: int) -> None:
        self.policy.refit(problem, memory, t)

    def estimates(self, problem: "Problem", view: View, memory: Any) -> tuple[Floats, Floats]:
        return self.policy.estimates(problem, view, memory)

    def save_state(self, memory: Any) -> dict[str, Any] | None:
        return self.policy.save_state(memory)

    def restore_state(self, memory: Any, held: dict[str, Any]) -> None:
        self.policy.restore_state(memory, held)
