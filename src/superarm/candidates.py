"""Candidates: which arms may be played in a round, and how often each was pulled."""

from typing import NamedTuple

from superarm._renamed import old_fields
from superarm.arrays import Bools, Floats


@old_fields(pulls="counts")
class Candidates(NamedTuple):
    """Which arms may be played, and how often each counts as pulled.

    Parameters
    ----------
    counts
        Pulls of each arm, (n_arms,): observed and pending ones. Confidence radii use them, and ties go to the arm with
        the smallest count, then to the lowest number.
    eligible
        Whether each arm may be played, (n_arms,).
    """

    counts: Floats
    eligible: Bools
