"""ItemCounts: what visitors answered, and how much of it counts for each class of some items."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.actions.base import Actions
from superarm.agent.learner import Learner
from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.numeric import log
from superarm.core.tally import Feedback, Tally, round_to_grid
from superarm.indices import KLMoss
from superarm.items.latent import STRENGTH, Items, Rows, learn_rows, prior_tally
from superarm.items.need import MOST_ROUNDS, Need, compare_answers
from superarm.policies import IndexPolicy, Policy
from superarm.problem import Problem

FIRST, GROWTH = 200, 1.5
"""Items are learnt after so many decisions, and again each time that there are so many times more."""
MAX_ROWS = 100_000
"""The newest decisions, so many of them, are kept when items are learnt; older ones do not count any longer."""


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


def recommended(actions: Actions, n_arms: int) -> Policy[Any]:
    """How rates of classes are learnt, if nothing else is asked for."""
    return IndexPolicy(KLMossWithPrior(k=actions.capacity(n_arms)))


class Answered(NamedTuple):
    """A decision with its answers: its round, its arms, what was answered, and what is known of who saw it."""

    t: int
    arms: Ints
    answers: Floats
    unit: str | None = None
    features: Floats | None = None


class ItemCounts:
    """Answers by decision, and a learner for which the classes of ``items`` are the items of a problem.

    An answer counts for each class by the probability that its visitor belongs to it: a function of the items and of
    the answers of its decision, with the same bits on every machine. So the counters follow from the items and from the
    answers that are there, in whatever order these came; what is taken back, or replaced, leaves no trace.

    ``told`` are the answers by the names of their decisions, ``since`` the first round that counts, and ``due`` the
    number of answers from which on items should be learnt anew.
    """

    learner: Learner

    def __init__(self, items: Items, actions: Actions, policy: Policy[Any]) -> None:
        self.told: dict[str, Answered] = {}
        self.actions, self.policy, self.since, self.due = actions, policy, 0, FIRST
        self._units: defaultdict[str, set[str]] = defaultdict(set)
        self.adopt(items)
        if self.policy.forgets:
            raise InvalidArgument("policy", f"{policy!r} forgets", "items are learnt from all answers alike")

    def adopt(self, items: Items, since: int = 0) -> None:
        """Count all answers since round ``since`` by the classes of other items."""
        self.items, self.since = items, max(since, self.since)
        for name in [name for name, one in self.told.items() if one.t < self.since]:
            self.drop(name, count=False)
        self._settle(count_answers(items, list(self.told.values())))

    def grow(self, arms: Sequence[str], actions: Actions, policy: Policy[Any]) -> None:
        """There are further arms, of which nothing is known."""
        before, self.actions, self.policy = self.learner.tally, actions, policy
        self.items = self.items.grown(arms)
        tally = count_answers(self.items, [])
        for name in Tally.SUMS:
            getattr(tally, name)[..., : before.pulls.shape[1]] = getattr(before, name)
        tally.refresh()
        self._settle(tally)

    def _settle(self, tally: Tally) -> None:
        pending = self.learner.pending if hasattr(self, "learner") else None
        self.learner = Learner(Problem(items=self.items, actions=self.actions), self.policy, self.items.arms)
        tally.ours = True
        self.learner.warm_start(tally)
        if pending is not None:
            self.learner.pending[:, : pending.shape[1]] = pending

    def to_plain(self) -> list[list[Any]]:
        """All answers as plain values, by the names of their decisions."""
        return [[name, *map(_to_plain, one)] for name, one in sorted(self.told.items())]

    def restore(self, plain: list[list[Any]]) -> None:
        """Count the answers of ``to_plain``, and no others."""
        self.told, self._units = {}, defaultdict(set)
        for name, t, arms, answers, unit, features in plain:
            known = None if features is None else np.array(features, float)
            self.told[name] = Answered(t, np.array(arms, np.int64), np.array(answers, float), unit, known)
            self.name_unit(name, unit)
        self.adopt(self.items)

    def need(self) -> Need:
        """Whether visitors fall into groups, by the newest answers."""
        newest = sorted(self.told.values(), key=lambda one: one.t)[-MOST_ROUNDS:]
        width = max((len(one.arms) for one in newest), default=1)
        slates, answers = np.full((len(newest), width), -1), np.zeros((len(newest), width))
        for n, one in enumerate(newest):
            slates[n, : len(one.arms)], answers[n, : len(one.arms)] = one.arms, one.answers
        return compare_answers(slates, answers, len(self.items.p))

    def put(self, name: str, told: Answered) -> None:
        """Count the answers of a decision, in place of what was known of it before."""
        self.drop(name)
        if told.t >= self.since and len(told.arms):
            self.told[name] = told
            self.name_unit(name, told.unit)
            self._record(told, 1.0)

    def name_unit(self, name: str, unit: str | None) -> None:
        """Say whose a decision is, if it counts; None: that is not known any longer."""
        before = self.told.get(name)
        if before is None:
            return
        if before.unit is not None:
            self._units[before.unit].discard(name)
        if unit is not None:
            self._units[unit].add(name)
        self.told[name] = before._replace(unit=unit)

    def drop(self, name: str, count: bool = True) -> Answered | None:
        """Take back what is known of a decision, exactly."""
        told = self.told.pop(name, None)
        if told is not None:
            if told.unit is not None:
                self._units[told.unit].discard(name)
                if not self._units[told.unit]:
                    del self._units[told.unit]
            if count:
                self._record(told, -1.0)
        return told

    def _record(self, told: Answered, sign: float) -> None:
        share = self.items.posterior(told.arms, told.answers, told.features)
        feedback = Feedback(told.t, told.arms[None], told.answers[None, :, None], share=share[None])
        self.learner.memory.learn(feedback, sign)

    def shares(self, unit: str | None = None, features: Any = None) -> Floats:
        """The shares of the classes: among all visitors, or for one by features and the earlier answers of a unit."""
        told = [self.told[name] for name in sorted(self._units.get(unit, ()))] if unit is not None else []
        if not told and features is None:
            return self.items.shares
        rows = to_rows(told, len(self.items.p), one=True)
        return self.items.posterior(rows.seen.indices, rows.answer.data, features)

    def choose(self, view: Any, shares: Floats | None = None, actions: Actions | None = None) -> Ints:
        """The slate for a view, for a visitor with these ``shares``, out of other ``actions`` than the problem's."""
        learner = self.learner
        if shares is None and actions is None:
            return learner.choose(view)
        given = {"weights": shares, "actions": actions}
        problem = learner.problem.changed(**{name: part for name, part in given.items() if part is not None})
        action = learner.policy.choose(problem, view, learner.memory.at(view.t).on(problem))[0]
        return np.asarray(action[action >= 0])

    def due_after(self, n: int, growth: float = GROWTH) -> None:
        """Items were learnt from ``n`` answers: they are due again when there are ``growth`` times as many."""
        self.due = max(self.due + 1, int(np.ceil(growth * n)))

    def oldest(self) -> int:
        """The round since which answers are kept when items are learnt."""
        rounds = sorted(one.t for one in self.told.values())
        return rounds[-MAX_ROWS] if len(rounds) > MAX_ROWS else 0

    def learn(self, seed: int) -> Items:
        """Items that are learnt anew, from all answers."""
        return learn_answers(list(self.told.values()), self.items.arms, seed)


def learn_answers(told: list[Answered], arms: Sequence[str], seed: int) -> Items:
    """Items that are learnt from the newest of some answers to these arms."""
    newest, features = sorted(told, key=lambda one: one.t)[-MAX_ROWS:], None
    if newest and all(one.features is not None for one in newest):
        first = np.unique(_units_of(newest), return_index=True)[1]
        features = np.array([newest[n].features for n in first])
    return learn_rows(to_rows(newest, len(arms)), seed=seed, arms=arms, features=features)


def _to_plain(part: Any) -> Any:
    return part.tolist() if isinstance(part, np.ndarray) else part


def to_rows(told: list[Answered], n_arms: int, one: bool = False) -> Rows:
    """The answers, one row per unit, or all in one; whoever is not known is a unit of its own."""
    lengths = [len(each.arms) for each in told]
    unit = np.zeros(len(told), np.int64) if one else _units_of(told)
    arms, answers = (_joined(getattr(each, part) for each in told) for part in ("arms", "answers"))
    return Rows.of(np.repeat(unit, lengths), arms.astype(np.int64), answers, n_arms)


def _units_of(told: list[Answered]) -> Ints:
    labels = [f"u{each.unit}" if each.unit is not None else f"t{n}" for n, each in enumerate(told)]
    return np.unique(labels, return_inverse=True)[1] if labels else np.zeros(0, np.int64)


def _joined(parts: Iterable[Any]) -> Floats:
    return np.concatenate([np.zeros(0), *parts])


def count_answers(items: Items, told: list[Answered]) -> Tally:
    """The counters of all answers by class, with the prior: what recording one after the other comes to."""
    empty = np.zeros(items.p.shape)
    tally = prior_tally(items, empty, empty)
    row = np.repeat(np.arange(len(told)), [len(each.arms) for each in told])
    arms, y = _joined(each.arms for each in told).astype(np.int64), _joined(each.answers for each in told)
    given = None
    if items.scale is not None:
        unknown = np.full(items.scale.shape[1], np.nan)
        given = np.array([unknown if each.features is None else each.features for each in told]).reshape(
            -1, len(unknown)
        )
    share, x = items.posteriors(row, arms, y, len(told), given)[row], y[:, None]
    np.add.at(tally.pulls[0], arms, 1.0)
    for sums, part in ((tally.total, share * x), (tally.square, share * (x * x)), (tally.missed, 1.0 - share)):
        np.add.at(sums[0].T, arms, round_to_grid(part))
    tally.refresh()
    return tally
