"""Why a slate was chosen, as a table."""

from superarm.agent.explanations import ExplainedArm, Explanation
from superarm.service.console.markup import Html, tag
from superarm.service.console.view import scrollable, section

TITLE = "Why these arms"

FEATURES_SHOWN = 3
"""How many features are named for each arm."""


def explained(found: Explanation | str) -> Html:
    """The arms of a slate in the order of picking: what they added, and the features that mattered most."""
    if isinstance(found, str):
        return section("explanation", TITLE, tag("p", found, class_="empty"))
    heads = [
        tag("th", "Arm", scope="col"),
        *(tag("th", word, scope="col", class_="num") for word in ("Mean", "Optimistic", "Added", "Added at the means")),
        tag("th", "Features", scope="col"),
    ]
    rows = [_arm(arm) for arm in found.arms]
    note = (
        "By what is known now: means over items of the estimates and of the parameters that the policy "
        "hoped for, what each arm added to those above it, and the features that changed its estimate most."
    )
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows))
    return section("explanation", TITLE, scrollable("Explanation", table), note=note)


def _arm(arm: ExplainedArm) -> Html:
    mean, optimistic = (float(values.mean()) if values.size else 0.0 for values in (arm.estimate, arm.optimistic))
    numbers = (mean, optimistic, arm.gain, arm.estimated_gain)
    effects = ", ".join(f"{name} {effect:+.3g}" for name, effect in arm.features)
    cells = [tag("td", f"{number:.4g}", class_="num") for number in numbers]
    return tag("tr", tag("th", arm.name, scope="row"), *cells, tag("td", effects or "–", class_="text"))
