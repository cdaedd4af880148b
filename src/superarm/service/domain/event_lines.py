"""Events as lines of the log: JSON, of which very long ones are made and read row by row."""

from typing import Any

from msgspec import Raw, json
from msgspec.structs import replace

from superarm.service.domain.events import AnyEvent, Told, Warmed

_encoder = json.Encoder()
_decoder = json.Decoder(AnyEvent)

LARGE_BYTES = 65_536
"""The rows of a longer line are decoded one by one: a single call for all of them would keep other threads waiting."""


class LooseTold(Told, frozen=True, tag="told"):
    """``Told`` with rows that are not decoded yet."""

    rows: tuple[tuple[int, Raw], ...] = ()  # type: ignore[assignment]


class LooseWarmed(Warmed, frozen=True, tag="warmed"):
    """``Warmed`` with rows that are not decoded yet."""

    rows: list[Raw]  # type: ignore[assignment]


_loose_decoders: dict[bytes, json.Decoder[Any]] = {
    b'{"type":"told"': json.Decoder(LooseTold),
    b'{"type":"warmed"': json.Decoder(LooseWarmed),
}
_told_row = json.Decoder(tuple[float, ...])
_warmed_row = json.Decoder(list[float])


def encode(event: Any) -> bytes:
    """The event as one line of JSON.

    >>> from superarm.service.domain.events import Expired
    >>> encode(Expired(5, 0.0))
    b'{"type":"expired","at":5,"fill":0.0}'
    """
    if isinstance(event, (Told, Warmed)) and event.rows:
        event = replace(event, rows=_encode_rows(event))
    return _encoder.encode(event)


def _encode_rows(event: Any) -> Any:
    """The rows, each encoded by a call of its own: a single call for all of them would keep others waiting."""
    if isinstance(event, Warmed):
        return [Raw(_encoder.encode(row)) for row in event.rows]
    return tuple((arm, Raw(_encoder.encode(row))) for arm, row in event.rows)


def decode(line: bytes | str) -> Any:
    """The event of a line.

    >>> decode(b'{"type":"expired","at":5,"fill":0.0}')
    Expired(at=5, fill=0.0)
    """
    if len(line) >= LARGE_BYTES and isinstance(line, bytes):
        for start, decoder in _loose_decoders.items():
            if line.startswith(start):
                return _decode_rows(decoder.decode(line))
    return _decoder.decode(line)


def _decode_rows(event: Any) -> Any:
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    if isinstance(event, LooseTold):
        return Told(**fields | {"rows": tuple((arm, _told_row.decode(row)) for arm, row in event.rows)})
    return Warmed(**fields | {"rows": [_warmed_row.decode(row) for row in event.rows]})
