"""Amounts as outcomes."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from superarm.core.arrays import floats
from superarm.core.errors import InvalidArgument


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
    made: ClassVar[bool] = False
    """Whether there is a scale in this program, so that fractions that are told are amounts."""

    def __post_init__(self) -> None:
        Scale.made = True
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
