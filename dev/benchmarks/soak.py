"""The service at half load for half an hour: memory, latency, and whether the log is sound in the end.

    python -m dev.benchmarks.soak --minutes 30 --picture docs/soak.png

The highest rate is measured first, for some seconds with every connection busy. Then pairs of a decision and its
feedback are sent at half of it: every connection has fixed times, and catches up if an answer comes late. Printed for
every minute: pairs per second, p50 and p99 of the latency of a call, resident memory and the size of the log. In the
end the service is stopped, and ``superarm verify`` is run.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

MAIN = "from superarm.cli import main; main(prog_name='superarm')"
CONNECTIONS = 16
N_ARMS, N_ITEMS, K = 50, 10, 5
SPEC = {
    "arms": [f"a{n}" for n in range(N_ARMS)],
    "items": [f"i{n}" for n in range(N_ITEMS)],
    "k": K,
    "settings": {"policy": {"name": "bc_ucb"}},
}


class Minute(NamedTuple):
    """What one minute came to: rates per second, latency in milliseconds, sizes in megabytes."""

    pairs: float
    p50: float
    p99: float
    memory: float
    log: float


class Caller:
    """One connection that sends pairs of a decision and its feedback."""

    def __init__(self, port: int, times: list[float]) -> None:
        self._port, self._times = port, times

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def call(self, method: str, path: str, body: object) -> dict:
        """One request; its latency is noted."""
        data = json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        began = time.perf_counter()
        self._writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
        said = await self._reader.readuntil(b"\r\n\r\n")
        length = int(said.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = json.loads(await self._reader.readexactly(length))
        self._times.append(time.perf_counter() - began)
        assert said[9:12] in (b"200", b"201"), answer
        return answer

    async def pair(self, problem: str = "soak") -> None:
        """A decision, and feedback on all of it."""
        path = f"/v1/problems/{problem}/decisions"
        answer = await self.call("POST", path, {})
        outcome = [[(hash((arm, item)) % 10) / 10 for item in range(N_ITEMS)] for arm in answer["action"]]
        await self.call("POST", f"{path}/{answer['id']}/feedback", {"outcome": outcome})


async def open_callers(port: int, n: int, problems: list[str], times: list[float]) -> list[Caller]:
    """Connections to a service on which the problems were created; kernels may be compiled for that."""
    first = Caller(port, times)
    await first.open()
    for name in problems:
        await first.call("PUT", f"/v1/problems/{name}", SPEC)
    callers = [Caller(port, times) for _ in range(n)]
    for caller in callers:
        await caller.open()
    return callers


async def highest_rate(callers: list[Caller], seconds: float) -> float:
    """Pairs per second with every connection busy."""
    end, done = time.perf_counter() + seconds, 0

    async def run(caller: Caller) -> None:
        nonlocal done
        while time.perf_counter() < end:
            await caller.pair()
            done += 1

    await asyncio.gather(*(run(caller) for caller in callers))
    return done / seconds


async def send_at(callers: list[Caller], rate: float, seconds: float) -> int:
    """Pairs at fixed times, ``rate`` per second in all: how many were answered."""
    period, begin, done = len(callers) / rate, time.perf_counter(), 0

    async def run(n: int, caller: Caller) -> None:
        nonlocal done
        at = begin + period * n / len(callers)
        while at < begin + seconds:
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            await caller.pair()
            done += 1
            at += period

    await asyncio.gather(*(run(n, caller) for n, caller in enumerate(callers)))
    return done


def measure(times: list[float], pairs: float, pid: int, db: Path) -> Minute:
    """The figures of a minute, whose latencies are then forgotten."""
    ordered = sorted(times) or [0.0]
    times.clear()
    resident = int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024.0
    size = sum(path.stat().st_size for path in db.parent.glob(f"{db.name}*")) / 2**20
    cut = [1000.0 * ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99)]
    return Minute(pairs, cut[0], cut[1], resident, size)


async def soak(port: int, pid: int, db: Path, minutes: int) -> list[Minute]:
    """All minutes."""
    times = list[float]()
    callers = await open_callers(port, CONNECTIONS, ["soak"], times)
    await highest_rate(callers, 3.0)
    rate = await highest_rate(callers, 10.0)
    times.clear()
    print(f"at most {rate:.0f} pairs per second; half of it for {minutes} minutes", flush=True)
    found = []
    for n in range(minutes):
        pairs = await send_at(callers, 0.5 * rate, 60.0) / 60.0
        found.append(measure(times, pairs, pid, db))
        print(f"minute {n + 1:2}: " + ", ".join(f"{k} {v:.1f}" for k, v in found[-1]._asdict().items()), flush=True)
    return found


def draw(found: list[Minute], target: Path) -> None:
    """Latency and memory against time, as a picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    minutes = range(1, len(found) + 1)
    figure, (above, below) = plt.subplots(2, 1, figsize=(7.0, 4.6), sharex=True)
    above.plot(minutes, [m.p99 for m in found], label="p99")
    above.plot(minutes, [m.p50 for m in found], label="p50")
    above.set_ylim(bottom=0.0)
    above.set_ylabel("latency of a call, ms")
    above.legend(frameon=False)
    below.plot(minutes, [m.memory for m in found], label="resident memory")
    below.plot(minutes, [m.log for m in found], label="log on disk")
    below.set_ylim(bottom=0.0)
    below.set_ylabel("MB")
    below.set_xlabel("minutes")
    below.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(target, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--port", type=int, default=9121)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        db = Path(name) / "log.db"
        words = [sys.executable, "-c", MAIN, "serve", "--db", str(db), "--port", str(options.port)]
        with (Path(name) / "err").open("w") as errors:
            server = subprocess.Popen([*words, "--snapshot-every", "20000"], stderr=errors)
        try:
            wait(options.port, server)
            found = asyncio.run(soak(options.port, server.pid, db, options.minutes))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
        subprocess.run([sys.executable, "-c", MAIN, "verify", "--db", str(db)], check=True)
    if options.picture:
        draw(found, options.picture)


def wait(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until the service is ready."""
    import urllib.request

    for _ in range(1200):
        assert server.poll() is None, "the service has ended"
        try:
            if urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5.0).status == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError("the service is not ready after two minutes")


if __name__ == "__main__":
    main()
