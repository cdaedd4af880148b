"""Interval arithmetic, as far as it is needed to bound a user's reward on boxes of parameters.

Every result is widened by a few units in the last place, so that rounding cannot make a bound wrong. [Moore1966]_
"""

import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_WIDEN = 4.0 * 2.0**-52  # four units in the last place, relative
_TINY = 1e-300  # absolute, for results near 0
_INCREASING = (np.exp, np.expm1, np.log, np.log1p, np.sqrt, np.tanh, np.arctan)
_ARITHMETIC: dict[Any, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.negative: operator.neg,
}


@dataclass(frozen=True, eq=False)
class Interval:
    """All numbers from ``low`` to ``high``; the arithmetic and the functions of NumPy work on it, comparisons do not.

    >>> round(np.exp(np.minimum(0.5, 1.0 - Interval(0.0, 1.0))).high, 6)
    1.648721
    """

    low: float
    high: float

    def __add__(self, other: Any) -> "Interval":
        o = interval(other)
        return _widen(self.low + o.low, self.high + o.high)

    __radd__ = __add__

    def __neg__(self) -> "Interval":
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Any) -> "Interval":
        return self + -interval(other)

    def __rsub__(self, other: Any) -> "Interval":
        return interval(other) - self

    def __mul__(self, other: Any) -> "Interval":
        o = interval(other)
        # An infinite end means numbers beyond the floats, and 0 times any of them is 0.
        ends = [x * y if x and y else 0.0 for x in (self.low, self.high) for y in (o.low, o.high)]
        return _widen(min(ends), max(ends))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Interval":
        o = interval(other)
        if o.low <= 0.0 <= o.high:
            raise ArithmeticError("division by an interval that contains 0")
        return self * _widen(1.0 / o.high, 1.0 / o.low)

    def __rtruediv__(self, other: Any) -> "Interval":
        return interval(other) / self

    def __pow__(self, power: Any) -> "Interval":
        if not isinstance(power, int) or power < 0:
            raise TypeError("only powers of intervals with a whole exponent >= 0")
        result = Interval(1.0, 1.0)
        for _ in range(power):
            result = result * self
        return result if power % 2 else Interval(max(0.0, result.low), result.high)

    def __lt__(self, other: Any) -> bool:
        raise TypeError("intervals cannot be compared: the reward must not branch on parameters")

    __le__ = __gt__ = __ge__ = __lt__

    def __float__(self) -> float:
        raise TypeError("an interval is not a number")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        ends = [interval(value) for value in inputs]
        if ufunc in _INCREASING:
            with np.errstate(all="ignore"):  # what is undefined is NaN, which is refused
                return _widen(float(ufunc(ends[0].low)), float(ufunc(ends[0].high)))
        if ufunc in (np.minimum, np.maximum):
            return Interval(float(ufunc(ends[0].low, ends[1].low)), float(ufunc(ends[0].high, ends[1].high)))
        if ufunc in _ARITHMETIC:
            return _ARITHMETIC[ufunc](*ends)
        if ufunc is np.power:
            return ends[0] ** inputs[1]
        raise TypeError(f"numpy.{ufunc.__name__} of an interval is not known")


def interval(value: Any) -> Interval:
    """A number as an interval, an interval as itself.

    >>> interval(1.0) + Interval(0.0, 1.0) > 0
    Traceback (most recent call last):
    TypeError: intervals cannot be compared: the reward must not branch on parameters
    """
    return value if isinstance(value, Interval) else Interval(float(value), float(value))


def _widen(low: float, high: float) -> Interval:
    if math.isnan(low) or math.isnan(high):
        raise ArithmeticError("an undefined operation on intervals")
    return Interval(-_step_up(-low), _step_up(high))


def _step_up(x: float) -> float:
    """A number above x; above an overflow to minus infinity, the least float."""
    return x + _WIDEN * abs(x) + _TINY if x > -math.inf else -sys.float_info.max
