"""Experiment: what to run, as a frozen value, from and to TOML; and the experiments that come with superarm."""

import functools
import hashlib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.arrays import without_fraction
from superarm.core.errors import InvalidSpec
from superarm.core.streams import seed_sequence
from superarm.experiments.spec import toml
from superarm.experiments.spec.build import PLAYED_BY, check_choice, check_section, to_table
from superarm.experiments.spec.imports import import_all, import_entry, locate
from superarm.simulation.regret import CHOICES
from superarm.theory.bound import LABELS
from superarm.theory.theorems import THEOREMS

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study
    from superarm.experiments.execution.executors import Executor

FILE_KEYS = ("file", "path")
"""Parameters that name a file, relative to the directory of the spec."""
MAKER_KEYS = ("policy", "generator", "name", "index", "oracle", "reward", "actions", "outcomes", "spread")
"""Parameters that may be ``file.py:Name``, with a file relative to the directory of the spec."""
_CLAIM_KEYS = {
    "less": ("policy than", "factor"),
    "towards": ("policy than rivals", "share"),
    "best": ("policy rivals", "factor"),
    "slope": ("policy against", "above below"),
    "growth": ("policy", "above below"),
    "bound": ("policy bound", ""),
    "reported": ("policy regret", "error deviation runs reading round"),
    "geometric": ("policy than below", ""),
    "locked": ("policy share", ""),
}
"""For each kind of claim, the keys that it needs, and those that it may have beside kind, text and instance."""
BOUNDS = {name: LABELS[name] for name in THEOREMS if name.startswith("upper")}
"""The upper bounds of one instance, which a claim can name, with their labels."""


def check_claims(
    claims: Sequence[Mapping[str, Any]], instances: Mapping[str, Any], policies: Mapping[str, Any], horizon: int
) -> None:
    """Refuse a claim of an unknown kind, with unknown or missing keys, or about something not in the experiment."""
    for n, claim in enumerate(claims):
        path = ("claims", str(n))
        kind = check_choice(claim.get("kind"), _CLAIM_KEYS, (*path, "kind"), "kind of claim")
        needed, optional = (keys.split() for keys in _CLAIM_KEYS[kind])
        valid = {"policy": policies, "than": policies, "rivals": policies, "instance": instances, "bound": BOUNDS}
        for key, value in claim.items():
            check_choice(key, ("kind", "text", "instance", *needed, *optional), (*path, key), "key")
            if key in valid:
                what = "policy" if valid[key] is policies else key
                for name in as_list(value):
                    check_choice(name, valid[key], (*path, key), what)
        for key in needed:
            if key not in claim:
                raise InvalidSpec(path, f"a claim of kind {kind!r} lacks {key!r}", f"add {key} = …")
        if kind in ("slope", "growth") and ("above" in claim) == ("below" in claim):
            raise InvalidSpec(path, "not exactly one of above and below", "give one limit: above = … or below = …")
        if kind == "reported":
            _check_reported(claim, path, horizon)


def check_published(source: Mapping[str, str]) -> None:
    """Refuse a source of published numbers with unknown or missing keys."""
    for key in source:
        check_choice(key, ("paper", "place", "read", "differs"), ("published", key), "key")
    for key in ("paper", "place", "read") if source else ():
        if key not in source:
            raise InvalidSpec(("published",), f"lacks {key!r}", f"add {key} = …")
    if source:
        check_choice(source["read"], ("print", "vector"), ("published", "read"), "way of reading")


def _check_reported(claim: Mapping[str, Any], path: tuple[str, ...], horizon: int) -> None:
    """Refuse a published mean of which nothing says how exact it is, or two things do, and numbers out of range."""
    for key in sorted({"regret", "error", "deviation", "reading"} & set(claim)):
        value = claim[key]
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        wanted = "a number" if key == "regret" else "a number >= 0"
        if not number or (value < 0.0 and key != "regret"):
            raise InvalidSpec((*path, key), f"{value!r} is not {wanted}", f"give {wanted}")
    for key, most in (("runs", math.inf), ("round", horizon)):
        value = without_fraction(claim.get(key, 1))
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidSpec((*path, key), f"{value!r} is not a whole number >= 1", "give an int >= 1")
        if value > most:
            wrong = f"round {value} is beyond the horizon of {horizon}"
            raise InvalidSpec((*path, key), wrong, f"give horizon = {value} or more, or an earlier round")
    if "deviation" in claim and ("error" in claim or "runs" not in claim):
        raise InvalidSpec((*path, "deviation"), "not with runs alone", "give deviation and runs, or error")
    if not {"error", "runs", "reading"} & set(claim):
        remedy = "add error = …, deviation = … with runs = …, runs = …, or reading = … for a number read from a drawing"
        raise InvalidSpec(path, "nothing says how exact the published mean is", remedy)


def as_list(value: Any) -> list[Any]:
    """A list of names as it is, and a single name as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


@dataclass(frozen=True)
class Experiment:
    """Instances, policies, and everything else that determines the numbers.

    Parameters
    ----------
    name
        The name, and by default the directory below ``results`` that results go to.
    instances, policies
        By the names that tables and figures show. A value is an ``Instance`` or a policy, or a table as in TOML:
        ``{"generator": "random_coverage", "k": {"sweep": [2, 4, 8]}}``, ``{"policy": "kl_ucb", "rho": 1.0}``.
        ``{"sweep": [...]}`` in place of a parameter runs every listed value.
    horizon, replications, seed, target
        As in ``superarm.simulate``, which returns exactly the same numbers. An experiment can be repeated, so its seed
        is an int: from a ``SeedSequence``, a ``Generator`` or None one is drawn and written down.
    checkpoints
        The number of rounds, evenly spaced on a log scale, at which regret is recorded.
    title, text
        The heading and the introduction of the report.
    claims
        What the results are expected to show; the report says for each whether it holds, with the deciding number.
    published
        Where the numbers of the claims of the kind ``reported`` are from: ``paper`` and ``place``; whether they were
        read in ``print`` or from a ``vector`` drawing (``read``); and what ``differs`` here, and why.
    imports
        Modules or ``.py`` files with components of your own, whose names can then be used; ``import`` in TOML.

    Examples
    --------
    >>> import superarm as sa
    >>> experiment = sa.Experiment(
    ...     name="batch-size",
    ...     instances={"rare": {"generator": "rare_hits", "n_arms": 20, "k": {"sweep": [2, 4]}}},
    ...     policies={"KL-UCB": sa.kl_ucb(), "CUCB": {"policy": "cucb"}},
    ...     horizon=500,
    ... )
    >>> [cell.label for cell in experiment.cells()]
    ['KL-UCB on rare (k=2)', 'CUCB on rare (k=2)', 'KL-UCB on rare (k=4)', 'CUCB on rare (k=4)']
    """

    name: str
    instances: Mapping[str, Any]
    policies: Mapping[str, Any]
    horizon: int = 10_000
    replications: int = 20
    seed: int = 0
    target: str = "default"
    checkpoints: int = 100
    title: str = ""
    text: str = ""
    claims: Sequence[Mapping[str, Any]] = field(default=())
    published: Mapping[str, str] = field(default_factory=dict)
    imports: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not all(c.isalnum() or c in "-_." for c in self.name):
            raise InvalidSpec(("name",), f"{self.name!r}", "give a name of letters, digits, - and _")
        object.__setattr__(self, "seed", _whole_seed(self.seed))
        for key, least in (("horizon", 1), ("replications", 1), ("seed", 0), ("checkpoints", 2)):
            number = without_fraction(getattr(self, key))
            object.__setattr__(self, key, number)
            if not isinstance(number, int) or isinstance(number, bool) or number < least:
                raise InvalidSpec((key,), f"{number!r} is not a whole number >= {least}", f"give an int >= {least}")
        check_choice(self.target, CHOICES, ("target",), "target")
        self._import()
        check_section("instances", self.instances)
        check_section("policies", self.policies)
        check_claims(self.claims, self.instances, self.policies, self.horizon)
        check_published(self.published)
        for name, entry in self.instances.items():
            for policy in entry.get(PLAYED_BY, ()) if isinstance(entry, Mapping) else ():
                check_choice(policy, self.policies, ("instances", name, PLAYED_BY), "policy")

    def _import(self) -> None:
        if isinstance(self.imports, str) or not isinstance(self.imports, Sequence):
            raise InvalidSpec(("import",), f"{self.imports!r} is not a list", 'give a list, as ["mine.py"]')
        for entry in self.imports:
            import_entry(entry)

    def cells(self) -> list[Any]:
        """Every cell of the grid: one policy on one instance, all replications.

        Instances are generated at the first call and kept, so that data sets are read once.
        """
        return list(self._cells)

    @functools.cached_property
    def _cells(self) -> tuple[Any, ...]:
        from superarm.experiments.execution.cells import list_cells

        return tuple(list_cells(self))

    def to_dict(self) -> dict[str, Any]:
        """The experiment as plain values that TOML can hold."""
        table = {f.name: getattr(self, f.name) for f in fields(self)}
        table = {key: value for key, value in table.items() if value not in ("", (), [], {})}
        for key in ("instances", "policies"):
            section = table.pop(key)
            table[key] = {name: to_table(entry) for name, entry in section.items()}
        if self.imports:
            table = {"name": self.name, "import": list(table.pop("imports"))} | table
        if self.claims:
            table["claims"] = [dict(claim) for claim in table.pop("claims")]
        return table

    def to_toml(self) -> str:
        """The experiment as the text of a file for ``superarm run``."""
        return toml.dumps(self.to_dict())

    @property
    def digest(self) -> str:
        """A digest of the whole spec."""
        return hashlib.sha256(self.to_toml().encode()).hexdigest()[:16]

    def run(
        self, directory: str | Path | None = None, executor: "Executor | None" = None, progress: bool = True
    ) -> "Study":
        """Run the cells that ``directory`` does not have yet; see ``experiments.run``."""
        from superarm.experiments.execution.runner import run

        return run(self, directory, executor, progress)


def from_dict(table: Mapping[str, Any]) -> Experiment:
    """An experiment from plain values; the error on an unknown key names the nearest valid one."""
    names = ["import" if f.name == "imports" else f.name for f in fields(Experiment)]
    for key in table:
        check_choice(key, names, (key,), "key")
    for key in ("name", "instances", "policies"):
        if key not in table:
            raise InvalidSpec((key,), "missing", f"add {'a name' if key == 'name' else f'a table [{key}.…]'}")
    return Experiment(**{"imports" if key == "import" else key: value for key, value in table.items()})


def from_toml(text: str, source: str = "spec", home: Path | None = None) -> Experiment:
    """An experiment from TOML. Errors name ``source``, the line and the key; ``home`` is where relative files are.

    >>> from_toml('name = "x"\\nhorizont = 5')
    Traceback (most recent call last):
    superarm.core.errors.InvalidSpec: spec:2: horizont: unknown key 'horizont'; did you mean 'horizon'?
    """
    try:
        return from_dict(_resolve_files(tomllib.loads(text), home))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidSpec((source,), str(error), "correct the TOML there") from None
    except InvalidSpec as error:
        line = toml.line_of(text, error.key)
        error.place = f"{source}:{line}" if line else source
        raise


def load(path: str | Path) -> Experiment:
    """The experiment in a TOML file."""
    file = Path(path)
    return from_toml(file.read_text(encoding="utf-8"), str(path), file.parent)


def _resolve_files(table: Any, home: Path | None) -> Any:
    """The table with the paths of files made absolute."""
    if home is None or not isinstance(table, dict):
        return table
    return {key: _resolve_value(key, value, home) for key, value in table.items()}


def _resolve_value(key: str, value: Any, home: Path) -> Any:
    if key in FILE_KEYS and isinstance(value, str):
        return str((home / value).absolute())
    if key in MAKER_KEYS and isinstance(value, str) and ".py:" in value:
        file, _, name = value.rpartition(":")
        return f"{(home / file).absolute()}:{name}"
    if key == "import" and isinstance(value, list):
        return [locate(entry, home) if isinstance(entry, str) else entry for entry in value]
    return _resolve_files(value, home)


def _whole_seed(seed: Any) -> Any:
    """An int that stands for a ``SeedSequence``, a ``Generator`` or None; everything else as it is."""
    if isinstance(seed, np.random.SeedSequence | np.random.Generator | None):
        return int(seed_sequence(seed).generate_state(1, np.uint64)[0] >> 1)  # TOML's integers have 63 bits
    return seed


def list_shipped() -> list[str]:
    """The names of the shipped experiments, without those that are only published results.

    >>> "quickstart" in list_shipped()
    True
    """
    return sorted(_files("shipped_specs"))


def list_published() -> list[str]:
    """The names of the shipped experiments with published numbers beside them.

    >>> list_published()[0]
    'cascades'
    """
    return ["cascades", *sorted(_files("published_specs"))]


def load_shipped(name: str) -> Experiment:
    """The shipped experiment ``name``."""
    files = _files("shipped_specs") | _files("published_specs")
    return from_toml(files[name].read_text(encoding="utf-8"), f"{name}.toml")


def find_experiment(spec: str, imports: Sequence[str] = ()) -> Experiment:
    """The experiment in the file ``spec``, or the shipped one of that name; an existing file takes precedence.

    ``imports`` are modules or files to import first, relative to the working directory.
    """
    found = import_all(imports)
    if Path(spec).is_file():
        experiment = load(spec)
    else:
        known = [*list_shipped(), *(name for name in list_published() if name not in list_shipped())]
        experiment = load_shipped(check_choice(spec, known, ("SPEC",), "file or shipped experiment"))
    return replace(experiment, imports=(*dict.fromkeys([*found, *experiment.imports]),)) if found else experiment


def _files(folder: str) -> dict[str, Traversable]:
    """The files of a folder of this package, by the names of their experiments."""
    files = (resources.files("superarm.experiments.spec") / folder).iterdir()
    return {file.name.removesuffix(".toml"): file for file in files if file.name.endswith(".toml")}
