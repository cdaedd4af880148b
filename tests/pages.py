"""Scripts, each in a process of its own that is forked from one that has imported the library already.

Importing the library takes longer than most examples of the documentation.
"""

import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAX_SECONDS = 300
OUTPUT = "output.txt"


class Runner:
    """Starts scripts, one at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, script: Path) -> tuple[int, str]:
        """How a script ended in its own directory, and what it printed, errors included."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{script}\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        return status, (script.parent / OUTPUT).read_text()


@contextmanager
def runner() -> Iterator[Runner]:
    words = [sys.executable, "-m", "tests.pages"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield Runner(process)


def _run(script: Path) -> int:
    """Run a script as ``python script`` in its directory; the status it ends with."""
    os.chdir(script.parent)
    with Path(OUTPUT).open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    signal.alarm(MAX_SECONDS)
    sys.argv, sys.path[0] = [str(script)], str(script.parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def main() -> None:
    import superarm.agent
    import superarm.experiments
    import superarm.offline
    import superarm.simulation  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(_run(Path(line.rstrip("\n"))))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
