"""Calls of one kernel again and again from Python, whose arguments have the same types each time.

Before numba runs machine code, it spells out the types of all arguments, with the names of all fields. For a policy, a
problem and a tally that takes 10 to 20 µs, more than many kernels take for their work. Most of these objects are those
of the call before, and for the others it is quicker to compare their types with those of the call before.
"""

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

import numba
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

_typeof: Any = numba.typeof
_PLAIN = {int, float, bool, type(None)}


class RepeatedCall(Generic[P, R]):
    """A kernel or a verb for one caller, such as a learner, that calls it often; it holds on to the last arguments.

    Arguments of other types than the last ones are as good: numba finds out about them, as always.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self._function: Any = function
        self._last: tuple[Any, Any] = ((), None)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        assert not kwargs, "kernels are called with positional arguments"
        before, code = self._last
        if have_same_types(args, before):
            code = code or _find_code(self._function, args)
            self._last = args, code
        else:
            self._last, code = ((args if _are_comparable(args) else ()), None), None
        return (code or self._function)(*args)  # type: ignore[no-any-return]


def without_calls(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an object to be pickled without its repeated calls, which it makes again."""
    return {name: value for name, value in state.items() if not isinstance(value, RepeatedCall)}


def have_same_types(new: tuple[Any, ...], old: tuple[Any, ...]) -> bool:
    """Whether numba has the same type for ``new`` as for ``old``, all of which is comparable.

    False also for arrays that are not in C's order, or read-only.

    >>> have_same_types((1, np.zeros(3)), (2, np.zeros(5)))
    True
    >>> have_same_types((1, np.zeros(6)[::2]), (1, np.zeros(3)))
    False
    """
    if len(new) != len(old):
        return False
    for one, other in zip(new, old, strict=False):
        kind = type(one)
        if one is other and kind is not np.ndarray:  # an array may have been changed in place
            continue
        if kind is not type(other):
            return False
        if kind is np.ndarray:
            if not one.flags.carray or one.ndim != other.ndim or one.dtype != other.dtype:
                return False
        elif kind not in _PLAIN and not (isinstance(one, tuple) and have_same_types(one, other)):
            return False
    return True


def _are_comparable(value: Any) -> bool:
    """Whether ``have_same_types`` can compare other values with this one."""
    if isinstance(value, tuple):
        return all(map(_are_comparable, value))
    return value.flags.carray if type(value) is np.ndarray else type(value) in _PLAIN


def _find_code(function: Any, args: tuple[Any, ...]) -> Any:
    """The machine code that ``function`` runs for ``args``, or itself as plain Python; None if it is not there yet."""
    kernel = function.find_method(type(args[0])) if hasattr(function, "find_method") else function
    if not hasattr(kernel, "get_overload"):
        return kernel
    try:
        return kernel.get_overload(tuple(_typeof(arg) for arg in args))
    except KeyError:  # another thread compiles it
        return None
