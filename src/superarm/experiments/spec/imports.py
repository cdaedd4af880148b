"""Components of your own in an experiment: modules that a spec imports, and names such as ``mine.py:MyPolicy``."""

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from superarm.core.component import Component
from superarm.core.errors import InvalidSpec

_imported: dict[str, ModuleType] = {}


def locate(entry: str, home: Path) -> str:
    """A module or file to import: the absolute path of the file, if it is in the directory ``home``, else as it is.

    >>> locate("numpy", Path("/nowhere"))
    'numpy'
    """
    file = home / (entry if entry.endswith(".py") else f"{entry.replace('.', '/')}.py")
    return str(file.absolute()) if file.is_file() else entry


def import_entry(entry: Any, key: tuple[str, ...] = ("import",)) -> ModuleType:
    """Import a module by its name, or a file by its path; its directory is added to where Python looks for modules.

    Processes that a run starts look in the same places.
    """
    if not isinstance(entry, str) or not entry:
        raise InvalidSpec(key, f"{entry!r} is not a module", 'give names of modules or files, as ["mine.py"]')
    path = Path(entry).absolute()
    name = path.stem if entry.endswith(".py") else entry
    if entry.endswith(".py"):
        if not path.is_file():
            raise InvalidSpec(key, f"there is no file {entry}", "give a path relative to the spec, or an absolute one")
        _look_in(path.parent)
    else:
        _look_in(Path.cwd())
    module = _import(name, entry, key)
    if entry.endswith(".py") and Path(module.__file__ or "").absolute() != path:
        wrong = f"another module {name!r} is loaded from {module.__file__}"
        raise InvalidSpec(key, wrong, "rename the file")
    _imported[name] = module
    return module


def _import(name: str, entry: str, key: tuple[str, ...]) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise InvalidSpec(key, f"{entry} imports {error.name}, which is not installed", "install it") from None
        wrong = f"there is no module {entry!r}, neither installed nor beside the spec nor in {Path.cwd()}"
        raise InvalidSpec(key, wrong, "correct the name, or give the path of a .py file") from None


def _look_in(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.append(str(directory))


def find_named(name: str, key: tuple[str, ...]) -> Callable[..., Any]:
    """The function or component with the name ``module:Name`` or ``file.py:Name``."""
    home, _, attribute = name.rpartition(":")
    module = import_entry(home, key)
    found = getattr(module, attribute, None)
    if not callable(found):
        raise InvalidSpec(key, f"{home} has no function or component {attribute!r}", "correct the name after the colon")
    maker: Callable[..., Any] = found
    return maker


def list_imported(family: type[Component] | None = None) -> dict[str, Callable[..., Any]]:
    """What imported modules define, by name: the components of a family; by default the functions."""
    found: dict[str, Callable[..., Any]] = {}
    for module in _imported.values():
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(thing) if family is None else is_component(thing, family):
                found[name] = thing
    return found


def is_component(thing: Any, family: type[Component]) -> bool:
    """Whether ``thing`` is a class of components of ``family``, other than its base."""
    return inspect.isclass(thing) and issubclass(thing, family) and thing is not family


def import_all(entries: Sequence[str]) -> list[str]:
    """Import modules or files named on the command line, and return them with the files' absolute paths."""
    found = [locate(entry, Path.cwd()) for entry in entries]
    for entry in found:
        import_entry(entry, ("--import",))
    return found
