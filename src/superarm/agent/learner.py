"""Learner: a problem, a policy, and everything that was observed so far."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from superarm.actions.base import Actions, pins_are_eligible
from superarm.actions.explicit import Pinned
from superarm.agent.growth import with_arms, with_items, with_prices, without_items
from superarm.core import streams
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.arrays import arms as check_arms
from superarm.core.errors import InvalidArgument
from superarm.core.tally import Feedback, Tally, View
from superarm.decisions import UNSEEN, Counted, counted_rows, feedback_of, pending_arms
from superarm.decisions.names import Given, names_for
from superarm.indices import Index
from superarm.policies.base import Policy, choose_batches, require_outcomes
from superarm.policies.memory import Memory
from superarm.problem import Problem

Arms = Ints | Sequence[int]
_NOBODY = np.empty(0, np.int64)


class Learner:
    """The state of one problem that is being learnt; ``Agent`` and the service are built around it.

    ``problem`` and ``policy`` are what is learnt and how; ``declared`` is the policy as it was given, which may differ
    from the one that suits the problem's context. ``memory`` is what the policy knows. ``pending`` counts pulls that
    were handed out and not observed yet, in the shape of ``tally.pulls``: (1, n_arms), or (n_segments, n_arms).
    ``asked`` is the last round that was handed out, ``retired`` and ``retired_items`` are what counts no longer.

    Every change of policy is a new version, counted from 0. Feedback is recorded as the policy that asked for it
    records outcomes, so that it can be taken back exactly under a later one: ``roundings`` holds that for each version.
    The memory knows from which round on feedback is its own, and which round it counts for: so the state depends on
    which feedback there is, and not on the order in which it came.

    Parameters
    ----------
    problem, policy
        What is to be learnt, and how.
    arms, items
        Names; by default their numbers.

    Examples
    --------
    >>> from superarm.actions import Subsets
    >>> from superarm.indices import KL
    >>> from superarm.policies import IndexPolicy
    >>> from superarm.rewards import Coverage
    >>> learner = Learner(Problem(3, 1, Coverage(), Subsets(2)), IndexPolicy(KL()))
    >>> key = np.array([7], np.uint64)
    >>> batch = learner.choose(learner.view(1, key))
    >>> learner.pend(batch, 1)
    >>> learner.unpend(batch)
    >>> learner.apply(Feedback(1, batch[None], np.array([[[1.0], [0.0]]])), key)
    >>> learner.tally.total
    array([[[1., 0., 0.]]])
    """

    def __init__(
        self, problem: Problem, policy: Policy[Any], arms: Given | None = None, items: Given | None = None
    ) -> None:
        require_problem(problem, policy)
        self.declared, policy = policy, fit_policy(policy, problem)
        self.arms, self.items = names_for(arms, problem.n_arms, "arms"), names_for(items, problem.n_items, "items")
        self.retired: Bools = np.zeros(problem.n_arms, bool)
        self.retired_items: set[int] = set()
        self.asked, self.roundings = 0, [policy.rounding]
        self.contexts: Any = None
        if problem.context is not None:
            from superarm.contextual.history import ContextHistory

            self.contexts = ContextHistory(problem)
        self._take_on(problem, policy, policy.new_memory(problem, 1))
        self.pending: Floats = np.zeros_like(self.tally.pulls)

    def _take_on(self, problem: Problem, policy: Policy[Any], memory: Memory) -> None:
        """Take on a problem, a policy and its memory; derive all that is derived."""
        self.problem, self.policy, self.memory = problem, policy, memory
        self._used = memory
        self._pins = np.array([problem.actions.pins], np.int64).reshape(1, -1)
        self._playable: Bools = ~self.retired
        alike = problem.actions.alike
        each = 1 if alike is None else alike.shape[1]  # an arm has at most so many pulls in a round
        self.rounds = int(memory.tally.pulls.max()) // each

    @property
    def tally(self) -> Tally:
        """The sums of all observations."""
        return self.memory.tally

    @property
    def t(self) -> int:
        """The last round that has passed: the last one asked for, or the most pulls that an arm has had."""
        return max(self.asked, self.rounds)

    @property
    def version(self) -> int:
        """How often the policy was changed."""
        return len(self.roundings) - 1

    # --- decisions ---

    def playable(self, eligible: Iterable[Any] | None = None) -> Bools:
        """Which arms may be played: those that are not retired, and ``eligible`` if it is given (by name or number)."""
        if eligible is None:
            return self._playable
        mask = np.zeros(self.problem.n_arms, bool)
        mask[self.arms.numbers(eligible)] = True
        return mask & self._playable

    def without(self, arms: Iterable[Any]) -> "Learner":
        """This learner, to choose with out of the other arms."""
        other, playable = copy(self), self._playable.copy()
        playable[self.arms.numbers(arms)] = False
        other._playable = playable
        return other

    def view(self, t: int, key: Any, eligible: Bools | None = None, pinned: Arms = (), context: Any = None) -> View:
        """What the policy sees when it chooses for round ``t``: out of the ``eligible`` arms, around the ``pinned``.

        ``key`` (1,) is that of the policy's random numbers in this decision, ``context`` the ``EncodedContext`` of the
        decision, if the problem has one, or the ``DecisionContext`` of one that was made.
        """
        mask = self._playable if eligible is None else eligible
        pins = self._pins if not len(pinned) else self._pin(pinned)
        waiting, alike = self.pending, self.problem.actions.alike
        if alike is not None:
            waiting = np.where(alike < 0, 0.0, waiting[:, alike]).sum(2)
        counts, given = self.tally.pulls + waiting, None
        if self.contexts is not None:
            fresh = not hasattr(context, "encoded")
            given = self.contexts.contexts(*((context,) if fresh else (context.encoded, context.t)))
            if len(counts) > 1:
                counts = counts[given.segment]
        return View(t, self.tally, key, counts, mask[None], pins, given)

    def _pin(self, pinned: Arms) -> Ints:
        actions, n_arms = self.problem.actions, self.problem.n_arms
        own = self._pins[0].tolist()
        pins = own + [int(j) for j in pinned if int(j) not in own]
        Pinned(actions.actions if isinstance(actions, Pinned) else actions, pins).validate(n_arms)
        return check_arms(pins, "pinned", n_arms)[None]

    def choose(self, view: View, actions: Actions | None = None) -> Ints:
        """The batch for ``view``, in the order of picking, or one of other ``actions``; empty if there is none.

        Nothing is changed: ``pend`` says that the batch was handed out.
        """
        problem, self._used = self.problem, self.memory.at(view.t)
        if actions is not None:
            problem = problem.changed(actions=actions)
            self._used = self._used.on(problem)
            if len(actions.pins):
                view = replace(view, pinned=np.array([actions.pins], np.int64))
        if view.pinned.size and not pins_are_eligible(view):
            return _NOBODY
        policy = self.policy if actions is None else fit_policy(self.declared, problem)
        action: Ints = choose_batches(policy, problem, view, self._used)[0]
        return action if action[-1] >= 0 else action[action >= 0]

    def weigh(self, view: View, action: Ints, context: Any) -> Any:
        """The ``DecisionContext`` of a decision made by the last ``choose``; ``action`` need not be that choice.

        ``context`` is the encoded one; None, as that of decisions without a context, gives None.
        """
        if context is None:
            return None
        weighed = self.policy.weigh(self.problem, view, self._used, action[None])
        return self.contexts.decide(context, weighed, action)

    def pend(self, action: Arms, t: int, context: Any = None) -> None:
        """The batch of round ``t`` was handed out: its pulls count in the radius, not in the mean."""
        self.unpend(action, context, -1.0)
        self.asked = max(self.asked, t)
        self.memory.advance(t)

    def move(self, before: Any, after: Any, context: Any, key: Any, version: int | None = None) -> None:
        """Update the counters exactly for the record of a decision that changed from ``before`` to ``after``.

        ``before`` is None if it was just handed out by ``pend``. ``context`` is its ``DecisionContext``; ``version``
        and ``key`` are as in ``apply``.
        """
        asked = after.asked if before is None else before.asked
        waited, waits = after.action if before is None else pending_arms(before), pending_arms(after)
        if waited != waits:
            self._wait(waited, asked, context, 1.0)
            self._wait(waits, asked, context, -1.0)
        old, new = counted_rows(before), counted_rows(after)
        self.count(asked, {arm: row for arm, row in old.items() if new.get(arm) != row}, context, key, -1.0, version)
        self.count(asked, {arm: row for arm, row in new.items() if old.get(arm) != row}, context, key, 1.0, version)

    def wait(self, record: Any, context: Any) -> None:
        """A decision of a saved state is pending; what it counts as is in the memory already."""
        self._wait(pending_arms(record), record.asked, context, -1.0)

    def _wait(self, arms: tuple[int, ...], asked: Any, context: Any, sign: float) -> None:
        if arms:
            self.unpend(list(arms), context, sign, list(asked.action))

    def count(self, asked: Any, rows: Counted, context: Any, key: Any, sign: float, version: int | None = None) -> None:
        """Count rows of a decision, or take them back."""
        rows = {arm: row for arm, row in rows.items() if not row or any(x != UNSEEN for x in row)}
        if not rows:
            return
        feedback = feedback_of(self.problem.support, asked.t, rows)
        if context is not None:
            action = np.array(asked.action, np.int64)
            feedback.context = self.contexts.answer(context, action, feedback.action[0])
        self.apply(feedback, key, sign, version)

    def unpend(self, arms: Arms, context: Any = None, sign: float = 1.0, action: Arms | None = None) -> None:
        """Pulls are pending no longer: they were observed, or will never be (``sign=-1.0``: they are again).

        ``context`` is that of their decision, and ``action`` its arms, if they are not ``arms``.
        """
        row = 0
        if context is not None:
            row = int(context.encoded.segment)
            some, whole = (np.asarray(part, np.int64) for part in (arms, arms if action is None else action))
            self.contexts.pend(context, whole, some, -sign)
        self.pending[row, arms] -= sign

    def bring_up_to_date(self, given: Any, t: int) -> None:
        """Count the context of the decision of round ``t``, and begin the frame and take the fit that are due."""
        if self.contexts is not None:
            frames = self.contexts.frames
            frames.count(given)
            frame = frames.due()
            if frame is not None:
                self.contexts.begin_frame(self.memory, frame)
        if (plan := self.memory.plan(t)) is not None:
            self.memory.accept(plan)

    # --- feedback ---

    def apply(self, feedback: Feedback, key: Any, sign: float = 1.0, version: int | None = None) -> None:
        """Record feedback (``sign=1.0``), or take back what was recorded (``sign=-1.0``), exactly.

        ``feedback.t`` is the round of its decision, ``feedback.context`` what ``contexts.answer`` gives. ``version`` is
        that of the policy that it was made under (the present one by default), ``key`` (1,) that of the rounding of
        outcomes.
        """
        made = self.version if version is None else version
        if self.roundings[made] == "coin":
            outcome = streams.coins(key, feedback.t, feedback.action, feedback.outcome)
            feedback = replace(feedback, outcome=outcome)
        self.memory.learn(self.problem.shared(feedback), sign)

    def past_round(self, tally: Tally) -> int:
        """The round that past data count for if the policy forgets: the last one asked for, or else the next."""
        return self.asked or 1 + int((self.tally.pulls + tally.pulls).max())

    def warm_start(self, tally: Tally, t: int | None = None) -> None:
        """Add past data or a prior, which count for round ``t`` (``past_round`` by default) if the policy forgets."""
        fits = isinstance(tally, Tally) and tally.support == self.tally.support and len(tally) == len(self.tally)
        if not fits:
            raise InvalidArgument("tally", "made for another problem", "make it with this problem's past() or prior()")
        self.memory.warm(tally, self.past_round(tally) if t is None else t)
        self._take_on(self.problem, self.policy, self.memory)

    def restore(self, arrays: Mapping[str, Any], asked: int, pending: Floats | None = None) -> None:
        """Take over a memory that was saved, by its arrays; by default nothing is pending."""
        memory: Memory = self.policy.new_memory(self.problem, 1).from_arrays(arrays)
        self._take_on(self.problem, self.policy, memory)
        self.pending, self.asked = np.zeros_like(self.tally.pulls) if pending is None else pending, asked

    # --- changes ---

    def change_policy(self, policy: Policy[Any], t: int | None = None) -> None:
        """Learn by another policy from round ``t`` on (by default from now on); all counts stay.

        If the new policy forgets, what was observed before counts for round ``t``, unless the old one forgot in equal
        blocks of rounds: then these stay.
        """
        fitted = fit_policy(policy, self.problem)
        memory: Memory = fitted.new_memory(self.problem, 1)
        memory.inherit(self.memory, self.t if t is None else t)
        self.declared = policy
        self.roundings.append(fitted.rounding)
        self._take_on(self.problem, fitted, memory)

    def grow_arms(self, arms: Given | int, *of_problem: Any) -> None:
        """Add arms by name, or so many of them; a retired arm comes back with all that was learnt about it.

        ``of_problem`` are the further arguments of ``growth.with_arms``; they are about arms that were never there.
        """
        if isinstance(arms, str):
            raise InvalidArgument("arms", f"{arms!r} is one name", f"give a list: [{arms!r}]")
        back, new = ([], arms) if isinstance(arms, int) else self.split_retired(arms)
        n = new if isinstance(new, int) else len(new)
        if n or any(more is not None for more in of_problem):
            grown = with_arms(self.problem, n, *of_problem)
            fit_policy(self.declared, grown)
            self.arms.extend(new)
            self.retired = np.concatenate([self.retired, np.zeros(n, bool)])
            self.pending = np.pad(self.pending, ((0, 0), (0, n)))
            self._grow(grown)
        self.restore_arms(back)

    def change_prices(self, prices: Mapping[str, float], budget: float | None = None) -> None:
        """Take on other prices, by name, and another budget; all observations stay, and names not known are new arms.

        Where a policy has the prices, its account of what was spent goes on.
        """
        new = [name for name in prices if self.arms.number(name) is None]
        places = {name: len(self.arms.all) + n for n, name in enumerate(new)}
        given: Mapping[str, Any] = prices
        for name, price in given.items():
            if not isinstance(price, float | int | np.number) or not 0.0 <= price < np.inf:
                raise InvalidArgument("prices", f"{price!r} for arm {name!r}", "give a finite number >= 0")
        numbers: Any = {places.get(name, self.arms.number(name)): float(price) for name, price in prices.items()}
        actions, policy = with_prices(self.problem.actions, self.declared, numbers, budget)
        before, self.declared = self.declared, policy
        try:
            self.grow_arms(new, actions)
        except InvalidArgument:
            self.declared = before
            raise

    def split_retired(self, arms: Iterable[Any]) -> tuple[list[Any], list[Any]]:
        """Names of arms: those that are retired, and the others."""
        names = list(arms)
        back = [name for name in names if (j := self.arms.number(name)) is not None and self.retired[j]]
        here = next((name for name in names if name not in back and self.arms.number(name) is not None), None)
        if here is not None:
            raise InvalidArgument("arms", f"{here!r} is an arm already", "leave it out")
        if len(set(back)) < len(back):
            raise InvalidArgument("arms", "a name appears twice", "give distinct, non-empty strings")
        return back, [name for name in names if name not in back]

    def grow_items(self, items: Given | int, weights: Any) -> None:
        """Add items by name, or so many of them, with their weights; of past pulls they were not seen."""
        n = items if isinstance(items, int) else len(items)
        grown = with_items(self.problem, weights)
        if grown.n_items != self.problem.n_items + n:
            raise InvalidArgument(
                "weights", f"{grown.n_items - self.problem.n_items} weights", f"give {n}, one per item"
            )
        fit_policy(self.declared, grown)
        self.items.extend(items)
        self._grow(grown)

    def _grow(self, problem: Problem) -> None:
        """Take on a larger problem, or one with other weights: for its context the policy may be another one."""
        memory, policy = self.memory.grown(problem, self.asked), fit_policy(self.declared, problem)
        if self.contexts is not None:
            self.contexts.grow(problem)
        if policy != self.policy:
            before, memory = memory, policy.new_memory(problem, 1)
            memory.inherit(before, self.asked)
        self._take_on(problem, policy, memory)

    def retire_arms(self, arms: Iterable[Any], back: bool = False) -> None:
        """Take arms out of all further batches; feedback about them still counts."""
        self.retired[self.arms.numbers(arms)] = not back
        self._playable = ~self.retired

    def restore_arms(self, arms: Iterable[Any]) -> None:
        """Let retired arms be played again, with what was learnt about them."""
        self.retire_arms(arms, back=True)

    def retire_items(self, items: Iterable[Any]) -> None:
        """Give items the weight 0: they count no longer in what a batch is worth."""
        numbers = self.items.numbers(items)
        self._grow(without_items(self.problem, numbers))
        self.retired_items |= set(numbers.tolist())


def require_problem(problem: Any, policy: Any) -> None:
    """Raise ``InvalidArgument`` unless both are what they should be; say so if they stand in each other's place."""
    if not isinstance(problem, Problem):
        remedy = "swap the arguments" if isinstance(policy, Problem) else "give superarm.Problem(…)"
        raise InvalidArgument("problem", f"{problem!r} is not a problem", remedy)
    if isinstance(policy, Index):
        raise InvalidArgument("policy", f"{policy!r} is an index", f"wrap it: IndexPolicy({policy!r})")
    if not isinstance(policy, Policy):
        raise InvalidArgument("policy", f"{policy!r} is not a policy", "give e.g. kl_ucb(), with the parentheses")


def fit_policy(policy: Policy[Any], problem: Problem) -> Policy[Any]:
    """The policy for a problem, wrapped for its context if it has one; refused if it does not apply."""
    require_problem(problem, policy)
    problem.require_shares("an agent takes those in [0, 1]: simulate it, or make them so by sa.agent.Scale")
    if problem.context is not None:
        from superarm.contextual.catalog import for_context

        policy = for_context(policy, problem)
    elif policy.reads_context:
        wrong = f"{type(policy).__name__} needs a context"
        raise InvalidArgument("policy", wrong, "give Problem(…, context=Context(…))")
    require_outcomes(policy, problem)
    policy.validate(problem)
    return policy
