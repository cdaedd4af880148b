"""Learner: a problem, a policy, and everything that was observed so far."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from superarm._compiling import note_composition
from superarm._repeated_calls import RepeatedCall, without_calls
from superarm.actions import Actions
from superarm.arrays import Bools, Floats, Ints
from superarm.candidates import Candidates
from superarm.context import EncodedContext
from superarm.context.sums import empty_context_tally
from superarm.errors import InvalidArgument
from superarm.intake import Intake
from superarm.learner.batch import choose_each
from superarm.learner.contexts import Contexts
from superarm.learner.growth import grow_state, tally_with_arms, tally_with_items, with_arms, with_items, without_items
from superarm.learner.names import names_for
from superarm.learner.rounds import CountedRounds, stream_as_of
from superarm.moments import no_moments
from superarm.policies import (
    Policy,
    PolicyState,
    Round,
    blocks_without_moments,
    choose,
    forget_alike,
    forgets,
    learn,
    memory_with_actions,
    prepare,
    restore_memory,
    save_state,
    traits,
)
from superarm.policies.contextual import for_context, record_as
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.tally import Feedback, Tally, allow_missing, merge, record, with_moments


class Learner:
    """The state of one problem that is being learnt; ``Agent`` and the service are built around it.

    ``problem`` and ``policy`` are what is learnt and how; ``fitted`` is the policy made ready for it and ``memory``
    what it derives from ``tally``. ``pending`` (n_arms,) counts pulls that were handed out and not observed yet.
    ``asked`` is the last round that was handed out, ``retired`` and ``retired_items`` what counts no longer.

    Every change of policy is a new version, counted from 0. Feedback is recorded as the policy that asked for it
    records outcomes, so that it can be taken back exactly under a later one: ``roundings`` holds that for each version.
    The moments of the tally hold feedback to decisions of version ``moments_since`` and later.

    Parameters
    ----------
    problem, policy
        What is to be learnt, and how.
    arms, items
        Names; by default their numbers.

    Examples
    --------
    >>> import numpy as np, superarm as sa
    >>> from superarm.streams import new_stream
    >>> learner = Learner(sa.Problem(3, 1, sa.Coverage(), sa.Subsets(2)), sa.kl_ucb())
    >>> stream = new_stream(np.random.SeedSequence(0))
    >>> batch = learner.choose(1, learner.playable(), stream)
    >>> learner.pend(batch, 1)
    >>> learner.unpend(batch)
    >>> learner.apply(sa.tally.Feedback(1, batch, np.array([1.0, 0.0]), np.ones(2, bool)), stream)
    >>> learner.tally.total
    array([1., 0., 0.])
    """

    def __init__(
        self,
        problem: Problem,
        policy: Policy,
        arms: Sequence[str] | Sequence[int] | None = None,
        items: Sequence[str] | Sequence[int] | None = None,
    ) -> None:
        _require_problem(problem, policy)
        traits.require_policy(policy, "policy")
        self.policy = for_context(policy, problem)
        self.contexts = None if problem.context is None else Contexts(problem, problem.context)
        self.arms = names_for(arms, problem.n_arms, "arms")
        self.items = names_for(items, problem.n_items, "items")
        self.retired: Bools = np.zeros(problem.n_arms, bool)
        self.retired_items: set[int] = set()
        tally: Any = empty_context_tally(problem.context, problem.support)
        self.pending: Floats = np.zeros(len(tally.pulls))
        self.asked = 0
        self.roundings = [traits.intake(policy)]
        self.counted_rounds = CountedRounds()
        self.moments_since = 0
        self._settle(problem, tally)

    def _settle(self, problem: Problem, tally: Tally, state: PolicyState | None = None) -> None:
        """Take on a problem, a tally and the policy's state beside it, and derive from them all that is derived."""
        fitted = self.policy.fit(problem)
        note_composition(fitted, problem)
        tally = traits.fit_tally(fitted, problem, tally)
        state = state and state.changed(lambda block: traits.fit_tally(fitted, problem, block))
        memory = restore_memory(fitted, problem, tally, state)
        self.problem, self.tally, self.fitted, self.memory = problem, tally, fitted, memory
        self.rounds, self.forgets = int(tally.pulls.max()), forgets(fitted)  # at most one pull per arm and round
        self._renew_calls()

    def _renew_calls(self) -> None:
        """Let calls of kernels hold on to nothing that was there before."""
        self._choose, self._learn, self._choose_each = (RepeatedCall[..., Any](f) for f in (choose, learn, choose_each))
        if self.contexts is not None:
            self.contexts.renew_calls()

    def __getstate__(self) -> dict[str, Any]:
        return without_calls(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._renew_calls()

    @property
    def t(self) -> int:
        """The last round that has passed: the last one asked for, or the most pulls that an arm has had."""
        return max(self.asked, self.rounds)

    @property
    def version(self) -> int:
        """How often the policy was changed."""
        return len(self.roundings) - 1

    @property
    def state(self) -> PolicyState | None:
        """What the policy keeps beside the tally; None for most policies."""
        return save_state(self.fitted, self.memory)

    def playable(self, eligible: Iterable[int | str] | None = None) -> Bools:
        """Which arms may be played: those that are not retired, and ``eligible`` if it is given (by name or number)."""
        if eligible is None:
            return ~self.retired
        mask = np.zeros(self.problem.n_arms, bool)
        mask[self.arms.numbers(eligible)] = True
        return mask & ~self.retired

    def choose(
        self,
        t: int,
        eligible: Bools,
        stream: Stream,
        actions: Actions | None = None,
        reserved: Sequence[int] = (),
        context: EncodedContext | None = None,
    ) -> Ints:
        """The batch for round ``t`` out of the ``eligible`` arms, in the order of picking; empty if there is none.

        ``actions`` is another action set for this choice alone: the problem's with pinned arms, for instance.
        ``reserved`` are the arms of batches that are as good as pending: they count as such. ``context`` is that of the
        decision, if the problem has one. Nothing is changed: ``pend`` says that the batch was handed out.
        """
        current = self.current_round(t, eligible, context, reserved)
        own = self.fitted, self.problem, self.memory_at(t)
        fitted, task, memory = own if actions is None else self._with_actions(actions)
        action: Ints = self._choose(fitted, task, current, memory, stream)
        if self.contexts is not None:
            self.contexts.keep_choice(fitted, memory)
        return action

    def choose_each(self, t: int, eligible: Bools, keys: Any, reserved: Sequence[int] = ()) -> list[list[int]]:
        """Batches for round ``t`` and those after it, one per stream key (uint64), each pending for the next.

        ``reserved`` as in ``choose``. Nothing is changed.
        """
        current = self.current_round(t, eligible, reserved=reserved)
        memory = self.memory_at(t + len(keys) - 1)
        batches = self._choose_each(self.fitted, self.problem, current, memory, keys).tolist()
        return [batch if batch[-1] >= 0 else [j for j in batch if j >= 0] for batch in batches]

    def current_round(
        self, t: int, eligible: Bools, context: EncodedContext | None = None, reserved: Sequence[int] = ()
    ) -> Any:
        """What the policy sees when it chooses for round ``t``: a ``Round``, or a ``ContextRound``."""
        if self.contexts is not None and context is not None:
            return self.contexts.current_round(self, eligible, context, t)
        counts = self.tally.pulls + self.pending
        if reserved:
            np.add.at(counts, np.array(reserved, np.int64), 1.0)
        return Round(t, self.tally, Candidates(counts, eligible))

    def memory_at(self, t: int) -> Any:
        """The memory to choose with: a copy where the policy would forget, so that only ``pend`` moves time on."""
        if self.counted_rounds.begins_block(self, t):
            return restore_memory(self.fitted, self.problem, self.tally, self.state)
        return self.memory

    def _with_actions(self, actions: Actions) -> tuple[Policy, Problem, Any]:
        task = self.problem._replace(actions=actions)
        fitted = self.policy.fit(task)
        return fitted, task, memory_with_actions(fitted, task, self.tally, (self.fitted, self.memory))

    def pend(self, action: Ints | Sequence[int], t: int) -> None:
        """The batch of round ``t`` was handed out: its pulls count in the radius, not in the mean."""
        for j in action:  # for a handful of arms quicker than indexing with a list
            self.pending[j] += 1.0
        self.asked = max(self.asked, t)
        self.counted_rounds.advance(self, t)

    def unpend(self, action: Ints | Sequence[int], sign: float = 1.0) -> None:
        """Pulls are pending no longer: they were observed, or will never be (``sign=-1.0``: they are again)."""
        for j in action:
            self.pending[j] -= sign

    def apply(self, feedback: Feedback, stream: Stream, sign: float = 1.0, version: int | None = None) -> None:
        """Record feedback (``sign=1.0``), or take back what was recorded (``sign=-1.0``), exactly.

        ``feedback.t`` is the round of its decision and ``version`` that of the policy that it was made under (the
        present one by default). Where outcomes are recorded as they are, rows of many decisions of one round, or of any
        rounds if the policy does not forget, can be applied by one call.
        """
        made, seen = self.version if version is None else version, feedback.seen
        if not self.tally.missed.size and np.count_nonzero(seen) < len(seen):
            self.tally = allow_missing(self.tally)
        counted = self.counted_rounds.place(self, feedback, made)
        stream = stream_as_of(stream, feedback.t, counted.t)
        rounding, fitted, support = self.roundings[made], self.fitted, self.problem.support
        if self.tally.moments.size and made < self.moments_since:
            self._apply_without_moments(counted, rounding, stream, sign)
        elif type(rounding) is type(self.roundings[-1]):
            self._learn(fitted, self.problem, self.tally, self.memory, counted, stream, sign)
        elif forgets(fitted) or self.contexts is not None:
            learn(record_as(fitted, rounding), self.problem, self.tally, self.memory, counted, stream, sign)
        else:
            record(self.tally, support, counted, rounding, stream, sign)
            self.memory = prepare(fitted, self.problem, self.tally)

    def _apply_without_moments(self, counted: Feedback, rounding: Intake, stream: Stream, sign: float) -> None:
        """Record feedback to a decision that was made before the tally held moments."""
        bare = with_moments(self.tally, no_moments())
        if forgets(self.fitted):
            other, memory = record_as(self.fitted, rounding), blocks_without_moments(self.memory)
            learn(other, self.problem, bare, memory, counted, stream, sign)
            self.memory = restore_memory(self.fitted, self.problem, self.tally, save_state(self.fitted, self.memory))
        else:
            record(bare, self.problem.support, counted, rounding, stream, sign)
            self.memory = prepare(self.fitted, self.problem, self.tally)

    def past_round(self, tally: Tally) -> int:
        """The round that past data count for if the policy forgets: the last one asked for, or else the next."""
        return self.asked or 1 + int((self.tally.pulls + tally.pulls).max())

    def warm_start(self, tally: Tally, t: int | None = None) -> None:
        """Add past data or a prior, which count for round ``t`` (``past_round`` by default) if the policy forgets."""
        own = self.tally
        if [part.shape for part in tally[:2]] != [part.shape for part in own[:2]] or len(tally) != len(own):
            raise InvalidArgument("tally", "made for another problem", "make it with this problem's past() or prior()")
        state = self.counted_rounds.with_past(self, tally, self.past_round(tally) if t is None else t)
        self._settle(self.problem, merge(self.tally, tally), state)

    def change_policy(self, policy: Policy, t: int | None = None) -> None:
        """Learn by another policy from round ``t`` on (by default from now on); all counts stay.

        If the new policy forgets, what was observed before counts for round ``t``, unless the old one forgot in equal
        blocks of rounds: then these stay.
        """
        policy = for_context(policy, self.problem)
        policy.fit(self.problem)  # refuse it before anything is changed
        same, state = forget_alike(self.policy, policy), self.state
        self.policy = policy
        self.roundings.append(traits.intake(policy))
        if not same:
            self.counted_rounds = CountedRounds(self.version, self.t if t is None else t)
        before = self.tally.moments
        self._settle(self.problem, self.tally, state if same else None)
        if self.tally.moments is not before:
            self.moments_since = self.version
        self.counted_rounds.advance(self, self.counted_rounds.since)

    def grow_arms(self, arms: Sequence[str] | int, *of_problem: Any) -> None:
        """Add arms by name, or so many of them; a retired arm comes back with all that was learnt about it.

        ``of_problem`` are the further arguments of ``growth.with_arms``; they are about arms that were never there.
        """
        if isinstance(arms, str):
            raise InvalidArgument("arms", f"{arms!r} is one name", f"give a list: [{arms!r}]")
        names = [] if isinstance(arms, int) else list(arms)
        back = [name for name in names if self._is_retired(name)]
        if len(set(back)) < len(back):
            raise InvalidArgument("arms", "a name appears twice", "give distinct, non-empty strings")
        new = arms if isinstance(arms, int) else [name for name in names if not self._is_retired(name)]
        n = arms if isinstance(arms, int) else len(names) - len(back)
        if n or any(more is not None for more in of_problem):
            grown = with_arms(self.problem, n, *of_problem)
            self.arms.extend(new)
            self.retired = np.concatenate([self.retired, np.zeros(n, bool)])
            self.pending = np.pad(self.pending.reshape(-1, self.problem.n_arms), ((0, 0), (0, n))).reshape(-1)
            self._grow(grown, tally_with_arms)
        self.restore_arms(back)

    def _is_retired(self, name: str) -> bool:
        number = self.arms.number(name)
        return number is not None and bool(self.retired[number])

    def grow_items(self, items: Sequence[str] | int, weights: Any) -> None:
        """Add items by name, or so many of them, with their weights; of past pulls they were not seen."""
        n = items if isinstance(items, int) else len(items)
        grown = with_items(self.problem, weights)
        if grown.n_items != self.problem.n_items + n:
            given = grown.n_items - self.problem.n_items
            raise InvalidArgument("weights", f"{given} weights", f"give {n}, one per item")
        self.items.extend(items)
        self._grow(grown, tally_with_items)

    def _grow(self, grown: Problem, tally_with: Any) -> None:
        before, state = self.problem, self.state
        if self.contexts is not None:
            self.contexts.grow(before, grown)
        wider = grow_state(state, lambda block: tally_with(block, before, grown), (before, grown))
        self._settle(grown, tally_with(self.tally, before, grown), wider)

    def retire_arms(self, arms: Iterable[int | str]) -> None:
        """Take arms out of all further batches; feedback about them still counts."""
        self.retired[self.arms.numbers(arms)] = True

    def restore_arms(self, arms: Iterable[int | str]) -> None:
        """Let retired arms be played again, with what was learnt about them."""
        self.retired[self.arms.numbers(arms)] = False

    def retire_items(self, items: Iterable[int | str]) -> None:
        """Give items the weight 0: they count no longer in what a batch is worth."""
        numbers = self.items.numbers(items)
        self._settle(without_items(self.problem, numbers), self.tally, self.state)
        self.retired_items |= set(numbers.tolist())

    def restore(self, tally: Tally, pending: Floats, asked: int, state: PolicyState | None = None) -> None:
        """Take over counts that were saved, and what the policy kept beside them."""
        self.pending, self.asked = pending, asked
        self._settle(self.problem, tally, state)


def _require_problem(problem: Any, policy: Any) -> None:
    """Raise ``InvalidArgument`` unless ``problem`` is one; say so if it was given in the place of ``policy``."""
    if not isinstance(problem, Problem):
        remedy = "swap the arguments" if isinstance(policy, Problem) else "give superarm.Problem(…)"
        raise InvalidArgument("problem", f"{problem!r} is not a problem", remedy)
