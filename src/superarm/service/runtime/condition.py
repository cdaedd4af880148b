"""Whether this process can serve, and if not, why. Each change is logged once, however many requests it concerns."""

import logging
from typing import Literal

log = logging.getLogger("superarm.condition")

Phase = Literal["starting", "running", "stopping", "failed"]
Fault = Literal["write", "read"]

_PUBLIC = {
    "ok": "",
    "starting": "the log is read, or the database is awaited",
    "stopping": "the service is stopping",
    "failed": "the service cannot go on, and has to be started again",
    "unavailable": "the log cannot be read or written at present",
}
"""What anybody may know of each status; reasons may hold the address of the database."""


class Condition:
    """The phase of the process, and what is wrong with the database at present.

    ``starting`` becomes ``running``, then ``stopping``. ``failed`` is final: the state in memory is not what the log
    says, and only a new process can serve again. While it is ``running``, the log may be impossible to write or to
    read for some time: these are faults, and they pass.
    """

    def __init__(self) -> None:
        self.phase: Phase = "starting"
        self._reason = "the log is being read"
        self._faults: dict[Fault, str] = {}

    @property
    def status(self) -> str:
        """``"ok"``, ``"unavailable"``, ``"starting"``, ``"stopping"`` or ``"failed"``."""
        if self.phase != "running":
            return self.phase
        return "unavailable" if self._faults else "ok"

    @property
    def reason(self) -> str:
        """Why it is not ok, in a sentence for operators; empty if it is."""
        if self.phase != "running":
            return self._reason
        return "; ".join(self._faults.values())

    @property
    def public_reason(self) -> str:
        """Why it is not ok, in the words for callers without a key; empty if it is."""
        return _PUBLIC[self.status]

    def has(self, fault: Fault) -> bool:
        """Whether the log cannot be written, or read."""
        return fault in self._faults

    def enter(self, phase: Phase, reason: str = "") -> None:
        """Enter a phase; a process that has failed stays failed."""
        if self.phase == "failed" or (self.phase, self._reason) == (phase, reason):
            return
        self.phase, self._reason = phase, reason
        log.log(logging.ERROR if phase == "failed" else logging.INFO, "%s%s", phase, f": {reason}" if reason else "")

    def report(self, fault: Fault, reason: str) -> None:
        """Record that the log cannot be written, or read, and why."""
        if fault not in self._faults:
            log.error("not ready: %s", reason)
        self._faults[fault] = reason

    def clear(self, fault: Fault) -> None:
        """Record that the log can be written, or read, again."""
        if self._faults.pop(fault, None) is not None:
            log.info("the log can be %s again", "written" if fault == "write" else "read")
