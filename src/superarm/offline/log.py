"""Log: rounds that were played by some policy, with their slates, outcomes and propensities."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.tally import Feedback, Tally
from superarm.decisions.names import Names
from superarm.offline.estimators.slates import entry_numbers, gains_of_rows, value_each_slate
from superarm.problem import Problem

if TYPE_CHECKING:
    from superarm.offline.assumption import AssumptionTest
    from superarm.offline.check import LogCheck
    from superarm.offline.learning import Recommendation
    from superarm.offline.result import PolicyValue
    from superarm.offline.value import LogComparison


class LogRows(NamedTuple):
    """The arms of all rounds, one row per arm that was shown or observed, ordered by round and slot.

    Parameters
    ----------
    round, slot, arm
        The round and the slot, from 0 (-1 for an observed arm outside of it), and the arm, (n_rows,).
    outcome, seen
        The outcome of each item and whether it was observed, (n_rows, n_items).
    prefix
        The probability with which the slate began as it did, up to and with this slot, (n_rows,); NaN if unknown.
    position_propensity
        The probability of this arm in this slot, whatever the other slots hold, (n_rows,); NaN if unknown.
    inclusion
        The probability that the slate contains this arm, in any slot, (n_rows,); NaN if unknown.
    """

    round: Ints
    slot: Ints
    arm: Ints
    outcome: Floats
    seen: Bools
    prefix: Floats
    position_propensity: Floats
    inclusion: Floats


def keep_rounds(rows: LogRows, kept: Bools) -> LogRows:
    """The rows of the rounds of a mask (n_rounds,), with these rounds numbered from 0."""
    own = LogRows._make(part[kept[rows.round]] for part in rows)
    return own._replace(round=(np.cumsum(kept) - 1)[own.round])


@dataclass(frozen=True, eq=False)
class Log:
    """What was shown in each round and what came of it, in the order of time.

    Make one with :meth:`read`, :meth:`from_arrays`, :meth:`from_frame` or :meth:`from_obp`.

    Parameters
    ----------
    problem
        Arms, items, reward and action set.
    rows
        One row per arm of a round.
    groups
        The group of each round, (n,): the segment or the context that was known before the slate was chosen. All 0
        if there are none.
    group_names, arms, items
        Names.
    deterministic
        Whether the slate of a round was chosen without chance, (n,).

    Examples
    --------
    >>> from superarm import offline
    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> from superarm.rewards import Coverage
    >>> problem = Problem(n_arms=4, n_items=1, reward=Coverage(), actions=Subsets(2))
    >>> slates = [[0, 1], [2, 3], [0, 2], [1, 3], [0, 3]]
    >>> clicks = [[1, 0], [0, 0], [1, 1], [0, 0], [0, 0]]
    >>> log = offline.Log.from_arrays(problem, slates, clicks)
    >>> log
    Log(5 rounds, 4 arms, 1 item, slates of 2)
    >>> log.rewards
    array([1., 0., 1., 0., 0.])
    """

    problem: Problem
    rows: LogRows
    groups: Ints
    group_names: tuple[str, ...]
    arms: tuple[str, ...]
    items: tuple[str, ...]
    deterministic: Bools

    def __repr__(self) -> str:
        sizes = np.bincount(self.rows.round[self.rows.slot >= 0], minlength=self.n_rounds)
        low, high = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
        parts = [
            f"{self.n_rounds} rounds",
            f"{self.problem.n_arms} arms",
            f"{self.problem.n_items} item{'s' if self.problem.n_items > 1 else ''}",
            f"slates of {low}" if low == high else f"slates of {low} to {high}",
        ]
        parts += [f"{self.n_groups} groups"] if self.n_groups > 1 else []
        return f"Log({', '.join(parts)})"

    @property
    def n_rounds(self) -> int:
        """How many rounds there are."""
        return len(self.groups)

    @property
    def n_groups(self) -> int:
        """How many groups of rounds there are; 1 if rounds have no group."""
        return len(self.group_names)

    @cached_property
    def slates(self) -> Ints:
        """The slate of each round, (n, k), the longest slate's width; -1 where a slate is shorter."""
        own = self.rows.slot >= 0
        slates = np.full((self.n_rounds, 1 + int(self.rows.slot.max(initial=0))), -1)
        slates[self.rows.round[own], self.rows.slot[own]] = self.rows.arm[own]
        return slates

    @cached_property
    def entries(self) -> Ints:
        """The entry (the parameter's number) of each row and item, (n_rows, n_items); -1 outside of the support."""
        return entry_numbers(self.problem, self.rows.arm)

    @cached_property
    def observed(self) -> Bools:
        """Which outcomes were observed, (n_rows, n_items): seen, and in the support."""
        return np.asarray(self.rows.seen & (self.entries >= 0))

    @cached_property
    def slot_rewards(self) -> Floats:
        """What each row's outcomes added to the reward of the slots before it, (n_rows,); 0 outside of the slate."""
        return gains_of_rows(self.problem, self.rows)

    @cached_property
    def rewards(self) -> Floats:
        """The realised reward r(A; X) of each round, (n,); NaN where an outcome of the slate was not seen."""
        own = self.rows.slot >= 0
        total = np.bincount(self.rows.round[own], self.slot_rewards[own], self.n_rounds) + self.reward_of_nothing
        missing = own & ~(self.rows.seen | (self.entries < 0)).all(axis=1)
        total[self.rows.round[missing]] = np.nan
        return np.asarray(total)

    @cached_property
    def reward_of_nothing(self) -> float:
        """What an empty slate is worth: 0 for most rewards."""
        return float(value_each_slate(self.problem, np.zeros(self.problem.n_entries), np.full((1, 1), -1))[0])

    @cached_property
    def tally(self) -> Tally:
        """The statistics of all observations; ``Agent(problem, policy, tally=log.tally)`` is a warm start."""
        tally = Tally(self.problem.support, 1, not self.observed.all())
        tally.record(self.feedback(slice(None), 0))
        return tally

    def feedback(self, some: Any, t: int) -> Feedback:
        """What was observed in ``some`` rows, as if it were the one round ``t``: as policies take it."""
        arm, support = self.rows.arm[some][None], self.problem.support
        seen, outcome = self.rows.seen[some][None], self.rows.outcome[some][None]
        outcome, seen = (support.items_to_rows(part, arm) for part in (np.where(seen, outcome, 0.0), seen))
        return Feedback(t, arm, np.ascontiguousarray(outcome), np.ascontiguousarray(seen))

    def of_group(self, name: str) -> "Log":
        """The rounds of one group, as a log of its own."""
        kept = self.groups == Names(list(self.group_names), "groups").numbers([name])[0]
        groups, certain = np.zeros(int(kept.sum()), np.int64), self.deterministic[kept]
        return replace(
            self, rows=keep_rounds(self.rows, kept), groups=groups, group_names=(name,), deterministic=certain
        )

    def numbers(self, arms: Any) -> Ints:
        """The numbers of arms that are given by name or by number."""
        return Names(list(self.arms), "arms").numbers(arms)

    @classmethod
    def read(cls, path: str | Path, **described: Any) -> "Log":
        """Read a .parquet, .csv or .jsonl file: an export of the service, or a table with the same columns.

        Parameters
        ----------
        path
            The file. Columns: ``decision`` (or ``slate_id``), ``position``, ``arm`` (or ``item_id``), ``item``,
            ``click`` (or ``reward``), and where known ``propensity_score``, ``inclusion``, ``group``, ``t``.
        described
            ``problem`` (a :class:`Problem`), or what it is made from: ``reward``, ``weights``, ``k``. A Parquet file
            that the service exported holds its problem. ``name`` is the problem to read where the file has several.

        Examples
        --------
        ``log = sa.offline.Log.read("log.parquet")``
        """
        from superarm.offline.formats.tables import log_from_columns, read_columns

        columns, stored = read_columns(Path(path))
        return log_from_columns(columns, stored, **described)

    @classmethod
    def from_frame(cls, frame: Any, **described: Any) -> "Log":
        """The log in a pandas data frame or an Arrow table; columns and arguments as for :meth:`read`."""
        from superarm.offline.formats.tables import frame_columns, log_from_columns

        return log_from_columns(frame_columns(frame), None, **described)

    @classmethod
    def from_arrays(cls, problem: Problem, slates: Any, outcomes: Any, **known: Any) -> "Log":
        """The log of rounds with slates of one size.

        Parameters
        ----------
        problem
            Arms, items, reward and action set.
        slates, outcomes
            The arms of each round in their order, (n, k), and what came of them, (n, k, n_items) or, with one item,
            (n, k).
        known
            What is known besides: ``seen`` (in the shape of ``outcomes``); ``propensity`` (n, k), the probability of
            each slot's arm given the slots before it; ``position_propensity`` (n, k), that of the arm in the slot
            whatever the others hold; ``inclusion`` (n, k), that of the arm in any slot; ``groups`` (n,), labels;
            ``arms`` and ``items``, names. A single number is taken for all rounds and slots.
        """
        from superarm.offline.formats.arrays import log_from_arrays

        return log_from_arrays(problem, slates, outcomes, **known)

    @classmethod
    def from_obp(cls, feedback: dict[str, Any], **described: Any) -> "Log":
        """The log in the layout of Open Bandit Pipeline: a dict of flat arrays, one element per slot.

        ``action``, ``reward``, and where known ``slate_id``, ``position``, ``pscore``, ``pscore_cascade`` and
        ``pscore_item_position``. Without ``slate_id`` each row is a round with one arm. Other arguments as for
        :meth:`read`.
        """
        from superarm.offline.formats.arrays import log_from_obp

        return log_from_obp(feedback, **described)

    def to_obp(self) -> dict[str, Any]:
        """The log in the layout of Open Bandit Pipeline's slate estimators: a dict of flat arrays.

        ``reward`` is what a slot added to the slots before it, so that the rewards of a slate add up to r(A; X).
        """
        from superarm.offline.formats.arrays import log_to_obp

        return log_to_obp(self)

    def check(self) -> "LogCheck":
        """What the log holds and what can be concluded from it: coverage of arms, propensities, assumptions."""
        from superarm.offline.check import check_log

        return check_log(self)

    @cached_property
    def assumption_test(self) -> "AssumptionTest":
        """The test of the semi-bandit assumption: outcomes of an arm depend on neither slot nor slate-mates."""
        from superarm.offline.assumption import run_semi_bandit_test

        return run_semi_bandit_test(self)

    def value(
        self, target: Any, baseline: Any = "logged", method: str | None = None, delta: float = 0.05
    ) -> "PolicyValue":
        """What a slate or a policy is worth per round, with an interval, and how it differs from ``baseline``.

        Parameters
        ----------
        target, baseline
            A slate (arms by name or number); a dict from the name of a group to a slate; a policy, which means
            the slates that it would play next, having learnt from this log; or ``"logged"``, the slates of the log.
        method
            The name of an estimator, see :data:`superarm.offline.METHODS`; by default the one that suits the log.
        delta
            The interval holds with probability 1 - delta.

        Examples
        --------
        >>> from superarm import offline
        >>> from superarm.simulation import instances
        >>> log = offline.simulate_log(instances.random_coverage(6, 3, 2), "uniform", 2000)
        >>> found = log.value([0, 1])
        >>> found.low <= found.value <= found.high
        True
        """
        from superarm.offline.value import evaluate

        return evaluate(self, target, baseline, method, delta)

    def compare(
        self, targets: dict[str, Any], baseline: Any = "logged", method: str | None = None, delta: float = 0.05
    ) -> "LogComparison":
        """The values of several slates or policies: ``print`` it, or write a page with ``report(path)``."""
        from superarm.offline.value import compare_targets

        return compare_targets(self, targets, baseline, method, delta)

    def best(
        self, k: int | None = None, delta: float = 0.05, oracle: Any = None, eligible: Any = None
    ) -> "Recommendation":
        """The slate to ship: the best one at the lower ends of the intervals (pessimism; KL-CLCB).

        Parameters
        ----------
        k
            The size of the slate; by default the slates of the problem's action set.
        delta
            All intervals hold together with probability 1 - delta.
        oracle
            The algorithm that finds the slate; by default the one that suits the problem.
        eligible
            The arms to choose from, by name or number; all by default.
        """
        from superarm.offline.learning import recommend

        return recommend(self, k, delta, oracle, eligible)
