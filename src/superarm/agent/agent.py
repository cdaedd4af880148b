"""Agent: ask and tell around a policy."""

import copy
import functools
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import astuple, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from superarm.actions.base import Actions
from superarm.actions.knapsack import Knapsack
from superarm.agent.decisions import Decision, Decisions, MadeDecision, Record
from superarm.agent.explanations import Explanation, describe_agent, explain_decision, show_agent
from superarm.agent.growth import require_actions, with_room
from superarm.agent.learner import Learner
from superarm.agent.recommendation import recommend
from superarm.agent.scores import Claimed, Fractions, ScoreCounts, claim_of
from superarm.core.arrays import Floats, Ints, floats
from superarm.core.errors import ConflictingFeedback, InvalidArgument, UnknownDecision
from superarm.core.streams import Seed, run_keys, seed_sequence
from superarm.core.support import Dense
from superarm.core.tally import Tally
from superarm.core.totals import TotalTally, Worth
from superarm.decisions import (
    UNSEEN,
    ReadAnswer,
    Reader,
    Reported,
    advance_record,
    feedback,
    open_record,
    read_answer,
    unasked,
    without_effect,
)
from superarm.decisions.names import Given, Some, names_for
from superarm.judge import Judge, Judged
from superarm.output.labels import Labels, align, is_frame
from superarm.output.table import ResultTable
from superarm.policies.base import Policy
from superarm.policies.pooled import PooledThompson, pooled_thompson
from superarm.problem import Problem

if TYPE_CHECKING:
    from superarm import tables

F = TypeVar("F", bound=Callable[..., Any])


class Estimates(NamedTuple):
    """Mean and variance of every entry."""

    mean: Floats
    variance: Floats


def _in_turn(method: F) -> F:
    """A method of an agent that waits while another thread is inside of one."""

    @functools.wraps(method)
    def call(self: "Agent", *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return call  # type: ignore[return-value]


class Agent:
    """Hands out batches and learns from what each arm of a batch did.

    Several threads may use one agent: they take turns. Several processes may not: each would have an agent of its own.

    Parameters
    ----------
    problem, policy
        The problem to learn, and the policy that learns it; by default the one that ``recommend(problem)`` names.
    seed
        Root of the agent's randomness: an int, a ``SeedSequence``, or a ``Generator``, from which the root is drawn.
        By default the agent takes fresh entropy, so two agents differ; with an int it makes the same decisions again.
    tally
        Past data or a prior for a warm start: ``problem.past(…)``, ``problem.prior(…)``.
    arms, items
        Names: strings, or ints such as ids of a database; by default their numbers. Decisions hold names as strings.
        Where names were given as ints, an int means a name; elsewhere it means a number, counted from 0.
    remember
        How many decisions with feedback are remembered, to recognise repeated feedback.
    baseline
        What is shown today, as arms in the order of their ranks, by name or number: the policy starts from it, and
        learning costs a limited share of what it earns (``pooled_thompson``).
    silence
        The outcome that silence means, usually 0: what was handed out counts as this outcome at once, and what is told
        replaces it exactly. So clicks alone can be told, however late: ``tell(decision, clicks=[…])``. By default
        silence means nothing: pending pulls narrow the radius and change no mean.

    Examples
    --------
    >>> from superarm.actions import Subsets
    >>> from superarm.rewards import Coverage
    >>> problem = Problem(n_arms=5, n_items=3, reward=Coverage(), actions=Subsets(2))
    >>> agent = Agent(problem, seed=0)
    >>> decision = agent.ask()
    >>> decision.action
    array([3, 0])
    >>> agent.tell(decision, [[1, 0, 0], [0, 0, 1]])
    True
    """

    _warned = False
    """Whether the policy's warning was given."""

    def __init__(
        self,
        problem: Problem,
        policy: Policy[Any] | None = None,
        seed: Seed = None,
        *,
        tally: Tally | None = None,
        arms: Given | None = None,
        items: Given | None = None,
        remember: int = 100_000,
        baseline: Some | None = None,
        silence: float | None = None,
    ) -> None:
        self._lock = threading.RLock()
        self.silence = None if silence is None else float(floats(silence, "silence", low=0.0, high=1.0))
        if policy is None and isinstance(problem, Problem):
            policy = recommend(problem, listed=baseline is not None).policy
        if baseline is not None:
            policy = start_from(policy, names_for(arms, problem.n_arms, "arms").numbers(baseline))
        self.learner = Learner(problem, policy, arms, items)  # type: ignore[arg-type]  # which it checks
        _, self._choosing, self._rounding = run_keys([seed_sequence(seed)])
        self._decisions = Decisions(remember)
        self._paused: dict[str, datetime] = {}
        self._scores, self._fractions = ScoreCounts(), Fractions()
        if self.silence and problem.thresholds is not None:
            raise InvalidArgument("silence", f"{silence}, and scores are told", "give 0, the lowest score, or None")
        if tally is not None:
            self.warm_start(tally)

    @property
    def problem(self) -> Problem:
        """What is being learnt."""
        return self.learner.problem

    @property
    def policy(self) -> Policy[Any]:
        """How it is being learnt."""
        return self.learner.policy

    @property
    def tally(self) -> Tally:
        """All that was observed so far, with a leading axis of length 1, or of the number of segments."""
        return self.learner.tally

    @property
    def t(self) -> int:
        """How many decisions were made."""
        return self.learner.t

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms, retired ones included."""
        return tuple(self.learner.arms.all)

    @property
    def items(self) -> tuple[str, ...]:
        """The names of all items."""
        return tuple(self.learner.items.all)

    @property
    @_in_turn
    def pending(self) -> tuple[Decision, ...]:
        """The decisions that were not told their outcome yet, oldest first."""
        return tuple(record.asked.decision for record in self._decisions.pending.values())

    @property
    @_in_turn
    def claims(self) -> Claimed | None:
        """What sets claimed, and what their best scores were worth, on average; None before scores of one were told."""
        return self._scores.claims

    @property
    @_in_turn
    def clipped(self) -> float:
        """The share of scores that lie beyond the ends of the scale, and count as these."""
        return self._scores.beyond / max(self._scores.told, 1)

    @_in_turn
    def judged(self, judge: Judge) -> Judged:
        """What share of the decisions that were told is really solved, if a judge that errs said what passed.

        Of those that are remembered, and by their first item. It says which arms make the answers of sets worse.

        >>> from superarm.actions import Subsets
        >>> from superarm.rewards import Coverage
        >>> agent = Agent(Problem(2, 1, Coverage(), Subsets(2)), seed=0)
        >>> for _ in range(100):
        ...     _ = agent.tell(agent.ask(), [[1.0], [1.0]])
        >>> print(agent.judged(Judge(false_positive=0.1)))
        100.0% passed, 100.0% ± 0.0% are right, of 100 tasks
        """
        records = [record for record in self._decisions.told.values() if record.closed == "complete"]
        ladder = self.policy.cascade
        marks = np.full((len(records), self.problem.k if ladder else self.problem.n_arms), UNSEEN)
        for mine, record in zip(marks, records, strict=True):
            rows = [UNSEEN if not row else row[0] for row in record.rows]
            mine[np.arange(len(rows)) if ladder else list(record.action)] = rows
        seen = marks >= 0.0
        return judge.right(np.where(seen, marks, 0.0), seen, ladder=ladder, arms=() if ladder else self.arms)

    @_in_turn
    def estimates(self) -> Estimates:
        """Mean and variance of every entry, (n_arms, n_items), or flat if the support is sparse; NaN if never seen.

        With segments there is a leading axis for them. Where only totals are told, they are those of the effects of
        arms: by how much a total is larger, or smaller, than with the mean arm in its place.
        """
        known, to_user = self.tally.known_estimates(), self.problem.support.to_user
        mean, variance = (np.array([to_user(row) for row in entries]) for entries in known)
        return Estimates(mean[0], variance[0]) if len(mean) == 1 else Estimates(mean, variance)

    @_in_turn
    def table(self) -> ResultTable:
        """What is known, by names: one row per arm with its pulls and the mean of every item; ``to_pandas`` and others.

        With segments the means are over all of them. Where only totals are told, the effect of each arm has the place
        of means, with its standard deviation.
        """
        if self.problem.reward.totals:
            effect, variance = self.estimates()
            known = zip(self.arms, self.tally.pulls[0].tolist(), effect[:, 0], np.sqrt(variance[:, 0]), strict=True)
            return ResultTable(
                [{"arm": arm, "decisions": n, "effect": float(x), "sd": float(sd)} for arm, n, x, sd in known]
            )
        n, total = self.tally.counts(self.tally.pulls), self.tally.total
        if not isinstance(self.problem.support, Dense):
            raise InvalidArgument("agent", "its problem is sparse", "take estimates()", "table")
        seen = np.broadcast_to(n, total.shape).sum(axis=0)
        mean = np.where(seen > 0.0, total.sum(axis=0) / np.maximum(seen, 1e-300), np.nan).T
        pulls, scale = self.tally.pulls.sum(axis=0), self.problem.thresholds
        if scale is not None:
            means = zip(self.arms, pulls.tolist(), scale.decode(mean).tolist(), strict=True)
            return ResultTable([{"arm": arm, "pulls": own, "score": x} for arm, own, x in means])
        rows = zip(self.arms, pulls.tolist(), mean.tolist(), strict=True)
        return ResultTable(
            [{"arm": arm, "pulls": own, **dict(zip(self.items, x, strict=True))} for arm, own, x in rows]
        )

    @_in_turn
    def worth(self, arms: Some) -> Worth:
        """What a set of arms is worth, where totals are told, with ±2 deviations as far as arms add up.

        It is an estimate of a model: where arms interact strongly, the truth can lie outside. For an interval that
        holds without a model, play the set many times.
        """
        tally = self.tally
        if not isinstance(tally, TotalTally):
            raise InvalidArgument("agent", f"the reward is {self.problem.reward!r}", "take problem.value(…)", "worth")
        return tally.model.worth(self.problem.action(self.learner.arms.numbers(arms)))

    @_in_turn
    def __getstate__(self) -> dict[str, Any]:
        return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_lock"})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({"_paused": {}, **state}, _lock=threading.RLock())

    __repr__ = describe_agent
    _repr_html_ = show_agent

    @_in_turn
    def ask(
        self,
        eligible: Some | None = None,
        id: str | None = None,
        pinned: Some | None = None,
        context: Any = None,
        pairs: Any = None,
        items: Some | None = None,
        now: datetime | None = None,
        budget: float | None = None,
    ) -> Decision:
        """The batch to play next, out of the ``eligible`` arms and around the ``pinned`` ones, if they are given.

        ``context`` holds the features of the user, if the problem declares them, and ``pairs`` (n_arms, …) those of the
        pairs of user and arm. They are remembered with the decision: ``tell`` does not need them.

        ``items`` are those that the decision can be told about, if not all: that of the visitor, where items are
        segments of visitors. The batch is chosen for all items. ``now`` is the time, which is needed while arms are
        retired until a date: an agent reads no clock. ``budget`` takes the place of that of a ``Knapsack`` this once.

        May be asked many times before any outcome is told: pending pulls count in the radius. With an ``id`` of your
        own, asking again with the same id gives the same decision again. If fewer arms are eligible than a batch can
        hold, the batch is smaller; if none can be formed, that is an error.
        """
        learner = self.learner
        if self._paused:
            self._end_pauses(now)
        t = learner.t + 1
        name = str(t) if id is None else id
        if not isinstance(name, str) or not name:
            raise InvalidArgument("id", f"{id!r} is not a name", "give a non-empty string")
        known = self._decisions.find(name)
        if known is not None:
            return known.asked.decision
        encoded = None
        if learner.contexts is not None:
            if context is None and self.problem.context.features.size:
                remedy = f"give {self.problem.context.features.names}, as far as known"
                raise InvalidArgument("context", "missing", remedy)
            names = Labels("arms", learner.arms.all, learner.arms.all)
            encoded = learner.contexts.encode(context, align(pairs, names, None, name="pairs")[0])
        elif context is not None or pairs is not None:
            raise InvalidArgument("context", "the problem has none", "declare it: Problem(…, context=Context(…))")
        about = self._about(items)
        mask = learner.playable(eligible)
        pins = () if pinned is None else learner.arms.numbers(pinned)
        view = learner.view(t, self._choosing, mask, pins, encoded)
        action = learner.choose(view, self._within(budget))
        if not len(action):
            raise InvalidArgument("eligible", "no batch can be formed", "make enough arms eligible, retire fewer")
        given, words = learner.weigh(view, action, encoded), None
        learner.pend(action, t, given)
        learner.bring_up_to_date(context, t)
        if given is not None:
            words = self._words(context)
        action.flags.writeable = False
        arms = tuple(action.tolist())
        decision = Decision(
            name, t, action, tuple([learner.arms.all[j] for j in arms]), claim_of(learner.problem, view, action)
        )
        widths = self._widths(arms)
        joint = self.problem.reward.totals
        made = MadeDecision(
            decision, arms, self.problem.n_items, learner.version, widths, about, self.silence, given, words, joint
        )
        self._put(None, open_record(made))
        return decision

    def _within(self, budget: float | None) -> Actions | None:
        """The action set of a decision with a budget of its own."""
        actions = self.problem.actions
        if budget is None:
            return None
        if not isinstance(actions, Knapsack):
            raise InvalidArgument("budget", f"{actions!r} has none", "give Knapsack(costs, budget)")
        return replace(actions, budget=budget)

    def _end_pauses(self, now: datetime | None) -> None:
        """Bring back the arms whose pause is over."""
        if now is None or now.tzinfo is None:
            wrong = "missing, and arms are retired until a date" if now is None else f"{now} has no time zone"
            raise InvalidArgument("now", wrong, "give the time: ask(now=datetime.now(UTC))")
        for arm in [arm for arm, end in self._paused.items() if end <= now]:
            self.learner.restore_arms([arm])
            del self._paused[arm]

    def _widths(self, arms: tuple[int, ...]) -> tuple[int, ...] | None:
        """How many items each arm has; None if that is all items."""
        support = self.problem.support
        return None if isinstance(support, Dense) else tuple(support.widths[list(arms)].tolist())

    def _put(self, before: Record | None, after: Record) -> None:
        """Count what a decision has become, and keep it."""
        self._move(before, after)
        self._decisions.put(after)

    def _move(self, before: Record | None, after: Record) -> None:
        made = after.asked if before is None else before.asked
        self.learner.move(before, after, made.context, self._rounding, made.version)
        if self.problem.thresholds is not None:
            self._scores.move(self.problem.thresholds, before, after)

    @_in_turn
    def explain(self, decision: Decision | str, most: int = 5) -> Explanation:
        """Why these arms: estimates, optimistic parameters and marginal gains, from what is known now.

        A pending decision is explained as if it was not made yet, so that right after ``ask`` the explanation has the
        numbers by which it was chosen. With a linear model it names the ``most`` features with the largest effects.
        """
        record = self._decisions.known(_id(decision))
        self._move(record, unasked(record))
        try:
            return explain_decision(self.learner, record.asked, most, self._choosing)
        finally:
            self._move(unasked(record), record)

    @_in_turn
    def tell(
        self,
        decision: Decision | str,
        outcome: Any = None,
        seen: Any = None,
        arms: Some | None = None,
        clicks: Some | Mapping[Any, float] | None = None,
        *,
        total: float | None = None,
        totals: Mapping[Any, float] | None = None,
        n: int = 1,
        scores: Any = None,
        more: bool = False,
        amend: bool = False,
    ) -> bool:
        """What came of a decision: ``outcome`` (len(action), n_items) in [0, 1], rows in the order of its action.

        Entries with ``seen`` False were not observed: they are not zeros, and change no estimate; an arm of which
        nothing was seen counts as never played. Where playing triggers other arms, or not all of its own, ``arms``
        names those that were observed, and ``outcome`` has a row for each of them. For a sparse problem lay the rows'
        entries flat, one after the other.

        A decision about one item may be told ``clicks`` in place of an outcome: the arms that were clicked, or their
        outcomes by arm; what was shown and is not named counts as ``silence``, or as 0.

        Where the reward is ``Total()``, tell the ``total`` of the whole decision in [0, 1], or the ``totals`` of parts
        of it: ``totals={("a", "b"): 0.4, ("c",): 0.3}``. Each is the mean of ``n`` trials, and counts as so many.

        Where items are ``Thresholds``, tell the ``scores``, in their own units: one for each arm of the decision, or by
        arm. None and NaN are scores that were not seen; what failed without delivering anything has the lowest score.

        With ``more``, what is not told yet may come later: None or NaN in an outcome, and arms that are not named,
        stay pending. Otherwise it counts as not observed.

        Rows and columns of a data frame are found by their names, if it has any: those of its rows must be the names of
        the arms, those of its columns the names of the items.

        Telling again what was told changes nothing and returns False. A larger value takes the place of a smaller one,
        as a purchase does after a click; telling another one raises ``ConflictingFeedback``, unless it is to ``amend``
        what was told. Any error leaves the agent as it was.
        """
        record = self._decisions.known(_id(decision))
        given = Reported(outcome, seen, arms, None, clicks, self.silence or 0.0, total, totals, n, scores)
        told = self._read(record, given, gaps=more)
        event = feedback(record, told, amend=amend, last=not more)
        if event is None:
            return False
        after = advance_record(record, event)
        self._put(record, after)
        self._fractions.warn(self.problem, after)
        if not self._warned and (said := self.policy.warning(self.learner.memory)):
            self._warned = True
            warnings.warn(said, stacklevel=4)
        if event.scores and self.problem.thresholds is not None:
            for arm, score in event.scores:
                self._scores.warn(self.problem.thresholds, self.arms[arm], score)
        return True

    @_in_turn
    def untell(
        self,
        decision: Decision | str,
        outcome: Any = None,
        seen: Any = None,
        arms: Some | None = None,
        *,
        total: float | None = None,
        totals: Mapping[Any, float] | None = None,
        n: int = 1,
        scores: Any = None,
    ) -> None:
        """Take back, exactly, what was told of a decision; it is pending again."""
        name = _id(decision)
        record = self._decisions.told.get(name)
        if record is None or record.closed != "complete":
            raise UnknownDecision(f"decision {name!r} was not told, or is long forgotten")
        opened = open_record(record.asked)
        given = Reported(outcome, seen, arms, total=total, totals=totals, n=n, scores=scores)
        told = self._read(opened, given, gaps=False)
        again = feedback(opened, told, last=True)
        same = again is not None and _rows_of(advance_record(opened, again)) == _rows_of(record)
        if not same:
            raise ConflictingFeedback(f"decision {name!r} was told another outcome; give the one to take back")
        self._put(record, opened)

    @_in_turn
    def cancel(self, decision: Decision | str) -> None:
        """Forget a decision that was never played; it is pending no longer."""
        name = _id(decision)
        record = self._decisions.pending.pop(name, None)
        if record is None:
            raise UnknownDecision(f"decision {name!r} is not pending")
        self._move(record, without_effect(record))

    def _read(self, record: Record, answer: Reported, gaps: bool) -> ReadAnswer:
        """Feedback about a decision, checked."""
        learner = self.learner
        if is_frame(answer.outcome) or is_frame(answer.seen):
            observed = record.asked.decision.action if answer.arms is None else learner.arms.numbers(answer.arms)
            labels = self._labels(observed, record.asked.n_items, answer.outcome)
            outcome, seen = align(answer.outcome, *labels, answer.seen)
            answer = answer._replace(outcome=outcome, seen=seen)
        return read_answer(Reader(learner.problem, learner.arms, learner.items, gaps=gaps, wide=True), record, answer)

    def _about(self, items: Some | None) -> tuple[int, ...] | None:
        """The numbers of the items that a decision is about; None for all."""
        if items is None:
            return None
        if not isinstance(self.problem.support, Dense):
            raise InvalidArgument("items", "the support is sparse", "leave it out, and tell what was seen")
        return tuple(sorted(self.learner.items.numbers(items).tolist()))

    def _words(self, context: Any) -> dict[str, list[str]] | None:
        """The words of a context's hashed features, by which explanations name them."""
        from superarm.context.encoding import hashed_words

        features = self.problem.context.features
        return hashed_words(features, context) if features.hashed else None

    def _labels(self, observed: Ints, n_items: int, outcome: Any) -> tuple[Labels, Labels]:
        """The names of observed arms and of items, of which the decision was made for ``n_items``."""
        arms, items = self.learner.arms.all, self.learner.items.all
        width = np.shape(outcome)[1] if np.ndim(outcome) == 2 else 0
        wanted = items[:width] if n_items <= width else items
        return Labels("arms", [arms[j] for j in observed], arms), Labels("items", wanted, items)

    @_in_turn
    def warm_start(self, tally: Tally, ours: bool = False) -> None:
        """Add past data or a prior; time goes on from the most pulls an arm has had (an arm has one per round).

        ``ours`` says that this agent decided them, by a table that it published. A policy that starts from a list
        learns from all data, and is charged with what its own decisions cost alone. Counts of a ``Table`` are ours.
        """
        tally = copy.copy(tally)
        if ours and isinstance(tally, Tally):
            tally.ours = True
        self.learner.warm_start(tally)

    @_in_turn
    def publish(
        self,
        rows: int = 256,
        *,
        problem: str = "superarm",
        version: int | None = None,
        lifetime: int | None = None,
        control: float = 0.0,
        present: Some | None = None,
        expires: datetime | None = None,
    ) -> "tables.Table":
        """A table of ``rows`` slates for each segment, from which any program decides by itself; see ``sa.Table``.

        What is known now decides: the same agent publishes the same bytes. A policy that draws, as Thompson sampling
        does, is asked once for all rows; another one row by row, which takes ``rows`` times as long as ``ask``.

        Parameters
        ----------
        rows
            A power of two, at most 65,536. A table whose patterns are counted should serve many more decisions.
        problem, version
            A name, and a number that grows with every table; by default how many pulls are known, and 1. Give one if
            arms were retired, or outcomes taken back, since the last table: programs keep the larger number.
        lifetime
            How many decisions it is to serve: at most, and by default, a tenth of those that were learnt from, and 10.
        control, present
            The share of decisions that get the slate that is shown at ``present``, by default the first arms of the
            ``baseline``.
        expires
            Until when it may be used.

        Examples
        --------
        >>> from superarm.actions import Subsets
        >>> from superarm.rewards import Linear
        >>> agent = Agent(Problem(4, 1, Linear(), Subsets(2)), pooled_thompson(), seed=0)
        >>> table = agent.publish(8)
        >>> len(table.slates[""]), table.lifetime, table.to_json() == agent.publish(8).to_json()
        (8, 10, True)
        """
        from superarm.agent.publishing import publish

        said = {"problem": problem, "version": version, "lifetime": lifetime, "control": control, "present": present}
        ends = None if expires is None else expires.isoformat()
        return publish(self.learner, int(self._choosing[0]), rows, expires=ends, **said)

    @_in_turn
    def change_policy(self, policy: Policy[Any] | str, **parameters: float) -> None:
        """Choose by another policy, or by one of the catalogue by its name, from now on; what was observed stays."""
        self.learner.change_policy(find_policy(policy, parameters))

    @_in_turn
    def change_baseline(self, arms: Some) -> None:
        """Follow another ranking from now on, best arm first, by name or number; what was learnt stays.

        Do it whenever what you show today changes. Learning may cost a share of what this ranking earns from now on.
        """
        self.learner.change_policy(start_from(self.learner.declared, self.learner.arms.numbers(arms)))

    @_in_turn
    def add_arms(
        self, arms: Given | int, actions: Actions | None = None, support: Any = None, features: Any = None
    ) -> None:
        """Add arms by name, or so many of them; they will be tried first.

        If the action set names arms or their groups, give one that names all arms as ``actions``. A name that was
        retired comes back with all that was learnt about it. Where arms have features, ``features`` are those of the
        arms that were never there, which are predicted from them at once.
        """
        learner = self.learner
        new: Any = arms if isinstance(arms, int | str) else learner.split_retired(arms)[1]
        if new and actions is None and not isinstance(new, str):
            remedy = "give the action set of all arms, old and new: add_arms([…], actions=…)"
            try:
                require_actions(self.problem, None)
                self.problem.actions.validate(self.problem.n_arms + (new if isinstance(new, int) else len(new)))
            except InvalidArgument as error:
                raise InvalidArgument("actions", f"it does not fit the new arms ({error.wrong})", remedy) from None
            n = new if isinstance(new, int) else len(new)
            room = with_room(self.problem.actions, learner.declared, self.problem.n_arms, n)
            actions = None if room is self.problem.actions else room
        if is_frame(features) and not isinstance(new, int):
            names = [str(name) for name in new]
            features, _ = align(features, Labels("arms", names, names), None, name="features")
        learner.grow_arms(arms, actions, support, features)

    @_in_turn
    def change_prices(
        self, prices: Mapping[str, float] | None = None, budget: float | None = None, retire: Some = ()
    ) -> None:
        """Change what some arms cost, by name, and the budget; all that was learnt stays.

        Names that are not known yet are new arms; a ladder that could try all arms still can. Arms in ``retire`` are in
        no further decision; ``add_arms`` brings them back. The ``budget`` is that of a ``Knapsack``, or the mean spend
        of ``ladder(…, spend=…)``, whose account goes on. Any error leaves the agent as it was.

        >>> import superarm as sa
        >>> problem = Problem(2, 1, sa.Coverage(), sa.Knapsack([0.03, 0.10], budget=0.10))
        >>> agent = Agent(problem, arms=["small", "large"], seed=0)
        >>> agent.change_prices({"large": 0.08, "new": 0.05}, budget=0.12)
        >>> agent.problem.actions
        Knapsack(costs=[0.03, 0.08, 0.05], budget=0.12)
        """
        gone = [self.arms[j] for j in self.learner.arms.numbers(retire)]
        self.learner.change_prices({} if prices is None else prices, budget)
        if gone:
            self.retire_arms(gone)

    @_in_turn
    def retire_arms(self, arms: Some, until: datetime | None = None) -> None:
        """Take arms out of all further decisions; outcomes of pending ones are still learnt from.

        ``add_arms`` with the same names brings them back. Where it is known when they will be back, in stock for
        instance, ``until`` (a ``datetime`` with a time zone) brings them back by itself.
        """
        if until is not None and until.tzinfo is None:
            raise InvalidArgument("until", f"{until} has no time zone", "give one, as datetime(…, tzinfo=UTC)")
        self.learner.retire_arms(arms)
        for arm in [self.arms[j] for j in self.learner.arms.numbers(arms)]:
            self._paused.pop(arm, None)
            if until is not None:
                self._paused[arm] = until

    @_in_turn
    def add_items(self, items: Given | int, weights: Any = None) -> None:
        """Add items by name, or so many of them, with weights (1 by default); of past pulls they were not seen."""
        n = items if isinstance(items, int) else len(items)
        self.learner.grow_items(items, np.ones(n) if weights is None else weights)

    @_in_turn
    def retire_items(self, items: Some) -> None:
        """Give items the weight 0: they count no longer in what a batch is worth."""
        self.learner.retire_items(items)

    @_in_turn
    def to_state(self) -> dict[str, Any]:
        """The whole agent as a plain, versioned dict that JSON can hold."""
        from superarm.agent.state import STATE_VERSION, decisions_to_plain, learner_to_plain

        return {
            "version": STATE_VERSION,
            **learner_to_plain(self.learner),
            "mind": f"{int(self._choosing[0]):016x}",
            "coin": f"{int(self._rounding[0]):016x}",
            "book": decisions_to_plain(self._decisions),
            **({} if self.silence is None else {"silence": self.silence}),
            **({} if self.problem.thresholds is None else {"scores": list(astuple(self._scores))}),
            **({} if not self._paused else {"paused": {arm: end.isoformat() for arm, end in self._paused.items()}}),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Agent":
        """The agent that ``to_state`` described; it continues bit for bit."""
        from superarm.agent.state import STATE_VERSION

        version = state.get("version") if isinstance(state, dict) else None
        if version != STATE_VERSION:
            raise InvalidArgument("state", f"version {version!r}", f"this superarm reads version {STATE_VERSION}")
        try:
            return cls._restored(state)
        except KeyError as error:
            remedy = "give all that to_state returned"
            raise InvalidArgument("state", f"the key {error} is missing", remedy) from None

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> "Agent":
        from superarm.agent.state import decisions_from_plain, learner_from_plain

        agent = cls.__new__(cls)
        agent._lock = threading.RLock()
        agent._choosing, agent._rounding = (np.array([int(state[key], 16)], np.uint64) for key in ("mind", "coin"))
        agent.learner = learner_from_plain(state)
        agent._paused = {arm: datetime.fromisoformat(end) for arm, end in state.get("paused", {}).items()}
        agent._scores, agent._fractions = ScoreCounts(*state.get("scores", [])), Fractions()
        agent._decisions, agent.silence = decisions_from_plain(state["book"], agent.learner), state.get("silence")
        for record in agent._decisions.pending.values():
            agent.learner.wait(record, record.asked.context)
        return agent


def find_policy(policy: Policy[Any] | str, parameters: dict[str, float]) -> Any:
    """A policy as it is, or by its name in the catalogue with its parameters.

    >>> find_policy("bc_ucb", {"rho": 1.0}).index
    Bernstein(rho=1)
    """
    if not isinstance(policy, str):
        if parameters:
            raise InvalidArgument("parameters", "given beside a policy", "give them to the policy itself")
        return policy
    from superarm import contextual, policies

    make = vars(policies).get(policy) or vars(contextual).get(policy)
    try:
        made: Any = make(**parameters) if callable(make) and not policy.startswith("_") else None
    except TypeError:  # it has no defaults, or another parameter was given
        made = None
    if not isinstance(made, Policy):
        wrong = f"unknown {policy!r}" if not parameters else f"no {policy!r} with the parameters {parameters}"
        raise InvalidArgument("policy", wrong, "give a policy of the catalogue, such as kl_ucb or kl_moss")
    return made


def start_from(policy: Any, ranking: Ints) -> Policy[Any]:
    """The policy, starting from a list; refused if it cannot."""
    if not isinstance(policy, PooledThompson):
        wrong = f"{policy!r} cannot start from a list"
        raise InvalidArgument("baseline", wrong, "leave out the policy, or give pooled_thompson()")
    return pooled_thompson(**policy.parameters() | {"baseline": ranking.tolist()})


def _rows_of(record: Record) -> Any:
    """What was told of a decision, without items that came later and were not seen."""
    if record.asked.joint:
        return record.totals
    rows = [*zip(record.action, record.rows, strict=True), *sorted(record.others)]
    known = [(arm, [x if x >= 0.0 else UNSEEN for x in row or ()]) for arm, row in rows]
    return [(arm, [(i, x) for i, x in enumerate(row) if x != UNSEEN]) for arm, row in known]


def _id(decision: Decision | str) -> str:
    return decision.id if isinstance(decision, Decision) else decision
