"""Several slates and policies side by side, from one log."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.errors import InvalidArgument
from superarm.offline.result import PolicyValue
from superarm.offline.value import evaluate

if TYPE_CHECKING:
    from superarm.offline.log import Log


@dataclass(frozen=True, repr=False)
class LogComparison:
    """The values of several targets by name, against one baseline: print it, or write a page."""

    log: "Log"
    values: dict[str, PolicyValue]

    def __getitem__(self, name: str) -> PolicyValue:
        return self.values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __repr__(self) -> str:
        width = max(len(name) for name in self.values)
        first = next(iter(self.values.values()))
        head = f"{'':<{width}}  value per round, and minus {first.baseline} ({100 * (1 - first.delta):g} %)"
        return "\n".join([head, *(_line(name, found, width) for name, found in self.values.items())])

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page: the values with their intervals as a picture, warnings, assumptions."""
        from superarm.offline.page import write_page

        return write_page(self, Path(path))


def _line(name: str, found: PolicyValue, width: int) -> str:
    d = found.difference
    value = f"{found.value:9.4g} [{found.low:.4g}, {found.high:.4g}]"
    return f"{name:<{width}}  {value:<32} {d.value:+9.4g} [{d.low:+.4g}, {d.high:+.4g}]  {found.verdict}"


def compare_targets(
    log: "Log", targets: dict[str, Any], baseline: Any, method: str | None, delta: float
) -> LogComparison:
    """The value of each target: see :meth:`Log.compare`."""
    if not isinstance(targets, dict) or not targets:
        raise InvalidArgument("targets", f"{targets!r}", 'give a dict of names and targets: {"now": "logged", …}')
    return LogComparison(log, {str(name): evaluate(log, one, baseline, method, delta) for name, one in targets.items()})
