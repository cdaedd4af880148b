"""How long ``superarm serve --demo`` takes until its console shows something, with an empty cache of kernels.

    python -m benchmarks.demo [--rounds 3] [--port 8399]

Times are from the start of the process to the first answer that shows the page of the problem, and to 20 and 100
decisions of simulated visitors.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from superarm.service.demo import PROBLEM

COUNTS = (20, 100)
LIMIT_SECONDS = 120.0
PAUSE_SECONDS = 0.05


def time_demo(port: int) -> dict[str, float]:
    """Seconds until the page was shown, and until so many decisions were made."""
    url, seen = f"http://127.0.0.1:{port}", dict[str, float]()
    with tempfile.TemporaryDirectory() as kernels:
        env = {**os.environ, "NUMBA_CACHE_DIR": kernels}
        began = time.perf_counter()
        line = [Path(sys.executable).with_name("superarm"), "serve", "--demo", "--port", str(port)]
        with subprocess.Popen(line, env=env, stderr=subprocess.DEVNULL) as process:
            while len(seen) <= len(COUNTS) and time.perf_counter() - began < LIMIT_SECONDS:
                try:
                    page = httpx.get(f"{url}/", timeout=30.0).text
                    found = httpx.get(f"{url}/v1/problems/{PROBLEM}", timeout=30.0)
                except httpx.HTTPError:
                    time.sleep(PAUSE_SECONDS)
                    continue
                now = time.perf_counter() - began
                asked = found.json()["decisions"] if found.status_code == 200 else 0
                if f"<h1>{PROBLEM}</h1>" in page:
                    seen.setdefault("page", now)
                for count in COUNTS:
                    if asked >= count:
                        seen.setdefault(f"{count} decisions", now)
                time.sleep(PAUSE_SECONDS)
            process.terminate()
    return seen


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--port", type=int, default=8399)
    given = parser.parse_args()
    for _ in range(given.rounds):
        print(", ".join(f"{what} after {seconds:.2f} s" for what, seconds in time_demo(given.port).items()))


if __name__ == "__main__":
    main()
