"""MessagePack of large states, made piece by piece, and large tables, freed entry by entry.

One call of an encoder for some hundred megabytes would keep the interpreter for a tenth of a second, in whichever
thread it is made. Here arrays are copied a megabyte at a time, and the bytes are those that the encoder would give.
"""

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from msgspec import msgpack

CHUNK_BYTES = 1_048_576

PIECES_BETWEEN_RESTS, REST_SECONDS = 16, 0.003
"""A thread that encodes beside requests works about a millisecond, and rests three."""

ELEMENTS_PER_PIECE = 32

Piece = bytes | memoryview


def pack_array(size: int) -> bytes:
    """The beginning of an array with so many elements.

    >>> from msgspec import msgpack
    >>> pack_array(2) + msgpack.encode(1) + msgpack.encode(None) == msgpack.encode([1, None])
    True
    """
    if size < 16:
        return bytes((0x90 | size,))
    return b"\xdc" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xdd" + size.to_bytes(4, "big")


def pack_map(size: int) -> bytes:
    """The beginning of a map with so many entries, of which there are fewer than 16."""
    return bytes((0x80 | size,))


def pack_numbers(numbers: Any) -> Iterator[Piece]:
    """An array of numbers as binary data: float64, little-endian.

    >>> from msgspec import msgpack
    >>> b"".join(pack_numbers(np.ones(3))) == msgpack.encode(np.ones(3).tobytes())
    True
    """
    flat = np.ascontiguousarray(numbers, "<f8").reshape(-1).view(np.uint8)
    size = len(flat)
    if size < 1 << 8:
        yield b"\xc4" + size.to_bytes(1, "big")
    else:
        yield b"\xc5" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xc6" + size.to_bytes(4, "big")
    yield flat.data


def pack_elements(values: Iterable[Any]) -> Iterator[Piece]:
    """The elements of an array, some at a time, without the beginning of the array.

    >>> b"".join(pack_elements(["a", 1] * 40)) == b"".join(map(msgpack.encode, ["a", 1] * 40))
    True
    """
    left = iter(values)
    while some := list(islice(left, ELEMENTS_PER_PIECE)):
        yield memoryview(msgpack.encode(some))[len(pack_array(len(some))) :]


def _rest_in_between(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces, with a rest of this thread after some of them, in which other threads have the interpreter.

    A thread that never rests takes the interpreter for a switch interval whenever the event loop waits for a socket.
    """
    for n, piece in enumerate(pieces, 1):
        yield piece
        if n % PIECES_BETWEEN_RESTS == 0:
            time.sleep(REST_SECONDS)


def join_pieces(pieces: Iterable[Piece], *, rests: bool = False) -> bytearray:
    """All pieces one after the other; with ``rests``, this thread sleeps in between, for one beside requests."""
    held = list(_rest_in_between(pieces) if rests else pieces)
    joined = bytearray(sum(len(piece) for piece in held))
    place, whole = 0, memoryview(joined)
    for piece in held:
        view = memoryview(piece)
        for n in range(0, len(view), CHUNK_BYTES):
            part = view[n : n + CHUNK_BYTES]
            whole[place : place + len(part)] = part
            place += len(part)
    return joined


def empty_tables(*tables: dict[Any, Any]) -> None:
    """Empty tables entry by entry: other threads would wait while a large one is freed at once."""
    for table in tables:
        while table:
            table.popitem()
