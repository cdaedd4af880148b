"""ItemAgent: decides on slates, and learns the items that they should cover at the same time."""

from typing import Any, NamedTuple

import numpy as np

from superarm.actions.base import Actions
from superarm.agent.decisions import Decision
from superarm.agent.learner import Learner
from superarm.agent.names import Given, Some
from superarm.core.arrays import Floats, Ints, count, floats
from superarm.core.describe import build, describe
from superarm.core.errors import ConflictingFeedback, InvalidArgument, UnknownDecision
from superarm.core.numeric import log
from superarm.core.streams import Seed, run_keys, seed_sequence
from superarm.core.tally import GRID, Feedback, round_to_grid
from superarm.indices import KLMoss
from superarm.items.latent import STRENGTH, Items, Rows, learn_rows, prior_tally
from superarm.policies import IndexPolicy, Policy

FIRST, GROWTH = 200, 1.5
"""Items are learnt after so many decisions, and again each time that there are so many times more."""
MAX_ROWS = 200_000
"""Items are learnt from the newest decisions, so many at most."""


class KLMossWithPrior(KLMoss):
    r"""The KL-MOSS bound of a mean that contains a prior of ``strength`` observations; ``k`` arms are shown at once.

    .. math:: q = \max\{q : kl(mean, q) \le x\}, \qquad
              x = \log^+\Bigl(\frac{t}{n\_arms\,(pulls - strength)}\Bigr) / pulls

    After [MenardGarivier2017]_. Differs: t is not multiplied by k, so that it explores less; no regret bound is known.
    """

    strength: float = STRENGTH
    k: int = 1

    def level(self, pulls: Any, t: Any, share: float) -> Any:
        seen = np.maximum(pulls - self.strength, 0.01)
        return np.maximum(0.0, log(t * share / self.k / seen)) / pulls


class Answered(NamedTuple):
    """A decision with its answers: round, arms, what was answered, the unit, and the shares of the classes."""

    t: int
    arms: Ints
    answers: Floats
    unit: str | None
    share: Floats


class ItemAgent:
    """Hands out slates that please as many visitors as possible, and finds out by itself which tastes there are.

    It starts with one class of visitors. After ``first`` decisions, and each time that there are ``growth`` times as
    many, it learns classes from all answers so far (:func:`superarm.items.learn`): a new version. In between an answer
    counts for each class by the probability that the visitor belongs to it. These shares are stored with the answer,
    on the grid of outcomes, so that taking back is exact and a saved agent continues to the last bit.

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
        Whether a unit that is known is shown the slate for its own classes, not for those of all visitors.

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
        policy: Policy | None = None,
        seed: Seed = None,
        *,
        arms: Given | None = None,
        first: int = FIRST,
        growth: float = GROWTH,
        personal: bool = False,
    ) -> None:
        k = actions.capacity(count(n_arms, "n_arms", 1))
        self.actions, self.personal = actions, personal
        self.declared = policy or IndexPolicy(KLMossWithPrior(k=k))
        self.first, self.growth = count(first, "first", 1), growth
        if not growth > 1.0:
            raise InvalidArgument("growth", f"{growth!r}", "give a number above 1")
        self.version, self.due, self.t = 0, self.first, 0
        _, self._choosing, self._rounding = run_keys([seed_sequence(seed)])
        self._pending: dict[str, tuple[Decision, str | None]] = {}
        self._told: dict[str, Answered] = {}
        self._names = arms
        nothing = np.zeros(0, np.int64)
        self._settle(learn_rows(Rows.of(nothing, nothing, np.zeros(0), count(n_arms, "n_arms", 1)), (1,)))

    def _settle(self, items: Items, anew: bool = True) -> None:
        """Take on items, and count all answers: by their classes ``anew``, or by the shares that are stored."""
        self.items = items
        self.learner = Learner(items.problem(self.actions), self.declared, self._names)
        empty = np.zeros(items.p.shape)
        self.learner.warm_start(prior_tally(items, empty, empty))
        for name, told in self._told.items():
            own = told._replace(share=self._share(told.arms, told.answers)) if anew else told
            self._told[name] = own
            self._record(own, 1.0)
        for decision, _ in self._pending.values():
            self.learner.pend(decision.action, decision.t)

    def _share(self, arms: Ints, answers: Floats) -> Floats:
        """The probabilities of a visitor's classes on the grid; the largest takes what is left of 1."""
        share = round_to_grid(self.items.posterior(arms, answers))
        share[np.argmax(share)] += 1.0 - share.sum()
        return np.asarray(share)

    def _record(self, told: Answered, sign: float) -> None:
        feedback = Feedback(told.t, told.arms[None], told.answers[None, :, None], share=told.share[None])
        self.learner.apply(feedback, self._rounding, sign)

    def shares(self, unit: str | None = None) -> Floats:
        """The shares of the classes among all visitors or, given a unit, their probabilities from its answers."""
        told = [one for one in self._told.values() if unit is not None and one.unit == unit]
        if not told:
            return self.items.shares
        rows = Rows.of(
            np.zeros(sum(len(one.arms) for one in told), np.int64),
            np.concatenate([one.arms for one in told]),
            np.concatenate([one.answers for one in told]),
            len(self.items.p),
        )
        seen = rows.seen.indices
        return self.items.posterior(seen, rows.answer.data)

    def ask(self, unit: str | None = None, eligible: Some | None = None, id: str | None = None) -> Decision:
        """The slate to show next, out of the ``eligible`` arms; ``unit`` is who sees it, if that is known."""
        name = str(self.t + 1) if id is None else id
        if name in self._pending:
            return self._pending[name][0]
        if name in self._told:
            raise InvalidArgument("id", f"{name!r} was told already", "give another one")
        self.t += 1
        view = self.learner.view(self.t, self._choosing, self.learner.playable(eligible))
        if self.personal and unit is not None:
            mine = self.learner.problem.changed(weights=self.shares(unit))
            policy = self.learner.policy
            action = policy.choose(mine, view, policy.prepare(mine, self.learner.tally))[0]
            action = action[action >= 0]
        else:
            action = self.learner.choose(view)
        if not len(action):
            raise InvalidArgument("eligible", "no slate can be formed", "make enough arms eligible")
        decision = Decision(name, self.t, action, tuple(self.learner.arms.all[j] for j in action.tolist()))
        self._pending[name] = (decision, unit)
        self.learner.pend(action, self.t)
        return decision

    def tell(self, decision: Decision | str, answers: Any) -> bool:
        """What the visitor answered: a number in [0, 1] for each arm of the slate, in its order.

        Telling again what was told changes nothing and returns False.
        """
        name = decision.id if isinstance(decision, Decision) else decision
        values = round_to_grid(floats(answers, "answers", low=0.0, high=1.0))
        if name in self._told:
            if not np.array_equal(self._told[name].answers, values):
                raise ConflictingFeedback(f"decision {name!r} was told before, with other answers; untell it first")
            return False
        made, unit = self._find(name)
        if values.shape != made.action.shape:
            remedy = f"give {len(made.action)}, one for each arm of the slate"
            raise InvalidArgument("answers", f"shape {values.shape}", remedy)
        del self._pending[name]
        self.learner.unpend(made.action)
        self._told[name] = Answered(made.t, made.action, values, unit, self._share(made.action, values))
        self._record(self._told[name], 1.0)
        if len(self._told) >= self.due:
            self.refit()
        return True

    def untell(self, decision: Decision | str) -> None:
        """Take back, exactly, what was told of a decision, also under earlier items; it is pending again.

        The rates of the items forget it at the next refit.
        """
        name = decision.id if isinstance(decision, Decision) else decision
        told = self._told.pop(name, None)
        if told is None:
            raise UnknownDecision(f"decision {name!r} was not told")
        self._record(told, -1.0)
        arms = tuple(self.learner.arms.all[j] for j in told.arms.tolist())
        self._pending[name] = (Decision(name, told.t, told.arms, arms), told.unit)
        self.learner.pend(told.arms, told.t)

    def _find(self, name: str) -> tuple[Decision, str | None]:
        if name not in self._pending:
            raise UnknownDecision(f"there is no decision {name!r}")
        return self._pending[name]

    def refit(self) -> Items:
        """Learn the items anew, from all answers so far; the next refit is due after ``growth`` times as many."""
        self.version, self.due = self.version + 1, max(self.due + 1, int(np.ceil(self.growth * len(self._told))))
        self._settle(learn_rows(self._rows(), seed=self.version, arms=tuple(self.learner.arms.all)))
        return self.items

    def _rows(self) -> Rows:
        """The newest answers, one row per unit; whoever is not known is a unit of its own."""
        newest = sorted(self._told.values(), key=lambda told: told.t)[-MAX_ROWS:]
        labels = [f"u{told.unit}" if told.unit is not None else f"t{told.t}" for told in newest]
        unit = np.unique(labels, return_inverse=True)[1]
        arms, answers = ([np.zeros(0), *(getattr(told, part) for told in newest)] for part in ("arms", "answers"))
        lengths = [len(told.arms) for told in newest]
        return Rows.of(
            np.repeat(unit, lengths),
            np.concatenate(arms).astype(np.int64),
            np.concatenate(answers),
            len(self.items.p),
        )

    def to_state(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold; ``from_state`` continues to the last bit."""
        items = self.items
        return {
            "actions": describe(self.actions),
            "policy": describe(self.declared),
            "arms": list(self.learner.arms.all),
            "keys": [int(key[0]) for key in (self._choosing, self._rounding)],
            "settings": [self.first, self.growth, self.personal],
            "counts": [self.version, self.due, self.t],
            "items": [part.tolist() for part in (items.shares, items.p, items.level, items.rates)],
            "z": items.z,
            "pending": [[one.id, one.t, one.action.tolist(), unit] for one, unit in self._pending.values()],
            "told": [
                [
                    name,
                    one.t,
                    one.arms.tolist(),
                    one.answers.tolist(),
                    one.unit,
                    (one.share * GRID).astype(int).tolist(),
                ]
                for name, one in self._told.items()
            ],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "ItemAgent":
        """The agent that ``to_state`` described."""
        first, growth, personal = state["settings"]
        arms = state["arms"]
        made = cls(len(arms), build(state["actions"]), build(state["policy"]), 0, arms=arms, first=first, growth=growth)
        made.personal, (made.version, made.due, made.t) = personal, state["counts"]
        made._choosing, made._rounding = (np.array([key], np.uint64) for key in state["keys"])
        told = [
            (name, t, np.array(own), np.array(answers, float), unit, share)
            for name, t, own, answers, unit, share in state["told"]
        ]
        made._told = {
            name: Answered(t, own, answers, unit, np.array(share) / GRID) for name, t, own, answers, unit, share in told
        }
        made._pending = {
            name: (Decision(name, t, np.array(action), tuple(arms[j] for j in action)), unit)
            for name, t, action, unit in state["pending"]
        }
        shares, p, level, rates = (np.array(part, float) for part in state["items"])
        made._settle(Items(shares, p, level, rates, STRENGTH, state["z"], made._rows(), tuple(arms)), anew=False)
        return made
