"""Numbers and names from the path and the query of a request."""

import msgspec

from superarm.service.domain.spec import Name
from superarm.service.errors import invalid


def parse_integer(values: dict[str, str], name: str, default: int, largest: int) -> int:
    """A whole number from the path or the query."""
    text = values.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= largest):
        raise invalid(name, f"{text[:40]!r}", f"give a whole number from 0 to {largest}")
    return int(text)


def parse_number(values: dict[str, str], name: str, default: float, below: float) -> float:
    """A positive number from the query."""
    text = values.get(name, str(default))
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 < number < below and text != str(default):
        raise invalid(name, f"{text[:40]!r}", f"give a number above 0 and below {below:g}")
    return number


def parse_name(name: str, field: str) -> str:
    """A name from the path, under the same rules as in a body."""
    try:
        return msgspec.convert(name, Name)
    except msgspec.ValidationError as error:
        raise invalid(field, str(error), "1 to 256 characters, no slash, no control characters") from None
