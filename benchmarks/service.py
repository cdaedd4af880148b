"""The service against a bare echo of the same stack: medians of interleaved rounds, on loopback.

    python -m benchmarks.service [--rounds 5] [--seconds 2] [--connections 128]

Prints a line a measurement: requests a second, the ratio to the echo, and latencies at one connection.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

L, M, K = 100, 20, 5


def echo() -> Any:
    """Starlette and msgspec, and nothing behind them."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def answer(request: Request) -> Response:
        body = msgspec.json.decode(await request.body())
        return Response(msgspec.json.encode(body), media_type="application/json")

    return Starlette(routes=[Route("/echo", answer, methods=["POST"])])


def service() -> Any:
    """The service on a file; ``SYNCHRONOUS=OFF`` takes durability away, to see what it costs."""
    from superarm.service.app import Limits, application
    from superarm.service.sqlite import Sqlite

    store = Sqlite(Path(os.environ["BENCH_DB"]))
    store._writer.execute(f"PRAGMA synchronous = {os.environ.get('SYNCHRONOUS', 'FULL')}")
    return application(store, Limits())


def started(app: str, port: int, **env: str) -> subprocess.Popen[bytes]:
    """An ASGI application in a process of its own."""
    words = [sys.executable, "-m", "uvicorn", "--factory", app, "--port", str(port), "--log-level", "warning"]
    process = subprocess.Popen([*words, "--no-access-log"], env={**os.environ, **env})
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        try:
            asyncio.run(request(port, "GET", "/health"))
            return process
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{app} did not start")


def packed(method: str, path: str, body: bytes) -> bytes:
    """A request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def answered(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of the next answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return int(head[9:12]), await reader.readexactly(size)


async def request(port: int, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """One request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(packed(method, path, body))
    try:
        return await answered(reader)
    finally:
        writer.close()


async def rate(port: int, path: str, body: bytes, connections: int, seconds: float) -> tuple[float, float]:
    """Requests a second and the median latency in milliseconds."""
    sent, times, end = packed("POST", path, body), list[float](), time.perf_counter() + seconds

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (begun := time.perf_counter()) < end:
            writer.write(sent)
            status, answer = await answered(reader)
            assert status in (200, 201), answer
            times.append(time.perf_counter() - begun)
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return len(times) / seconds, 1000.0 * statistics.median(times)


def problem(n_arms: int, n_items: int, k: int) -> bytes:
    """A problem as it is put."""
    names = {"arms": [f"a{n}" for n in range(n_arms)], "items": [f"i{n}" for n in range(n_items)], "k": k}
    settings = {"policy": {"name": "bc_ucb"}, "max_pending": 10_000_000}
    return msgspec.json.encode({**names, "settings": settings})


async def warmed(port: int) -> None:
    """Three pulls of every arm of the large problem: otherwise its decisions would only try arms, which is cheap."""
    for turn in range(3):
        for first in range(0, 10_000, 1_000):
            arms = range(first, first + 1_000)
            outcomes = [[float((j * i + turn) % 3 == 0) for i in range(100)] for j in arms]
            body = {"id": f"{turn}-{first}", "arms": [f"a{j}" for j in arms], "outcomes": outcomes}
            status, answer = await request(port, "POST", "/v1/problems/large/outcomes", msgspec.json.encode(body))
            assert status == 200, answer


def fsync_ms(home: Path) -> float:
    """The median time of one small append and fsync."""
    times = []
    with (home / "fsync").open("wb") as file:
        for _ in range(50):
            begun = time.perf_counter()
            file.write(b"x" * 200)
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begun)
    return 1000.0 * statistics.median(times)


async def feedback(port: int, n: int) -> tuple[float, float]:
    """Feedback a second, one call each and in bulk, at one connection."""
    body = msgspec.json.encode({"decisions": [{}] * (2 * n)})
    _, answer = await request(port, "POST", "/v1/problems/p/decisions/bulk", body)
    made = msgspec.json.decode(answer)["decisions"]
    units = [[{"arm": arm, "value": 0.0} for arm in decision["arms"]] for decision in made]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    begun = time.perf_counter()
    for decision, unit in zip(made[:n], units, strict=False):
        path = f"/v1/decisions/{decision['id']}/feedback"
        writer.write(packed("POST", path, msgspec.json.encode({"feedback": unit})))
        assert (await answered(reader))[0] == 200
    single = n / (time.perf_counter() - begun)
    writer.close()
    pairs = zip(made[n:], units[n:], strict=True)
    lines = b"\n".join(msgspec.json.encode({"decision": d["id"], "feedback": unit}) for d, unit in pairs)
    begun = time.perf_counter()
    await request(port, "POST", "/v1/feedback/bulk", lines)
    return single, n / (time.perf_counter() - begun)


def main() -> None:
    """All measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=128)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        processes = [
            started("benchmarks.service:echo", 9101),
            started("benchmarks.service:service", 9102, BENCH_DB=str(home / "durable.db")),
            started("benchmarks.service:service", 9103, BENCH_DB=str(home / "fast.db"), SYNCHRONOUS="OFF"),
        ]
        try:
            measured(home, options)
        finally:
            for process in processes:
                process.terminate()
                process.wait(30)


def measured(home: Path, options: argparse.Namespace) -> None:
    """The table."""
    ask = "/v1/problems/p/decisions"
    for port in (9102, 9103):
        asyncio.run(request(port, "PUT", "/v1/problems/p", problem(L, M, K)))
    asyncio.run(request(9102, "PUT", "/v1/problems/large", problem(10_000, 100, 10)))
    asyncio.run(warmed(9102))
    seen: dict[str, list[float]] = {"echo": [], "durable": [], "not durable": [], "p50 at one": []}
    for _ in range(options.rounds):
        for name, port, path in (("echo", 9101, "/echo"), ("durable", 9102, ask), ("not durable", 9103, ask)):
            seen[name].append(asyncio.run(rate(port, path, b"{}", options.connections, options.seconds))[0])
        seen["p50 at one"].append(asyncio.run(rate(9102, ask, b"{}", 1, options.seconds))[1])
    middle = {name: statistics.median(values) for name, values in seen.items()}
    print(f"{options.connections} connections, L={L} M={M} K={K}, medians of {options.rounds} interleaved rounds")
    print(f"echo          {middle['echo']:9.0f} /s")
    for name in ("durable", "not durable"):
        print(f"{name:13} {middle[name]:9.0f} /s   {middle[name] / middle['echo']:.2f} of echo")
    print(f"durable / not durable {middle['durable'] / middle['not durable']:.2f}")
    print(f"one connection: p50 {middle['p50 at one']:.2f} ms; one fsync {fsync_ms(home):.2f} ms")
    single, bulk = asyncio.run(feedback(9102, 300))
    print(f"feedback one call each {single:.0f} /s, bulk {bulk:.0f} /s: {bulk / single:.1f} times")
    _, p50 = asyncio.run(rate(9102, "/v1/problems/large/decisions", b"{}", 1, options.seconds))
    print(f"L=10000 M=100 K=10: p50 {p50:.2f} ms")


if __name__ == "__main__":
    main()
