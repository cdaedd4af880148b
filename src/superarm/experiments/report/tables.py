"""A study as tables: CSV and LaTeX for papers, and lines of text for terminals."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.errors import InvalidArgument
from superarm.core.statistics import mean_and_standard_error
from superarm.experiments.analysis.bounds import rebuild_policy
from superarm.experiments.analysis.summary import microseconds_per_round, summarise_ratios
from superarm.experiments.store import CellResults, write_text
from superarm.output.pages import format_p
from superarm.output.table import Measured, ResultTable, format_number
from superarm.simulation.statistics import Estimate

if TYPE_CHECKING:
    from superarm.experiments.analysis.claims import Judgement
    from superarm.experiments.analysis.study import Study
    from superarm.experiments.analysis.summary import RankedPolicy

HEADINGS = {
    "ci_low": "95 % low",
    "ci_high": "95 % high",
    "q10": "10 %",
    "q90": "90 %",
    "q99": "99 %",
    "us_per_round": "µs per round",
    "replications": "Runs",
    "horizon": "Rounds",
    "p_holm": "p (Holm)",
    "optimal_low": "Against the optimum, low",
    "optimal_high": "Against the optimum, high",
    "earlier": "At a tenth of the rounds",
    "than": "Compared with",
    "axis": "Parameter",
}
"""Headings in print where they are not the name of the column with a capital letter."""
_WORDS = {"n_arms": "arms", "n_items": "items", "k": "batch size"}
BEST_LEVEL = 0.05
"""A policy is among the best if the p-value of its difference from the best one, by Holm's method, exceeds this."""
FEW = " †"
"""The mark of an instance on which another policy has the lowest median."""


def write_table(table: ResultTable, directory: Path, name: str) -> list[str]:
    """Write a table as CSV and LaTeX; return the names of the files."""
    directory.mkdir(parents=True, exist_ok=True)
    printed = ResultTable([{_heading(key): value for key, value in row.items()} for row in table.rows], table.caption)
    write_text(directory / f"{name}.csv", table.to_csv())
    write_text(directory / f"{name}.tex", printed.to_latex(f"tab:{name}"))
    return [f"{name}.csv", f"{name}.tex"]


def _heading(key: str) -> str:
    """A heading in English, without Python's names."""
    return HEADINGS.get(key, key.replace("_", " ").capitalize() if key.islower() else key)


def in_print(label: str) -> str:
    """The label of an instance or a policy without Python's names.

    >>> in_print("random (n_arms=30, k=4)")
    'random (arms 30, batch size 4)'
    """
    name, opened, axes = label.partition(" (")
    if not opened or "=" not in axes:
        return label
    pairs = [pair.partition("=") for pair in axes.removesuffix(")").split(", ")]
    words = [f"{_WORDS.get(axis, axis.replace('_', ' '))} {value}" for axis, _, value in pairs]
    return f"{name} ({', '.join(words)})"


def paper_table(study: "Study", value: str, rows: str, columns: str, best: str) -> ResultTable:
    """A table for a paper: instances by policies, or the other way round; see ``Study.latex``."""
    for name, given, known in (("value", value, ("regret", "median", "time")), ("best", best, ("bold", "none"))):
        if given not in known:
            raise InvalidArgument(name, f"{given!r}", f"give one of {', '.join(known)}", "latex")
    if {rows, columns} != {"instance", "policy"}:
        raise InvalidArgument("rows", f"{rows!r} by {columns!r}", "give instance and policy, in either order", "latex")
    marked = {
        instance: in_print(instance) + (FEW if value == "regret" and few_runs_decide(study, instance) else "")
        for instance in study.started_instances
    }
    cells = {
        (marked[instance], in_print(one.policy)): _paper_cell(study, instance, one, value, best == "bold")
        for instance, ranking in study.rankings.items()
        for one in ranking
    }
    labels = {
        "instance": list(marked.values()),
        "policy": [in_print(label) for label in study.policies],
    }
    table = [
        {_heading(rows): row}
        | {column: cells.get((row, column) if rows == "instance" else (column, row)) for column in labels[columns]}
        for row in labels[rows]
    ]
    few = any(label.endswith(FEW) for label in marked.values())
    note = f"{FEW}: another policy has the lowest median, so that a few runs decide." if few else ""
    return ResultTable(table, _paper_caption(study, value, best) + note)


def few_runs_decide(study: "Study", instance: str) -> bool:
    """Whether the policy with the least mean regret on an instance is not one with the least median."""
    medians = {policy: float(np.median(one.regret[:, -1])) for policy, one in study.records_for(instance).items()}
    return medians[study.rankings[instance][0].policy] > min(medians.values())


def _paper_cell(study: "Study", instance: str, one: "RankedPolicy", value: str, bold: bool) -> Measured:
    record = study.records[instance, one.policy]
    if value == "time":
        return Measured(microseconds_per_round(record))
    final = record.regret[:, -1]
    among = bold and (one.behind is None or one.p > BEST_LEVEL)
    if value == "median":
        return Measured(float(np.median(final)), math.nan, among)
    return Measured(*mean_and_standard_error(final), among)


def _paper_caption(study: "Study", value: str, best: str) -> str:
    rows = sorted({len(record.regret) for record in study.records.values()})
    families = [study.is_family(label) for label in study.started_instances]
    what = "instances" if all(families) else "runs or instances" if any(families) else "runs"
    over = f"{rows[0]} {what}" if len(rows) == 1 else f"{rows[0]} to {rows[-1]} {what}"
    horizon = f"{study.experiment.horizon:,}"
    if value == "time":
        return f"Processor time per round in µs, {horizon} rounds."
    mean = {"regret": "mean ± standard error", "median": "median"}[value]
    bold = (
        " Bold: the lowest, and all that paired t-tests (Holm, all pairs, 5 %) cannot tell from it."
        if best == "bold"
        else ""
    )
    return f"Regret after {horizon} rounds ({study.targets} target), {mean} over {over}.{bold}"


def make_tables(study: "Study") -> dict[str, ResultTable]:
    """The tables that are written to files, by name."""
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
    tables = {name: ResultTable(rows, captions[name]) for name, rows in zip(captions, found, strict=True) if rows}
    return {"paper": paper_table(study, "regret", "instance", "policy", "bold")} | tables


def _interval(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    """A number and its interval as three columns; None where it is not known."""
    values = (None, None, None) if estimate is None else estimate[:3]
    known = [None if value is None or math.isnan(value) else value for value in values]
    return dict(zip((name, f"{name}_low", f"{name}_high"), known, strict=True))


def describe_policies(study: "Study") -> list[tuple[str, str, str]]:
    """The label of each policy, the call that makes it, and its caveat."""
    found = {}
    for (_, policy), record in study.records.items():
        found[policy] = policy, record.metadata["written"], find_caveat(record)
    return [found[policy] for policy in study.policies if policy in found]


def find_caveat(record: CellResults) -> str:
    """The assumption that the policy of a cell states and that may not hold; empty if it states none."""
    policy = rebuild_policy(record)
    return "" if policy is None else str(policy.caveat)


def format_study(study: "Study") -> list[str]:
    """The ranking on every instance, the caveats of the policies, and the claims."""
    width = max(6, *(len(policy) for policy in study.policies))
    lines = [] if study.complete else ["(incomplete: run it again to continue)"]
    for instance, ranking in study.rankings.items():
        lines.append(
            f"{instance}: regret after {study.experiment.horizon} rounds, {study.target(instance)} target, "
            f"{study.describe_runs(instance)}, ± half a 95 % interval"
        )
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
