"""Outcomes as users give them: checked, turned into rows of feedback, and recognised when they are given again."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.agent.decisions import DecisionEntry
from superarm.core.arrays import Bools, Floats, Ints, floats
from superarm.core.errors import InvalidArgument
from superarm.core.support import AnySupport, Dense
from superarm.core.tally import Feedback

if TYPE_CHECKING:
    from superarm.core.problem import Problem


@dataclass(frozen=True)
class Scale:
    """Money, minutes or other amounts >= 0 as outcomes in [0, 1]: an amount over ``limit``, and 1 above it.

    A policy then learns the mean of min(amount, limit). Its bounds, what it claims and the lift are about that mean,
    over ``limit``: what lies above it counts nowhere. A limit that hardly any amount reaches costs nothing but digits;
    one that many reach treats a large purchase like a small one.

    Parameters
    ----------
    limit
        The amount that counts as 1.

    Examples
    --------
    >>> euros = Scale(200.0)
    >>> euros.outcome(50.0), euros.outcome([10.0, 900.0]).tolist(), euros.amount(0.25)
    (0.25, [0.05, 1.0], 50.0)
    >>> Scale.learn([20.0] * 998 + [100.0, 50_000.0]).limit  # one purchase of a thousand is no measure
    100.0
    """

    limit: float

    def __post_init__(self) -> None:
        if not floats(self.limit, "limit", low=0.0, high=1e300) > 0.0:
            raise InvalidArgument("limit", f"{self.limit}", "give an amount > 0", "Scale")

    @classmethod
    def learn(cls, amounts: Any, share: float = 0.001) -> "Scale":
        """The amount that no more than a ``share`` of past amounts exceeds; amounts of 0 do not count."""
        given = np.sort(floats(amounts, "amounts", low=0.0, high=1e300).ravel())
        given = given[given > 0.0]
        if not given.size:
            raise InvalidArgument("amounts", "none is above 0", "give amounts of past purchases", "Scale")
        return cls(float(given[-1 - int(share * len(given))]))

    def outcome(self, amount: Any) -> Any:
        """The outcome in [0, 1] of an amount, or of each of several."""
        shares = np.minimum(floats(amount, "amount", low=0.0, high=1e300) / self.limit, 1.0)
        return shares if shares.ndim else float(shares)

    def amount(self, outcome: Any) -> Any:
        """The amount of an outcome, or of a mean of outcomes."""
        return outcome * self.limit


def parse_feedback(
    problem: "Problem", made: DecisionEntry, observed: Ints, outcome: Any, seen: Any
) -> tuple[Feedback, list[str]]:
    """Feedback about a decision of which the arms ``observed`` were observed, and its digests."""
    if made.items is not None:
        outcome, seen = _spread_items(problem, made, outcome, seen)
    values, mask = check_outcome(problem, observed, made.n_items, outcome, seen)
    digests = digest_feedback(problem, made, observed, values, mask)
    rows, marks = to_rows(problem.support, observed, values), None
    if mask is not None:
        marks = to_rows(problem.support, observed, mask)[None]
    return Feedback(made.decision.t, observed[None], rows[None], marks), digests


def silent_feedback(problem: "Problem", made: DecisionEntry, value: float) -> Feedback:
    """What a decision counts as before it was told anything, where silence means the outcome ``value``."""
    support, action = problem.support, made.decision.action
    about = np.zeros(problem.n_items, bool)
    about[list(range(made.n_items) if made.items is None else made.items)] = True
    whole = isinstance(support, Dense)
    seen = np.broadcast_to(about if whole else np.ones(support.widest, bool), (1, len(action), support.widest))
    return Feedback(made.decision.t, action[None], np.full(seen.shape, value), None if seen.all() else seen)


def from_clicks(problem: "Problem", made: DecisionEntry, clicked: dict[int, float], silence: float) -> Any:
    """The outcome (n, 1) of a decision about one item, of which some arms were clicked; others count as ``silence``."""
    one = problem.n_items == 1 or (made.items is not None and len(made.items) == 1)
    if not one:
        wrong = f"the decision is about {problem.n_items if made.items is None else len(made.items)} items"
        raise InvalidArgument("clicks", wrong, "name the visitor's item, ask(items=[…]), or tell an outcome")
    strange = [j for j in clicked if j not in made.decision.action]
    if strange:
        raise InvalidArgument("clicks", f"arm {strange[0]} was not in the batch", "name arms of the decision")
    return np.array([[clicked.get(j, silence)] for j in made.decision.action.tolist()])


def _spread_items(problem: "Problem", made: DecisionEntry, outcome: Any, seen: Any) -> tuple[Any, Any]:
    """Outcome and mask of a decision about some items, for all items; columns may be those of its items alone."""
    given = _array(outcome)
    mask = np.ones(given.shape, bool) if seen is None else _array(seen)
    items, wide = list(made.items or ()), (len(given), problem.n_items)
    if given.ndim != 2 or mask.shape != given.shape:
        return outcome, seen
    about = np.zeros(problem.n_items, bool)
    about[items] = True
    if given.shape[1] == len(items) < problem.n_items:
        values, shown = np.zeros(wide), np.zeros(wide, bool)
        values[:, items], shown[:, items] = np.where(mask, given, 0.0), mask
        return values, shown
    return given, mask & about[: given.shape[1]]


def check_outcome(
    problem: "Problem", observed: Ints, n_items: int, outcome: Any, seen: Any
) -> tuple[Floats, Bools | None]:
    """Outcome and mask of arms, flat; items added since the problem had ``n_items`` count as not seen.

    The mask is None if everything was seen.

    >>> from superarm.core.problem import Problem
    >>> from superarm.rewards import Coverage
    >>> from superarm.actions import Subsets
    >>> problem = Problem(2, 2, Coverage(), Subsets(1))
    >>> check_outcome(problem, np.array([1]), 2, [[1, None]], [[True, False]])
    (array([1., 0.]), array([ True, False]))
    """
    dense = isinstance(problem.support, Dense)
    given = _array(outcome)
    whole = (len(observed), problem.n_items)
    if seen is None and dense and given.shape == whole:  # as most outcomes are given
        return floats(given, "outcome", low=0.0, high=1.0).reshape(-1), None
    flat = whole[0] * whole[1] if dense else int(problem.support.widths[observed].sum())
    mask = np.ones(given.shape, bool) if seen is None else _array(seen)
    if mask.dtype != bool or mask.shape != given.shape:
        raise InvalidArgument("seen", f"{mask.dtype} of shape {mask.shape}", "give booleans in the outcome's shape")
    table = dense and mask.ndim == 2 and len(mask) == whole[0] and n_items <= mask.shape[1] <= whole[1]
    if not table and mask.shape != (flat,):
        remedy = f"give shape {whole if dense else (flat,)}, one row per arm of the action"
        raise InvalidArgument("outcome", f"shape {mask.shape}", remedy)
    values = floats(given if seen is None else np.where(mask, given, 0.0), "outcome", low=0.0, high=1.0)
    late = problem.n_items - mask.shape[1] if mask.ndim == 2 else 0
    if late:
        values, mask = np.pad(values, ((0, 0), (0, late))), np.pad(mask, ((0, 0), (0, late)))
    return values.reshape(-1), None if mask.all() else mask.reshape(-1)


def to_rows(support: AnySupport, arms: Ints, flat: Any, fill: float = 0.0) -> Any:
    """Numbers of the entries of ``arms``, arm after arm, as rows (n, widest); ``fill`` where an arm has no entry."""
    if isinstance(support, Dense):
        return flat.reshape(len(arms), support.n_items)
    rows = np.full((len(arms), support.widest), fill, flat.dtype)
    rows[np.arange(support.widest) < support.widths[arms][:, None]] = flat
    return rows


def to_flat(support: AnySupport, arms: Ints, rows: Any) -> Any:
    """The inverse of ``to_rows``."""
    if isinstance(support, Dense):
        return rows.reshape(-1)
    return rows[np.arange(support.widest) < support.widths[arms][:, None]]


def digest_feedback(
    problem: "Problem", made: DecisionEntry, observed: Ints, values: Floats, mask: Bools | None
) -> list[str]:
    """The digests of feedback about a decision; the first is the one to keep.

    Items that were added since the decision and of which nothing was seen do not matter. The first digest leaves them
    out; the others take in one more of them each, as the digests of agents did that were saved by version 0.1.0.
    """
    own = observed.tobytes()
    end = b"" if observed is made.decision.action or own == made.decision.action.tobytes() else own
    if not isinstance(problem.support, Dense) or made.n_items == problem.n_items:
        return [_hash(values.tobytes() + (b"\x01" * len(values) if mask is None else mask.tobytes()) + end)]
    shape = (len(observed), problem.n_items)
    table, seen = values.reshape(shape), np.ones(shape, bool) if mask is None else mask.reshape(shape)
    least = max([made.n_items, *(1 + np.flatnonzero(seen.any(axis=0))).tolist()])
    widths = range(least, problem.n_items + 1)
    return [_hash(table[:, :width].tobytes() + seen[:, :width].tobytes() + end) for width in widths]


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _array(values: Any) -> Any:
    """``values`` as an array of numbers or booleans; objects only for the None of what was not seen."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidArgument("outcome", "rows of different lengths", "give rows of one length, one per arm") from None
    kind = array.dtype.kind
    if kind not in "biufO" or (kind == "O" and any(isinstance(x, str) for x in array.flat)):
        text = next((x for x in np.asarray(values, object).flat if isinstance(x, str)), None)
        wrong = array.dtype.name if text is None else repr(text)
        raise InvalidArgument("outcome", f"{wrong} is not a number", "give numbers in [0, 1]")
    return array
