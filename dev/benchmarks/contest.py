"""Tables of policies on many instances from stored results: ``python -m dev.benchmarks.contest results/champions``.

Prints Markdown for each results directory. With ``--page FILE.md`` it is written into the page instead, between
the lines ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` of each experiment, so that no figure is copied by hand.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from superarm.experiments.analysis.claims import Judgement
from superarm.experiments.analysis.study import Study
from superarm.experiments.analysis.summary import summarise_ratios
from superarm.experiments.spec.experiment import as_list
from superarm.simulation.statistics import Estimate, estimate_mean

MAX_CLAIM_LABELS = 6
"""So many instances on which a claim fails or is undecided are named; beyond that they are counted."""

MAX_TAILS = 60
"""Up to so many cells the quantiles of all are listed; beyond that, those of the directional policies and KL-MOSS."""


def number(x: float) -> str:
    """A regret with as many digits as it needs."""
    return f"{x:,.{0 if abs(x) >= 20.0 else 1}f}".replace("-", "−")


def ratio_of_means(a: Any, b: Any) -> Estimate:
    """mean(a) / mean(b) of paired replications, with the interval of its linearisation.

    >>> ratio_of_means([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])[:3]
    (0.5, 0.5, 0.5)
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    ratio = float(a.mean() / b.mean())
    error = estimate_mean((a - ratio * b) / b.mean())
    return Estimate(ratio, ratio + error.low, ratio + error.high, error.p)


def interval(estimate: Estimate) -> str:
    """An estimate with its interval."""
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]".replace("-", "−")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, labels: int = 1) -> list[str]:
    """A Markdown table; all columns but the first ``labels`` are aligned to the right."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * labels + "---:|" * (len(head) - labels)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def count(n: int, what: str) -> str:
    """A number with its noun.

    >>> count(1, "instance"), count(2, "instance")
    ('1 instance', '2 instances')
    """
    return f"{n} {what}{'' if n == 1 else 's'}"


def describe_time(seconds: float) -> str:
    """A duration in whole minutes."""
    minutes = round(seconds / 60.0)
    return count(minutes, "minute") if minutes else "less than a minute"


def describe_runs(study: Study) -> list[str]:
    """How many runs of how many rounds, which cells are missing, when and on what they were run."""
    experiment, manifest = study.experiment, study.manifest
    seconds = sum(float(record.seconds.sum()) for record in study.records.values())
    cores, date = manifest["machine"]["cores"], study.provenance["finished"][:10]
    lines = [
        f"`superarm run {experiment.name}`: {count(len(study.started_instances), 'instance')}, {len(study.policies)} "
        f"policies, {experiment.replications} runs of {experiment.horizon:,} rounds; {describe_time(seconds)} of "
        f"processor time, {date}, {cores} shared cores."
    ]
    missing = {
        policy: [label for label in study.instances if (label, policy) not in study.records]
        for policy in study.policies
    }
    for policy, labels in missing.items():
        if labels:
            lines.append(f"Not run: {policy} on {len(labels)} of {len(study.instances)} instances.")
    return [*lines, ""]


def list_ratios(study: Study, base: str, precise: Sequence[str]) -> list[str]:
    """One row per instance: the mean of ``base``, and every policy's as a multiple of it; the least in bold."""
    others = [policy for policy in study.policies if policy != base]
    rows = []
    for label in study.started_instances:
        values = {policy: record.regret[:, -1] for policy, record in study.records_for(label).items()}
        if base not in values:
            continue
        least = min(values, key=lambda policy: float(np.mean(values[policy])))
        own = estimate_mean(values[base])
        cells = [f"{number(own.value)} ± {number(own.high - own.value)}"]
        for policy in others:
            if policy not in values:
                cells.append("")
                continue
            ratio = ratio_of_means(values[policy], values[base])
            text = interval(ratio) if policy in precise else f"{ratio.value:.2f}".replace("-", "−")
            cells.append(f"**{text}**" if policy == least else text)
        rows.append([label, *cells])
    return table(["instance", f"{base}, mean", *others], rows)


def list_geometric_means(study: Study) -> list[str]:
    """One row per policy: for each group of instances the geometric mean of its ratios, and how often it is first."""
    found = {(row["claim"], row["policy"]): row for row in summarise_ratios(study)}
    groups = list(dict.fromkeys(group for group, _ in found))
    if not groups:  # no policy has results on all instances of a group
        return []
    firsts = {group: count_firsts(study, group) for group in groups}
    rows = []
    for policy in study.policies:
        cells = []
        for group in groups:
            own = found.get((group, policy))
            if own is None:
                cells += ["–", str(firsts[group].count(policy))]
                continue
            estimate = interval(Estimate(own["ratio"], own["ratio_low"], own["ratio_high"]))
            cells += [f"{estimate}, at most {own['largest']:.2f}", str(firsts[group].count(policy))]
        rows.append([policy, *cells])
    return table(["policy", *(text for group in groups for text in (group, "least mean on"))], rows)


def count_firsts(study: Study, group: str) -> list[str]:
    """The policy with the least mean on each instance of the group that a claim of the kind ``geometric`` is about."""
    claim = next(c for c in study.experiment.claims if c["kind"] == "geometric" and c.get("text", "") == group)
    return [
        ranking[0].policy
        for label, ranking in study.rankings.items()
        if "instance" not in claim or study.instances[label].name in as_list(claim["instance"])
    ]


def list_tails(study: Study, policies: Sequence[str]) -> list[str]:
    """One row per instance and policy: mean, quantiles, maximum and locked runs; a reader has to open the table."""
    rows = []
    for row in study.tails:
        if row["policy"] not in policies:
            continue
        own = estimate_mean(study.final_regret(row["instance"], row["policy"]))
        locked = "" if row["locked"] is None else f"{row['locked']} of {row['replications']}"
        shown = [number(row[key]) for key in ("median", "q90", "q99", "largest")]
        mean = f"{number(own.value)} ± {number(own.high - own.value)}"
        rows.append([row["instance"], row["policy"], number(row["earlier"]), mean, *shown, locked])
    early = f"mean at {study.experiment.horizon // 10:,}"
    head = ["instance", "policy", early, "mean", "median", "90 %", "99 %", "largest", "locked"]
    summary = "<summary>Quantiles of the regret, and locked runs, by instance and policy</summary>"
    return ["<details>", summary, "", *table(head, rows, labels=2), "</details>", ""]


def list_claims(study: Study) -> list[str]:
    """What became of each claim, in one line per text."""
    limits = {
        claim["text"]: f"geometric mean of {claim['policy']} below {claim['below']:g} times {claim['than']}"
        for claim in study.experiment.claims
        if claim["kind"] == "geometric" and "text" in claim
    }
    lines = []
    for text in dict.fromkeys(judgement.text for judgement in study.judgements):
        own = [judgement for judgement in study.judgements if judgement.text == text]
        if text in limits:  # a group of instances, and one judgement for all of them
            lines.append(f"- {text}, {limits[text]}: {own[0].outcome}.")
        else:
            lines.append(f"- {text}: {describe_outcomes(own)}.")
    return [*lines, ""]


def describe_outcomes(judgements: Sequence[Judgement]) -> str:
    """On how many instances a claim holds, and on which it does not."""
    parts = []
    for outcome in ("holds", "fails", "undecided"):
        labels = [judgement.instance for judgement in judgements if judgement.outcome == outcome]
        named = outcome != "holds" and len(labels) <= MAX_CLAIM_LABELS
        if labels:
            parts.append(f"{outcome} on {len(labels)}" + (f" ({', '.join(labels)})" if named else ""))
    return "; ".join(parts)


def format_page(study: Study) -> str:
    """All tables of one study as Markdown."""
    claims = study.experiment.claims
    base = next((claim["than"] for claim in claims if "than" in claim), None)
    contest = any(claim["kind"] == "geometric" for claim in claims)
    precise = [policy for policy in study.policies if policy.startswith("directional")]
    lines = describe_runs(study)
    if base is not None and base in study.policies:
        lines += list_ratios(study, base, precise if contest else list(study.policies))
    if contest:
        lines += list_geometric_means(study)
    shown = [*precise, base] if contest and len(study.records) > MAX_TAILS else list(study.policies)
    return "\n".join([*lines, *list_claims(study), *list_tails(study, shown)])


def write_block(page: Path, name: str, text: str) -> None:
    """Put ``text`` between the marks of ``name`` in a page."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)
    if not found or not after[1]:
        raise SystemExit(f"{page} has no lines {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after[2]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", type=Path, nargs="+", help="results that superarm run has written")
    parser.add_argument("--page", type=Path, help="a page with marks for each experiment, to write the tables into")
    parser.add_argument("--block", help="the name in the marks, in the place of the experiment's")
    arguments = parser.parse_args()
    for directory in arguments.directories:
        study = Study.load(directory)
        text = format_page(study)
        if arguments.page is None:
            print(text)
        else:
            write_block(arguments.page, arguments.block or study.experiment.name, text)


if __name__ == "__main__":
    main()
