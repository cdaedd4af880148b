"""A log from arrays."""

from typing import Any, NamedTuple

import numpy as np

from superarm.arrays import Bools, Floats, Ints, floats
from superarm.errors import InvalidArgument
from superarm.learner.names import names_for
from superarm.offline.log import Log
from superarm.offline.rows import LogRows
from superarm.problem import Problem


class KnownArrays(NamedTuple):
    """What is known of rounds besides slates and outcomes; None where it is not: see :meth:`Log.from_arrays`."""

    seen: Any = None
    propensity: Any = None
    position_propensity: Any = None
    inclusion: Any = None
    groups: Any = None
    arms: Any = None
    items: Any = None


def log_from_arrays(problem: Problem, slates: Any, outcomes: Any, **known: Any) -> Log:
    """The log of rounds with slates of one size: see :meth:`Log.from_arrays`."""
    unknown = sorted(set(known) - set(KnownArrays._fields))
    if unknown:
        raise InvalidArgument(unknown[0], "is not an argument", f"give {', '.join(KnownArrays._fields)}")
    given = KnownArrays(**known)
    table = _slate_table(slates, problem)
    n, k = table.shape
    outcome, seen = _outcomes(outcomes, given.seen, (n, k, problem.n_items))
    chain = _probabilities(given.propensity, "propensity", (n, k))
    rows = LogRows(
        np.repeat(np.arange(n), k),
        np.tile(np.arange(k), n),
        table.reshape(-1),
        outcome.reshape(n * k, problem.n_items),
        seen.reshape(n * k, problem.n_items),
        np.asarray(np.cumprod(chain, axis=1), np.float64).reshape(-1),
        _probabilities(given.position_propensity, "position_propensity", (n, k)).reshape(-1),
        _probabilities(given.inclusion, "inclusion", (n, k)).reshape(-1),
    )
    return make_log(problem, rows, given.groups, (chain == 1.0).all(axis=1), (given.arms, given.items))


def make_log(problem: Problem, rows: LogRows, labels: Any, deterministic: Bools, names: tuple[Any, Any]) -> Log:
    """A log from its rows, the groups of its rounds (labels of any kind, or None) and the names of arms and items."""
    arms, items = (
        names_for(one, n, what)
        for one, n, what in zip(names, (problem.n_arms, problem.n_items), ("arms", "items"), strict=True)
    )
    groups, group_names = number_groups(labels, len(deterministic))
    return Log(problem, rows, groups, group_names, tuple(arms.all), tuple(items.all), deterministic)


def number_groups(labels: Any, n: int) -> tuple[Ints, tuple[str, ...]]:
    """The number of each round's group, and the names of the groups in order.

    >>> number_groups(["b", "a", "b"], 3)
    (array([1, 0, 1]), ('a', 'b'))
    """
    if labels is None:
        return np.zeros(n, np.int64), ("all",)
    given = np.asarray([str(label) for label in labels])
    if given.shape != (n,):
        raise InvalidArgument("groups", f"shape {given.shape}", f"give one label per round, shape ({n},)")
    names, groups = np.unique(given, return_inverse=True)
    return groups.astype(np.int64), tuple(str(name) for name in names)


def _slate_table(slates: Any, problem: Problem) -> Ints:
    try:
        table = np.asarray(slates)
    except ValueError:
        table = np.zeros(0)
    if table.ndim != 2 or table.dtype.kind not in "iu":
        raise InvalidArgument("slates", f"shape {table.shape}", "give arm numbers of shape (n_rounds, k)")
    if table.size and not (0 <= table.min() and table.max() < problem.n_arms):
        raise InvalidArgument("slates", f"arms {table.min()} to {table.max()}", f"arms are 0 to {problem.n_arms - 1}")
    ordered = np.sort(table, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise InvalidArgument("slates", "an arm appears twice in a slate", "give each arm of a slate once")
    return table.astype(np.int64)


def _outcomes(outcomes: Any, seen: Any, shape: tuple[int, int, int]) -> tuple[Floats, Bools]:
    """Outcomes and whether they were seen, (n, k, n_items)."""
    given = np.asarray(outcomes)
    mask = np.ones(given.shape, bool) if seen is None else np.asarray(seen, bool)
    if given.shape == shape[:2] and shape[2] == 1:
        given, mask = given[:, :, None], mask.reshape(shape)
    if given.shape != shape or mask.shape != shape:
        raise InvalidArgument("outcomes", f"shape {given.shape}", f"give shape {shape}: rounds, slots, items")
    return floats(np.where(mask, given, 0.0), "outcomes", low=0.0, high=1.0), mask


def _probabilities(values: Any, name: str, shape: tuple[int, int]) -> Floats:
    """Probabilities in (0, 1], (n, k); NaN where they are not given."""
    if values is None:
        return np.full(shape, np.nan)
    try:
        table = np.broadcast_to(np.asarray(values, float), shape).copy()
    except ValueError:
        raise InvalidArgument(name, f"shape {np.shape(values)}", f"give shape {shape}, or one number") from None
    check_probabilities(table, name)
    return table


def check_probabilities(values: Floats, name: str) -> None:
    """Refuse probabilities of what happened that are not in (0, 1]; NaN means that one is not known."""
    known = values[~np.isnan(values)]
    if known.size and not (0.0 < known.min() and known.max() <= 1.0 + 1e-9):
        raise InvalidArgument(
            name, f"values range over [{known.min():g}, {known.max():g}]", "what happened has a probability in (0, 1]"
        )
