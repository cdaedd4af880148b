"""Agent: ask and tell around a policy."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from superarm.actions import Actions, Pinned, Ranks
from superarm.arrays import Bools, Floats, Ints
from superarm.book import Book, Decision, entry
from superarm.describe import build, describe
from superarm.errors import ConflictingFeedback, InvalidArgument, UnknownDecision
from superarm.growth import tally_with_arms, tally_with_items, with_arms, with_items
from superarm.names import Names
from superarm.noise import Noise, seek, streams
from superarm.outcomes import laid_flat
from superarm.policies import Kept, Moment, Policy, choose, kept, learn, remembering
from superarm.problem import Problem
from superarm.saved import kept_from_plain, kept_to_plain, tally_from_plain, tally_to_plain
from superarm.support import Dense
from superarm.tally import Feedback, Tally, allow_missing, empty, estimates, merge

STATE_VERSION = 1


class Agent:
    """Hands out batches and learns from what each arm of a batch did.

    Parameters
    ----------
    problem, policy
        What is to be learnt, and how: ``kl_ucb()`` is recommended, ``bc_ucb()`` is the paper's.
    seed
        Root of the agent's randomness: an int, or a ``SeedSequence`` such as ``superarm.simulation.seeds`` gives.
    tally
        Past data or a prior for a warm start: ``problem.past(…)``, ``problem.prior(…)``.
    arms, items
        Names; by default their numbers.
    remember
        How many told decisions are kept in mind to recognise repeated feedback.

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
        seed: int | np.random.SeedSequence = 0,
        *,
        tally: Tally | None = None,
        arms: Sequence[str] | None = None,
        items: Sequence[str] | None = None,
        remember: int = 100_000,
    ) -> None:
        if not callable(getattr(policy, "choose", None)) or isinstance(policy, type):
            raise InvalidArgument("policy", f"{policy!r} is not a policy", "give e.g. kl_ucb(), with the parentheses")
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        _, self._mind, self._coin = streams(root)
        self.policy = policy
        self._arms = _named(arms, problem.n_arms, "arms")
        self._items = _named(items, problem.n_items, "items")
        self._retired = np.zeros(problem.n_arms, bool)
        self._asked = 0
        self._book = Book(remember)
        self._settle(problem, empty(problem.support))
        if tally is not None:
            self.warm_start(tally)

    def _settle(self, problem: Problem, tally: Tally, held: Kept | None = None) -> None:
        """Take on a problem, a tally and what the policy keeps beside it, and derive from them all that is derived."""
        fitted = self.policy.fit(problem)
        memory = remembering(fitted, problem, tally, held)
        self.problem, self.tally, self._fitted, self._memory = problem, tally, fitted, memory
        self._pulls = tally.pulls.copy()
        for waiting in self._book.open.values():
            self._pulls[waiting.decision.action] += 1.0

    def _grow(self, grown: Problem, tally_with: Callable[[Tally, Problem, Problem], Tally]) -> None:
        before, held = self.problem, kept(self._fitted, self._memory)
        wider = held and held.changed(lambda block: tally_with(block, before, grown))
        self._settle(grown, tally_with(self.tally, before, grown), wider)

    @property
    def t(self) -> int:
        """How many decisions were made."""
        return self._asked

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms, retired ones included."""
        return tuple(self._arms.all)

    @property
    def items(self) -> tuple[str, ...]:
        """The names of all items."""
        return tuple(self._items.all)

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions that wait for their outcome, oldest first."""
        return tuple(waiting.decision for waiting in self._book.open.values())

    def estimates(self) -> tuple[Floats, Floats]:
        """Empirical mean and variance of every entry, (n_arms, n_items), or flat if the support is sparse."""
        shape = (self.problem.n_arms, self.problem.n_items) if isinstance(self.problem.support, Dense) else (-1,)
        mean, variance = estimates(self.tally, self.problem.support)
        return mean.reshape(shape), variance.reshape(shape)

    def ask(
        self,
        eligible: Sequence[int | str] | None = None,
        id: str | None = None,
        pinned: Sequence[int | str] | None = None,
    ) -> Decision:
        """The batch to play next, out of the ``eligible`` arms and around the ``pinned`` ones, if they are given.

        May be asked many times before any outcome is told: pulls that are under way count in the radius.
        With an ``id`` of your own, asking again with the same id gives the same decision again.
        """
        t = self._asked + 1
        name = str(t) if id is None else id
        if not isinstance(name, str) or not name:
            raise InvalidArgument("id", f"{id!r} is not a name", "give a non-empty string")
        made = self._book.find(name)
        if made is not None:
            return made.decision
        moment = Moment(t, self.tally, Ranks(self._pulls, self._eligible(eligible)))
        seek(self._mind, t, 0)
        if pinned is None:
            action = choose(self._fitted, self.problem, moment, self._memory, self._mind)
        else:
            action = self._around(pinned, moment)
        if not len(action):
            raise InvalidArgument("eligible", "no batch can be formed", "make enough arms eligible, retire fewer")
        self._asked = t
        self._pulls[action] += 1.0
        self._book.open[name] = entry(name, t, action, self.problem.n_items, self._arms.all)
        return self._book.open[name].decision

    def _around(self, pinned: Sequence[int | str], moment: Moment) -> Ints:
        """A batch that holds the ``pinned`` arms: another action set for this one choice, the same policy and tally."""
        task = self.problem._replace(actions=Pinned(self.problem.actions, self._arms.numbers(pinned).tolist()))
        task.actions.validate(task.n_arms)
        fitted = self.policy.fit(task)
        memory = remembering(fitted, task, self.tally, kept(self._fitted, self._memory))
        return choose(fitted, task, moment, memory, self._mind)

    def _eligible(self, eligible: Sequence[int | str] | None) -> Bools:
        if eligible is None:
            return ~self._retired
        mask = np.zeros(self.problem.n_arms, bool)
        mask[self._arms.numbers(eligible)] = True
        return mask & ~self._retired

    def tell(
        self, decision: Decision | str, outcome: Any, seen: Any = None, arms: Sequence[int | str] | None = None
    ) -> bool:
        """What came of a decision: ``outcome`` (len(action), n_items) in [0, 1], rows in the order of its action.

        Entries with ``seen`` False were not observed: they are not zeros, and change no estimate; an arm of which
        nothing was seen counts as never played. Where playing triggers other arms, or not all of its own, ``arms``
        names those that were observed, and ``outcome`` has a row for each of them. For a sparse problem lay the rows'
        entries flat, one after the other.

        Telling again what was told changes nothing and returns False; telling something else raises
        ``ConflictingFeedback``. Any error leaves the agent as it was.
        """
        name = _id(decision)
        made = self._book.known(name)
        observed = self._observed(made.decision, arms)
        values, mask = laid_flat(self.problem, observed, made.n_items, outcome, seen)
        digest = _digest(made.decision, observed, values, mask)
        if name in self._book.told:
            if self._book.told[name][0] != digest:
                raise ConflictingFeedback(f"decision {name!r} was told before, with another outcome; untell it first")
            return False
        self._record(made.decision, observed, values, mask, 1.0)
        self._book.close(name, digest)
        return True

    def untell(
        self, decision: Decision | str, outcome: Any, seen: Any = None, arms: Sequence[int | str] | None = None
    ) -> None:
        """Take back, exactly, what was told of a decision; it waits for its outcome again."""
        name = _id(decision)
        if name not in self._book.told:
            raise UnknownDecision(f"decision {name!r} was not told, or is long forgotten")
        digest, made = self._book.told[name]
        observed = self._observed(made.decision, arms)
        values, mask = laid_flat(self.problem, observed, made.n_items, outcome, seen)
        if _digest(made.decision, observed, values, mask) != digest:
            raise ConflictingFeedback(f"decision {name!r} was told another outcome; give the one to take back")
        self._record(made.decision, observed, values, mask, -1.0)
        self._book.reopen(name)

    def cancel(self, decision: Decision | str) -> None:
        """Forget a decision that was never played; it counts no longer as under way."""
        name = _id(decision)
        self._pulls[self._book.waiting(name).decision.action] -= 1.0
        del self._book.open[name]

    def _observed(self, decision: Decision, arms: Sequence[int | str] | None) -> Ints:
        """The arms that feedback is about, in an array that can be written to: the type that kernels know."""
        return decision.action.copy() if arms is None else self._arms.numbers(arms)

    def _record(self, decision: Decision, observed: Ints, values: Floats, mask: Bools, sign: float) -> None:
        if not mask.all():
            self.tally = allow_missing(self.tally)
        before = self.tally.pulls[observed]
        feedback = Feedback(decision.t, observed, values, mask)
        learn(self._fitted, self.problem, self.tally, self._memory, feedback, self._coin, sign)
        self._pulls[decision.action] -= sign  # no longer under way, or under way again
        self._pulls[observed] += self.tally.pulls[observed] - before

    def warm_start(self, tally: Tally) -> None:
        """Add past data or a prior; time goes on from the most pulls an arm has had (an arm has one a round)."""
        if tally.pulls.shape != self.tally.pulls.shape or tally.total.shape != self.tally.total.shape:
            raise InvalidArgument("tally", "made for another problem", "make it with this problem's past() or prior()")
        held = kept(self._fitted, self._memory)
        if held is not None:
            held.blocks[0] = merge(held.blocks[0], tally)
        self._settle(self.problem, merge(self.tally, tally), held)
        self._asked = max(self._asked, int(self.tally.pulls.max()))

    def add_arms(self, arms: Sequence[str] | int, actions: Actions | None = None, support: Any = None) -> None:
        """Add arms by name, or so many of them; they will be tried first. ``Explicit`` sets need new ``actions``."""
        n = arms if isinstance(arms, int) else len(arms)
        grown = with_arms(self.problem, n, actions, support)
        self._arms.extend(arms)
        self._retired = np.concatenate([self._retired, np.zeros(n, bool)])
        self._grow(grown, tally_with_arms)

    def retire_arms(self, arms: Sequence[int | str]) -> None:
        """Take arms out of all further decisions; outcomes that are under way are still learnt from."""
        self._retired[self._arms.numbers(arms)] = True

    def add_items(self, items: Sequence[str] | int, weights: Any = None) -> None:
        """Add items by name, or so many of them, with weights (1 by default); of past pulls they were not seen."""
        n = items if isinstance(items, int) else len(items)
        grown = with_items(self.problem, np.ones(n) if weights is None else weights)
        if grown.n_items != self.problem.n_items + n:
            raise InvalidArgument(
                "weights", f"{grown.n_items - self.problem.n_items} weights", f"give {n}, one an item"
            )
        self._items.extend(items)
        self._grow(grown, tally_with_items)

    def retire_items(self, items: Sequence[int | str]) -> None:
        """Give items the weight 0: they count no longer in what a batch is worth."""
        weights = self.problem.weights.copy()
        weights[self._items.numbers(items)] = 0.0
        problem, support = self.problem, None if isinstance(self.problem.support, Dense) else self.problem.support
        same = Problem(problem.n_arms, problem.n_items, problem.reward, problem.actions, weights, support)
        self._settle(same, self.tally, kept(self._fitted, self._memory))

    def to_state(self) -> dict[str, Any]:
        """The whole agent as a plain, versioned dict that JSON can hold."""
        return {
            "version": STATE_VERSION,
            "problem": describe(self.problem),
            "policy": describe(self.policy),
            "tally": tally_to_plain(self.tally),
            "kept": kept_to_plain(kept(self._fitted, self._memory)),
            "mind": f"{int(self._mind.key[0]):016x}",
            "coin": f"{int(self._coin.key[0]):016x}",
            "asked": self._asked,
            "arms": list(self._arms.all),
            "items": list(self._items.all),
            "retired": np.flatnonzero(self._retired).tolist(),
            "book": self._book.to_plain(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Agent":
        """The agent that ``to_state`` described; it continues bit for bit."""
        if not isinstance(state, dict) or state.get("version") != STATE_VERSION:
            version = state.get("version") if isinstance(state, dict) else None
            raise InvalidArgument("state", f"version {version!r}", f"this superarm reads version {STATE_VERSION}")
        agent = cls(build(state["problem"]), build(state["policy"]), arms=state["arms"], items=state["items"])
        agent._mind, agent._coin = _stream(state["mind"]), _stream(state["coin"])
        agent._asked = state["asked"]
        agent._retired[state["retired"]] = True
        agent._book = Book.from_plain(state["book"], agent._arms.all)
        agent._settle(agent.problem, tally_from_plain(state["tally"]), kept_from_plain(state.get("kept")))
        return agent


def _named(names: Sequence[str] | None, n: int, what: str) -> Names:
    if names is not None and len(names) != n:
        raise InvalidArgument(what, f"{len(names)} names for {n} {what}", "give one name each")
    return Names(n if names is None else names, what)


def _id(decision: Decision | str) -> str:
    return decision.id if isinstance(decision, Decision) else decision


def _digest(decision: Decision, observed: Ints, values: Floats, mask: Bools) -> str:
    own = np.array_equal(observed, decision.action)
    return hashlib.sha256(values.tobytes() + mask.tobytes() + (b"" if own else observed.tobytes())).hexdigest()[:32]


def _stream(key: str) -> Noise:
    word = np.array([int(key, 16)], np.uint64)
    return Noise(word, word.copy())
