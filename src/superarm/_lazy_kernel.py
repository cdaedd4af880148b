"""A kernel that is made when it is first used. A process uses few of the hundreds of kernels that it imports."""

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any


class LazyKernel:
    """Stands for the kernel that ``make`` makes of ``fn``, for Python and, by its type, for kernels that name it.

    With ``plain``, calls from Python run ``fn`` itself, and make nothing.
    """

    def __init__(self, fn: Callable[..., Any], make: Callable[[], Any], plain: bool) -> None:
        functools.update_wrapper(self, fn)
        self.py_func, self._make, self._plain = fn, make, plain

    @functools.cached_property
    def kernel(self) -> Any:
        """The kernel itself."""
        return self._make()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs) if self._plain else self.kernel(*args, **kwargs)

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copying and pickling ask for such names before anything is set
            raise AttributeError(name)
        return getattr(self.kernel, name)

    @property
    def _numba_type_(self) -> Any:
        """The type of the kernel where another kernel names it."""
        return self.kernel._numba_type_
