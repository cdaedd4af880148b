"""Random ids, made many at once: a read of the operating system's random bytes takes longer than the rest of an id."""

import base64
import secrets
from collections.abc import Callable

IDS_PER_READ = 512


class RandomIds:
    """Ids of ``n_bytes`` random bytes each, as text; ``encode`` turns every such piece into as many characters.

    >>> ids = RandomIds(8, bytes.hex)
    >>> len(ids.take()), ids.take() == ids.take()
    (16, False)
    """

    def __init__(self, n_bytes: int, encode: Callable[[bytes], str]) -> None:
        self._n_bytes, self._encode = n_bytes, encode
        self._unused: list[str] = []

    def take(self) -> str:
        """An id that was not given before."""
        if not self._unused:
            text = self._encode(secrets.token_bytes(IDS_PER_READ * self._n_bytes))
            size = len(text) // IDS_PER_READ
            self._unused = [text[at : at + size] for at in range(0, len(text), size)]
        return self._unused.pop()


def encode_for_url(random: bytes) -> str:
    """Four characters for every three bytes."""
    return base64.urlsafe_b64encode(random).decode("ascii")
