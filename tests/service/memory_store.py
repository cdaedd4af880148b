"""A log in memory: the store of tests that need no disk, and the least that a store has to be."""

from collections.abc import Iterator

from superarm.service.storage.base import KeyRow, LogLine, Position, ReadEntry, Store, decode_line


class MemoryStore(Store):
    """A store without a file; what is read is what was there when reading began."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.saved = []
        self.keys: dict[str, KeyRow] = {}
        self._taken: set[tuple[str, str, str, int]] = set()

    def commit(self, lines: list[LogLine]) -> list[int]:
        numbers = []
        for line in lines:
            place = (line.tenant, line.kind, line.stream, line.step)
            if place in self._taken:
                numbers.append(0)
                continue
            self._taken.add(place)
            self.lines.append(line)
            numbers.append(len(self.lines))
        return numbers

    def tail(self, after: Position, *, problems: bool = False) -> Iterator[ReadEntry]:
        for seq, line in enumerate(list(self.lines), 1):
            if seq > after.get("", 0) and (line.kind == "problem" or not problems):
                yield ReadEntry("", seq, decode_line(line))

    def stream(self, tenant: str, kind: str, stream: str) -> list:
        entries = [decode_line(line) for line in list(self.lines)]
        return [one for one in entries if (one.tenant, one.kind, one.stream) == (tenant, kind, stream)]

    def snapshots(self) -> Iterator:
        yield from reversed(self.saved)

    def save(self, saved) -> None:
        self.saved.append(saved)

    def forget(self, saved) -> None:
        self.saved.remove(saved)

    def keep_out_others(self) -> None:
        pass

    def key_rows(self) -> list[KeyRow]:
        return list(self.keys.values())

    def put_key(self, row: KeyRow) -> None:
        self.keys[row.id] = row

    def close(self) -> None:
        pass
