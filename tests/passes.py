"""The two passes of the tests: as plain Python, the default, and compiled, with ``--compiled``.

``make test`` runs every test as plain Python, except those marked ``compiled``, and beside them those compiled. A test
is skipped by its markers only, and ``tests/left_out.py`` lists what neither pass has run.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tests.left_out import MISSING, Record
from tests.system_packages import NEEDS

SWITCH = "NUMBA_DISABLE_JIT"
"""numba's own switch; it must be set before numba is imported, and child processes inherit it."""

if "--compiled" in sys.argv:  # when this file is imported: the conftest.py of a folder may import superarm
    os.environ[SWITCH] = "0"
else:
    os.environ.setdefault(SWITCH, "1")


MEMORY = Path("/dev/shm")
MEMORY_BYTES = 2 << 30
"""The free memory that is enough for the temporary files of both passes."""


def use_memory() -> None:
    """Have temporary files in memory where there is room: databases wait for the disk at every commit."""
    if "TMPDIR" in os.environ:
        return
    with contextlib.suppress(OSError):
        if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_BYTES:
            os.environ["TMPDIR"] = str(MEMORY)
            tempfile.tempdir = None  # pytest has asked for it already


use_memory()
PLAIN = {**os.environ, SWITCH: "1"}
"""The environment of a child process that runs as plain Python, whatever the pass."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--compiled", action="store_true", help=f"run the tests compiled, as {SWITCH}=0 does")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("compiled") and not compiled():
        raise pytest.UsageError("give --compiled on the command line of pytest")
    if "numba" in sys.modules and bool(sys.modules["numba"].config.DISABLE_JIT) is compiled():
        raise pytest.UsageError(f"numba was imported before {SWITCH} was set; set it in the environment of pytest")
    path = os.environ.get("TEST_RECORD")
    if path and not hasattr(config, "workerinput"):  # xdist's workers report to the process that started them
        config.pluginmanager.register(Record(Path(path)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In the compiled pass, leave out files without a test for it: importing all of them takes a while."""
    wanted = config.getoption("markexpr") == "compiled" and collection_path.suffix == ".py"
    return True if wanted and "mark.compiled" not in collection_path.read_text() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if compiled():
        items.sort(key=lambda item: item.path.parent.name != "modes")  # they take longest: no process is left with one
    for item in items:
        if reason := reason_to_skip(item):
            item.add_marker(pytest.mark.skip(reason=reason))


def compiled() -> bool:
    """Whether this pass runs compiled code."""
    return os.environ.get(SWITCH, "0") in ("", "0")


def reason_to_skip(item: pytest.Item) -> str | None:
    """Why this test cannot run here and now, by its markers; None if it can."""
    if not compiled() and (mark := item.get_closest_marker("compiled")):
        return f"only compiled: {mark.args[0]}"
    for mark in item.iter_markers("needs"):
        if not NEEDS[mark.args[0]].find():
            return MISSING + mark.args[0]
    return None
