"""Interval arithmetic, as far as it is needed to bound a user's reward on boxes of parameters.

Every result is widened by a few units in the last place, so that rounding cannot make a bound wrong. [Moore1966]_
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, SimpleNamespace
from typing import Any

_WIDEN = 4.0 * 2.0**-52  # four units in the last place, relative
_TINY = 1e-300  # absolute, for results near 0


@dataclass(frozen=True, eq=False)
class Interval:
    """All numbers from ``low`` to ``high``."""

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


def _increasing(f: Callable[[float], float]) -> Callable[[Any], Interval]:
    """An increasing function of the reals, on intervals."""
    return lambda x: _widen(f(interval(x).low), f(interval(x).high))


_MATH = SimpleNamespace(
    **{name: _increasing(getattr(math, name)) for name in ("exp", "expm1", "log", "log1p", "sqrt", "tanh", "atan")},
    pi=math.pi,
    e=math.e,
)


def _minimum(*values: Any) -> Interval:
    ends = [interval(value) for value in values]
    return Interval(min(end.low for end in ends), min(end.high for end in ends))


def _maximum(*values: Any) -> Interval:
    ends = [interval(value) for value in values]
    return Interval(max(end.low for end in ends), max(end.high for end in ends))


def on_intervals(method: Any) -> Callable[..., Any]:
    """A component's method for intervals: the same code, with ``math``, ``min`` and ``max`` of intervals.

    >>> import superarm as sa
    >>> join = on_intervals(sa.Logistic.join)
    >>> state = join(sa.Logistic(), 1.0, Interval(0.0, 1.0))
    >>> state.low <= 1 / 2.718281828459045 < 1 <= state.high
    True
    """
    plain = getattr(method, "py_func", method)
    names = {**plain.__globals__, "math": _MATH, "min": _minimum, "max": _maximum}
    return FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__)
