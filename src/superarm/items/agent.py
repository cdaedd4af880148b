"""ItemAgent: decides on slates, and learns the items that they should cover at the same time."""

from typing import Any

import numpy as np

from superarm.actions.base import Actions
from superarm.agent.decisions import Decision
from superarm.core.arrays import Floats, count, floats
from superarm.core.errors import ConflictingFeedback, InvalidArgument, UnknownDecision
from superarm.core.streams import Seed, run_keys, seed_sequence
from superarm.core.tally import round_to_grid
from superarm.decisions.names import Given, Some, names_for
from superarm.describe import build, describe
from superarm.items.counts import FIRST, GROWTH, Answered, ItemCounts, recommended, to_rows
from superarm.items.latent import STRENGTH, Items, learn_rows
from superarm.policies import Policy


class ItemAgent:
    """Hands out slates that please as many visitors as possible, and finds out by itself which tastes there are.

    It starts with one class of visitors. After ``first`` decisions, and each time that there are ``growth`` times as
    many, it learns classes from all answers so far (:func:`superarm.items.learn`): a new version. In between an answer
    counts for each class by the probability that the visitor belongs to it, on the grid of outcomes: so taking back is
    exact, and a saved agent continues to the last bit. The newest 100,000 answers count.

    Parameters
    ----------
    n_arms, actions
        How many arms there are, and which slates may be shown.
    policy
        How rates are learnt; by default by the index ``KLMossWithPrior``.
    seed
        Root of the agent's randomness.
    arms
        Names of the arms.
    first, growth
        When items are learnt.
    personal
        Whether a visitor whose unit or features are known is shown the slate for their own classes, not for those of
        all visitors.

    Examples
    --------
    >>> from superarm.actions import Subsets
    >>> agent = ItemAgent(6, Subsets(2), seed=0)
    >>> decision = agent.ask(unit="u17")
    >>> agent.tell(decision, [1, 0])
    True
    """

    def __init__(
        self,
        n_arms: int,
        actions: Actions,
        policy: Policy[Any] | None = None,
        seed: Seed = None,
        *,
        arms: Given | None = None,
        first: int = FIRST,
        growth: float = GROWTH,
        personal: bool = False,
    ) -> None:
        n_arms = count(n_arms, "n_arms", 1)
        self.personal, self.first, self.growth = personal, count(first, "first", 1), growth
        if not growth > 1.0:
            raise InvalidArgument("growth", f"{growth!r}", "give a number above 1")
        self.version, self.t = 0, 0
        _, self._choosing, _ = run_keys([seed_sequence(seed)])
        self._pending: dict[str, tuple[Decision, str | None, Floats | None]] = {}
        nothing = learn_rows(to_rows([], n_arms), (1,), arms=tuple(names_for(arms, n_arms, "arms").all))
        self.counts = ItemCounts(nothing, actions, policy or recommended(actions, n_arms))
        self.counts.due = self.first

    @property
    def items(self) -> Items:
        """The classes of visitors, as they were learnt last."""
        return self.counts.items

    def shares(self, unit: str | None = None, features: Any = None) -> Floats:
        """The shares of the classes: among all visitors, or for one by features and the earlier answers of a unit."""
        return self.counts.shares(unit, features)

    def ask(
        self, unit: str | None = None, eligible: Some | None = None, id: str | None = None, features: Any = None
    ) -> Decision:
        """The slate to show next, out of the ``eligible`` arms.

        ``unit`` is who sees it, and ``features`` are numbers that describe them, as far as that is known.
        """
        name = str(self.t + 1) if id is None else id
        if name in self._pending:
            return self._pending[name][0]
        if name in self.counts.told:
            raise InvalidArgument("id", f"{name!r} was told already", "give another one")
        known = None if features is None else floats(features, "features", low=-1e12, high=1e12)
        own = self.shares(unit, known) if self.personal and (unit is not None or known is not None) else None
        self.t += 1
        learner = self.counts.learner
        action = self.counts.choose(learner.view(self.t, self._choosing, learner.playable(eligible)), own)
        if not len(action):
            raise InvalidArgument("eligible", "no slate can be formed", "make enough arms eligible")
        learner.bring_up_to_date(None, self.t)
        self._pend(Decision(name, self.t, action, tuple(learner.arms.all[j] for j in action.tolist())), unit, known)
        return self._pending[name][0]

    def _pend(self, decision: Decision, unit: str | None, features: Floats | None) -> None:
        self._pending[decision.id] = (decision, unit, features)
        self.counts.learner.pend(decision.action, decision.t)

    def tell(self, decision: Decision | str, answers: Any) -> bool:
        """What the visitor answered: a number in [0, 1] for each arm of the slate, in its order.

        Telling again what was told changes nothing and returns False.
        """
        name = decision.id if isinstance(decision, Decision) else decision
        values = round_to_grid(floats(answers, "answers", low=0.0, high=1.0))
        if name in self.counts.told:
            if not np.array_equal(self.counts.told[name].answers, values):
                raise ConflictingFeedback(f"decision {name!r} was told before, with other answers; untell it first")
            return False
        if name not in self._pending:
            raise UnknownDecision(f"there is no decision {name!r}")
        made, unit, features = self._pending[name]
        if values.shape != made.action.shape:
            remedy = f"give {len(made.action)}, one for each arm of the slate"
            raise InvalidArgument("answers", f"shape {values.shape}", remedy)
        del self._pending[name]
        self.counts.learner.unpend(made.action)
        self.counts.put(name, Answered(made.t, made.action, values, unit, features))
        if len(self.counts.told) >= self.counts.due:
            self.refit()
        return True

    def untell(self, decision: Decision | str) -> None:
        """Take back, exactly, what was told of a decision, also under earlier items; it is pending again.

        The rates of the items forget it at the next refit.
        """
        name = decision.id if isinstance(decision, Decision) else decision
        told = self.counts.drop(name)
        if told is None:
            raise UnknownDecision(f"decision {name!r} was not told")
        arms = tuple(self.counts.learner.arms.all[j] for j in told.arms.tolist())
        self._pend(Decision(name, told.t, told.arms, arms), told.unit, told.features)

    def refit(self) -> Items:
        """Learn the items anew, from all answers so far; the next refit is due after ``growth`` times as many."""
        counts, self.version = self.counts, self.version + 1
        counts.adopt(counts.learn(self.version), counts.oldest())
        counts.due_after(len(counts.told), self.growth)
        return self.items

    def to_state(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold; ``from_state`` continues to the last bit."""
        items, counts = self.items, self.counts
        parts = (items.shares, items.p, items.level, items.rates, items.effects, items.scale)
        return {
            "actions": describe(counts.actions),
            "policy": describe(counts.policy),
            "arms": list(counts.learner.arms.all),
            "key": int(self._choosing[0]),
            "settings": [self.first, self.growth, self.personal],
            "counts": [self.version, counts.due, self.t, counts.since],
            "items": [None if part is None else part.tolist() for part in parts],
            "z": items.z,
            "pending": [
                [one.id, one.t, one.action.tolist(), unit, None if x is None else x.tolist()]
                for one, unit, x in self._pending.values()
            ],
            "told": counts.to_plain(),
            "fitted": {name: part.tolist() for name, part in counts.learner.memory.beside().items()},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "ItemAgent":
        """The agent that ``to_state`` described."""
        first, growth, personal = state["settings"]
        names, policy = state["arms"], build(state["policy"])
        made = cls(len(names), build(state["actions"]), policy, 0, arms=names, first=first, growth=growth)
        counts = made.counts
        made.personal, (made.version, due, made.t, since) = personal, state["counts"]
        made._choosing = np.array([state["key"]], np.uint64)
        counts.restore(state["told"])
        shares, p, level, rates, effects, scale = map(_array, state["items"])
        rows = to_rows(list(counts.told.values()), len(names))
        counts.adopt(Items(shares, p, level, rates, STRENGTH, state["z"], rows, tuple(names), effects, scale), since)
        counts.due = due
        counts.learner.memory.take_beside({name: np.array(part) for name, part in state.get("fitted", {}).items()})
        for name, t, action, unit, x in state["pending"]:
            made._pend(Decision(name, t, np.array(action), tuple(names[j] for j in action)), unit, _array(x))
        return made


def _array(part: Any) -> Any:
    return None if part is None else np.array(part, float)
