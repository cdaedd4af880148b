"""Which construct of a line numba cannot compile, and what to write instead."""

import ast
import re
from collections.abc import Callable, Sequence

_PYTHON = "or run with NUMBA_DISABLE_JIT=1, where it works"
Fault = tuple[str, str]
"""What is wrong, and what to write instead."""


def find_fault(nodes: Sequence[ast.AST], before: str, text: str) -> Fault:
    """What is wrong with a line and the remedy, from its syntax and from numba's message.

    ``before`` is the message up to the place of the line, ``text`` all of it.
    """
    innermost = before[max(before.rfind("TypingError: Failed in nopython mode"), 0) :]
    for rule in _RULES:
        fault = rule(nodes, innermost)
        if fault:
            return fault
    return _first_sentence(innermost or text), "write it with numbers, arrays and loops, as numba's documentation shows"


def _text_formatting(nodes: Sequence[ast.AST], message: str) -> Fault | None:
    if any(isinstance(node, ast.JoinedStr) for node in nodes):
        return "an f-string cannot be compiled", f"format text where Python calls the component, {_PYTHON}"
    return None


def _print(nodes: Sequence[ast.AST], message: str) -> Fault | None:
    if any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print" for node in nodes
    ):
        return "print cannot be compiled with these arguments", f"remove it, print numbers alone, {_PYTHON}"
    return None


def _plain_function(nodes: Sequence[ast.AST], message: str) -> Fault | None:
    found = re.search(r"Untyped global name '(\w+)'.*?Cannot determine Numba type of <class '([\w.]+)'>", message, re.S)
    if not found:
        return None
    if found[2] == "function":
        return f"{found[1]} is a plain Python function", f"write @superarm.kernel above def {found[1]}"
    if found[2] == "type":
        return f"{found[1]} is a class, which compiled code cannot use", "use numbers, arrays and NamedTuples"
    return f"{found[1]} is of type {found[2]}", "use a number, an array or a tuple, or make it a field of the component"


def _wrong_shape(nodes: Sequence[ast.AST], message: str) -> Fault | None:
    found = re.search(r"cannot index array\(\w+, (\d)d, \w+\) with (\d) indices", message)
    if found:
        wrong = f"an array of {_dimensions(found[1])} is indexed with {found[2]} indices"
        return wrong, "entries of all arms are in one flat array: superarm.support.span gives those of an arm"
    if re.search(r">>> setitem\(array\([^)]*\), (u?int64|Literal\[int\]\(\d+\)), (array|UniTuple|Tuple|List)", message):
        return "an array or a tuple is stored where one number belongs", "assign to a slice, or store one number"
    if re.search(r">>> (static_)?getitem\((float64|int64|bool)", message):
        return (
            "a number is indexed as if it were an array or a tuple",
            "use the number; the state of an item is one float",
        )
    return None


def _dimensions(n: str) -> str:
    return f"{n} dimension" if n == "1" else f"{n} dimensions"


def _numpy_function(nodes: Sequence[ast.AST], message: str) -> Fault | None:
    remedy = "write a loop, or a NumPy function on numba's list of supported ones, with positional arguments"
    if "Only accept returning of array passed into the function" in message:
        return "a new array cannot be made in this method", "use numbers alone, or make the array in prepare"
    found = re.search(r"unsupported NumPy function 'numpy\.([\w.]+)'", message)
    if found:
        return f"np.{found[1]} is not available in compiled code", remedy
    called = re.findall(r"Function\(<(?:built-in )?function (\w+)", message)
    for node in nodes:
        name = _numpy_name(node)
        if name.startswith("random."):
            return f"np.{name} cannot be used here", "draw from the stream: superarm.streams.uniform(stream)"
        if name and (name.split(".")[-1] in called or f"'{name.split('.')[-1]}' of type Module" in message):
            return f"np.{name} is not available in compiled code, or not with these arguments", remedy
    return None


def _numpy_name(node: ast.AST) -> str:
    """``linalg.norm`` of ``np.linalg.norm(...)``; empty for anything else."""
    parts: list[str] = []
    inner: ast.AST = node.func if isinstance(node, ast.Call) else node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    is_numpy = isinstance(inner, ast.Name) and inner.id in ("np", "numpy")
    return ".".join(reversed(parts)) if is_numpy and parts else ""


def _attribute(nodes: Sequence[ast.AST], message: str) -> Fault | None:
    found = re.search(r"Unknown attribute '(\w+)' of type (\w+)", message)
    if not found:
        return None
    owner = {"DictType": "a dictionary", "reflected": "a Python list", "ListType": "a list"}.get(found[2], found[2])
    remedy = "correct the name, or add the field to the class"
    if owner != found[2]:
        remedy = "where this value is made, return a NamedTuple of numbers and arrays"
    elif found.groups() == ("k", "Problem"):
        remedy = "write superarm.actions.capacity(problem.actions, problem.n_arms), the size of the largest batch"
    return f"{owner} has no field or compiled method {found[1]!r}", remedy


def _collection(nodes: Sequence[ast.AST], message: str) -> Fault | None:
    names: list[tuple[type[ast.AST] | tuple[type[ast.AST], ...], str, str]] = [
        ((ast.List, ast.ListComp), "a Python list", "use a NumPy array: np.empty(n), then fill it in a loop"),
        ((ast.Dict, ast.DictComp), "a dictionary", "use arrays indexed by number, or fields of the component"),
        ((ast.Set, ast.SetComp), "a set", "use an array of booleans"),
        (ast.GeneratorExp, "a generator expression", "write a loop"),
        (ast.Lambda, "a lambda", "write a function with @superarm.kernel"),
        ((ast.Try, ast.With), "try or with", "check the values before they are used"),
    ]
    for kinds, name, remedy in names:
        if any(isinstance(node, kinds) for node in nodes):
            return f"{name} cannot be compiled here", remedy
    if any(isinstance(node, ast.Constant) and isinstance(node.value, str) for node in nodes):
        return "text cannot be compiled here", "use a number in its place: a field of the component, or a constant"
    return None


def _statement(nodes: Sequence[ast.AST], message: str) -> Fault | None:
    if any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes):
        return "an import cannot be compiled", "import at the top of the file"
    targets: list[ast.expr] = []
    for node in nodes:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets.append(node.target)
    if any(isinstance(target, ast.Attribute) for target in targets):
        return "a field cannot be assigned", "components never change: keep what changes in the arrays of the memory"
    return None


def _keywords(nodes: Sequence[ast.AST], message: str) -> Fault | None:
    if any(isinstance(node, ast.Call) and node.keywords for node in nodes):
        return "a call with keyword arguments cannot be compiled here", "give the arguments by position"
    return None


def _mixed_types(nodes: Sequence[ast.AST], message: str) -> Fault | None:
    found = re.search(r"Cannot unify (\S+) and (.+?) for '", message)
    if not found:
        return None
    kinds = f"{found[1]} and {found[2]}"
    return f"values of different types meet here: {kinds}", "give every branch one type: 1.0 rather than 1, and no None"


def _wrong_call(nodes: Sequence[ast.AST], message: str) -> Fault | None:
    found = re.search(
        r"(too many positional arguments|missing a required argument: '\w+'|unexpected keyword argument)", message
    )
    if not found:
        return None
    return (
        f"a call does not fit the function that it calls ({found[1]})",
        "give the arguments that it takes, by position",
    )


_RULES: tuple[Callable[[Sequence[ast.AST], str], Fault | None], ...] = (
    _statement,
    _text_formatting,
    _print,
    _plain_function,
    _wrong_shape,
    _numpy_function,
    _attribute,
    _mixed_types,
    _wrong_call,
    _collection,
    _keywords,
)


def _first_sentence(message: str) -> str:
    """The first line of numba's message that says something."""
    lines = [line.strip() for line in message.splitlines()]
    said = [
        line for line in lines if line and not line.startswith(("Failed in", "During:", "File ", ">>>", "There are"))
    ]
    return said[0].rstrip(".") if said else "this cannot be compiled"
