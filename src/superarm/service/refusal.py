"""What the service says when it does not do what it was asked: a status, a code and a sentence."""

from superarm.errors import SuperarmError


class Refusal(SuperarmError):
    """A request that changed nothing: ``status`` and ``code`` for programs, the message for people."""

    def __init__(self, status: int, code: str, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after


def invalid(field: str, wrong: str, remedy: str) -> Refusal:
    """422: which field, what was wrong with it, and what would be right."""
    return Refusal(422, "invalid", f"{field}: {wrong}; {remedy}")


def unknown(what: str, name: str) -> Refusal:
    """404: also the answer for what belongs to another tenant."""
    return Refusal(404, "unknown", f"{what} {name!r} does not exist")


def conflict(message: str) -> Refusal:
    """409: what was said first stands."""
    return Refusal(409, "conflict", message)


def overloaded(message: str, seconds: int = 1) -> Refusal:
    """503: nothing was written; try again."""
    return Refusal(503, "unavailable", message, seconds)
