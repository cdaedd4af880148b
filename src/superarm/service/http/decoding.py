"""Decoding bodies: a large one is decoded in a thread, in pieces, while other requests are answered."""

import asyncio
from typing import Any

from superarm.service.domain.piecewise import PiecewiseDecoder

LARGE_BYTES = 65_536


class BodyDecoder:
    """Decodes bodies of one type.

    >>> from superarm.service.schemas import TellBody
    >>> decoder = BodyDecoder(TellBody)
    >>> decoder.decode_in_pieces(b'{"outcome": [[1, null]]}') == decoder.decode_at_once(b'{"outcome": [[1, null]]}')
    True
    """

    def __init__(self, kind: Any) -> None:
        decoder = PiecewiseDecoder(kind)
        self.decode_at_once, self.decode_in_pieces = decoder.decode_at_once, decoder.decode_in_pieces

    async def decode(self, body: bytes) -> Any:
        """The body; ``msgspec.ValidationError`` says what does not fit."""
        if len(body) < LARGE_BYTES:
            return self.decode_at_once(body)
        return await asyncio.to_thread(self.decode_in_pieces, body)
