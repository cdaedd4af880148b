"""A study as lines of text, for terminals and logs."""

from typing import TYPE_CHECKING

from superarm.experiments.sections import policies
from superarm.experiments.tables import chance, number

if TYPE_CHECKING:
    from superarm.experiments.study import Study


def lines(study: "Study") -> list[str]:
    """The ranking on every instance, and the claims."""
    width = max(6, *(len(policy) for policy in study.policies))
    told = [] if study.complete else ["(incomplete: run it again to continue)"]
    for world, places in study.rankings.items():
        told.append(f"{world}: regret after {study.experiment.horizon} rounds, target {study.experiment.target}")
        for place in places:
            error = number(place.regret.error, 3)
            behind = f"  +{number(place.behind.value, 3)}, p {chance(place.p)}" if place.behind else ""
            told.append(f"  {place.policy:<{width}}  {number(place.regret.value):>10} ± {error:<8}{behind}".rstrip())
    told += [f"  caveat of {name}: {caveat}" for name, _, caveat in policies(study) if caveat]
    for verdict in study.verdicts:
        value = (
            f"{number(verdict.number.value)} [{number(verdict.number.low)}, {number(verdict.number.high)}]"
            if verdict.number
            else "–"
        )
        told.append(f"{verdict.word:>9}: {verdict.text} ({verdict.instance}): {verdict.measure} = {value}")
    return told
