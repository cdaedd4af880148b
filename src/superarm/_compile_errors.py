"""What numba says about a user's component, in one sentence: the file, the line, the construct, what to write instead.

numba answers a mistake in a compiled method with up to 500 lines, since the method is compiled inside of other kernels.
``explaining`` catches its errors where a kernel is compiled for Python, and raises a :class:`CompileError`. An error
that involves no component of the user is left as it is.
"""

import ast
import contextlib
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from superarm._cache import is_ours
from superarm.errors import CompileError

declared: dict[str, list[Callable[..., Any]]] = {}
"""The methods that kernels call, by name, as the Protocols of their families declare them."""

_PLACE = re.compile(r'\b(?:at|from) (\S[^\n]*?) \((\d+)\)|File "([^"\n]+)", line (\d+)')
_BODIES = ("body", "orelse", "finalbody", "handlers")


def source_of(cls: type, name: str) -> Any:
    """The function that a class defines under this name, as it was written; None if it defines none."""
    found = inspect.getattr_static(cls, name, None)
    function = getattr(found, "py_func", found)
    return function if inspect.isfunction(function) else None


@contextlib.contextmanager
def explaining(classes: Iterable[type]) -> Iterator[None]:
    """Turn numba's errors into a ``CompileError``, if one of these component ``classes`` is the user's own."""
    try:
        yield
    except CompileError as error:  # raised inside numba's own code, whose frames say nothing
        raise CompileError(*error.args) from None
    except Exception as error:
        found = explain(_text_with_place(error), [cls for cls in classes if not is_ours(cls)])
        if found is None:
            raise
        full = os.environ.get("SUPERARM_FULL_ERRORS", "0") not in ("", "0")
        raise found from (error if full else None)


def _text_with_place(error: Exception) -> str:
    """What an error says. If it names no line, as while machine code is made, the line that numba was translating."""
    text, place, traceback = str(error), "", error.__traceback__
    if _PLACE.search(text):
        return text
    while traceback is not None:
        found = getattr(traceback.tb_frame.f_locals.get("inst"), "loc", None)
        place = f" at {found.filename} ({found.line})" if found is not None else place
        traceback = traceback.tb_next
    return f"{type(error).__name__}: {text}{place}"


def explain(text: str, classes: list[type]) -> CompileError | None:
    """What was wrong in one of the user's ``classes``, by numba's text; None if nothing is found there."""
    for cls in classes:
        fault = find_signature_fault(cls) or _find_return_fault(cls)
        if fault:
            return CompileError(*fault, full_text=text)
    files = {inspect.getsourcefile(cls) for cls in classes}
    for match in _PLACE.finditer(text):  # the innermost comes first
        path, line = os.path.abspath(match[1] or match[3]), int(match[2] or match[4])
        if path in files or (classes and not _is_installed(path)):
            return _explain_line(path, line, text, text[: match.start()])
    return None


def _is_installed(path: str) -> bool:
    """Whether a file belongs to superarm, numba or another package rather than to the user; unknown files do, too."""
    parts = Path(path).parts
    return not os.path.isfile(path) or "site-packages" in parts or path.startswith(str(Path(__file__).parent))


def find_signature_fault(cls: type) -> tuple[str, str, str, str] | None:
    """A method of ``cls`` that takes other arguments than its family's: place, owner, what is wrong, the remedy."""
    for name, methods in declared.items():
        function = source_of(cls, name)
        if function is None or any(_accepts(function, method) for method in methods):
            continue
        own, right = _parameters(function), _parameters(methods[0])
        wrong = f"takes ({', '.join(own)}), but {methods[0].__qualname__} takes ({', '.join(right)})"
        return place_of(function), f"{cls.__name__}.{name}", wrong, f"write def {name}({', '.join(right)})"
    return None


def _parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def _accepts(function: Callable[..., Any], method: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(*_parameters(method))
    except TypeError:
        return False
    return True


def refuse_none(classes: Iterable[type]) -> None:
    """Raise a ``CompileError`` if a compiled method of a user's class returns None on some paths, and no number there.

    numba compiles such a method, and a kernel that calls it fails with a bare TypeError as soon as it takes that path.
    """
    for cls in classes:
        fault = None if is_ours(cls) else _find_return_fault(cls, only_none=True)
        if fault:
            raise CompileError(*fault)


def _find_return_fault(cls: type, only_none: bool = False) -> tuple[str, str, str, str] | None:
    """A method of ``cls`` that returns something else than the number that its family's returns, or None at times."""
    from numba.core import types

    for name, methods in declared.items():
        kernel = inspect.getattr_static(cls, name, None)
        wanted = methods[0].__annotations__.get("return")
        if wanted not in (int, float, bool) or len(methods) > 1:
            continue
        for compiled in (kernel, getattr(kernel, "_inner", None)):
            for result in getattr(compiled, "overloads", {}).values():
                returned = result.signature.return_type
                odd = not isinstance(returned, types.Number | types.Boolean)
                if odd and (isinstance(returned, types.Optional) or not only_none):
                    function = kernel.py_func
                    return place_of(function), f"{cls.__name__}.{name}", *return_fault(name, _name_type(returned))
    return None


def return_fault(name: str, returned: str) -> tuple[str, str]:
    """What is wrong, and the remedy, where a method returns something else than one number."""
    if name in ("start", "join"):
        remedy = 'keep what an arm changes in one float, or two in one (CONTRIBUTING.md, "A reward")'
    else:
        remedy = "return one number on every path"
    return (
        f"returns {returned}, but {'the state of an item' if name in ('start', 'join') else 'it'} is one number",
        remedy,
    )


def _name_type(numba_type: Any) -> str:
    from numba.core import types

    names = {
        types.BaseTuple: "a tuple",
        types.Array: "an array",
        types.NoneType: "None",
        types.Optional: "None on some paths",
        types.UnicodeType: "text",
        types.List: "a list",
    }
    return next((name for kind, name in names.items() if isinstance(numba_type, kind)), str(numba_type))


def place_of(thing: Any) -> str:
    """The file and the line of a function or class; its module if it has no file."""
    try:
        return f"{_short(inspect.getsourcefile(thing) or '')}:{inspect.getsourcelines(thing)[1]}"
    except (OSError, TypeError):
        return str(thing.__module__)


def _short(path: str) -> str:
    """The path relative to the working directory, if it is below it."""
    return os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path


def _explain_line(path: str, line: int, text: str, before: str) -> CompileError:
    from superarm._compile_rules import find_fault

    source = Path(path).read_text(encoding="utf-8")
    tree = ast.parse(source)
    nodes = _nodes_of_line(tree, line)
    wrong, remedy = find_fault(nodes, before, text)
    code = source.splitlines()[line - 1].strip()
    return CompileError(f"{_short(path)}:{line}", _owner(tree, line), wrong, remedy, code, text)


def _nodes_of_line(tree: ast.AST, line: int) -> list[ast.AST]:
    """The expressions of the innermost statement that covers the line, without statements inside of it."""
    covering = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    if not covering:
        return []
    statement = max(covering, key=lambda node: node.lineno)
    found: list[ast.AST] = [statement]
    for name, value in ast.iter_fields(statement):
        if name not in _BODIES:
            parts = value if isinstance(value, list) else [value]
            found += [node for part in parts if isinstance(part, ast.AST) for node in ast.walk(part)]
    return found


def _owner(tree: ast.AST, line: int) -> str:
    """The class and the function that the line is in, with a dot between."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    around = [n for n in ast.walk(tree) if isinstance(n, kinds) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    return ".".join(node.name for node in sorted(around, key=lambda node: node.lineno))
