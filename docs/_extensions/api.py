"""The reference of the public names, one page per room, written before the site is built."""

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import superarm

if TYPE_CHECKING:  # the tests read this file without Sphinx
    from sphinx.application import Sphinx

ROOMS = {
    "superarm.agent": "Agents",
    "superarm.policies.catalog": "Policies by name",
    "superarm.simulation": "Simulation",
    "superarm.core.problem": "Problems",
    "superarm.rewards": "Rewards",
    "superarm.actions": "Action sets",
    "superarm.context": "Context",
    "superarm.indices": "Indices",
    "superarm.policies": "Policies",
    "superarm.oracles": "Oracles",
    "superarm.environments": "Environments",
    "superarm.diffusion": "Influence",
    "superarm.learner": "Learner",
    "superarm.offline": "Logs",
    "superarm.theory": "Theory",
    "superarm.experiments": "Experiments",
    "superarm.data": "Data",
    "superarm.testing": "Checks of components",
    "superarm.service": "Service and client",
    "superarm.core.errors": "Errors",
    "superarm": "Own components, tallies, connections",
}
"""Modules with their titles, in the order of the page."""


POLICIES = ("superarm.policies.catalog", "superarm.policies.contextual")
"""The modules of the policies that have a name of their own."""


def public_names(module: Any) -> list[str]:
    """What a room exports: ``__all__``, or the functions and classes that it defines.

    Policies by name are those that ``superarm`` has, and ``superarm`` itself lists what no other page has.
    """
    if module.__name__ == "superarm.policies.catalog":
        return [name for home in POLICIES for name in superarm._HOMES[home].split()]
    if module is superarm:
        others = [importlib.import_module(place) for place in ROOMS if place != "superarm"]
        listed = {name for other in others for name in public_names(other)}
        return [name for name in superarm.__all__ if name not in {*listed, *superarm._MODULES}]
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [name for name in own if not name.startswith("_")]


def find_public(module: Any, name: str) -> tuple[Any, Any]:
    """A name of a page, and the module that has it."""
    home = module if hasattr(module, name) else superarm
    return home, getattr(home, name)


def _directive(module: Any, name: str) -> str:
    module, value = find_public(module, name)
    if inspect.isclass(value):
        return f".. autoclass:: {module.__name__}.{name}\n   :members:\n"
    if callable(value) and not hasattr(value, "__metadata__"):  # an annotated type is called, too
        return f".. autofunction:: {module.__name__}.{name}\n"
    return "" if inspect.ismodule(value) else _describe_constant(module.__name__, name)


def _describe_constant(room: str, name: str) -> str:
    """A constant with the docstring that follows its assignment, wherever in the room that is."""
    from sphinx.pycode import ModuleAnalyzer

    for place in sorted(sys.modules):
        if place == room or place.startswith(f"{room}."):
            lines = ModuleAnalyzer.for_module(place).find_attr_docs().get(("", name), [])
            if lines:
                return f".. py:data:: {name}\n\n" + "\n".join(f"   {line}" for line in lines)
    return f".. py:data:: {name}\n"


def write_pages(app: "Sphinx") -> None:
    """One page per room, and a list of them; unchanged pages keep their time."""
    directory = Path(app.srcdir) / "reference" / "api"
    directory.mkdir(parents=True, exist_ok=True)
    for place, title in ROOMS.items():
        module = importlib.import_module(place)
        lines = [title, "=" * len(title), "", f".. currentmodule:: {place}", "", inspect.getdoc(module) or "", ""]
        lines += [_directive(module, name) for name in public_names(module)]
        _write(directory / f"{place.rpartition('.')[2]}.rst", "\n".join(lines))
    names = "\n".join(f"   {place.rpartition('.')[2]}" for place in ROOMS)
    _write(
        directory / "index.rst",
        f"API\n===\n\nEvery public name, by room.\n\n.. toctree::\n   :maxdepth: 1\n\n{names}\n",
    )


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _cite(app: "Sphinx", what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """``[Key2019]_`` in a docstring as a citation."""
    lines[:] = [re.sub(r"\[([A-Z]\w+?\d{4}[a-z]?)\]_", r":cite:t:`\1`", line) for line in lines]


def _skip(app: "Sphinx", what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of NamedTuples, which Python documents as ``Alias for field number 0``."""
    return True if (getattr(value, "__doc__", "") or "").startswith("Alias for field number") else None


def setup(app: "Sphinx") -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", _cite)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
