"""What learning from a warehouse and deciding from tables costs, beside its floors, in processor time of one core.

    python -m dev.benchmarks.warehouse [--rows 10000000]

What it measures is described in ``docs/guides/scale.md``. Each measurement runs in a process of its own; the log is
synthetic: 200 arms, 8 segments, a row for each arm that was shown, names as strings, in Parquet. It fails if a floor
does not hold.
"""

import argparse
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import superarm as sa
from superarm import warehouse
from superarm.core.tally import Tally

ARMS, SEGMENTS, K = [f"product {j}" for j in range(200)], [f"segment {s}" for s in range(8)], 5
CHUNK = 1_000_000


def write_log(path: Path, rows: int, again: float) -> None:
    """A log with so many rows, a share of which is there twice."""
    import pyarrow
    from pyarrow import parquet

    draw, names = np.random.default_rng(0), [pyarrow.array(x) for x in (SEGMENTS, ARMS)]
    writer = None
    for first in range(0, rows, CHUNK):
        n = min(CHUNK, rows - first)
        row = np.arange(first, first + n)
        twice = draw.random(n) < again
        row[1:][twice[1:]] = row[:-1][twice[1:]]
        decision, place = row // K, row % K
        arm = (decision * 7919 + place * 41) % 200
        clicks = ((row * 2654435761) % 1000 < 40 + arm // 4).astype(float)
        columns = {"decision": decision, "position": place, "click": clicks}
        for name, values, numbers in zip(("segment", "arm"), names, (decision % 8, arm), strict=True):
            columns[name] = pyarrow.DictionaryArray.from_arrays(pyarrow.array(numbers.astype(np.int32)), values)
        table = pyarrow.table(columns)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def problem() -> sa.Problem:
    context = sa.Context(sa.Features(categorical={"segment": SEGMENTS}))
    return sa.Problem(len(ARMS), 1, sa.Linear(), sa.Subsets(K), context=context)


def learn(path: str, **columns: Any) -> Tally:
    answer = warehouse.sums(path, segment="segment", threads=1, **columns)
    return warehouse.tally(problem(), answer, ARMS)


def agent_of(path: str) -> sa.Agent:
    return sa.Agent(problem(), sa.pooled_thompson(baseline=range(20)), 0, arms=ARMS, tally=learn(path, unique=True))


def measure_log(path: str, unique: bool) -> dict[str, float]:
    """Processor time a row, and the peak of memory."""
    from pyarrow import parquet

    rows, began = parquet.ParquetFile(path).metadata.num_rows, time.process_time()
    learn(path, unique=unique)
    spent = time.process_time() - began
    return {"us": 1e6 * spent / rows, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def measure_table(path: str) -> dict[str, float]:
    """Processor time of a table of 256 slates for each of 8 segments, its size, and the time of a decision."""
    agent = agent_of(path)
    agent.publish(1)
    began = time.process_time()
    table = agent.publish(256)
    spent, body = time.process_time() - began, table.to_json()
    assert body == agent.publish(256).to_json()
    ids, began = [f"visit {n}" for n in range(200_000)], time.process_time()
    for one in ids:
        table.decide(one, "segment 3")
    each = 1e6 * (time.process_time() - began) / len(ids)
    return {"seconds": spent, "kb": len(body) / 1024, "decide_us": each}


def measure_pipe(path: str, pairs: int = 200_000) -> dict[str, float]:
    """A durable pair: decide, blocks of 500 as patterns, SQLite with a commit a block, 5 % of them twice, one fold."""
    table, draw = agent_of(path).publish(64, lifetime=None), random.Random(0)
    clicks, blocks, direct = [draw.random() < 0.05 for _ in range(pairs)], [], Counter[Any]()
    with tempfile.TemporaryDirectory() as folder:
        store = sqlite3.connect(Path(folder) / "blocks.db", isolation_level=None)
        store.execute("PRAGMA synchronous = FULL")
        store.execute("CREATE TABLE blocks (id TEXT PRIMARY KEY, body TEXT)")
        began = time.process_time()
        for first in range(0, pairs, 500):
            block = Counter[Any]()
            for n in range(first, first + 500):
                served = table.decide(f"visit {n}", SEGMENTS[n % 8])
                block[served.version, served.segment, served.row, int(clicks[n])] += 1
            blocks.append((f"block {first}", json.dumps([[*key, n] for key, n in block.items()])))
        sent = blocks + draw.sample(blocks, len(blocks) // 20)
        draw.shuffle(sent)
        for row in sent:
            store.execute("INSERT INTO blocks VALUES (?, ?) ON CONFLICT DO NOTHING", row)
        found = Counter[Any]()
        for (body,) in store.execute("SELECT body FROM blocks"):
            for *key, n in json.loads(body):
                found[tuple(key)] += n
        folded = table.count(table.read((*key, n) for key, n in found.items()))
        spent = time.process_time() - began
        store.close()
    for n in range(pairs):
        served = table.decide(f"visit {n}", SEGMENTS[n % 8])
        direct[served.version, served.segment, served.row, int(clicks[n])] += 1
    exact = table.count(table.read((*key, n) for key, n in direct.items()))
    assert folded.total.tobytes() == exact.total.tobytes()
    assert folded.pulls.tobytes() == exact.pulls.tobytes()
    return {"us": 1e6 * spent / pairs}


def run(function: str, *words: Any) -> dict[str, float]:
    """A measurement in a process of its own."""
    code = f"import json; from dev.benchmarks import warehouse as w; print(json.dumps(w.{function}(*{words!r})))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        plain, twice = (str(Path(folder) / f"{name}.parquet") for name in ("plain", "twice"))
        write_log(Path(plain), rows, 0.0)
        log = run("measure_log", plain, True)
        table, pipe = run("measure_table", plain), run("measure_pipe", plain)
        Path(plain).unlink()
        write_log(Path(twice), min(rows, 10_000_000), 0.05)
        again = run("measure_log", twice, False)
    found = [
        ("learn: µs a row, each once", log["us"], 0.1, 3),
        ("learn: µs a row, with duplicates", again["us"], 0.4, 3),
        ("learn: MB of memory, each once", log["mb"], 500 if rows <= 10_000_000 else 1_000, 0),
        ("publish 256 slates x 8 segments: s", table["seconds"], 0.5, 3),
        ("the table: kB", table["kb"], 64, 0),
        ("decide: µs", table["decide_us"], 3.0, 2),
        ("decide, store and fold: µs a pair", pipe["us"], 10.0, 1),
    ]
    print(f"| {rows:,} rows, one core | measured | floor |\n|---|---:|---:|")
    for label, value, floor, digits in found:
        print(f"| {label} | {value:.{digits}f} | {floor:g} |")
    over = [label for label, value, floor, _ in found if value > floor]
    if over:
        sys.exit(f"above the floor: {', '.join(over)}")


if __name__ == "__main__":
    main()
