"""The two tiers of the tests: ``make test`` for every change, ``make test-all`` before an issue is called resolved.

A test of the second tier is marked ``slow(reason)``; ``make test`` leaves these out with ``-m "not slow"`` and says at
its end what they are. A test that runs a program of the system is marked ``needs(name)``: where the program is missing
it is not run, which is said at the end, or fails if SUPERARM_REQUIRE_ALL is set. With ``--budget SECONDS`` a run fails
if a file takes more processor time, where a machine that is slower than the usual one has as much more.
"""

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.system_packages import NEEDS, how_to_install, required

MEMORY, MEMORY_BYTES = Path("/dev/shm"), 2 << 30
"""Where temporary files are, if so much memory is free."""
MISSING = "missing: "
USUAL_SECONDS = 0.025
"""What ``slowness`` takes on the usual machine, in seconds of processor time."""


def use_memory() -> None:
    """Have temporary files in memory where there is room: databases wait for the disk at every commit."""
    if "TMPDIR" in os.environ:
        return
    with contextlib.suppress(OSError):
        if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_BYTES:
            os.environ["TMPDIR"] = str(MEMORY)
            tempfile.tempdir = None  # pytest has asked for it already


def use_fresh_kernels() -> None:
    """Let numba store kernels by a digest of all their sources: it notices changes of a kernel's own file alone."""
    root = Path(__file__).parents[1]
    sources = b"".join(path.read_bytes() for path in sorted((root / "src" / "superarm" / "kernels").glob("*.py")))
    name = f"kernels-{hashlib.sha256(sources).hexdigest()[:12]}"
    os.environ.setdefault("NUMBA_CACHE_DIR", str(root / ".pytest_cache" / name))


use_memory()
use_fresh_kernels()


def processor_seconds() -> float:
    """The processor time of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


def slowness() -> float:
    """How many times as long as on the usual machine a fixed piece of work takes here and now; at least 1."""
    began, sums = time.process_time(), dict.fromkeys(range(1009), 0)
    for n in range(300_000):
        sums[n % 1009] += n * n
    return max(1.0, (time.process_time() - began) / USUAL_SECONDS)


class Tiers:
    """What a process has left out, and the processor time of its files; xdist's workers report to the first process."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.seconds, self.left_out = config, Counter[str](), set[str]()
        self.slowness = slowness() if config.getoption("budget") else 1.0

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Do not even import a file of the second tier for the first one."""
        if self.config.getoption("markexpr") != "not slow" or collection_path.suffix != ".py":
            return None
        text = collection_path.read_text(encoding="utf-8")
        mark = re.search(r'^pytestmark = pytest\.mark\.slow\("(.+)"\)$', text, re.MULTILINE)
        if mark:
            self.left_out.add(mark[1])
        return True if mark else None

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Any:
        """Import a file for the examples in its docstrings only if it is of the package and has some."""
        found = yield
        own = file_path.suffix == ".py" and "tests" not in file_path.parts
        examples = own and ">>> " in file_path.read_text(encoding="utf-8")
        return [one for one in found if examples or type(one).__name__ != "DoctestModule"]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            missing = [mark.args[0] for mark in item.iter_markers("needs") if not NEEDS[mark.args[0]].find()]
            if missing and not required():
                item.add_marker(pytest.mark.skip(reason=MISSING + missing[0]))

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        for item in items:
            if mark := item.get_closest_marker("slow"):
                self.left_out.add(mark.args[0])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        began = processor_seconds()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid.partition("::")[0]] += processor_seconds() - began

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        for mark in item.iter_markers("needs"):
            if not NEEDS[mark.args[0]].find():
                pytest.fail(f"{NEEDS[mark.args[0]].label} is missing; {how_to_install([mark.args[0]])}", pytrace=False)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker has measured."""
        report = getattr(node, "workeroutput", {}).get("tiers")
        if report:
            self.seconds.update(report["seconds"])
            self.left_out |= set(report["left_out"])
            self.slowness = max(self.slowness, report["slowness"])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self.config, "workerinput"):
            report = {"seconds": dict(self.seconds), "left_out": sorted(self.left_out), "slowness": self.slowness}
            self.config.workeroutput["tiers"] = report  # type: ignore[attr-defined]
        elif self.over_budget() or (required() and self.skipped()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_unconfigure(self) -> None:
        """Say at the very end what was run and what was not."""
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        if terminal and self.seconds and not hasattr(self.config, "workerinput"):
            for line in self.report(sum(len(terminal.stats.get(kind, [])) for kind in ("passed", "failed"))):
                terminal.write_line(line)

    def over_budget(self) -> list[str]:
        """What took longer than it may."""
        budget = self.config.getoption("budget") * self.slowness
        if not budget:
            return []
        return [f"{file}: {s:.0f} s of {budget:.0f}" for file, s in self.seconds.most_common() if s > budget]

    def skipped(self) -> list[str]:
        """Why tests were not run, one reason for each."""
        reports = self.config.pluginmanager.getplugin("terminalreporter").stats.get("skipped", [])
        return [report.longrepr[2].removeprefix("Skipped: ") for report in reports]

    def report(self, n_run: int) -> list[str]:
        """The lines at the end."""
        total, skipped = sum(self.seconds.values()), Counter(self.skipped())
        lines = [f"Run: {n_run} tests of {len(self.seconds)} files in {total:.0f} s of processor time."]
        most = ", ".join(f"{file} {seconds:.0f} s" for file, seconds in self.seconds.most_common(6))
        lines.append(f"Most of it: {most}.")
        lines += [f"Above its budget of processor time: {line}" for line in self.over_budget()]
        if skipped:
            reasons = ", ".join(f"{reason} ({n})" for reason, n in sorted(skipped.items()))
            names = [reason.removeprefix(MISSING) for reason in skipped if reason.startswith(MISSING)]
            remedy = f" To run them as well: {how_to_install(names)}." if names else ""
            lines.append(f"Not run: {skipped.total()} tests; {reasons}.{remedy}")
        if self.left_out and self.config.getoption("markexpr") == "not slow":
            parts = ", ".join(sorted(self.left_out))
            lines.append(f"make test-all has besides: {parts}; the built package, the documentation site.")
        return lines
