"""The experiments that come with the library, by name."""

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from superarm.experiments.parts import choice
from superarm.experiments.spec import Experiment, from_toml, load


def names() -> list[str]:
    """The names of the shipped experiments.

    >>> "quickstart" in names()
    True
    """
    files = _directory().iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def named(name: str) -> Experiment:
    """A shipped experiment."""
    text = (_directory() / f"{name}.toml").read_text(encoding="utf-8")
    return from_toml(text, f"{name}.toml")


def find(spec: str) -> Experiment:
    """The experiment of a file, or the shipped one of that name; a file of the same name wins."""
    if Path(spec).is_file():
        return load(spec)
    return named(choice(spec, names(), ("SPEC",), "file or shipped experiment"))


def _directory() -> Traversable:
    return resources.files("superarm.experiments") / "shipped"
