"""Errors that the service answers a request with: an HTTP status, a code and a sentence."""

from msgspec import Struct

from superarm.core.errors import ConflictingFeedback, InvalidArgument, SuperarmError


class RequestError(SuperarmError):
    """A request was refused and changed nothing: ``status`` and ``code`` for programs, the message for people."""

    def __init__(self, status: int, code: str, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after


def invalid(field: str, wrong: str, remedy: str) -> RequestError:
    """422: which field, what was wrong with it, and what would be right."""
    return RequestError(422, "invalid", f"{field}: {wrong}; {remedy}")


def unknown(what: str, name: str) -> RequestError:
    """404: also the answer for what belongs to another tenant."""
    return RequestError(404, "unknown", f"{what} {name!r} does not exist")


def conflict(message: str) -> RequestError:
    """409: the request contradicts an earlier one, which remains valid."""
    return RequestError(409, "conflict", message)


def refused(error: Exception) -> Exception:
    """What callers are told of an error of the library; any other error is as it was."""
    if isinstance(error, InvalidArgument):
        return RequestError(422, "invalid", str(error))
    return conflict(str(error)) if isinstance(error, ConflictingFeedback) else error


NOT_NOW = "the database cannot be used at present; the log of the service says why"
"""What callers are told while the database is away: its own words may hold its address."""


def overloaded(message: str, seconds: int = 1) -> RequestError:
    """503: nothing was written; try again."""
    return RequestError(503, "unavailable", message, seconds)


class ErrorBody(Struct, frozen=True):
    """Why nothing was done.

    Parameters
    ----------
    code
        The kind of error, for programs.
    message
        What was wrong and what would be right, for people.
    """

    code: str
    message: str


class ErrorReply(Struct, frozen=True):
    """Why nothing was done.

    Parameters
    ----------
    error
        The error.
    """

    error: ErrorBody


MAX_SAID = 1_000
"""The longest message of a reply."""


def shorten(message: str, most: int) -> str:
    """A message without its middle, if it has more than ``most`` characters.

    >>> shorten("arms: 'aaaaaaaaaaaa' is unknown", 22)
    "arms: 'aaaa… is unknown"
    """
    return message if len(message) <= most else f"{message[: most // 2]}…{message[-(most // 2) :]}"


def refusal(code: str, message: str) -> ErrorReply:
    """The reply that says why nothing was done; it does not repeat a large request."""
    return ErrorReply(ErrorBody(code, shorten(message, MAX_SAID)))
