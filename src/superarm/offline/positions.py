"""Positions: how likely each slot of a page is looked at, and outcomes that do not depend on the slot."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.arrays import Floats, Ints, floats
from superarm.core.errors import InvalidArgument

if TYPE_CHECKING:
    from superarm.offline.log import Log

_STEPS = 1000
"""Alternating steps of the fit; each has a closed form."""


@dataclass(frozen=True, eq=False)
class Positions:
    r"""A position-based model of a page, [CraswellEtAl2008]_: a click needs a look at the slot, and a liked arm.

    .. math:: P(click\ on\ arm\ j\ in\ slot\ s) = examined_s\,p_j

    Outcomes times :math:`\min examined / examined_s` have the mean :math:`p_j \min examined` in every slot: what an arm
    would do in the slot that is looked at least. They stay in [0, 1], so that any policy and any estimate takes them.

    Parameters
    ----------
    examined
        How likely each slot is looked at, (n_slots,), in any unit: it is divided by the largest.

    Examples
    --------
    >>> page = Positions([1.0, 0.5, 0.25])
    >>> page.correct([1.0, 1.0, 1.0]).tolist()
    [0.25, 0.5, 1.0]
    """

    examined: Floats

    def __post_init__(self) -> None:
        given = floats(self.examined, "examined", low=0.0, high=1e300).ravel()
        if not given.size or not (given > 0.0).all():
            raise InvalidArgument("examined", f"{given}", "give a number > 0 for each slot", "Positions")
        object.__setattr__(self, "examined", given / given.max())

    def correct(self, outcome: Any, slots: Any = None) -> Floats:
        """Outcomes (n, …) of arms in ``slots`` (n,), by default slot 0, 1, …, as if all slots were alike."""
        given = floats(outcome, "outcome", low=0.0, high=1.0)
        at = np.arange(len(given)) if slots is None else np.asarray(slots)
        if not given.ndim or len(at) != len(given) or (at < 0).any() or (at >= len(self.examined)).any():
            wrong = f"{given.shape} outcomes for {len(self.examined)} slots"
            raise InvalidArgument("outcome", wrong, "give a row for each arm, and the slot of each", "Positions")
        return given * (self.examined.min() / self.examined[at]).reshape(-1, *[1] * (given.ndim - 1))

    def correct_log(self, log: "Log") -> "Log":
        """The log with outcomes as if all slots were alike; those of arms outside of a slate stay as they are."""
        inside, outcome = log.rows.slot >= 0, log.rows.outcome.copy()
        outcome[inside] = self.correct(outcome[inside], log.rows.slot[inside])
        return replace(log, rows=log.rows._replace(outcome=outcome))

    @staticmethod
    def shuffle(worth: Any, rng: np.random.Generator, within: float = 0.1) -> Ints:
        """The order in which to show arms of ``worth`` (n,): best first, and equals in random order.

        Arms are equal if they are worth less than the best of them by at most the share ``within``. So a slot does not
        keep the arm that it made popular, and ``learn`` can tell the slots apart.
        """
        given = floats(worth, "worth", low=0.0, high=1e300).ravel()
        order = np.argsort(-given, kind="stable")
        group, best = np.zeros(len(given)), np.inf
        for place, value in enumerate(given[order]):
            best = value if best == np.inf or value < (1.0 - within) * best else best
            group[place] = -best
        return order[np.lexsort((rng.random(len(given)), group))]

    @classmethod
    def learn(cls, log: "Log") -> "Positions":
        """The model that fits a log best: arms that were shown in several slots tell the slots apart.

        With :math:`n_{es}` observations of entry e (an arm, an item and a group) in slot s and :math:`x_{es}` the sum
        of outcomes, :math:`examined_s = \\sum_e x_{es} / \\sum_e n_{es} p_e` and
        :math:`p_e = \\sum_s x_{es} / \\sum_s n_{es} examined_s` are repeated: the likelihood of Poisson counts grows
        with each step.
        """
        n, x = _count(log)
        heard = x.sum(0) > 0.0
        if not heard.all() or not _connected(n):
            wrong = "a slot had no clicks, or no arm that was also shown in other slots"
            raise InvalidArgument("log", wrong, "show some slates in random order", "Positions")
        examined = np.ones(n.shape[1])
        for _ in range(_STEPS):
            p = x.sum(1) / (n @ examined)
            before, examined = examined, x.sum(0) / (p @ n)
            if np.abs(examined / before - 1.0).max() < 1e-10:
                break
        return cls(examined)


def _count(log: "Log") -> tuple[Floats, Floats]:
    """Observations and sums of outcomes of each entry that was observed, by slot: (n_entries, n_slots) each."""
    rows, n_items = log.rows, log.problem.n_items
    row, item = np.nonzero(rows.seen & (rows.slot >= 0)[:, None])
    entry: Ints = (log.groups[rows.round[row]] * log.problem.n_arms + rows.arm[row]) * n_items + item
    known, place = np.unique(entry, return_inverse=True)
    n, x = np.zeros((2, len(known), int(rows.slot.max()) + 1))
    np.add.at(n, (place, rows.slot[row]), 1.0)
    np.add.at(x, (place, rows.slot[row]), rows.outcome[row, item])
    return n, x


def _connected(n: Floats) -> bool:
    """Whether slots can be compared: by entries that were observed in both, or over other slots."""
    shown = n > 0.0
    reached = shown[:, :1].any(1)
    for _ in range(n.shape[1]):
        reached = reached | shown[:, shown[reached].any(0)].any(1)
    return bool(shown[reached].any(0).all())
