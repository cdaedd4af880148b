"""Archives: decisions that left the log, event by event, in Parquet files."""

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from superarm.core.errors import SuperarmError
from superarm.service.domain.events import Asked, encode
from superarm.service.domain.ledger import Key
from superarm.service.storage.base import LogLine, LogReader, ReadEntry, decode_line
from superarm.service.storage.tables import import_arrow

BATCH_ROWS = 50_000
"""How many rows are written, or read, at once."""

CONVERTED_ROWS = 500
"""How many rows are turned into columns by one call: a service waits for it that compacts its own log."""

TEXTS = ("log", "tenant", "problem", "unit", "stream", "body")
NUMBERS = ("step", "seq", "at")


def write_archive(store: LogReader, directory: Path, decisions: set[Key]) -> Path:
    """Write all events of decisions to a new file, and give it its name when it is on the disk.

    The name is made from the events, so that a compaction that is begun again writes the same file again.
    """
    return _write_rows(directory, _rows(store, decisions))


def rewrite_archive(source: Path, decisions: set[Key]) -> Path | None:
    """Write what an archive has of other decisions to a file beside it; None if there is nothing else in it."""
    rows = (row for row in _read_rows(source) if (row["tenant"], row["stream"]) not in decisions)
    first = next(rows, None)
    return None if first is None else _write_rows(source.parent, _chain(first, rows))


def _chain(first: dict[str, Any], rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield first
    yield from rows


def _write_rows(directory: Path, rows: Iterable[dict[str, Any]]) -> Path:
    arrow, parquet = import_arrow()
    schema = arrow.schema([*((name, arrow.string()) for name in TEXTS), *((name, arrow.int64()) for name in NUMBERS)])
    directory.mkdir(parents=True, exist_ok=True)
    beside, digest = directory / f".superarm-{os.getpid()}.parquet", hashlib.sha256()
    try:
        with parquet.ParquetWriter(beside, schema) as writer:
            converted = []
            for some in _divide(rows, CONVERTED_ROWS):
                for row in some:
                    digest.update(row["body"].encode())
                converted.append(arrow.Table.from_pylist(some, schema))
                if len(converted) * CONVERTED_ROWS >= BATCH_ROWS:
                    writer.write_table(arrow.concat_tables(converted))
                    converted = []
            if converted:
                writer.write_table(arrow.concat_tables(converted))
        force(beside)
        target = directory / f"superarm-{digest.hexdigest()[:16]}.parquet"
        os.replace(beside, target)
        force(directory)
    finally:
        beside.unlink(missing_ok=True)
    return target


def _divide(rows: Iterable[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    """The rows in lists of ``size``; the last one may be shorter."""
    rest = iter(rows)
    while some := list(itertools.islice(rest, size)):
        yield some


def _rows(store: LogReader, decisions: set[Key]) -> Iterator[dict[str, Any]]:
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


def force(path: Path) -> None:
    """Have a file, or the names in a directory, written to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_archive(source: Path) -> Iterator[ReadEntry]:
    """The events of an archive, in the order in which they were written to it."""
    for row in _read_rows(source):
        line = LogLine(row["tenant"], "decision", row["stream"], row["step"], row["body"].encode())
        yield ReadEntry(row["log"], row["seq"], decode_line(line))


def _read_rows(source: Path) -> Iterator[dict[str, Any]]:
    _, parquet = import_arrow()
    try:
        with parquet.ParquetFile(source) as file:
            if not {*TEXTS, *NUMBERS} <= set(file.schema_arrow.names):
                raise SuperarmError(f"{source}: no archive of superarm; its columns are others")
            for batch in file.iter_batches(BATCH_ROWS):
                yield from batch.to_pylist()
    except (OSError, ValueError) as error:
        raise SuperarmError(f"{source}: no archive of superarm: {error}") from None
