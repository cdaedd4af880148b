"""The book: what was sent and acknowledged, and what must therefore be true of every reply and of the log.

Everything acknowledged is in the log once, and was there before the reply. Nothing refused is there. What exists is not
answered with 404. What the service counts is what the log adds up to.
"""

from fractions import Fraction
from typing import Any, NamedTuple

from superarm.decisions import Erased, Expired, Told
from superarm.service.domain.events import Armed, Asked, Created, Deleted, decode

TENANT = "default"
Units = tuple[tuple[str, str, float], ...]
"""Arms, items and values of one feedback."""


class Operation(NamedTuple):
    """A request, and the statuses that may answer it besides 503."""

    kind: str
    method: str
    problem: str
    path: str
    body: Any
    expected: tuple[int, ...]
    id: str = ""
    units: Units = ()


class Book:
    """The reference; ``faults`` are the sentences that say what was wrong."""

    def __init__(self, data: Any, trace: Any) -> None:
        self._data, self._trace = data, trace
        self.faults: list[str] = []
        self.sent: dict[tuple[str, str], list[Units]] = {}
        self.refused: set[tuple[str, str]] = set()
        self.asked: dict[tuple[str, str], list[str]] = {}
        self.told: dict[tuple[str, str], list[Units]] = {}
        self.erasing: set[tuple[str, str]] = set()
        self.erased: set[tuple[str, str]] = set()
        self.arms: set[str] = set()
        self.refused_arms: set[str] = set()
        self.n_answers: dict[str, int] = {}

    def fault(self, what: str) -> None:
        """Note what was wrong."""
        self._trace("FAULT", what)
        self.faults.append(what)

    def send(self, one: Operation) -> None:
        """Note a request before it is sent."""
        key = one.problem, one.id
        if one.kind == "bad ask":
            self.refused.add(key)
        elif one.kind == "bad arm":
            self.refused_arms.add(one.body["add"][0])
        elif one.kind in ("ask", "tell", "amend"):
            self.sent.setdefault(key, []).append(one.units)
        elif one.kind == "erase":
            self.erasing.add(key)

    def answer(self, one: Operation, status: int, said: Any) -> None:
        """Check a reply at the moment when a worker gives it."""
        self._trace("answer", one.kind, one.problem, one.id, status)
        self.n_answers[f"{one.kind} {status}"] = self.n_answers.get(f"{one.kind} {status}", 0) + 1
        if status == 503:
            return
        key = one.problem, one.id
        gone = key in self.erasing and status in (404, 409)
        if status not in one.expected and not gone:
            self.fault(f"{one.kind} of {key} was answered with {status}: {said}")
        elif status < 300 and one.kind == "ask":
            self._took_place(key, 0)
            if self.asked.setdefault(key, said["arms"]) != said["arms"]:
                self.fault(f"{key} has two slates")
        elif status < 300 and one.kind == "read" and self.asked[key] != said["arms"]:
            self.fault(f"{key} is read with another slate")
        elif status < 300 and one.kind in ("tell", "amend") and not said["late"]:
            if one.units not in self._tellings(key):
                self.fault(f"feedback of {key} was acknowledged before it was written")
            if one.units not in self.told.setdefault(key, []):
                self.told[key].append(one.units)
        elif status < 300 and one.kind == "erase":
            self.erased.add(key)
            self._took_place(key, 1)
        elif status < 300 and one.kind == "add arm":
            self.arms.add(one.body["add"][0])

    def _took_place(self, key: tuple[str, str], step: int) -> None:
        if not self._data.has((TENANT, "decision", "/".join(key), step)):
            self.fault(f"{key} was acknowledged before it was written")

    def _tellings(self, key: tuple[str, str]) -> list[Units]:
        lines = [line for line in self._data.lines() if line[4] in ("/".join(key), key[0])]
        return tellings(Stories(lines).decisions.get(key, []), Stories(lines).arms.get(key[0], []))

    def audit(self, stories: "Stories") -> None:
        """Compare the log with what was sent and acknowledged."""
        for key, events in stories.decisions.items():
            told = tellings(events, stories.arms[key[0]])
            if key in self.refused or key not in self.sent:
                self.fault(f"{key} is in the log, although it was refused or never sent")
            elif any(units not in self.sent[key] for units in told):
                self.fault(f"feedback of {key} is in the log that was refused or never sent: {told}")
            elif any(told.count(units) != 1 for units in self.told.get(key, [])):
                self.fault(f"acknowledged feedback of {key} is not in the log once: {told}")
            elif key in self.erased and sum(isinstance(event, Erased) for event in events) != 1:
                self.fault(f"the acknowledged erasure of {key} is not in the log once")
        for key in self.asked.keys() - stories.decisions.keys():
            self.fault(f"the acknowledged decision {key} is not in the log")
        known = [arm for arms in stories.arms.values() for arm in arms]
        for arm in self.arms:
            if known.count(arm) != 1:
                self.fault(f"the acknowledged arm {arm} is in the log {known.count(arm)} times")
        if refused := self.refused_arms.intersection(known):
            self.fault(f"the refused arms {refused} are in the log")

    def compare(self, stories: "Stories", problem: str, rows: list[Any]) -> None:
        """Compare what the service says of the arms of a problem with what the log adds up to."""
        sums = stories.sums(problem)
        for row in rows:
            values = [[value for at, value in sums if at == (row["arm"], item)] for item in ("x", "y")]
            mean = [float(sum(map(Fraction, part)) / len(part)) if part else None for part in values]
            if row["seen"] != [len(part) for part in values] or row["mean"] != mean:
                self.fault(f"{problem}, {row['arm']}: {row['seen']} {row['mean']} instead of {values}")
        if [row["arm"] for row in rows] != stories.arms[problem]:
            self.fault(f"{problem} has other arms than its log")


class Stories:
    """The lines of the log, by problem and decision."""

    def __init__(self, lines: list[Any]) -> None:
        self.arms: dict[str, list[str]] = {}
        self.born: dict[str, int] = {}
        self.decisions: dict[tuple[str, str], list[Any]] = {}
        for _, _, _, kind, stream, step, body in sorted(lines, key=lambda line: (line[3] != "problem", line[5])):
            event, (problem, _, id) = decode(body), stream.partition("/")
            if kind == "decision":
                self.decisions.setdefault((problem, id), []).append(event)
            elif isinstance(event, Created):
                self.arms[problem], self.born[problem] = list(event.spec.arms), step
            elif isinstance(event, Armed):
                self.arms[problem] += event.add
            elif isinstance(event, Deleted):
                self.born.pop(problem, None)

    def sums(self, problem: str) -> list[tuple[tuple[str, str], float]]:
        """Everything that counts of a problem: arm, item and value."""
        counted = list[tuple[tuple[str, str], float]]()
        for (name, _), events in self.decisions.items():
            if name == problem and events[0].born == self.born.get(problem):
                counted += entries(events, self.arms[problem]).items()
        return counted


def entries(events: list[Any], arms: list[str]) -> dict[tuple[str, str], float]:
    """What a decision counts as in the end."""
    asked: Asked = events[0]
    slate = [(arms[arm], item) for arm in asked.action for item in ("x", "y")]
    values = {} if asked.silence is None else dict.fromkeys(slate, asked.silence)
    for event in events[1:]:
        if isinstance(event, Told) and not event.late:
            values |= {(arms[arm], "xy"[item]): value for arm, item, value in event.units}
        elif isinstance(event, Expired) and event.fill is not None:
            values = dict.fromkeys(slate, event.fill) | values
        elif isinstance(event, Erased):
            return {}
    return values


def tellings(events: list[Any], arms: list[str]) -> list[Units]:
    """All feedback of a decision that was in time, by names."""
    told = [event for event in events if isinstance(event, Told) and not event.late]
    return [tuple((arms[arm], "xy"[item], value) for arm, item, value in event.units) for event in told]
