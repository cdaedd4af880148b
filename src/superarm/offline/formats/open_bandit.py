"""The layout of Open Bandit Pipeline: a dict of flat arrays, one element per slot, [SaitoEtAl2021]_."""

from typing import Any

import numpy as np

from superarm.arrays import Floats
from superarm.errors import InvalidArgument
from superarm.offline.formats.columns import check_probabilities, make_log
from superarm.offline.formats.tables import Described, log_from_columns
from superarm.offline.log import Log


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
