"""Optional properties of environments, one accessor for each: see ``EnvironmentHooks``."""

from typing import Any

from superarm.arrays import Ints
from superarm.environments.base import Environment
from superarm.parameters import has_method


def is_environment(value: Any) -> bool:
    """Whether ``value`` is an environment, rather than a class of environments or something else."""
    return has_method(value, "draw")


def partial(environment: Environment) -> bool:
    """Whether some entries of an answer may not be seen; False by default."""
    return bool(getattr(environment, "partial", False))


def free_samples(environment: Environment) -> int:
    """How often every arm is shown before the first round; 0 by default."""
    return int(getattr(environment, "free_samples", 0))


def has_contexts(environment: Environment) -> bool:
    """Whether every round has a context."""
    return has_method(environment, "pick_context")


def has_own_reward(environment: Environment) -> bool:
    """Whether the environment, or the one that it wraps, defines ``expected_reward``."""
    return bool(getattr(environment, "has_own_reward", has_method(environment, "expected_reward")))


def known_best(environment: Any, problem: Any) -> tuple[float, float] | None:
    """Lower and upper bound of the best expected reward; None if the environment does not define ``best``."""
    found: tuple[float, float] | None = environment.best(problem) if has_method(environment, "best") else None
    return found


def changes(environment: Any, horizon: int) -> Ints | None:
    """The rounds up to ``horizon`` from which other means hold; None if the means are constant."""
    found: Ints | None = environment.changes(horizon) if has_method(environment, "changes") else None
    return found
