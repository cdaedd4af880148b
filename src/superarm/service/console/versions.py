"""The versions of a problem's settings: what changed, when, by whom, and what each of them earned."""

from typing import Any, NamedTuple

import msgspec

from superarm.service.console.markup import Html, tag
from superarm.service.console.numbers import weighty_items
from superarm.service.console.times import moment
from superarm.service.console.view import scrollable, section
from superarm.service.domain.events import Changed, Created
from superarm.service.domain.history import Stretch, difference, mean_interval
from superarm.service.domain.problem import ProblemState
from superarm.service.storage.base import Store

MAX_SHOWN_VERSIONS = 50


class VersionStart(NamedTuple):
    """When a version began, and the key that made it."""

    at: int
    by: str


def read_changes(store: Store, tenant: str, name: str) -> dict[int, VersionStart]:
    """When each version of a problem began; read from the log, in a thread."""
    found = dict[int, VersionStart]()
    for entry in store.stream(tenant, "problem", name):
        event = entry.event
        if isinstance(event, Created):
            found = {1: VersionStart(event.at, event.by)}
        elif isinstance(event, Changed):
            found[event.version] = VersionStart(event.at, event.by)
    return found


def list_changes(before: Any, after: Any) -> list[str]:
    """What differs between two settings, in words.

    >>> from superarm.service.domain.spec import Settings
    >>> list_changes(Settings(), Settings(explore=0.1))
    ['explore: 0.0 → 0.1']
    """
    old, new = (msgspec.to_builtins(settings) for settings in (before, after))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [f"{name}: {_said(old.get(name))} → {_said(new.get(name))}" for name in names]


def _said(value: Any) -> str:
    if isinstance(value, dict):
        parts = [str(value.get("name", ""))]
        parts += [f"{k} {_said(v)}" for k, v in value.items() if k not in ("name", "parameters") and v is not None]
        parts += [f"{k} {v}" for k, v in (value.get("parameters") or {}).items()]
        return " ".join(part for part in parts if part)
    return "none" if value is None else str(value)


def versions(learner: ProblemState, changes: dict[int, VersionStart]) -> Html:
    """A table of the newest versions, the current one first."""
    last = len(learner.versions)
    shown = range(last, max(0, last - MAX_SHOWN_VERSIONS), -1)
    names = ("Version", "Since (UTC)", "By key", "What changed")
    heads = [tag("th", name, scope="col") for name in names]
    heads += [tag("th", name, scope="col", class_="num") for name in ("Finished", "Reward", "Current minus this")]
    rows = [_row(learner, version, changes.get(version)) for version in shown]
    note = (
        "Mean reward of the policy's finished decisions under each version, with a 95 % interval for one look. "
        "Versions were in force at different times: a difference may come from the time and not from the settings. A "
        "control share compares at the same time."
    )
    if last > len(shown):
        note += f" The newest {len(shown)} of {last} versions."
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_="stacked")
    scroll = scrollable("Versions", table)
    return section("versions", "Versions of the settings", scroll, note=note)


def _row(learner: ProblemState, version: int, change: VersionStart | None) -> Html:
    rewards, needed = learner.history.versions, weighty_items(learner)
    now, mine = (rewards.get(n, Stretch()).policy for n in (len(learner.versions), version))
    mean = mean_interval(mine, needed)
    gap = None if version == len(learner.versions) else difference(now, mine, needed)
    before = learner.versions[version - 2] if version > 1 else None
    said = ["created"] if before is None else list_changes(before, learner.versions[version - 1]) or ["nothing"]
    return tag(
        "tr",
        tag(
            "th",
            version,
            tag("span", " current", class_="quiet") if gap is None and version == len(learner.versions) else None,
            scope="row",
        ),
        tag("td", "–" if change is None else moment(change.at), data_label="Since (UTC)"),
        tag("td", (change.by if change else "") or "–", data_label="By key"),
        tag("td", tag("ul", [tag("li", words) for words in said], class_="bare"), class_="words", data_label="Changed"),
        tag("td", f"{mine.count:,}", class_="num", data_label="Finished"),
        tag("td", "–" if mean is None else _interval(mean, ""), class_="num", data_label="Reward"),
        tag("td", "–" if gap is None else _interval(gap, "+"), class_="num", data_label="Current minus this"),
    )


def _interval(mean: Any, sign: str) -> str:
    return f"{mean.value:{sign}.3g}" + (f" ± {mean.reach:.2g}" if mean.reach < float("inf") else "")
