"""Environments with contexts: in every round a user comes, whose features change the means."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from superarm.context.context import Contexts
from superarm.context.design import arm_major
from superarm.context.frames import Frame
from superarm.core import streams
from superarm.core.arrays import Floats, Ints, floats, probabilities
from superarm.core.errors import InvalidArgument
from superarm.environments.base import Answer, Environment
from superarm.oracles.base import solve
from superarm.oracles.default import Default
from superarm.problem import Problem

_CONTEXT_INDEX = 1 << 40
"""The index of the random number that picks the context of a round; no arm has it."""


class ContextTable(Environment):
    """A table of contexts, each with its means; every round one of them comes, and outcomes are binary.

    Use :func:`context_table` to make one for a given problem. What a run counts as the reward of a round is less by how
    much the best batch of its context is worth more than that of an average context: regret against the average is then
    regret against the best batch for each context.

    Parameters
    ----------
    vectors
        The user's vector of each context, as the model of the problem takes it, (n, d); of length 0 for segments.
    segments
        The segment of each context, (n,).
    p
        The true parameters in each context, arm after arm, (n, n_entries).
    best_worth
        What the batch of the default oracle is worth in each context, (n,).
    replay
        Whether contexts come in the order of the table, over and over, as those of a log; at random otherwise.
    cascade
        Whether a batch is a list that is read up to the first 1: what comes below it is not seen.
    """

    vectors: Any
    segments: Any
    p: Any
    best_worth: Any
    replay: bool = False
    cascade: bool = False

    def check(self) -> None:
        self.convert("vectors", floats(self.vectors, "vectors", low=-np.inf, high=np.inf))
        self.convert("segments", np.array(self.segments, np.int64))
        self.convert("p", probabilities(self.p, "p"))
        self.convert("best_worth", floats(self.best_worth, "best_worth", low=-np.inf, high=np.inf))
        lengths = {len(part) for part in (self.vectors, self.segments, self.p, self.best_worth)}
        if len(lengths) > 1 or not len(self.p):
            raise InvalidArgument("vectors", f"lengths {sorted(lengths)}", "give one row per context", "ContextTable")

    @property
    def partial(self) -> bool:  # type: ignore[override]
        return self.cascade

    @property
    def n_contexts(self) -> int:  # type: ignore[override]
        return len(self.p)

    def rows(self, t: int, keys: Any) -> Ints:
        """The row of the context of round ``t`` in each replication, (R,)."""
        if self.replay:
            return np.full(len(keys), (t - 1) % len(self.p))
        u = streams.uniform(keys, t, np.array([_CONTEXT_INDEX]))[:, 0, 0]
        return np.minimum(len(self.p) - 1, (u * len(self.p)).astype(np.int64))

    def contexts(self, problem: Problem, t: int, keys: Any) -> Contexts:
        rows = self.rows(t, keys)
        pairs = np.zeros((len(rows), problem.n_arms, 0))
        return Contexts(self.segments[rows], self.vectors[rows], pairs, np.full(len(rows), t))

    def table(self, problem: Problem) -> Floats:
        """The parameters of every context as entries, one after the other; they are converted once."""
        kept = self.__dict__.setdefault("_entries", {})
        if "table" not in kept:
            kept["table"] = arm_major(problem.support, self.p)
        return kept["table"]

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        support = problem.support
        chances = support.rows(self.table(problem)[self.rows(t, keys)], action)
        x = streams.coins(keys, t, action, np.where((action >= 0)[:, :, None], chances, 0.0))
        if not self.cascade:
            return Answer(x)
        read = support.rows_to_items(x, action)
        return Answer(x, support.items_to_rows(np.cumsum(read, 1) - read == 0.0, action))

    def means(self, problem: Problem, t: int) -> Floats:
        table = self.table(problem)
        row = (t - 1) % len(table)
        return table[row : row + 1] if self.replay else table.mean(0, keepdims=True)

    def worth(self, problem: Problem, action: Ints, t: int, keys: Any) -> Floats:
        rows = self.rows(t, keys)
        value = problem.values(self.table(problem)[rows], action)
        return value - (self.best_worth[rows] - self.best_worth.mean())

    def best(self, problem: Problem) -> tuple[float, float]:
        """The average over contexts of what the default oracle finds; it need not be the very best."""
        return float(self.best_worth.mean()), float(self.best_worth.mean())


def context_table(
    problem: Problem, contexts: Sequence[Any], p: Any, replay: bool = False, cascade: bool = False
) -> ContextTable:
    """The environment in which these contexts come, with the parameters ``p`` of each, (n_contexts, n_arms, n_items).

    Parameters
    ----------
    problem
        A problem with a context.
    contexts
        Contexts as ``Agent.ask`` takes them, without standardised features.
    p
        The true parameters of each context.
    replay, cascade
        As in :class:`ContextTable`.

    Examples
    --------
    >>> from superarm.actions import Subsets
    >>> from superarm.context import Context, Features
    >>> from superarm.problem import Problem
    >>> from superarm.rewards import Coverage
    >>> declared = Context(Features(categorical={"country": ["NO", "SE"]}))
    >>> problem = Problem(3, 1, Coverage(), Subsets(1), context=declared)
    >>> p = [[[0.1], [0.2], [0.3]], [[0.3], [0.2], [0.1]]]
    >>> context_table(problem, [{"country": "NO"}, {"country": "SE"}], p).best_worth.tolist()
    [0.3, 0.3]
    """
    declared = problem.context
    if declared is None:
        raise InvalidArgument("problem", "it has no context", "give Problem(…, context=Context(…))")
    if declared.features.standardised or declared.pairs:
        wrong = "it has features of pairs, or numeric ones without a range"
        raise InvalidArgument("problem", wrong, "simulate with features of users that have ranges")
    encoded = [declared.encode(given, Frame(), problem.n_arms) for given in contexts]
    best = [problem.value(one, solve(problem, one, Default())) - problem.floor for one in p]
    flat = np.array([np.ravel(problem.support.to_user(problem.entries(one)[0])) for one in p])
    x, segments = np.array([one.x for one in encoded]), np.array([one.segment for one in encoded])
    return ContextTable(x, segments, flat, np.array(best), replay, cascade)
