"""A proxy before PostgreSQL that cuts a connection at the n-th message; it knows where messages of the protocol end."""

import contextlib
import socket
import threading
from pathlib import Path
from typing import Any

ENDS = {"client": b"SQX", "server": b"Z"}
"""The types of messages that end what one side says: Sync, Query and Terminate, and ReadyForQuery."""


class Proxy:
    """Counts what client and server say in turn, and closes the connection in place of the ``n``-th; ``seen`` counts.

    With ``torn``, half of it is forwarded before. ``cut`` is who was to hear it.
    """

    def __init__(self, home: Path, behind: Path, n: int, *, torn: bool = False) -> None:
        self.n, self.torn, self.seen, self.cut = n, torn, 0, ""
        self._behind, self._lock, self._open = behind, threading.Lock(), list[socket.socket]()
        self._listening = self._keep(socket.socket(socket.AF_UNIX))
        self._listening.bind(str(home / ".s.PGSQL.5432"))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _keep(self, one: socket.socket) -> socket.socket:
        self._open.append(one)
        return one

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                pair = self._keep(self._listening.accept()[0]), self._keep(socket.socket(socket.AF_UNIX))
                pair[1].connect(str(self._behind))
                for who, (one, other) in (("client", pair), ("server", pair[::-1])):
                    threading.Thread(target=self._forward, args=(who, one, other), daemon=True).start()

    def _forward(self, who: str, one: socket.socket, other: socket.socket) -> None:
        """Forward what one side says, a turn at a time, until the connection is cut or ended."""
        typed = who == "server"  # the first message of a client has no type
        with contextlib.suppress(OSError), one.makefile("rb") as stream:
            while turn := _read_turn(stream, ENDS[who], typed):
                typed = True
                with self._lock:
                    self.seen += 1
                    cut = self.seen == self.n
                if cut:
                    self.cut = who
                    other.sendall(turn[: len(turn) // 2 * self.torn])
                    break
                other.sendall(turn)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End all connections."""
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _read_turn(stream: Any, ends: bytes, typed: bool) -> bytes:
    """The messages up to one that ends a turn; those of a start have lengths alone. Empty at the end."""
    turn = b""
    while True:
        kind = stream.read(1) if typed else b""
        length = stream.read(4)
        if len(length) < 4:
            return b""
        turn += kind + length + stream.read(int.from_bytes(length, "big") - 4)
        if not typed or kind in ends:
            return turn
