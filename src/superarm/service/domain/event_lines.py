"""Events as lines of the log: JSON, of which very long ones are made and read in pieces."""

from typing import Any

from msgspec import Raw, json
from msgspec.structs import replace

from superarm.service.domain.events import AnyEvent, Told, Warmed
from superarm.service.domain.piecewise import PiecewiseDecoder

_encoder = json.Encoder()
_decoder = PiecewiseDecoder(AnyEvent)

LARGE_BYTES = 65_536
"""A longer line is decoded in pieces: a single call for all of it would keep other threads waiting."""


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
    return _decoder.decode_in_pieces(line) if len(line) >= LARGE_BYTES else _decoder.decode_at_once(line)
