"""The manifest of a run: what was run, with which versions and seeds, and on which machine."""

import datetime
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import superarm
from superarm.core.errors import InvalidArgument
from superarm.experiments.store import write_text

if TYPE_CHECKING:
    from superarm.experiments.execution.cells import Cell
    from superarm.experiments.spec.experiment import Experiment
    from superarm.experiments.store import CellResults

FILE = "manifest.json"
_RECORDED_PACKAGES = ("numpy", "numba", "scipy", "pyarrow", "matplotlib", "distributed")


def begin(experiment: "Experiment", cells: "Sequence[Cell]", executor: Any) -> dict[str, Any]:
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


def summarise_provenance(manifest: Mapping[str, Any], records: "Iterable[CellResults]") -> dict[str, Any]:
    """When and where the cells were computed, with which versions, and how many seconds of processor time they took.

    Cells of earlier versions do not say where they were computed; for them, the manifest of the last run does.
    """
    cells = {record.metadata["digest"]: record for record in records}.values()
    told = [record.metadata.get("computed", manifest) for record in cells]
    packages = dict.fromkeys(package for one in told for package in one["versions"])
    return {
        "started": min(one["started"] for one in told),
        "finished": max(one["finished"] or one["started"] for one in told),
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
        "instance_digest": cell.source.digest,
        "policy": cell.policy_case.name,
        "policy_axes": dict(cell.policy_case.axes),
    }


def finish(manifest: dict[str, Any], wall: float, stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The manifest of a finished run; ``stored`` has the metadata of every cell by its digest.

    An entry says when and where its cell was computed, by this run or an earlier one.
    """
    cells = [
        entry | {key: stored[entry["digest"]][key] for key in ("results", "computed") if key in stored[entry["digest"]]}
        for entry in manifest["cells"]
    ]
    return manifest | {"finished": now(), "wall_seconds": round(wall, 3), "cells": cells}


def write(directory: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest into a directory of results."""
    write_text(directory / FILE, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def read(directory: Path) -> dict[str, Any]:
    """Read the manifest of a directory of results."""
    try:
        manifest: dict[str, Any] = json.loads((directory / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidArgument(
            "directory", f"{directory} holds no {FILE}", "give a directory that superarm run has written"
        ) from None
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
