"""A study as tables: CSV and LaTeX for papers, and lines of text for terminals."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.experiments.analysis.bounds import rebuild_policy
from superarm.experiments.analysis.statistics import Estimate
from superarm.experiments.analysis.summary import summarise_ratios
from superarm.experiments.store import CellResults, write_text
from superarm.pages import format_number, format_p

if TYPE_CHECKING:
    from superarm.experiments.analysis.claims import Judgement
    from superarm.experiments.analysis.study import Study
    from superarm.experiments.analysis.summary import RankedPolicy

_TEX_ESCAPES = {sign: f"\\{sign}" for sign in "&%_#${}"}
_TEX_ESCAPES |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
_TEX_ESCAPES |= {"−": "$-$", "·": r"$\cdot$", "±": r"$\pm$", "µ": r"$\mu$"}

_LATEX = r"""\begin{table}
\centering
\caption{%s}
\begin{tabular}{%s}
\toprule
%s
\midrule
%s
\bottomrule
\end{tabular}
\end{table}
"""


@dataclass(frozen=True)
class ExportedTable:
    """A table that is written to files: its name, a caption, and rows with the same keys, the heads of the columns."""

    name: str
    caption: str
    rows: Sequence[Mapping[str, Any]]

    def to_csv(self) -> str:
        """Comma-separated values, with all digits."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.rows[0])
        writer.writerows(["" if value is None else value for value in row.values()] for row in self.rows)
        return buffer.getvalue()

    def to_latex(self) -> str:
        """A ``booktabs`` table, with four digits."""
        kinds = "".join("r" if isinstance(value, int | float) else "l" for value in self.rows[0].values())
        head, *lines = (
            " & ".join(map(_format_cell, cells)) + r" \\"
            for cells in (list(self.rows[0]), *(row.values() for row in self.rows))
        )
        return _LATEX % (_escape_tex(self.caption), kinds, head, "\n".join(lines))

    def write(self, directory: Path) -> list[str]:
        """Write the table in both formats; return the names of the files."""
        directory.mkdir(parents=True, exist_ok=True)
        write_text(directory / f"{self.name}.csv", self.to_csv())
        write_text(directory / f"{self.name}.tex", self.to_latex())
        return [f"{self.name}.csv", f"{self.name}.tex"]


def _format_cell(value: Any) -> str:
    if value is None:
        return "--"
    return _escape_tex(format_number(value) if isinstance(value, float) else str(value))


def _escape_tex(text: str) -> str:
    return "".join(_TEX_ESCAPES.get(sign, sign) for sign in text)


def make_tables(study: "Study") -> list[ExportedTable]:
    """The tables that are written to files."""
    against = f"{study.targets} target"
    ranks = [
        {"instance": instance, "policy": r.policy, "regret": r.regret.value}
        | _interval("behind", r.behind)
        | {"p_holm": None if math.isnan(r.p) else r.p}
        for instance, ranking in study.rankings.items()
        for r in ranking
    ]
    slopes = [
        {"instance": line.group, "policy": line.name, "axis": line.axis} | _interval("slope", line.slope)
        for line in study.sweep_lines
    ]
    captions = {
        "regret": f"Regret at the horizon ({against})",
        "ranking": f"Ranking by regret ({against}), and paired differences from the best (95 % intervals, Holm's p)",
        "tails": f"Quantiles and maximum of the regret at the horizon ({against}), locked runs, and regret against the "
        "optimum",
        "ratios": f"Geometric means of regret ratios over instances ({against}), with 95 % intervals over instances",
        "slopes": f"Slope of log regret ({against}) in the log of the swept parameter; intervals cover simulation "
        "noise only",
    }
    found: list[Sequence[Mapping[str, Any]]] = [study.final_regrets, ranks, study.tails]
    found += [summarise_ratios(study), slopes]
    return [ExportedTable(name, captions[name], rows) for name, rows in zip(captions, found, strict=True) if rows]


def _interval(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    """A number and its interval as three columns; None where it is not known."""
    values = (None, None, None) if estimate is None else estimate[:3]
    known = [None if value is None or math.isnan(value) else value for value in values]
    return dict(zip((name, f"{name}_low", f"{name}_high"), known, strict=True))


def describe_policies(study: "Study") -> list[tuple[str, str, str]]:
    """The label of each policy, the call that makes it, and its caveat."""
    found = {}
    for (_, policy), record in study.records.items():
        written = record.metadata.get("written") or format_description(record.metadata["policy"])
        found[policy] = policy, written, find_caveat(record)
    return [found[policy] for policy in study.policies if policy in found]


def find_caveat(record: CellResults) -> str:
    """The assumption that the policy of a cell states and that may not hold; empty if it states none."""
    policy = rebuild_policy(record)
    return "" if policy is None else str(policy.caveat)


def format_description(description: Any) -> str:
    """The description of a component as the call that makes it.

    >>> format_description({"type": "superarm.indices.bernstein:Bernstein", "rho": 3.0})
    'Bernstein(rho=3)'
    """
    if isinstance(description, Mapping) and "type" in description:
        inner = ", ".join(f"{key}={format_description(value)}" for key, value in description.items() if key != "type")
        return f"{description['type'].rpartition(':')[2]}({inner})"
    if isinstance(description, Mapping):
        return f"array{tuple(description['shape'])}"
    return f"{description:g}" if isinstance(description, float) else str(description)


def format_study(study: "Study") -> list[str]:
    """The ranking on every instance, the caveats of the policies, and the claims."""
    width = max(6, *(len(policy) for policy in study.policies))
    lines = [] if study.complete else ["(incomplete: run it again to continue)"]
    for instance, ranking in study.rankings.items():
        lines.append(f"{instance}: regret after {study.experiment.horizon} rounds, {study.target(instance)} target")
        lines += [_format_ranked(ranked, width) for ranked in ranking]
        lines += [f"  {warning}" for warning in study.warnings(instance)]
    caveats = dict[str, list[str]]()
    for name, _, caveat in describe_policies(study):
        caveats.setdefault(caveat, []).append(name)
    lines += [f"  caveat of {', '.join(names)}: {caveat}" for caveat, names in caveats.items() if caveat]
    return lines + [_format_judgement(judgement) for judgement in study.judgements]


def _format_ranked(ranked: "RankedPolicy", width: int) -> str:
    error = "–" if math.isnan(ranked.regret.error) else format_number(ranked.regret.error, 3)
    behind = f"  +{format_number(ranked.behind.value, 3)}, p {format_p(ranked.p)}" if ranked.behind else ""
    return f"  {ranked.policy:<{width}}  {format_number(ranked.regret.value):>10} ± {error:<8}{behind}".rstrip()


def _format_judgement(judgement: "Judgement") -> str:
    value, estimate = "–", judgement.estimate
    if estimate:
        value = f"{format_number(estimate.value)} [{format_number(estimate.low)}, {format_number(estimate.high)}]"
    return f"{judgement.outcome:>9}: {judgement.text} ({judgement.instance}): {judgement.measure} = {value}"
