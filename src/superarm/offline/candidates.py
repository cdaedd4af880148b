"""Candidates in a line of text: a policy by its name, with settings, as forms and the command line take them."""

from typing import NamedTuple

from superarm.errors import InvalidArgument


class Candidate(NamedTuple):
    """A policy by its name, with settings: numbers of the policy, ``window`` or ``half_life``, and ``explore``."""

    name: str
    settings: dict[str, float]

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{name}={value:g}" for name, value in self.settings.items())])

    def split(self) -> tuple[dict[str, float], dict[str, int], float]:
        """The parameters of the policy, ``window`` or ``half_life`` if given, and the exploration share."""
        own, memory = dict(self.settings), dict[str, int]()
        for name in ("window", "half_life"):
            if name in own:
                rounds = own.pop(name)
                if rounds != int(rounds) or rounds < 1:
                    raise InvalidArgument(name, f"{rounds:g}", "give a number of rounds, such as 1000")
                memory[name] = int(rounds)
        if len(memory) > 1:
            raise InvalidArgument("half_life", "given beside window", "give one of the two")
        return own, memory, own.pop("explore", 0.0)


def parse_candidate(text: str) -> Candidate:
    """Read a candidate: the name of a policy, and settings after it, separated by spaces or commas.

    >>> parse_candidate("kl_ucb rho=2, window=500 explore=0.1")
    Candidate(name='kl_ucb', settings={'rho': 2.0, 'window': 500.0, 'explore': 0.1})
    >>> str(parse_candidate("kl_ucb rho=2"))
    'kl_ucb rho=2'
    """
    words = text.replace(",", " ").split()
    if not words:
        raise InvalidArgument("policy", "no name", "give a policy, such as kl_ucb rho=2")
    settings: dict[str, float] = {}
    for word in words[1:]:
        name, _, value = word.partition("=")
        try:
            settings[name] = float(value)
        except ValueError:
            wrong = f"{word!r} is not of the form name=number"
            raise InvalidArgument("settings", wrong, "write e.g. kl_ucb rho=2 window=500") from None
    return Candidate(words[0], settings)
