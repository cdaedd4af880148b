"""A study as lines of text, for terminals and logs."""

import math
from typing import TYPE_CHECKING

from superarm.experiments.report.sections import describe_policies
from superarm.pages.numbers import format_number, format_p

if TYPE_CHECKING:
    from superarm.experiments.analysis.claims import Judgement
    from superarm.experiments.analysis.study import Study
    from superarm.experiments.analysis.summary import RankedPolicy


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
