"""Results on disk: one Parquet file per cell, named by the cell's digest, and written completely or not at all.

Each row is one replication. ``round`` and ``regret`` are lists of equal length; ``pulls`` has one entry per arm;
``look`` lists the rounds whose batch was stored, ``batch`` those batches, padded with -1. The file's metadata describe
the cell as JSON under the key ``superarm``. Finished replications of a cell that is not finished are in
``parts/<digest>/<first>.npz``, until the cell is written. ``manifest.json`` says what was run, with which versions and
seeds, and on which machine.
"""

import contextlib
import datetime
import hashlib
import json
import os
import platform
import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import superarm
from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument, MissingExtra
from superarm.describe import build, describe
from superarm.simulation import Instance, Target
from superarm.simulation.regret import regret
from superarm.simulation.runs import ARRAYS, Runs

if TYPE_CHECKING:
    from superarm.experiments.execution.cells import Cell, NamedInstance
    from superarm.experiments.spec.experiment import Experiment


MANIFEST = "manifest.json"
_METADATA_KEY = b"superarm"
_RECORDED_PACKAGES = ("numpy", "numba", "scipy", "pyarrow", "matplotlib", "distributed")


def digest_of(content: Any) -> str:
    """A digest of plain values, or of the description of a component."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=describe)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class CellResults:
    """The results of one cell, over its replications.

    Parameters
    ----------
    rounds, regret
        The rounds at which regret was recorded, (n,), and the regret, (replications, n).
    pulls
        How often each arm was played, (replications, n_arms).
    batch_rounds, batches
        The rounds whose batch was stored, (m,), and the batches, (replications, m, k), padded with -1.
    seconds
        Processor time, (replications,).
    metadata
        The description of the target, the policy and the instance.
    runs
        Of a family, whose rows are its instances: the final regret of every run, (instances, replications).
    """

    rounds: Ints
    regret: Floats
    pulls: Floats
    batch_rounds: Ints
    batches: Ints
    seconds: Floats
    metadata: dict[str, Any]
    runs: Floats | None = None

    @property
    def digest(self) -> str:
        """A digest of the numbers, which does not depend on where or how the cell was run."""
        numbers = (self.rounds, self.regret, self.pulls, self.batch_rounds, self.batches)
        return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in numbers)).hexdigest()[:20]


def merge_draws(records: "Sequence[CellResults]") -> CellResults:
    """One policy on all instances of a family: every row is an instance, the mean over its replications."""

    def means(name: str) -> Any:
        return np.array([getattr(record, name).mean(axis=0) for record in records])

    first, targets = records[0], [record.metadata["target"] for record in records]
    brackets = [target["r_max"] for target in targets if target["r_max"]]
    target = {
        "kind": targets[0]["kind"],
        "value": float(np.mean([target["value"] for target in targets])),
        "r_max": np.mean(brackets, axis=0).tolist() if brackets else None,
    }
    return CellResults(
        rounds=first.rounds,
        regret=means("regret"),
        pulls=means("pulls"),
        batch_rounds=first.batch_rounds,
        batches=np.array([record.batches[0] for record in records]),
        seconds=np.array([record.seconds.mean() for record in records]),
        metadata=first.metadata | {"target": target},
        runs=np.array([record.regret[:, -1] for record in records]),
    )


def parquet() -> Any:
    """pyarrow's Parquet module."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "lab") from None
    return pyarrow.parquet


def collect_results(cell: "Cell", runs: Runs, target: Target) -> CellResults:
    """The results of a cell from the runs of all its replications, with regret against ``target``."""
    rounds, bracket = cell.recorded_rounds, target.r_max
    return CellResults(
        rounds=rounds,
        regret=np.array([regret(target, rounds, earned) for earned in runs.earned]),
        pulls=runs.pulls,
        batch_rounds=cell.batch_rounds,
        batches=runs.batches,
        seconds=runs.seconds,
        metadata={
            "target": {"kind": target.kind, "value": target.value, "r_max": list(bracket) if bracket else None},
            "policy": describe(cell.policy),
            "written": repr(cell.policy),
            "instance": cell.source.digest,
        },
    )


def write_cell(directory: Path, cell: "Cell", results: CellResults) -> None:
    """Write the results of a cell into ``directory``."""
    import pyarrow as pa

    replications = len(results.regret)
    table = pa.table(
        {
            "replication": pa.array(np.arange(replications, dtype=np.int32)),
            "round": pa.array([results.rounds] * replications),
            "regret": pa.array(list(results.regret)),
            "pulls": pa.array(list(results.pulls)),
            "look": pa.array([results.batch_rounds] * replications),
            "batch": pa.array([batches.reshape(-1) for batches in results.batches]),
            "seconds": pa.array(results.seconds),
        },
        metadata={
            _METADATA_KEY: json.dumps(results.metadata | {"digest": cell.digest, "results": results.digest}).encode()
        },
    )
    path = cell_file(directory, cell.digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda partial: parquet().write_table(table, partial, compression="zstd"))


def read_cell(directory: Path, digest: str) -> CellResults:
    """Read the results of a cell."""
    table = parquet().read_table(cell_file(directory, digest))
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    n = len(table)

    def rows(name: str) -> Any:
        return columns[name].values.to_numpy().reshape(n, -1)

    batch_rounds = rows("look")[0]
    return CellResults(
        rounds=rows("round")[0],
        regret=rows("regret"),
        pulls=rows("pulls"),
        batch_rounds=batch_rounds,
        batches=rows("batch").reshape(n, len(batch_rounds), -1),
        seconds=columns["seconds"].to_numpy(),
        metadata=json.loads(table.schema.metadata[_METADATA_KEY]),
    )


def read_metadata(directory: Path, digest: str) -> dict[str, Any]:
    """The metadata of a cell's file; its numbers are not read."""
    found: dict[str, Any] = json.loads(parquet().read_schema(cell_file(directory, digest)).metadata[_METADATA_KEY])
    return found


def has_cell(directory: Path, digest: str) -> bool:
    """Whether ``directory`` has a readable file of the cell."""
    try:
        return bool(read_metadata(directory, digest)["digest"] == digest)
    except (OSError, ValueError, KeyError, TypeError):  # pyarrow's errors are ValueErrors
        return False


def cell_file(directory: Path, digest: str) -> Path:
    """The path of a cell's file."""
    return directory / "cells" / f"{digest}.parquet"


def write_instance(directory: Path, source: "NamedInstance") -> None:
    """Store an instance, so that a report needs neither its generator nor its data."""
    path = directory / "instances" / f"{source.digest}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        instance = source.instance
        table = {"problem": describe(instance.problem), "environment": describe(instance.environment)}
        write_text(path, json.dumps(table))


def read_instance(directory: Path, digest: str) -> Instance:
    """Read a stored instance."""
    table = json.loads((directory / "instances" / f"{digest}.json").read_text(encoding="utf-8"))
    return Instance(build(table["problem"]), build(table["environment"]))


def write_text(path: Path, text: str) -> None:
    """Write a text file completely or not at all."""
    write_atomically(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a temporary file next to ``path``, then rename it to ``path``."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        write(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_part(directory: Path, digest: str, first: int, runs: Runs) -> None:
    """Store the runs of the replications from ``first`` on."""
    folder = _folder(directory, digest)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: getattr(runs, name) for name in ARRAYS}

    def write(partial: Path) -> None:
        with partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    write_atomically(folder / f"{first}.npz", write)


def read_parts(directory: Path, digest: str) -> dict[int, Runs]:
    """The stored runs of a cell, by the first replication of each file; unreadable files count as missing."""
    found: dict[int, Runs] = {}
    for path in _folder(directory, digest).glob("*.npz"):
        try:
            with np.load(path) as arrays:
                found[int(path.stem)] = Runs(**{name: arrays[name] for name in ARRAYS}, done=True)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            continue
    return found


def remove_parts(directory: Path, digest: str) -> None:
    """Remove the stored runs of a cell that is finished."""
    shutil.rmtree(_folder(directory, digest), ignore_errors=True)
    with contextlib.suppress(OSError):  # there is none, or it has runs of other cells
        (directory / "parts").rmdir()


def _folder(directory: Path, digest: str) -> Path:
    return directory / "parts" / digest


def begin_manifest(experiment: "Experiment", cells: "Sequence[Cell]", executor: Any) -> dict[str, Any]:
    """The manifest of a run that starts now."""
    return {
        "name": experiment.name,
        "spec": experiment.digest,
        "finished": None,
        "wall_seconds": None,
        **provenance(executor),
        "seeds": {"root": experiment.seed, "spawn_keys": [[r] for r in range(experiment.replications)]},
        "cells": [_entry(cell) for cell in cells],
    }


def provenance(executor: Any) -> dict[str, Any]:
    """When a computation started, on what, and with which versions."""
    return {"started": now(), "executor": repr(executor), "versions": versions(), "machine": machine()}


def summarise_provenance(records: "Iterable[CellResults]") -> dict[str, Any]:
    """When and where the cells were computed, with which versions, and how many seconds of processor time they took."""
    cells = {record.metadata["digest"]: record for record in records}.values()
    told = [record.metadata["computed"] for record in cells]
    packages = dict.fromkeys(package for one in told for package in one["versions"])
    return {
        "started": min(one["started"] for one in told),
        "finished": max(one["finished"] for one in told),
        "executor": _join(one["executor"] for one in told),
        "machine": _join(f"{one['machine']['system']}, {one['machine']['cores']} cores" for one in told),
        "versions": {name: _join(one["versions"].get(name, "none") for one in told) for name in packages},
        "processor_seconds": float(sum(record.seconds.sum() for record in cells)),
    }


def _join(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values))


def _entry(cell: "Cell") -> dict[str, Any]:
    return {
        "digest": cell.digest,
        "file": f"cells/{cell.digest}.parquet",
        "instance": cell.source.case.name,
        "instance_axes": dict(cell.source.case.axes),
        **({} if cell.source.case.draw is None else {"draw": cell.source.case.draw}),
        "instance_digest": cell.source.digest,
        "policy": cell.policy_case.name,
        "policy_axes": dict(cell.policy_case.axes),
    }


def finish_manifest(manifest: dict[str, Any], wall: float, stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The manifest of a finished run; ``stored`` has the metadata of every cell by its digest.

    An entry says when and where its cell was computed, by this run or an earlier one.
    """
    cells = [
        entry | {key: stored[entry["digest"]][key] for key in ("results", "computed")} for entry in manifest["cells"]
    ]
    return manifest | {"finished": now(), "wall_seconds": round(wall, 3), "cells": cells}


def write_manifest(directory: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest into a directory of results."""
    write_text(directory / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read the manifest of a directory of results."""
    try:
        manifest: dict[str, Any] = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        wrong = f"{directory} holds no {MANIFEST}"
        raise InvalidArgument("directory", wrong, "give a directory that superarm run has written") from None
    return manifest


def versions() -> dict[str, str]:
    """The versions of the packages that can influence the numbers."""
    found = {"superarm": superarm.__version__, "python": platform.python_version()}
    for package in _RECORDED_PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """The system and its number of cores; no names of hosts or users."""
    return {"system": f"{platform.system()} {platform.machine()}", "cores": os.cpu_count() or 1}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
