"""Tables as CSV and as LaTeX."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superarm.experiments.store import write_text
from superarm.pages.numbers import format_number

_TEX_ESCAPES = {
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
}
_TEX_ESCAPES |= {
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "−": "$-$",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "µ": r"$\mu$",
}


@dataclass(frozen=True)
class ExportedTable:
    """A table that is written to files: its name, a caption, the heads of the columns, and the rows."""

    name: str
    caption: str
    head: tuple[str, ...]
    rows: Sequence[Sequence[Any]]

    def to_csv(self) -> str:
        """Comma-separated values, with all digits."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerows([self.head, *(["" if value is None else value for value in row] for row in self.rows)])
        return buffer.getvalue()

    def to_latex(self) -> str:
        """A ``booktabs`` table, with four digits."""
        kinds = "l" * len(self.head)
        if self.rows:
            kinds = "".join("r" if isinstance(value, int | float) else "l" for value in self.rows[0])
        lines = [" & ".join(_format_cell(value) for value in row) + r" \\" for row in self.rows]
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{_escape_tex(self.caption)}}}",
                rf"\begin{{tabular}}{{{kinds}}}",
                r"\toprule",
                " & ".join(_escape_tex(head) for head in self.head) + r" \\",
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def write(self, directory: Path) -> list[str]:
        """Write the table in both formats; return the names of the files."""
        directory.mkdir(parents=True, exist_ok=True)
        write_text(directory / f"{self.name}.csv", self.to_csv())
        write_text(directory / f"{self.name}.tex", self.to_latex())
        return [f"{self.name}.csv", f"{self.name}.tex"]


def _format_cell(value: Any) -> str:
    if value is None:
        return "--"
    return _escape_tex(format_number(value)) if isinstance(value, float) else _escape_tex(str(value))


def _escape_tex(text: str) -> str:
    return "".join(_TEX_ESCAPES.get(sign, sign) for sign in text)
