"""Multi-label data in ARFF, as the MULAN collection publishes it: numeric features, and labels that are 0 or 1."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.data.files import open_text

_ATTRIBUTE = re.compile(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)


@dataclass(frozen=True)
class Labelled:
    """``x`` (n, n_features) are the features of each example, ``labels`` (n, n_labels) says which labels it has."""

    x: Floats
    labels: Floats
    features: tuple[str, ...]
    names: tuple[str, ...]


def read_multilabel(path: str | Path, member: str = "yeast.arff") -> Labelled:
    """Read an ARFF file with dense rows, such as MULAN's ``yeast.arff``, or a zip or directory that has ``member``.

    Attributes of the type ``{0,1}`` are labels, numeric ones are features; the order of columns is that of the header.
    """
    with open_text(path, member) as file:
        names, kinds = _read_header(file, path)
        rows = [line.split(",") for line in file if line.strip() and not line.startswith("%")]
    wrong = next((n for n, row in enumerate(rows) if len(row) != len(names)), None)
    if not rows or wrong is not None:
        raise InvalidArgument("path", f"{path} has a row without {len(names)} values, or none", "give dense ARFF rows")
    table = np.array(rows, float)
    label = np.array([kind == "label" for kind in kinds])
    if not np.isin(table[:, label], (0.0, 1.0)).all():
        raise InvalidArgument("path", f"{path} has a label that is not 0 or 1", "give the published file")
    features = tuple(name for name, is_label in zip(names, label, strict=True) if not is_label)
    labels = tuple(name for name, is_label in zip(names, label, strict=True) if is_label)
    return Labelled(table[:, ~label], table[:, label], features, labels)


def _read_header(file: IO[str], path: str | Path) -> tuple[list[str], list[str]]:
    """The names of the attributes up to ``@data``, and whether each is a ``feature`` or a ``label``."""
    names: list[str] = []
    kinds: list[str] = []
    for line in file:
        if line.strip().lower() == "@data":
            return names, kinds
        found = _ATTRIBUTE.match(line.strip())
        if found:
            kind = found[2].replace(" ", "").lower()
            if kind not in ("numeric", "real", "integer", "{0,1}"):
                wrong = f"attribute {found[1]} of {path} has the type {found[2]}"
                raise InvalidArgument("path", wrong, "give numeric features, and labels of the type {0,1}")
            names.append(found[1].strip("'\""))
            kinds.append("label" if kind == "{0,1}" else "feature")
    raise InvalidArgument("path", f"{path} has no @data", "give an ARFF file")
