"""Agent: ask and tell around a policy."""

import copy
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from superarm.actions import Actions, Pinned
from superarm.agent.decisions import Decision, DecisionEntry, Decisions, apply_feedback, unpend
from superarm.agent.digests import digest_feedback
from superarm.agent.explanations import Explanation, explain_decision
from superarm.agent.interface import find_policy
from superarm.agent.outcomes import check_outcome
from superarm.agent.showing import describe_agent, show_agent
from superarm.arrays import Floats, Ints
from superarm.context.encoding import hashed_words
from superarm.errors import ConflictingFeedback, InvalidArgument, UnknownDecision
from superarm.labels import Labels, align, is_frame
from superarm.learner import Learner
from superarm.learner.contexts import require_context
from superarm.learner.growth import require_actions
from superarm.learner.state import learner_from_plain, learner_to_plain
from superarm.policies import Policy
from superarm.problem import Problem
from superarm.streams import Seed, Stream, run_streams, seed_sequence, seek
from superarm.tally import Feedback, Tally, known_estimates

STATE_VERSION = 1

F = TypeVar("F", bound=Callable[..., Any])


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
        The problem to learn, and the policy that learns it: for instance ``kl_ucb()``, or ``bc_ucb()`` of the paper.
    seed
        Root of the agent's randomness: an int, a ``SeedSequence`` such as ``superarm.simulation.seeds`` gives, a
        ``Generator``, from which the root is drawn, or None for another one each time.
    tally
        Past data or a prior for a warm start: ``problem.past(…)``, ``problem.prior(…)``.
    arms, items
        Names: strings, or ints such as ids of a database; by default their numbers. Decisions hold names as strings.
        Where names were given as ints, an int means a name; elsewhere it means a number, counted from 0.
    remember
        How many decisions with feedback are remembered, to recognise repeated feedback.

    Examples
    --------
    >>> import numpy as np, superarm as sa
    >>> problem = sa.Problem(n_arms=5, n_items=3, reward=sa.Coverage(), actions=sa.Subsets(2))
    >>> agent = sa.Agent(problem, sa.kl_ucb(), seed=0)
    >>> decision = agent.ask()
    >>> decision.action
    array([0, 1])
    >>> agent.tell(decision, [[1, 0, 0], [0, 0, 1]])
    True
    """

    def __init__(
        self,
        problem: Problem,
        policy: Policy,
        seed: Seed = 0,
        *,
        tally: Tally | None = None,
        arms: Sequence[str] | Sequence[int] | None = None,
        items: Sequence[str] | Sequence[int] | None = None,
        remember: int = 100_000,
    ) -> None:
        self._lock = threading.RLock()
        self.learner = Learner(problem, policy, arms, items)
        _, self._choosing, self._rounding = run_streams(seed_sequence(seed))
        self._decisions = Decisions(remember)
        if tally is not None:
            self.warm_start(tally)

    @property
    def problem(self) -> Problem:
        """What is being learnt."""
        return self.learner.problem

    @property
    def policy(self) -> Policy:
        """How it is being learnt."""
        return self.learner.policy

    @property
    def tally(self) -> Tally:
        """All that was observed so far."""
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
        return tuple(entry.decision for entry in self._decisions.pending.values())

    @_in_turn
    def estimates(self) -> tuple[Floats, Floats]:
        """Mean and variance of every entry, (n_arms, n_items), or flat if the support is sparse; NaN if never seen."""
        return known_estimates(self.tally, self.problem.support)

    @_in_turn
    def __getstate__(self) -> dict[str, Any]:
        return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_lock"})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    __repr__ = describe_agent
    _repr_html_ = show_agent

    @_in_turn
    def ask(
        self,
        eligible: Sequence[int | str] | None = None,
        id: str | None = None,
        pinned: Sequence[int | str] | None = None,
        context: Any = None,
        pairs: Any = None,
    ) -> Decision:
        """The batch to play next, out of the ``eligible`` arms and around the ``pinned`` ones, if they are given.

        ``context`` holds the features of the user, if the problem declares them, and ``pairs`` (n_arms, …) those of the
        pairs of user and arm. They are remembered with the decision: ``tell`` does not need them.

        May be asked many times before any outcome is told: pending pulls count in the radius. With an ``id`` of your
        own, asking again with the same id gives the same decision again. If fewer arms are eligible than a batch can
        hold, the batch is smaller; if none can be formed, that is an error.
        """
        learner = self.learner
        t = learner.t + 1
        name = str(t) if id is None else id
        if not isinstance(name, str) or not name:
            raise InvalidArgument("id", f"{id!r} is not a name", "give a non-empty string")
        made = self._decisions.find(name)
        if made is not None:
            return made.decision
        require_context(self.problem, context, pairs)
        contexts = learner.contexts
        pairs, _ = align(pairs, Labels("arms", learner.arms.all, learner.arms.all), None, name="pairs")
        encoded = None if contexts is None else contexts.encode(self.problem, context, pairs)
        mask = learner.playable(eligible)
        actions = None if pinned is None else self._parse_pinned(pinned)
        seek(self._choosing, t, 0)
        action = learner.choose(t, mask, self._choosing, actions, context=encoded)
        if not len(action):
            raise InvalidArgument("eligible", "no batch can be formed", "make enough arms eligible, retire fewer")
        if contexts is None or encoded is None:
            learner.pend(action, t)
            return self._decisions.add(name, t, action, learner)
        made_for = contexts.decide(learner, action, encoded)
        contexts.pend(learner, action, t, made_for)
        contexts.bring_up_to_date(learner, context)
        features = contexts.context.features
        words = hashed_words(features, context) if features.hashed else None
        return self._decisions.add(name, t, action, learner, made_for, words)

    def _parse_pinned(self, pinned: Sequence[int | str]) -> Actions:
        """The batches that hold the ``pinned`` arms."""
        actions = Pinned(self.problem.actions, self.learner.arms.numbers(pinned).tolist())
        actions.validate(self.problem.n_arms)
        return actions

    @_in_turn
    def explain(self, decision: Decision | str, most: int = 5) -> Explanation:
        """Why these arms: estimates, optimistic parameters and marginal gains, from what is known now.

        A pending decision is explained as if it was not made yet, so that right after ``ask`` the explanation has the
        numbers by which it was chosen. With a linear model it names the ``most`` features with the largest effects.
        """
        name = _id(decision)
        made = self._decisions.known(name)
        pending = name in self._decisions.pending
        if pending:
            unpend(self.learner, made, 1.0)
        try:
            seek(self._choosing, made.decision.t, 0)
            return explain_decision(self.learner, made, most, self._choosing)
        finally:
            if pending:
                unpend(self.learner, made, -1.0)

    @_in_turn
    def tell(
        self, decision: Decision | str, outcome: Any, seen: Any = None, arms: Sequence[int | str] | None = None
    ) -> bool:
        """What came of a decision: ``outcome`` (len(action), n_items) in [0, 1], rows in the order of its action.

        Entries with ``seen`` False were not observed: they are not zeros, and change no estimate; an arm of which
        nothing was seen counts as never played. Where playing triggers other arms, or not all of its own, ``arms``
        names those that were observed, and ``outcome`` has a row for each of them. For a sparse problem lay the rows'
        entries flat, one after the other.

        Rows and columns of a data frame are found by their names, if it has any: those of its rows must be the names of
        the arms, those of its columns the names of the items.

        Telling again what was told changes nothing and returns False; telling something else raises
        ``ConflictingFeedback``. Any error leaves the agent as it was.
        """
        name = _id(decision)
        made = self._decisions.known(name)
        feedback, digests = self._parse_feedback(made, outcome, seen, arms)
        if name in self._decisions.told:
            if self._decisions.told[name][0] not in digests:
                raise ConflictingFeedback(f"decision {name!r} was told before, with another outcome; untell it first")
            return False
        apply_feedback(self.learner, made, feedback, self._rounding, 1.0)
        self._decisions.close(name, digests[0])
        return True

    @_in_turn
    def untell(
        self, decision: Decision | str, outcome: Any, seen: Any = None, arms: Sequence[int | str] | None = None
    ) -> None:
        """Take back, exactly, what was told of a decision; it is pending again."""
        name = _id(decision)
        if name not in self._decisions.told:
            raise UnknownDecision(f"decision {name!r} was not told, or is long forgotten")
        digest, made = self._decisions.told[name]
        feedback, digests = self._parse_feedback(made, outcome, seen, arms)
        if digest not in digests:
            raise ConflictingFeedback(f"decision {name!r} was told another outcome; give the one to take back")
        apply_feedback(self.learner, made, feedback, self._rounding, -1.0)
        self._decisions.reopen(name)

    @_in_turn
    def cancel(self, decision: Decision | str) -> None:
        """Forget a decision that was never played; it is pending no longer."""
        name = _id(decision)
        unpend(self.learner, self._decisions.find_pending(name), 1.0)
        del self._decisions.pending[name]

    def _parse_feedback(
        self, made: DecisionEntry, outcome: Any, seen: Any, arms: Sequence[int | str] | None
    ) -> tuple[Feedback, list[str]]:
        """Feedback about a decision, in arrays that kernels take, and its digests."""
        action = made.decision.action
        observed = action.copy() if arms is None else self.learner.arms.numbers(arms)
        if is_frame(outcome) or is_frame(seen):
            outcome, seen = align(outcome, *self._labels(observed, made.n_items, outcome), seen)
        values, mask = check_outcome(self.problem, observed, made.n_items, outcome, seen)
        feedback = Feedback(made.decision.t, observed, values, mask)
        return feedback, digest_feedback(feedback, self.problem, made)

    def _labels(self, observed: Ints, n_items: int, outcome: Any) -> tuple[Labels, Labels]:
        """The names of observed arms and of items, of which the decision was made for ``n_items``."""
        arms, items = self.learner.arms.all, self.learner.items.all
        wanted = items[:n_items] if np.shape(outcome)[1:] == (n_items,) else items
        return Labels("arms", [arms[j] for j in observed], arms), Labels("items", wanted, items)

    @_in_turn
    def warm_start(self, tally: Tally) -> None:
        """Add past data or a prior; time goes on from the most pulls an arm has had (an arm has one per round)."""
        self.learner.warm_start(tally)

    @_in_turn
    def change_policy(self, policy: Policy | str, **parameters: float) -> None:
        """Choose by another policy, or by one of the catalogue by its name, from now on; what was observed stays."""
        self.learner.change_policy(find_policy(policy, parameters))

    @_in_turn
    def add_arms(
        self, arms: Sequence[str] | int, actions: Actions | None = None, support: Any = None, features: Any = None
    ) -> None:
        """Add arms by name, or so many of them; they will be tried first. Sets that name arms need new ``actions``.

        A name that was retired comes back with all that was learnt about it. Where arms have features, ``features`` are
        those of the arms that were never there, which are predicted from them at once.
        """
        context, known = self.problem.context, self.learner.arms
        if isinstance(arms, int) or any(known.number(arm) is None for arm in arms):
            require_actions(self.problem, actions)
        if context is not None and not context.arm_features.names and not isinstance(arms, int):
            new = [arm for arm in arms if known.number(arm) is None]
            features, _ = align(features, Labels("arms", new, new), None, name="features")
        self.learner.grow_arms(arms, actions, support, features)

    @_in_turn
    def retire_arms(self, arms: Sequence[int | str]) -> None:
        """Take arms out of all further decisions; outcomes of pending ones are still learnt from.

        ``add_arms`` with the same names brings them back.
        """
        self.learner.retire_arms(arms)

    @_in_turn
    def add_items(self, items: Sequence[str] | int, weights: Any = None) -> None:
        """Add items by name, or so many of them, with weights (1 by default); of past pulls they were not seen."""
        n = items if isinstance(items, int) else len(items)
        self.learner.grow_items(items, np.ones(n) if weights is None else weights)

    @_in_turn
    def retire_items(self, items: Sequence[int | str]) -> None:
        """Give items the weight 0: they count no longer in what a batch is worth."""
        self.learner.retire_items(items)

    @_in_turn
    def to_state(self) -> dict[str, Any]:
        """The whole agent as a plain, versioned dict that JSON can hold."""
        return {
            "version": STATE_VERSION,
            **learner_to_plain(self.learner),
            "mind": f"{int(self._choosing.key[0]):016x}",
            "coin": f"{int(self._rounding.key[0]):016x}",
            "book": self._decisions.to_plain(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Agent":
        """The agent that ``to_state`` described; it continues bit for bit."""
        if not isinstance(state, dict) or state.get("version") != STATE_VERSION:
            version = state.get("version") if isinstance(state, dict) else None
            raise InvalidArgument("state", f"version {version!r}", f"this superarm reads version {STATE_VERSION}")
        agent = cls.__new__(cls)
        agent._lock = threading.RLock()
        agent._choosing, agent._rounding = _stream(state["mind"]), _stream(state["coin"])
        agent.learner = learner_from_plain(state)
        agent._decisions = Decisions.from_plain(state["book"], agent.learner.arms.all)
        for made in agent._decisions.pending.values():
            unpend(agent.learner, made, -1.0)
        return agent


def _id(decision: Decision | str) -> str:
    return decision.id if isinstance(decision, Decision) else decision


def _stream(key: str) -> Stream:
    word = np.array([int(key, 16)], np.uint64)
    return Stream(word, word.copy())
