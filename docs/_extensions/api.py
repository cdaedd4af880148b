"""The reference of the public names, one page per package, written before the site is built."""

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the tests read this file without Sphinx
    from sphinx.application import Sphinx

PACKAGES = {
    "superarm.agent": "Agents",
    "superarm.contextual": "Policies with a context",
    "superarm.problem": "Problems",
    "superarm.rewards": "Rewards",
    "superarm.thresholds": "Scores",
    "superarm.judge": "Judges",
    "superarm.actions": "Action sets",
    "superarm.context": "Context",
    "superarm.context.models": "Models of contexts",
    "superarm.simulation": "Simulation",
    "superarm.simulation.instances": "Instances",
    "superarm.environments": "Environments",
    "superarm.policies": "Policies",
    "superarm.indices": "Indices",
    "superarm.oracles": "Oracles",
    "superarm.diffusion": "Influence",
    "superarm.items": "Learnt items",
    "superarm.tables": "Tables",
    "superarm.warehouse": "Warehouse",
    "superarm.offline": "Logs",
    "superarm.theory": "Theory",
    "superarm.experiments": "Experiments",
    "superarm.data": "Data",
    "superarm.gym": "Gymnasium",
    "superarm.testing": "Checks of components",
    "superarm.service.client": "Client of the service",
    "superarm.core.component": "Components",
    "superarm.core.tally": "Tallies and views",
    "superarm.random": "Random numbers",
    "superarm.core.errors": "Errors",
}
"""Modules with their titles, in the order of the page."""

CHOSEN = {
    "superarm.core.component": ["Component", "named"],
    "superarm.core.tally": ["Tally", "View", "Feedback"],
}
"""What authors of components need of modules that have more."""


def public_names(module: Any) -> list[str]:
    """What a page lists: ``__all__``, or the functions and classes that the module defines; a name is on one page."""
    if module.__name__ in CHOSEN:
        return CHOSEN[module.__name__]
    if hasattr(module, "__all__"):
        parts = [importlib.import_module(place) for place in PACKAGES if place.startswith(f"{module.__name__}.")]
        apart = {id(getattr(part, name)) for part in parts for name in public_names(part)}
        return [name for name in module.__all__ if id(getattr(module, name)) not in apart]
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [name for name in own if not name.startswith("_")]


def _directive(module: Any, name: str) -> str:
    value = getattr(module, name)
    if inspect.isclass(value):
        return f".. autoclass:: {module.__name__}.{name}\n   :members:\n"
    if callable(value) and not hasattr(value, "__metadata__"):  # an annotated type is called, too
        return f".. autofunction:: {module.__name__}.{name}\n"
    return "" if inspect.ismodule(value) else _describe_constant(module.__name__, name)


def _describe_constant(package: str, name: str) -> str:
    """A constant with the docstring that follows its assignment, wherever in the package that is."""
    from sphinx.pycode import ModuleAnalyzer

    for place in sorted(sys.modules):
        if place == package or place.startswith(f"{package}."):
            lines = ModuleAnalyzer.for_module(place).find_attr_docs().get(("", name), [])
            if lines:
                return f".. py:data:: {name}\n\n" + "\n".join(f"   {line}" for line in lines)
    return f".. py:data:: {name}\n"


def write_pages(app: "Sphinx") -> None:
    """One page per package, and a list of them; unchanged pages keep their time."""
    directory = Path(app.srcdir) / "reference" / "api"
    directory.mkdir(parents=True, exist_ok=True)
    for place, title in PACKAGES.items():
        module = importlib.import_module(place)
        lines = [title, "=" * len(title), "", f".. currentmodule:: {place}", "", cite(inspect.getdoc(module) or ""), ""]
        lines += [_directive(module, name) for name in public_names(module)]
        _write(directory / f"{place.rpartition('.')[2]}.rst", "\n".join(lines))
    names = "\n".join(f"   {place.rpartition('.')[2]}" for place in PACKAGES)
    _write(
        directory / "index.rst",
        f"API\n===\n\nEvery public name, by package.\n\n.. toctree::\n   :maxdepth: 1\n\n{names}\n",
    )


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def cite(text: str) -> str:
    """``[Key2019]_`` in a docstring as a citation."""
    return re.sub(r"\[([A-Z]\w+?\d{4}[a-z]?)\]_", r":cite:t:`\1`", text)


def _cite_lines(app: "Sphinx", what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [cite(line) for line in lines]


def _skip(app: "Sphinx", what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of NamedTuples, which Python documents as ``Alias for field number 0``."""
    return True if (getattr(value, "__doc__", "") or "").startswith("Alias for field number") else None


def setup(app: "Sphinx") -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", _cite_lines)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
