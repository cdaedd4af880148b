"""A log from arrays, and the layout of Open Bandit Pipeline: flat arrays, one element per slot, [SaitoEtAl2021]_."""

from typing import Any, NamedTuple

import numpy as np

from superarm.core.arrays import Bools, Floats, Ints, floats
from superarm.core.errors import InvalidArgument
from superarm.decisions.names import names_for
from superarm.offline.log import Log, LogRows
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


# --- Open Bandit ---


def log_from_obp(feedback: dict[str, Any], **described: Any) -> Log:
    """The log in Open Bandit's layout: see :meth:`Log.from_obp`."""
    for name in ("action", "reward"):
        if name not in feedback:
            raise InvalidArgument("feedback", f"no {name!r}", "give at least action and reward")
    n = len(feedback["action"])
    slate = np.asarray(feedback.get("slate_id", np.arange(n)))
    position = np.asarray(feedback["position"]) if feedback.get("position") is not None else np.zeros(n, int)
    if feedback.get("slate_id") is None:
        position = np.zeros(n, int)
    columns = {
        "slate_id": slate.tolist(),
        "position": (position + 1).tolist(),
        "action": np.asarray(feedback["action"]).tolist(),
        "reward": np.asarray(feedback["reward"], float).tolist(),
        "t": slate.tolist(),
    }
    from superarm.offline.formats.tables import Described, log_from_columns

    unknown = sorted(set(described) - set(Described._fields))
    if unknown:
        raise InvalidArgument(unknown[0], "is not an argument", f"give {', '.join(Described._fields)}")
    log = log_from_columns(columns, None, **described)
    order = np.lexsort((position, slate))
    prefix = _prefix(feedback, slate, order)
    marginal = _flat(feedback, "pscore_item_position", order)
    own = log.rows._replace(prefix=prefix, position_propensity=marginal)
    certain = np.ones(log.n_rounds, bool)
    certain[own.round[~(prefix == 1.0)]] = False
    return make_log(log.problem, own, None, certain, (list(log.arms), list(log.items)))


def _prefix(feedback: dict[str, Any], slate: Any, order: Any) -> Floats:
    """The propensities of the beginnings of slates; with that of whole slates alone, known in the last slot only."""
    if feedback.get("pscore_cascade") is not None:
        return _flat(feedback, "pscore_cascade", order)
    whole = _flat(feedback, "pscore", order)
    last = np.append(slate[order][1:] != slate[order][:-1], True)
    return np.where(last, whole, np.nan)


def _flat(feedback: dict[str, Any], name: str, order: Any) -> Floats:
    if feedback.get(name) is None:
        return np.full(len(order), np.nan)
    values: Floats = np.asarray(feedback[name], float)[order]
    check_probabilities(values, name)
    return values


def log_to_obp(log: Log) -> dict[str, Any]:
    """The log in Open Bandit's layout: see :meth:`Log.to_obp`."""
    rows = log.rows
    own = np.flatnonzero(rows.slot >= 0)
    last = np.append(rows.round[own][1:] != rows.round[own][:-1], True)
    whole = np.empty(log.n_rounds)
    whole[rows.round[own][last]] = rows.prefix[own][last]
    return {
        "n_rounds": log.n_rounds,
        "n_unique_action": log.problem.n_arms,
        "slate_id": rows.round[own].copy(),
        "position": rows.slot[own].copy(),
        "action": rows.arm[own].copy(),
        "reward": np.where(np.isnan(log.rewards)[rows.round[own]], np.nan, log.slot_rewards[own]),
        "pscore": whole[rows.round[own]],
        "pscore_cascade": rows.prefix[own].copy(),
        "pscore_item_position": rows.position_propensity[own].copy(),
    }
