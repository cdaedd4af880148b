"""The experiments that come with superarm, by name."""

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from superarm.experiments.spec.experiment import Experiment, from_toml, load
from superarm.experiments.spec.imports import import_all
from superarm.experiments.spec.resolve import check_choice


def list_shipped() -> list[str]:
    """The names of the shipped experiments.

    >>> "quickstart" in list_shipped()
    True
    """
    files = _directory().iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def load_shipped(name: str) -> Experiment:
    """The shipped experiment ``name``."""
    text = (_directory() / f"{name}.toml").read_text(encoding="utf-8")
    return from_toml(text, f"{name}.toml")


def find_experiment(spec: str, imports: Sequence[str] = ()) -> Experiment:
    """The experiment in the file ``spec``, or the shipped one of that name; an existing file takes precedence.

    ``imports`` are modules or files to import first, relative to the working directory.
    """
    found = import_all(imports)
    if Path(spec).is_file():
        experiment = load(spec)
    else:
        experiment = load_shipped(check_choice(spec, list_shipped(), ("SPEC",), "file or shipped experiment"))
    return replace(experiment, imports=(*dict.fromkeys([*found, *experiment.imports]),)) if found else experiment


def _directory() -> Traversable:
    return resources.files("superarm.experiments.spec") / "shipped_specs"
