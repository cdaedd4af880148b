"""Tables of results: rows with the same columns, as text, LaTeX, Markdown, HTML, CSV or a data frame."""

import csv
import html
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from superarm.output import labels

_TEX = {sign: f"\\{sign}" for sign in "&%_#${}"}
_TEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
_TEX |= {"−": "$-$", "·": r"$\cdot$", "±": r"$\pm$", "µ": r"$\mu$", "–": "--", "…": r"\dots{}"}


def format_number(value: float | None, digits: int = 4) -> str:
    """A number as people read it: four digits, a typographic minus, and a dash for an unknown value.

    >>> format_number(-12345.678), format_number(0.00012345), format_number(float("nan"))
    ('−12,346', '0.0001234', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        size = len(str(int(abs(value)))) if abs(value) >= 1 else 0
        text = f"{value:,.{max(0, digits - size)}f}" if size else f"{value:.{digits}g}"
    else:
        text = f"{value:.{digits - 1}e}"
    return text.replace("-", "−")


class Measured(NamedTuple):
    """A number with its standard error, NaN if there is none; ``best`` if no other number is known to be better.

    >>> str(Measured(231.87, 8.2)), str(Measured(0.0312, 0.0019)), str(Measured(1234567.0, 2345.0))
    ('231.9 ± 8.2', '0.0312 ± 0.0019', '1234600 ± 2300')
    """

    value: float
    error: float = math.nan
    best: bool = False

    def parts(self) -> tuple[str, str]:
        """Value and error as text, to two digits of the error; "" for no error."""
        if not math.isfinite(self.error) or self.error <= 0.0:
            return format_number(self.value).replace("−", "-").replace(",", ""), ""
        decimals = 1 - math.floor(math.log10(float(f"{self.error:.1e}")))  # 9.96 is 10, not 10.0
        shown = max(0, decimals)
        return f"{round(self.value, decimals):.{shown}f}", f"{round(self.error, decimals):.{shown}f}"

    def __str__(self) -> str:
        return " ± ".join(part for part in self.parts() if part)


class Writing(NamedTuple):
    """How a format writes text, numbers with errors, and what is best."""

    text: Callable[[str], str]
    measured: Callable[[Measured], str]


@dataclass(frozen=True, repr=False)
class ResultTable:
    """Rows as mappings with the same keys, which are the headings, with a caption.

    >>> table = ResultTable([{"Policy": "A", "Regret": Measured(10.0, 2.1, best=True)}], "Regret of one policy")
    >>> print(table)
    Policy  Regret
    A       10.0 ± 2.1
    >>> print(table.to_markdown())
    | Policy | Regret |
    |---|---|
    | A | **10.0 ± 2.1** |
    <BLANKLINE>
    """

    rows: Sequence[Mapping[str, Any]]
    caption: str = ""

    @property
    def columns(self) -> list[str]:
        """The headings."""
        return list(self.rows[0]) if self.rows else []

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        """A column."""
        return [row[column] for row in self.rows]

    def __str__(self) -> str:
        lines = [self.columns, *self._cells(Writing(str, str))]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    __repr__ = __str__

    def to_latex(self, label: str = "", siunitx: bool = False, wide: bool = False) -> str:
        """A ``table`` with ``booktabs`` rules; with ``siunitx``, numbers with errors are written by that package.

        With ``wide`` it spans both columns of a page.
        """
        kind = "table*" if wide else "table"
        numbers = Writing(_tex, _siunitx if siunitx else _tex_measured)
        body = [" & ".join(row) + r" \\" for row in self._cells(numbers)]
        kinds = "".join("l" if isinstance(value, str) else "r" for value in self.rows[0].values())
        named = [rf"\caption{{{_tex(self.caption)}}}"] * bool(self.caption) + [rf"\label{{{label}}}"] * bool(label)
        head = " & ".join(map(_tex, self.columns)) + r" \\"
        lines = [rf"\begin{{{kind}}}", r"\centering", *named, rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", head]
        lines += [r"\midrule", *body, r"\bottomrule", r"\end{tabular}", rf"\end{{{kind}}}", ""]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """A table as GitHub and most documentation tools read it."""
        bold = Writing(lambda text: text.replace("|", r"\|"), lambda x: f"**{x}**" if x.best else str(x))
        lines = [self.columns, ["---"] * len(self.columns), *self._cells(bold)]
        rule = "|" + "---|" * len(self.columns)
        return "".join((rule if n == 1 else "| " + " | ".join(line) + " |") + "\n" for n, line in enumerate(lines))

    def to_html(self) -> str:
        """A ``table`` element; cells with numbers have the class ``n``."""
        bold = Writing(html.escape, lambda x: f"<b>{x}</b>" if x.best else str(x))
        kinds = ["" if isinstance(value, str) else ' class="n"' for value in self.rows[0].values()]
        head = "".join(f"<th{kind}>{html.escape(name)}</th>" for kind, name in zip(kinds, self.columns, strict=True))
        rows = (zip(kinds, row, strict=True) for row in self._cells(bold))
        body = "\n".join("<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in row) + "</tr>" for row in rows)
        caption = f"<caption>{html.escape(self.caption)}</caption>\n" if self.caption else ""
        return f"<table>\n{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n"

    _repr_html_ = to_html

    def to_csv(self) -> str:
        """Comma-separated values with all digits; the error of a number is a column of its own."""
        buffer, frame = io.StringIO(), self.to_frame()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(frame)
        writer.writerows(["" if x is None else x for x in row] for row in zip(*frame.values(), strict=True))
        return buffer.getvalue()

    def to_frame(self) -> dict[str, list[Any]]:
        """The columns by name; a number with an error is two columns."""
        found: dict[str, list[Any]] = {}
        for name in self.columns:
            values = self[name]
            if any(isinstance(value, Measured) for value in values):
                pairs = [value if isinstance(value, Measured) else Measured(math.nan) for value in values]
                found |= {name: [one.value for one in pairs], f"{name} s.e.": [one.error for one in pairs]}
            else:
                found[name] = values
        return found

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return labels.to_pandas(self.to_frame())

    def to_polars(self) -> Any:
        """The table as a polars DataFrame."""
        return labels.to_polars(self.to_frame())

    def to_arrow(self) -> Any:
        """The table as an Arrow table."""
        return labels.to_arrow(self.to_frame())

    def _cells(self, writing: Writing) -> list[list[str]]:
        return [[_cell(value, writing) for value in row.values()] for row in self.rows]


def _cell(value: Any, writing: Writing) -> str:
    if isinstance(value, Measured):
        return writing.measured(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return writing.text("–")
    return writing.text(format_number(value) if isinstance(value, float) else str(value))


def _tex(text: str) -> str:
    return "".join(_TEX.get(sign, sign) for sign in text)


def _tex_measured(one: Measured) -> str:
    value, error = one.parts()
    inner = f"{value} \\pm {error}" if error else value
    inner = "--" if value == "–" else f"$\\mathbf{{{inner}}}$" if one.best else f"${inner}$"
    return inner


def _siunitx(one: Measured) -> str:
    value, error = one.parts()
    if value == "–":
        return "--"
    number = f"{value} +- {error}" if error else value
    bold = r"\bfseries" if one.best else ""
    return f"{bold}\\num[separate-uncertainty, detect-weight]{{{number}}}"
