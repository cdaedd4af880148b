"""Results as a table of text."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from superarm.simulation.results import Results


def lines(results: "Results") -> list[str]:
    """A header, a line a policy (least regret first), and what regret was measured against."""
    summary = sorted(results.summary().items(), key=lambda entry: entry[1][0])
    width = max(6, *(len(name) for name, _ in summary))
    replications = len(next(iter(results.regret.values())))
    head = f"{'policy':<{width}}  {'regret':>12}  {'± s.e.':>9}  {'µs/round':>9}"
    body = [
        f"{name:<{width}}  {mean:>12.2f}  {error:>9.2f}  {_pace(results, name):>9.2f}"
        for name, (mean, error) in summary
    ]
    foot = f"after {results.rounds[-1]} rounds, {replications} replications, target: {results.targets[summary[0][0]]}"
    return [head, "-" * len(head), *body, foot if results.complete else foot + " (interrupted)"]


def _pace(results: "Results", name: str) -> float:
    return 1e6 * results.seconds[name] / (int(results.rounds[-1]) * len(results.regret[name]))
