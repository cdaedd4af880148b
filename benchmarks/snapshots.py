"""How long decisions take while snapshots are written, against none being written: by turns, on loopback.

    python -m benchmarks.snapshots [--rounds 7] [--seconds 2] [--connections 128] [--every 2000]

Two services with KL-UCB and 100 arms, 20 items and 5 arms per slate. Decisions stay pending, so snapshots grow with the
run. Printed are the medians over the rounds of the 99th percentile, and their ratio in each round.
"""

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from benchmarks.load import load
from benchmarks.service import Seen, made, started, stopped

PORT = 9104
NEVER = 1 << 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=128)
    parser.add_argument("--every", type=int, default=2_000, help="events between two snapshots")
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    seen, servers = Seen(), dict[str, tuple[subprocess.Popen[bytes], int]]()
    with tempfile.TemporaryDirectory() as home:
        try:
            for n, (name, every) in enumerate((("without", NEVER), ("with", options.every))):
                file = Path(home) / f"{name}.db"
                made(file, ["kl"])
                environment = {"BENCH_DB": str(file), "SNAPSHOT_EVERY": str(every)}
                servers[name] = started("benchmarks.service:service", PORT + n, **environment), PORT + n
            for turn in range(options.rounds + 1):  # the first round only warms
                for name, (_, port) in servers.items():
                    found = load(port, "/v1/problems/kl/decisions", b"{}", options.connections, options.seconds)
                    if turn:
                        seen.add(name, found.p99)
                        seen.add(f"{name} rate", found.rate)
        finally:
            for process, _ in servers.values():
                stopped(process)
    for name in servers:
        print(f"{name:8} p99 {seen.middle(name):6.1f} ms at {seen.middle(f'{name} rate'):6.0f} decisions per second")
    print(f"p99 with / without: {seen.ratio('with', 'without')}")


if __name__ == "__main__":
    main()
