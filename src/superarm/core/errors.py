"""The errors that superarm raises on purpose; all are ``SuperarmError``.

- ``InvalidArgument`` (also a ``ValueError``) names the argument, what was wrong and what would be right.
- ``InvalidSpec`` is an ``InvalidArgument`` in a spec: it names the file, the line, the key and the remedy.
- ``UnknownDecision`` (also a ``KeyError``): feedback for a decision that is neither pending nor remembered here.
- ``ConflictingFeedback``: a decision got feedback twice, with different outcomes.
- ``MissingExtra`` (also an ``ImportError``): an optional dependency is not installed.
"""


class SuperarmError(Exception):
    """Any error that superarm raises on purpose."""


class InvalidArgument(SuperarmError, ValueError):
    """An argument is wrong.

    Parameters
    ----------
    argument
        The name of the argument.
    wrong
        What was wrong with it.
    remedy
        What would be right.
    owner
        The class or function that it belongs to, if its name alone is ambiguous.
    """

    def __init__(self, argument: str, wrong: str, remedy: str, owner: str = "") -> None:
        super().__init__(argument, wrong, remedy, owner)
        self.argument, self.wrong, self.remedy, self.owner = argument, wrong, remedy, owner

    def __str__(self) -> str:
        name = f"{self.owner}.{self.argument}" if self.owner else self.argument
        return f"{name}: {self.wrong}; {self.remedy}"


class NotANumber(InvalidArgument):
    """A score by which arms are chosen is NaN; ``arm`` is the first such arm."""

    def __init__(self, arm: int, policy: str = "scores") -> None:
        remedy = "give a number: 0 / 0, and roots or logarithms of what is below 0, give none"
        super().__init__("policy", f"in {policy} the score of arm {arm} is NaN", remedy)
        self.arm = arm


class InvalidSpec(InvalidArgument):
    """A spec is wrong.

    Parameters
    ----------
    key
        The path of keys to what is wrong.
    wrong, remedy
        As in :class:`InvalidArgument`.
    place
        The file and the line, where they are known.
    """

    def __init__(self, key: tuple[str, ...], wrong: str, remedy: str, place: str = "") -> None:
        super().__init__(".".join(key), wrong, remedy)
        self.key, self.place = key, place

    def __str__(self) -> str:
        return f"{self.place}: {super().__str__()}" if self.place else super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.key, self.wrong, self.remedy, self.place)


class UnknownDecision(SuperarmError, KeyError):
    """Feedback for a decision that was never made, or is no longer remembered."""

    def __str__(self) -> str:
        return str(self.args[0])


class ConflictingFeedback(SuperarmError):
    """Feedback for a decision that already has other feedback; the first one is kept."""


class MissingExtra(SuperarmError, ImportError):
    """An optional dependency is needed; the message gives the command that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package, self.extra = package, extra

    def __str__(self) -> str:
        return f"{self.package} is not installed; in a clone of superarm, run: pip install '.[{self.extra}]'"
