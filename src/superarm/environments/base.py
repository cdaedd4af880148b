"""What the world answers.

An environment draws the outcome of an action. Chance comes from a stream that is put at (round, arm), so
policies that play the same arm in the same round see the same outcome, whatever else they play.
"""

from typing import Protocol

from superarm._jit import verb
from superarm.arrays import Bools, Floats, Ints
from superarm.noise import Noise
from superarm.support import Support


class Environment(Protocol):
    """What the world answers."""

    def draw(self, support: Support, action: Ints, t: int, noise: Noise, outcome: Floats, seen: Bools) -> None:
        """Write the outcome of round ``t``, row after row in the order of ``action``.

        ``seen`` comes filled with True; an environment that hides entries sets them False, and has a class
        attribute ``partial = True``.
        """
        ...

    def means(self, t: int) -> Floats:
        """The true parameters of round ``t``, (n_arms, n_items) or (n_entries,): for regret only."""
        ...


class Optional(Protocol):
    """What an environment defines if its means change."""

    def changes(self, horizon: int) -> Ints:
        """The rounds up to ``horizon`` from which other means hold, increasing from 1; plain Python."""
        ...


draw = verb(Environment.draw)
means = verb(Environment.means)
