"""What every component's declaration has to fulfil: decorators, parameters, numbers as results."""

import numbers
from typing import Any

import numpy as np

from superarm._compile_errors import declared, find_signature_fault, place_of, return_fault, source_of
from superarm._jit import components
from superarm.errors import SuperarmError


class ContractViolation(SuperarmError, AssertionError):
    """A component breaks the contract of its family; the message contains a counterexample."""

    __module__ = "superarm.testing"  # where users find it, and what tracebacks show


def require(holds: Any, promise: str, **example: Any) -> None:
    """Raise ``ContractViolation`` with the ``example`` unless ``promise`` ``holds``."""
    if not holds:
        raise ContractViolation(f"{promise}; violated with {', '.join(f'{k}={v!r}' for k, v in example.items())}")


def check_declaration(component: Any, *families: type) -> None:
    """Check what is written above and between the parentheses of the methods: decorators and parameters.

    The methods of a family that kernels call are compiled; all others are marked ``@interpreted``.
    """
    cls = type(component)
    if cls not in components.values():
        remedy = f"write @superarm.component above class {cls.__name__}"
        raise ContractViolation(f"{place_of(cls)}: {cls.__name__} is not declared as a component; {remedy}")
    wrong = find_signature_fault(cls)
    if wrong:
        raise ContractViolation(f"{wrong[0]}: {wrong[1]} {wrong[2]}; {wrong[3]}")
    for family in families:
        for name in (name for name, method in vars(family).items() if callable(method) and not name.startswith("_")):
            function = source_of(cls, name)
            if function is not None and name not in declared and "interpreted" not in vars(function):
                remedy = f"write @superarm.interpreted above def {name}"
                raise ContractViolation(
                    f"{place_of(function)}: {cls.__name__}.{name} is called by Python only; {remedy}"
                )
            if not hasattr(cls, name):
                raise ContractViolation(f"{place_of(cls)}: {cls.__name__} lacks the method {name} of {family.__name__}")


def require_number(component: Any, name: str, value: Any) -> None:
    """Raise ``ContractViolation`` unless the method ``name`` has returned one number."""
    if not isinstance(value, numbers.Real | np.bool_):
        _refuse(component, name, *return_fault(name, repr(value)))


def require_batch(component: Any, name: str, value: Any) -> None:
    """Raise ``ContractViolation`` unless the method ``name`` has returned a batch: an array of the numbers of arms."""
    if not (isinstance(value, np.ndarray) and value.ndim == 1 and np.issubdtype(value.dtype, np.integer)):
        remedy = "return an array of integers, made by np.empty(k, np.int64) and filled"
        _refuse(component, name, f"returns {value!r}, but a batch is an array of the numbers of its arms", remedy)


def _refuse(component: Any, name: str, wrong: str, remedy: str) -> None:
    method = getattr(type(component), name)
    place = place_of(getattr(method, "py_func", method))
    raise ContractViolation(f"{place}: {type(component).__name__}.{name} {wrong}; {remedy}")
