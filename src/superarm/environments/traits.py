"""What an environment says of itself beyond the protocol, with one accessor for each: see ``EnvironmentHooks``."""

from typing import Any

from superarm.arrays import Ints
from superarm.environments.base import Environment
from superarm.parameters import has_method


def is_environment(value: Any) -> bool:
    """Whether ``value`` is an environment, rather than a class of environments or something else."""
    return has_method(value, "draw")


def partial(environment: Environment) -> bool:
    """Whether some entries of an answer may not be seen; False unless the environment says so."""
    return bool(getattr(environment, "partial", False))


def free_samples(environment: Environment) -> int:
    """How often every arm is shown before the first round; 0 unless the environment says so."""
    return int(getattr(environment, "free_samples", 0))


def has_own_reward(environment: Environment) -> bool:
    """Whether the environment, or the one that it wraps, defines ``expected_reward``."""
    return bool(getattr(environment, "has_own_reward", has_method(environment, "expected_reward")))


def known_best(environment: Any, problem: Any) -> tuple[float, float] | None:
    """What the best batch is worth, at least and at most; None unless the environment knows."""
    found: tuple[float, float] | None = environment.best(problem) if has_method(environment, "best") else None
    return found


def changes(environment: Any, horizon: int) -> Ints | None:
    """The rounds up to ``horizon`` from which other means hold; None if the environment does not change."""
    found: Ints | None = environment.changes(horizon) if has_method(environment, "changes") else None
    return found
