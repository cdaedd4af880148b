"""Study: the results of an experiment, read from its directory."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.errors import InvalidArgument
from superarm.experiments import store
from superarm.experiments.spec.build import Case
from superarm.experiments.spec.experiment import Experiment, load
from superarm.experiments.store import CellResults
from superarm.output import labels
from superarm.output.table import ResultTable
from superarm.simulation import Instance
from superarm.simulation.regret import find_negative, warn_of_negative

if TYPE_CHECKING:
    from superarm.experiments.analysis.claims import Judgement
    from superarm.experiments.analysis.summary import RankedPolicy, SweepLine


@dataclass(frozen=True, repr=False)
class Study:
    """The results of an experiment: by instance and policy, as Arrow tables, as a figure, as a report.

    Parameters
    ----------
    directory
        The directory that the results were read from.
    experiment, manifest
        What was run, and with which versions, seeds and machine.
    instances, policies
        The cases of the experiment by their labels, such as ``random (k=2)``.
    records
        The results of the finished cells, by the labels of instance and policy.
    """

    directory: Path
    experiment: Experiment
    manifest: Mapping[str, Any]
    instances: Mapping[str, Case]
    policies: Mapping[str, Case]
    records: Mapping[tuple[str, str], CellResults]

    @classmethod
    def load(cls, directory: str | Path) -> "Study":
        """Read a directory that ``superarm run`` has written."""
        path = Path(directory)
        manifest = store.read_manifest(path)
        instances, policies = dict[str, Case](), dict[str, Case]()
        found = dict[tuple[str, str], list[CellResults | None]]()
        families = set[str]()
        for entry in manifest["cells"]:
            instance = Case(entry["instance"], entry["instance_axes"])
            policy = Case(entry["policy"], entry["policy_axes"])
            there = store.has_cell(path, entry["digest"])
            record = store.read_cell(path, entry["digest"]) if there else None
            found.setdefault((instance.label, policy.label), []).append(record)
            instances[instance.label], policies[policy.label] = instance, policy
            families |= {instance.label} if "draw" in entry else set()
        finished = {labels: [one for one in own if one] for labels, own in found.items() if all(own)}
        records = {
            labels: store.merge_draws(own) if labels[0] in families else own[0] for labels, own in finished.items()
        }
        if not records:
            raise InvalidArgument("directory", f"{path} holds no finished cell", "let superarm run finish at least one")
        return cls(path, load(path / "spec.toml"), manifest, instances, policies, records)

    @property
    def complete(self) -> bool:
        """Whether every cell is finished; an interrupted run lacks some."""
        return len(self.records) == self.n_cells

    @property
    def n_cells(self) -> int:
        """How many pairs of an instance and a policy the experiment has."""
        keys = ("instance", "instance_axes", "policy", "policy_axes")
        return len({str([entry[key] for key in keys]) for entry in self.manifest["cells"]})

    @property
    def digest(self) -> str:
        """A digest of all numbers, which does not depend on where or how the experiment was run."""
        return store.digest_of([[*labels, record.digest] for labels, record in self.records.items()])

    @functools.cached_property
    def provenance(self) -> dict[str, Any]:
        """When and where the cells were computed, with which versions, and their processor time in seconds."""
        return store.summarise_provenance(self.records.values())

    def final_regret(self, instance: str, policy: str) -> Any:
        """The regret at the horizon, (replications,); of a family (instances,), means over replications."""
        return self.records[instance, policy].regret[:, -1]

    def records_for(self, instance: str) -> dict[str, CellResults]:
        """The results on one instance by policy, in the order of the spec."""
        found = {policy: self.records.get((instance, policy)) for policy in self.policies}
        return {policy: record for policy, record in found.items() if record is not None}

    def is_family(self, instance: str) -> bool:
        """Whether a label is that of a family, whose instances are the rows of its records."""
        return next(iter(self.records_for(instance).values())).runs is not None

    def describe_runs(self, instance: str) -> str:
        """How many replications there are, or instances of a family, in words."""
        record = next(iter(self.records_for(instance).values()))
        if record.runs is None:
            return f"{len(record.regret)} replication{'s' * (len(record.regret) > 1)}"
        draws, each = record.runs.shape
        return f"{draws} instances" + (f" × {each} replications" if each > 1 else "")

    def target(self, instance: str) -> str:
        """What regret on an instance is measured against: ``optimal``, ``approximation`` or ``oracle``."""
        return str(next(iter(self.records_for(instance).values())).metadata["target"]["kind"])

    @functools.cached_property
    def targets(self) -> str:
        """What regret is measured against, on all instances: one word, or one for each kind of target."""
        return " or ".join(dict.fromkeys(self.target(instance) for instance in self.started_instances))

    def warnings(self, instance: str) -> list[str]:
        """What has to be said beside the ranking on an instance: whose mean regret is negative."""
        records = self.records_for(instance)
        means = {policy: float(record.regret[:, -1].mean()) for policy, record in records.items()}
        one = next(iter(records.values()))
        negative = find_negative(means, int(one.rounds[-1]), float(one.metadata["target"]["value"]))
        return warn_of_negative(negative, self.target(instance))

    @functools.cached_property
    def started_instances(self) -> list[str]:
        """The labels of the instances on which at least one policy has results."""
        return [instance for instance in self.instances if self.records_for(instance)]

    @functools.cached_property
    def judgements(self) -> "list[Judgement]":
        """Every claim of the experiment, judged."""
        from superarm.experiments.analysis.claims import judge_claims

        return judge_claims(self)

    @functools.cached_property
    def final_regrets(self) -> list[dict[str, Any]]:
        """The regret at the horizon: one row per instance and policy."""
        from superarm.experiments.analysis.summary import summarise_final_regret

        return summarise_final_regret(self)

    @functools.cached_property
    def tails(self) -> list[dict[str, Any]]:
        """Quantiles, maximum, locked runs, and regret against the optimum: one row per instance and policy."""
        from superarm.experiments.analysis.summary import summarise_tails

        return summarise_tails(self)

    @functools.cached_property
    def rankings(self) -> "dict[str, list[RankedPolicy]]":
        """The policies of every instance that has results, least regret first."""
        from superarm.experiments.analysis.summary import rank_policies

        return {instance: rank_policies(self, instance) for instance in self.started_instances}

    @functools.cached_property
    def sweep_lines(self) -> "list[SweepLine]":
        """Regret along every sweep, with its slope."""
        from superarm.experiments.analysis.summary import trace_sweeps

        return trace_sweeps(self)

    @functools.cached_property
    def _loaded_instances(self) -> dict[str, Instance]:
        return {}

    def instance(self, label: str) -> Instance:
        """The instance with this label, as it was run; of a family the first one."""
        digest = next(iter(self.records_for(label).values())).metadata["instance"]
        if digest not in self._loaded_instances:
            self._loaded_instances[digest] = store.read_instance(self.directory, digest)
        return self._loaded_instances[digest]

    def table(self) -> Any:
        """Regret as a tidy Arrow table: one row per instance, policy, replication and round; axes as columns."""
        import pyarrow as pa

        return pa.concat_tables([self._cell_table(*labels) for labels in self.records])

    def _cell_table(self, instance: str, policy: str) -> Any:
        import pyarrow as pa

        record = self.records[instance, policy]
        replications, n = record.regret.shape
        size = replications * n
        arrays = {
            "instance": pa.array([self.instances[instance].name] * size),
            "policy": pa.array([self.policies[policy].name] * size),
        }
        for kind, cases, own in (("instance", self.instances, instance), ("policy", self.policies, policy)):
            for axis, of_type in axis_types(cases).items():
                value = cases[own].axes.get(axis)
                values = [None if value is None else of_type(value)] * size
                arrays[f"{kind}.{axis}"] = pa.array(values, pa.float64() if of_type is float else pa.string())
        arrays["replication"] = pa.array(np.repeat(np.arange(replications, dtype=np.int32), n))
        arrays["round"] = pa.array(np.tile(record.rounds, replications))
        arrays["regret"] = pa.array(record.regret.reshape(-1))
        return pa.table(arrays)

    def summary(self) -> Any:
        """The regret at the horizon as an Arrow table: one row per instance and policy, with quantiles and run time."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.final_regrets)

    def paper_table(
        self, value: str = "regret", rows: str = "instance", columns: str = "policy", best: str = "bold"
    ) -> ResultTable:
        """A table for a paper: one row per instance and one column per policy, or the other way round.

        Parameters
        ----------
        value
            ``regret`` (mean ± standard error, over replications or over the instances of a family), ``median``, or
            ``time`` (processor time per round).
        rows, columns
            ``instance`` and ``policy``, in either order.
        best
            ``bold``: on every instance the policy with the least regret, and all that paired tests (Holm's method over
            all pairs, 5 %) do not tell from it; or ``none``.
        """
        from superarm.experiments.report.tables import paper_table

        return paper_table(self, value, rows, columns, best)

    def latex(
        self, value: str = "regret", *, label: str = "", siunitx: bool = False, wide: bool = False, **layout: str
    ) -> str:
        """``paper_table`` as LaTeX, for ``booktabs``; with ``siunitx`` numbers are written by that package.

        With ``wide`` it spans both columns of a page.
        """
        return self.paper_table(value, **layout).to_latex(label, siunitx, wide)

    def markdown(self, value: str = "regret", **layout: str) -> str:
        """``paper_table`` as Markdown."""
        return self.paper_table(value, **layout).to_markdown()

    def html(self, value: str = "regret", **layout: str) -> str:
        """``paper_table`` as an HTML table."""
        return self.paper_table(value, **layout).to_html()

    def plot(self, instance: str | None = None, width: str | float | None = None, log: bool = False) -> Any:
        """Regret curves as a matplotlib figure: of one instance, or a grid of all, with one legend.

        ``width`` is that of a printed figure: ``column``, ``page``, or a number of inches. With ``log`` both axes are
        logarithmic.
        """
        from superarm.experiments.report.figures import plot_curves

        return plot_curves(self, [instance] if instance else self.started_instances, log=log, width=width)

    def plot_profile(self, instances: Sequence[str] | None = None, width: str | float | None = None) -> Any:
        """Performance profiles as a figure: on which share of instances regret is within a factor of the least one."""
        from superarm.experiments.report.figures import plot_profile

        return plot_profile(self, instances or self.started_instances, width)

    def report(self) -> Path:
        """Write ``report.html``, figures and tables into the directory; return the path of the report."""
        from superarm.experiments.report.report import write_report

        return write_report(self)

    def to_arrow(self) -> Any:
        """The same as ``table``."""
        return self.table()

    def to_pandas(self) -> Any:
        """``table`` as a pandas DataFrame."""
        return labels.to_pandas({name: column.to_numpy() for name, column in self._columns()})

    def to_polars(self) -> Any:
        """``table`` as a polars DataFrame."""
        return labels.to_polars({name: column.to_numpy() for name, column in self._columns()})

    def _columns(self) -> Any:
        table = self.table()
        return zip(table.column_names, table.columns, strict=True)

    def __repr__(self) -> str:
        cells = f"{len(self.records)} of {self.n_cells} cells"
        return f"<Study {self.experiment.name} in {self.directory}: {cells}>"

    def _repr_html_(self) -> str:
        from superarm.experiments.report.report import render_notebook

        return render_notebook(self)

    def __str__(self) -> str:
        from superarm.experiments.report.tables import format_study

        return "\n".join(format_study(self))


def axis_types(cases: Mapping[str, Case]) -> dict[str, type]:
    """The type of each axis that occurs in ``cases``: ``float`` if all its values are numbers, otherwise ``str``."""
    found: dict[str, type] = {}
    for case in cases.values():
        for axis, value in case.axes.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            found[axis] = float if number and found.get(axis, float) is float else str
    return found
