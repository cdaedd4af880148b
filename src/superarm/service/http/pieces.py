"""Replies with long lists, encoded piece by piece: one call for all of it would keep other requests waiting."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

CHUNK_BYTES = 1_048_576

Pieces = list[bytes]
"""A reply that is encoded already; the pieces belong one after the other."""


def fill_list(reply: Any, elements: Iterable[bytes]) -> Pieces:
    """A reply whose first list is empty, with these elements in it.

    >>> from superarm.service.replies import ArmsReply
    >>> b"".join(fill_list(ArmsReply([], 7), [b'{"arm":"a"}', b'{"arm":"b"}']))
    b'{"arms":[{"arm":"a"},{"arm":"b"}],"total":7}'
    """
    before, _, after = msgspec.json.encode(reply).partition(b"[]")
    pieces = [before, b"["]
    for element in elements:
        pieces += (element, b",")
    if len(pieces) > 2:
        pieces.pop()
    return [*pieces, b"]", after]


def chunks_of(pieces: Pieces) -> Iterator[bytes]:
    """The pieces in chunks of about ``CHUNK_BYTES``.

    >>> [len(chunk) for chunk in chunks_of([b"a" * 1_500_000, b"b"])]
    [1048576, 451425]
    """
    held, size = Pieces(), 0
    for piece in pieces:
        for n in range(0, len(piece), CHUNK_BYTES):
            part = piece[n : n + CHUNK_BYTES] if len(piece) > CHUNK_BYTES else piece
            if size + len(part) > CHUNK_BYTES:
                yield b"".join(held)
                held, size = Pieces(), 0
            held.append(part)
            size += len(part)
    if held:
        yield b"".join(held)
