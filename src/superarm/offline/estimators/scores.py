"""Scores of rounds, whose mean is an estimate."""

from typing import NamedTuple

from superarm.arrays import Floats


class RoundScores(NamedTuple):
    """One score per round, whose mean is an estimate; NaN where the round tells nothing.

    ``weight`` are importance weights (n,), for the effective sample size; None where there are none.
    """

    score: Floats
    weight: Floats | None = None
