"""Study: the results of an experiment, read from its directory."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.errors import InvalidArgument
from superarm.experiments import manifest as manifests
from superarm.experiments import store
from superarm.experiments.spec import Experiment, load
from superarm.experiments.store import Record
from superarm.experiments.sweeps import Case
from superarm.simulation import Instance

if TYPE_CHECKING:
    from superarm.experiments.claims import Verdict
    from superarm.experiments.summary import Line, Place


@dataclass(frozen=True)
class Study:
    """What a directory of results holds: by instance and policy, as Arrow tables, as a figure, as a report.

    ``records`` are by the labels of instance and policy; an interrupted run lacks some, and is not ``complete``.
    """

    directory: Path
    experiment: Experiment
    manifest: Mapping[str, Any]
    worlds: Mapping[str, Case]
    policies: Mapping[str, Case]
    records: Mapping[tuple[str, str], Record]

    @classmethod
    def load(cls, directory: str | Path) -> "Study":
        """Read a directory that a run has written."""
        place = Path(directory)
        manifest = manifests.read(place)
        worlds, policies, records = dict[str, Case](), dict[str, Case](), dict[tuple[str, str], Record]()
        for entry in manifest["cells"]:
            world = Case(entry["instance"], entry["instance_axes"])
            policy = Case(entry["policy"], entry["policy_axes"])
            if store.holds(place, entry["digest"]):
                records[world.label, policy.label] = store.read(place, entry["digest"])
            worlds[world.label], policies[policy.label] = world, policy
        if not records:
            raise InvalidArgument(
                "directory", f"{place} holds no finished cell", "let superarm run finish at least one"
            )
        return cls(place, load(place / "spec.toml"), manifest, worlds, policies, records)

    @property
    def complete(self) -> bool:
        """Whether every cell is there."""
        return len(self.records) == len(self.worlds) * len(self.policies)

    @property
    def digest(self) -> str:
        """A digest of all numbers: equal wherever and however the experiment was run."""
        from superarm.experiments.cells import digest

        return digest([[*labels, record.digest] for labels, record in self.records.items()])

    def final(self, world: str, policy: str) -> Any:
        """The regret at the horizon, (replications,)."""
        return self.records[world, policy].regret[:, -1]

    def of(self, world: str) -> dict[str, Record]:
        """The records of an instance, by policy, in the order of the spec."""
        return {policy: self.records[world, policy] for policy in self.policies if (world, policy) in self.records}

    @functools.cached_property
    def verdicts(self) -> "list[Verdict]":
        """Every claim of the experiment, judged once."""
        from superarm.experiments.claims import judge

        return judge(self)

    @functools.cached_property
    def finals(self) -> list[dict[str, Any]]:
        """The regret at the horizon: one row per instance and policy."""
        from superarm.experiments.summary import finals

        return finals(self)

    @functools.cached_property
    def rankings(self) -> "dict[str, list[Place]]":
        """The ranking of the policies on every instance of which there are results."""
        from superarm.experiments.summary import ranking

        return {world: ranking(self, world) for world in self.worlds if self.of(world)}

    @functools.cached_property
    def lines(self) -> "list[Line]":
        """Regret along every sweep, with its slope."""
        from superarm.experiments.summary import lines

        return lines(self)

    @functools.cached_property
    def _instances(self) -> dict[str, Instance]:
        return {}

    def instance(self, world: str) -> Instance:
        """The instance itself, as it was run."""
        digest = next(iter(self.of(world).values())).facts["instance"]
        if digest not in self._instances:
            self._instances[digest] = store.read_instance(self.directory, digest)
        return self._instances[digest]

    def table(self) -> Any:
        """Regret as a tidy Arrow table: a row an instance, policy, replication and round; axes as columns."""
        import pyarrow as pa

        return pa.concat_tables([self._tidy(*labels) for labels in self.records])

    def _tidy(self, world: str, policy: str) -> Any:
        import pyarrow as pa

        record = self.records[world, policy]
        replications, n = record.regret.shape
        size = replications * n
        arrays = {
            "instance": pa.array([self.worlds[world].name] * size),
            "policy": pa.array([self.policies[policy].name] * size),
        }
        for kind, cases, own in (("instance", self.worlds, world), ("policy", self.policies, policy)):
            for axis, kept in axis_types(cases).items():
                value = cases[own].axes.get(axis)
                arrays[f"{kind}.{axis}"] = pa.array([None if value is None else kept(value)] * size, _arrow(kept))
        arrays["replication"] = pa.array(np.repeat(np.arange(replications, dtype=np.int32), n))
        arrays["round"] = pa.array(np.tile(record.rounds, replications))
        arrays["regret"] = pa.array(record.regret.reshape(-1))
        return pa.table(arrays)

    def summary(self) -> Any:
        """The regret at the horizon as an Arrow table: a row an instance and policy, with quantiles and pace."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.finals)

    def plot(self, world: str | None = None) -> Any:
        """Regret curves as a matplotlib figure: of one instance, or of all."""
        from superarm.experiments.plots import curves

        return curves(self, [world] if world else list(self.worlds))

    def report(self) -> Path:
        """Write ``report.html``, figures and tables into the directory; the path of the report."""
        from superarm.experiments.report import build

        return build(self)

    def _repr_html_(self) -> str:
        from superarm.experiments.report import notebook

        return notebook(self)

    def __str__(self) -> str:
        from superarm.experiments.text import lines

        return "\n".join(lines(self))


def axis_types(cases: Mapping[str, Case]) -> dict[str, type]:
    """Every axis of some cases, and whether its values are numbers (``float``) or words (``str``)."""
    found: dict[str, type] = {}
    for case in cases.values():
        for axis, value in case.axes.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            found[axis] = float if number and found.get(axis, float) is float else str
    return found


def _arrow(kept: type) -> Any:
    import pyarrow as pa

    return pa.float64() if kept is float else pa.string()
