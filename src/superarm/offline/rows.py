"""The rows of a log: one per arm of a round."""

from typing import NamedTuple

import numpy as np

from superarm.arrays import Bools, Floats, Ints


class LogRows(NamedTuple):
    """The arms of all rounds, one row per arm that was shown or observed, ordered by round and slot.

    Parameters
    ----------
    round, slot, arm
        The round and the slot, from 0 (-1 for an observed arm outside of it), and the arm, (n_rows,).
    outcome, seen
        The outcome of each item and whether it was observed, (n_rows, n_items).
    prefix
        The probability with which the slate began as it did, up to and with this slot, (n_rows,); NaN if unknown.
    position_propensity
        The probability of this arm in this slot, whatever the other slots hold, (n_rows,); NaN if unknown.
    inclusion
        The probability that the slate contains this arm, in any slot, (n_rows,); NaN if unknown.
    """

    round: Ints
    slot: Ints
    arm: Ints
    outcome: Floats
    seen: Bools
    prefix: Floats
    position_propensity: Floats
    inclusion: Floats


def keep_rounds(rows: LogRows, kept: Bools) -> LogRows:
    """The rows of the rounds of a mask (n_rounds,), with these rounds numbered from 0."""
    own = LogRows._make(part[kept[rows.round]] for part in rows)
    return own._replace(round=(np.cumsum(kept) - 1)[own.round])
