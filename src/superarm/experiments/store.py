"""Results on disk: one Parquet file a cell, known by its digest; written whole or not at all.

A row is a replication. ``round`` and ``regret`` are lists of equal length; ``pulls`` has an entry an arm;
``look`` are the rounds whose batch was kept, ``batch`` those batches, filled up with -1. What the cell is stands
as JSON in the file's metadata under ``superarm``.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.describe import build, describe
from superarm.errors import MissingExtra
from superarm.experiments.cells import Cell, World
from superarm.simulation import Instance, Target
from superarm.simulation.regret import regret
from superarm.simulation.runs import Run

_META = b"superarm"


@dataclass(frozen=True)
class Record:
    """A cell's results: ``regret`` (replications, n), ``pulls`` (replications, n_arms), ``batches`` (…, n_looks, k)."""

    rounds: Ints
    regret: Floats
    pulls: Floats
    looks: Ints
    batches: Ints
    seconds: Floats
    facts: dict[str, Any]

    @property
    def digest(self) -> str:
        """A digest of the numbers: equal wherever and however the cell was run."""
        numbers = (self.rounds, self.regret, self.pulls, self.looks, self.batches)
        return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in numbers)).hexdigest()[:20]


def parquet() -> Any:
    """pyarrow's Parquet module."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "lab") from None
    return pyarrow.parquet


def record(cell: Cell, runs: Sequence[Run], target: Target) -> Record:
    """The runs of a cell, in the order of its replications, measured against ``target``."""
    rounds = cell.marks[1:]
    bracket = target.r_max
    return Record(
        rounds=rounds,
        regret=np.array([regret(target, rounds, run.earned) for run in runs]),
        pulls=np.array([run.pulls for run in runs]),
        looks=cell.looks,
        batches=np.array([run.batches for run in runs]),
        seconds=np.array([run.seconds for run in runs]),
        facts={
            "target": {"kind": target.kind, "value": target.value, "r_max": list(bracket) if bracket else None},
            "policy": describe(cell.policy),
            "instance": cell.world.digest,
        },
    )


def write(directory: Path, cell: Cell, result: Record) -> None:
    """Put a cell's results into ``directory``."""
    import pyarrow as pa

    table = pa.table(
        {
            "replication": pa.array(np.arange(len(result.regret), dtype=np.int32)),
            "round": pa.array([result.rounds] * len(result.regret)),
            "regret": pa.array(list(result.regret)),
            "pulls": pa.array(list(result.pulls)),
            "look": pa.array([result.looks] * len(result.regret)),
            "batch": pa.array([batches.reshape(-1) for batches in result.batches]),
            "seconds": pa.array(result.seconds),
        },
        metadata={_META: json.dumps(result.facts | {"digest": cell.digest, "results": result.digest}).encode()},
    )
    path = file_of(directory, cell.digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole(path, lambda partial: parquet().write_table(table, partial, compression="zstd"))


def read(directory: Path, digest: str) -> Record:
    """The results of a cell."""
    table = parquet().read_table(file_of(directory, digest))
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    n = len(table)

    def rows(name: str) -> Any:
        return columns[name].values.to_numpy().reshape(n, -1)

    looks = rows("look")[0]
    return Record(
        rounds=rows("round")[0],
        regret=rows("regret"),
        pulls=rows("pulls"),
        looks=looks,
        batches=rows("batch").reshape(n, len(looks), -1),
        seconds=columns["seconds"].to_numpy(),
        facts=json.loads(table.schema.metadata[_META]),
    )


def facts(directory: Path, digest: str) -> dict[str, Any]:
    """What a cell's file says of itself, without reading its numbers."""
    found: dict[str, Any] = json.loads(parquet().read_schema(file_of(directory, digest)).metadata[_META])
    return found


def holds(directory: Path, digest: str) -> bool:
    """Whether the cell is there, and readable."""
    try:
        return bool(facts(directory, digest)["digest"] == digest)
    except (OSError, ValueError, KeyError, TypeError):  # pyarrow's errors are ValueErrors
        return False


def file_of(directory: Path, digest: str) -> Path:
    return directory / "cells" / f"{digest}.parquet"


def write_instance(directory: Path, world: World) -> None:
    """Keep the instance itself, so that a report needs neither its generator nor its data."""
    path = directory / "instances" / f"{world.digest}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        instance = world.instance
        table = {"problem": describe(instance.problem), "environment": describe(instance.environment)}
        write_text(path, json.dumps(table))


def read_instance(directory: Path, digest: str) -> Instance:
    """An instance that was kept."""
    table = json.loads((directory / "instances" / f"{digest}.json").read_text(encoding="utf-8"))
    return Instance(build(table["problem"]), build(table["environment"]))


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a file beside ``path``, then put it in place in one step."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        write(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
