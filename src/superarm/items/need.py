"""Whether a log needs items at all: what one item promises against what visitors did, in plain words."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.items.latent import Items, Rows, learn_rows

ENOUGH_TO_LEARN, ENOUGH_TO_CLEAR = 1_000, 3_000
"""Classes are looked for from so many complete rounds on; from the second on, finding none means something."""
GAP_Z, CLASSES_Z = 3.0, 2.0
"""By how many standard errors promise and answers must differ, and more classes must be better than one."""
LITTLE_OVERLAP = 0.5
"""Where fewer arms of a slate are liked than this, on average, slates hardly overlap."""
MOST_ROUNDS = 20_000
"""The newest rounds that are looked at."""


@dataclass(frozen=True, repr=False)
class Need:
    """Whether one item is enough for the slates of a log; printed, it says so in a sentence.

    Attributes
    ----------
    rounds
        How many complete rounds were looked at.
    promised, realised
        The share of visitors who like something in their slate, if answers did not hang together, and as it was.
    gap_z, pairs_z
        By how many standard errors both differ, and how far the answers of one visitor hang together.
    overlap
        How many arms of a slate are liked, on average.
    items
        The classes that were found; None if that was not tried.
    enough_to_learn, enough_to_clear
        From how many rounds on classes are looked for, and from how many on finding none means something.
    """

    rounds: int
    promised: float
    realised: float
    gap_z: float
    pairs_z: float
    overlap: float
    items: Items | None
    enough_to_learn: int = ENOUGH_TO_LEARN
    enough_to_clear: int = ENOUGH_TO_CLEAR

    @property
    def found(self) -> bool:
        """Whether classes of visitors were found."""
        return self.items is not None and self.items.n_classes > 1

    def __repr__(self) -> str:
        return self.say("sa.items.learn(log) turns them into items, and its slate says what they are worth")

    def say(self, remedy: str) -> str:
        """What follows, in a sentence; ``remedy`` says what to do about groups of visitors."""
        if self.found and self.items is not None:
            return f"{self.items.n_classes} groups of visitors found: {remedy}."
        if self.gap_z > GAP_Z:
            gap, enough = f"{self.promised - self.realised:.2f}", f"{self.enough_to_learn:,}"
            return (
                f"The slates served {100 * self.realised:.0f} of 100 visitors, the model promised "
                f"{100 * self.promised:.0f}: answers of one visitor hang together. Read promised values as too high by "
                f"{gap} until about {enough} rounds allow items to be learnt."
            )
        if self.overlap < LITTLE_OVERLAP and self.rounds >= self.enough_to_learn // 10:
            return "At these rates slates hardly overlap: learnt items would not earn more."
        if self.rounds >= self.enough_to_clear:
            return "One item suffices: no groups of visitors found."
        few = f"{self.rounds:,} of {self.enough_to_clear:,}"
        return f"Too few complete rounds to tell whether visitors fall into groups: {few}."


def need(
    log: Any, seed: int = 0, enough_to_learn: int = ENOUGH_TO_LEARN, enough_to_clear: int = ENOUGH_TO_CLEAR
) -> Need:
    """Look whether visitors of a log with one item fall into groups, so that learnt items would be worth while.

    Two tests compare the slates that were shown with what independent answers would give, at rates that leave the
    round itself out; a third looks for classes (:func:`learn`). The first two are blind to opposed tastes in random
    slates; the third needs about 1,000 rounds.
    """
    if log.problem.n_items != 1:
        raise InvalidArgument("log", f"it has {log.problem.n_items} items", "give a log of one item: what was liked")
    slates, answers = _complete(log)
    found = compare_answers(slates, answers, log.problem.n_arms)
    found = replace(found, enough_to_learn=enough_to_learn, enough_to_clear=enough_to_clear)
    if len(slates) < enough_to_learn:
        return found
    shown = slates >= 0
    unit = np.broadcast_to(np.arange(len(slates))[:, None], shown.shape)
    rows = Rows.of(unit[shown], slates[shown], answers[shown], log.problem.n_arms)
    return replace(found, items=learn_rows(rows, seed=seed, arms=log.arms))


def compare_answers(slates: Ints, answers: Floats, n_arms: int) -> Need:
    """What independent answers would give against the answers (n, k) to ``slates``, padded with -1; no classes."""
    shown = slates >= 0
    arm = np.where(shown, slates, 0)
    n = np.bincount(arm[shown], minlength=n_arms)
    total = np.bincount(arm[shown], answers[shown], n_arms)
    mean = float(total.sum()) / max(1, int(n.sum()))
    rates = np.where(shown, (total[arm] - answers + mean) / np.maximum(n[arm], 1), 0.0)
    promised, realised = 1.0 - np.prod(1.0 - rates, axis=1), 1.0 - np.prod(1.0 - answers, axis=1)
    rest = np.where(shown, answers - rates, 0.0)
    means = [float(part.mean()) if len(slates) else 0.0 for part in (promised, realised, answers.sum(axis=1))]
    gap, pairs = _z(promised - realised), _z(rest.sum(axis=1) ** 2 - (rest**2).sum(axis=1))
    return Need(len(slates), means[0], means[1], gap, pairs, means[2], None)


def _complete(log: Any) -> tuple[Ints, Floats]:
    """The newest slates whose outcomes are all known, (n, k), padded with -1, and these outcomes, 0 at the padding."""
    own, answers = log.rows.slot >= 0, np.zeros(log.slates.shape)
    answers[log.rows.round[own], log.rows.slot[own]] = log.rows.outcome[own, 0]
    known = np.flatnonzero(~np.isnan(log.rewards))[-MOST_ROUNDS:]
    return log.slates[known], answers[known]


def _z(values: Floats) -> float:
    """A mean in standard errors."""
    spread = float(values.std()) if len(values) > 1 else 0.0
    return float(values.mean()) / spread * len(values) ** 0.5 if spread > 0.0 else 0.0
