"""Archives: decisions that left the log, event by event, in Parquet files."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from superarm.errors import SuperarmError
from superarm.service.domain.events import Asked, encode
from superarm.service.domain.ledger import Key
from superarm.service.storage.base import LogLine, ReadEntry, Store, decode_line
from superarm.service.storage.tables import import_arrow

BATCH_ROWS = 50_000


def write_archive(store: Store, directory: Path, decisions: set[Key]) -> Path:
    """Write all events of decisions to a new file, and give it its name when it is on the disk.

    The name is made from the events, so that a compaction that is begun again writes the same file again.
    """
    arrow, parquet = import_arrow()
    texts = [(name, arrow.string()) for name in ("log", "tenant", "problem", "unit", "stream", "body")]
    schema = arrow.schema([*texts, *((name, arrow.int64()) for name in ("step", "seq", "at"))])
    directory.mkdir(parents=True, exist_ok=True)
    beside, digest = directory / f".superarm-{os.getpid()}.parquet", hashlib.sha256()
    try:
        with parquet.ParquetWriter(beside, schema) as writer:
            batch = []
            for row in _rows(store, decisions):
                digest.update(row["body"].encode())
                batch.append(row)
                if len(batch) == BATCH_ROWS:
                    writer.write_table(arrow.Table.from_pylist(batch, schema))
                    batch = []
            writer.write_table(arrow.Table.from_pylist(batch, schema))
        _force(beside)
        target = directory / f"superarm-{digest.hexdigest()[:16]}.parquet"
        os.replace(beside, target)
        _force(directory)
    finally:
        beside.unlink(missing_ok=True)
    return target


def _rows(store: Store, decisions: set[Key]) -> Iterator[dict[str, Any]]:
    first: dict[Key, Asked] = {}
    for read in store.tail({}):
        tenant, kind, stream, step, event = read.entry
        if kind != "decision" or (tenant, stream) not in decisions:
            continue
        asked = first.setdefault((tenant, stream), event)
        yield {
            "log": read.worker,
            "tenant": tenant,
            "problem": asked.problem,
            "unit": asked.unit or None,
            "stream": stream,
            "body": encode(event).decode(),
            "step": step,
            "seq": read.seq,
            "at": event.at,
        }


def _force(path: Path) -> None:
    """Have a file, or the names in a directory, written to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_archive(source: Path) -> Iterator[ReadEntry]:
    """The events of an archive, in the order in which they were written to it."""
    _, parquet = import_arrow()
    try:
        for batch in parquet.ParquetFile(source).iter_batches(BATCH_ROWS):
            for row in batch.to_pylist():
                line = LogLine(row["tenant"], "decision", row["stream"], row["step"], row["body"].encode())
                yield ReadEntry(row["log"], row["seq"], decode_line(line))
    except (OSError, KeyError, ValueError) as error:
        raise SuperarmError(f"{source}: no archive of superarm: {error}") from None
