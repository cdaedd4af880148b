"""Decisions per second of the service with contexts against those without, by turns, on loopback.

    python -m benchmarks.service_contexts [--rounds 5] [--seconds 2] [--connections 128]

One service with one problem per model, 100 arms, 20 items and 5 arms per slate each, after 120 decisions with feedback.
Every request has the same context: an age, a country and a device. Printed are the medians over the rounds of decisions
per second and of the event loop's processor time per decision, and the ratios to the problem without a context.
"""

import argparse
import json
import os
import random
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.service import Seen, call, made, measured, started, stopped

PORT, N_ARMS, N_ITEMS, K = 9106, 100, 20, 5
FEATURES = {"numeric": {"age": [0, 100]}, "categorical": {"country": ["NO", "other"], "device": ["phone", "other"]}}
USER = {"age": 31, "country": "NO", "device": "phone"}
MODELS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "without": ("kl_ucb", None),
    "segments": ("kl_ucb", {"name": "segments"}),
    "per-arm": ("vac2_ucb", {"name": "linear", "parameters": {"shared": "arms"}}),
    "shared": ("vac2_ucb", {"name": "linear", "parameters": {"shared": True}}),
    "logistic": ("logistic_kl_ucb", {"name": "logistic", "parameters": {"shared": True}}),
}


def create(name: str) -> None:
    """A problem with a model, and decisions with feedback."""
    policy, model = MODELS[name]
    draw, path = random.Random(0), f"/v1/problems/{name}"
    arms = [f"a{n}" for n in range(N_ARMS)]
    spec: dict[str, Any] = {"arms": arms, "items": [f"i{n}" for n in range(N_ITEMS)], "k": K}
    spec["settings"] = {"policy": {"name": policy}, "max_pending": 10_000_000}
    if model is not None:
        spec["context"] = {"features": FEATURES, "model": model}
        if name in ("shared", "logistic"):
            spec["context"]["arms"] = {arm: [draw.uniform(-1, 1), draw.uniform(-1, 1)] for arm in arms}
    call(PORT, "PUT", path, json.dumps(spec).encode())
    for n in range(120):
        call(PORT, "POST", f"{path}/decisions", request(name, f"{name}-{n}"))
        rows = [[float(draw.random() < 0.1) for _ in range(N_ITEMS)] for _ in range(K)]
        call(
            PORT,
            "POST",
            f"{path}/decisions/{name}-{n}/feedback",
            json.dumps({"outcome": rows}).encode(),
        )


def request(name: str, id: str | None = None) -> bytes:
    """The body of a request for a decision."""
    body: dict[str, Any] = {} if id is None else {"id": id}
    return json.dumps(body | ({} if MODELS[name][1] is None else {"context": USER})).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=128)
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    seen = Seen()
    with tempfile.TemporaryDirectory() as home:
        made(Path(home) / "log.db", [])
        process = started("benchmarks.service:service", PORT, BENCH_DB=str(Path(home) / "log.db"))
        try:
            for name in MODELS:
                create(name)
            for turn in range(options.rounds + 1):  # the first round only warms
                for name in MODELS:
                    path = f"/v1/problems/{name}/decisions"
                    found, used = measured(process, PORT, path, request(name), options.connections, options.seconds)
                    if turn:
                        seen.add(f"{name} rate", found.rate)
                        seen.add(f"{name} time", used)
        finally:
            stopped(process)
    for name in MODELS:
        rate, used = seen.middle(f"{name} rate"), seen.middle(f"{name} time")
        ratios = seen.ratio(f"{name} rate", "without rate"), seen.ratio("without time", f"{name} time")
        print(f"{name:9} {rate:7.0f} decisions/s, ratio {ratios[0]}; {used:6.0f} µs of processor, ratio {ratios[1]}")


if __name__ == "__main__":
    main()
