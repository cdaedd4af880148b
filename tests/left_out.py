"""What the passes of ``make test`` have covered, and which tests none of them has run.

Each pass (plain Python, compiled) writes a record of its tests to the file named by TEST_RECORD. A test that is
skipped in one pass and run in another is complete; a test that every pass skipped was left out.

    python -m tests.left_out PLAIN COMPILED    report; with SUPERARM_REQUIRE_ALL=1, fail if any was left out
"""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.system_packages import how_to_install, required

MISSING = "missing: "
"""How the reason of a test begins that was skipped for want of a system package."""


class Record:
    """A pytest plugin that writes down which tests were run and which were skipped, and why."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped: dict[str, str | None] = {}  # by test: why it was skipped; None if it was run

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)
        if report.when == "call" and not report.skipped:
            self.skipped[report.nodeid] = None

    def _note(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped[report.nodeid] = report.longrepr[2].removeprefix("Skipped: ")

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(self.skipped))


def left_out(records: Iterable[dict[str, str | None]]) -> dict[str, str]:
    """The tests that were run in none of the passes, with the reason that the last of them gave."""
    reasons: dict[str, str] = {}
    ran: set[str] = set()
    for record in records:
        ran |= {test for test, reason in record.items() if reason is None}
        reasons |= {test: reason for test, reason in record.items() if reason is not None}
    return {test: reason for test, reason in reasons.items() if test not in ran}


def report(tests: dict[str, str]) -> list[str]:
    """The lines that ``make test`` ends with."""
    if not tests:
        return ["Every test was run."]
    lines = [f"Not run: {len(tests)} of the tests."]
    lines += [f"  {test} ({reason})" for test, reason in sorted(tests.items())]
    names = sorted({reason.removeprefix(MISSING) for reason in tests.values() if reason.startswith(MISSING)})
    if names:
        lines.append(f"To run them as well: {how_to_install(names)} && make test")
    return lines


def escaped(name: str) -> str:
    """A parameter's name as pytest writes it into the id of a test."""
    return name.encode("unicode_escape").decode("ascii")


def parameter(test: str) -> str:
    """What stands in brackets at the end of a test's id, of the tests that compare a composition in both modes."""
    return test.partition("::test_compositions_agree[")[2].removesuffix("]")


def covered(plain: dict[str, str | None], compiled: dict[str, str | None]) -> str:
    """The line that says what the passes have run."""
    from tests.compositions import covering_set, goals  # not above: it takes a second

    names = {escaped(" × ".join(one)): one for one in covering_set()}
    ran = [one for test, reason in compiled.items() if not reason and (one := names.get(parameter(test)))]
    pairs = {goal for one in ran for goal in goals(one) if len(goal) == 2}
    counts = [sum(reason is None for reason in record.values()) for record in (plain, compiled)]
    return (
        f"Run: {counts[0]} tests as plain Python, {counts[1]} compiled, of which {len(ran)} of {len(names)} "
        f"compositions with {len(pairs)} pairs of kinds of components."
    )


def main(paths: list[str]) -> int:
    records = [json.loads(Path(path).read_text()) for path in paths]
    tests = left_out(records)
    print("\n".join([covered(*records), *report(tests)]))
    return 1 if tests and required() else 0


if __name__ == "__main__":
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    sys.exit(main(sys.argv[1:]))
