"""What a policy says of itself beyond the protocol, with one accessor for each: see ``PolicyHooks``."""

from typing import Any

from superarm.intake import Exact, Intake
from superarm.parameters import has_method
from superarm.policies.base import Policy
from superarm.problem import Problem


def is_policy(value: Any) -> bool:
    """Whether ``value`` is a policy, rather than a class, a catalogue function or something else."""
    return has_method(value, "choose")


def caveat(component: Any) -> str:
    """What a policy, or the bonus of one, assumes that may not hold; empty unless it says so."""
    return str(getattr(component, "caveat", ""))


def intake(policy: Any) -> Intake:
    """How ``policy`` records outcomes: as they are, unless the policy or the one that it wraps has an ``intake``.

    >>> import superarm as sa
    >>> intake(sa.EpsilonGreedy(sa.cts(), 0.1))
    Coin()
    """
    found: Intake = getattr(policy, "intake", Exact())
    return found


def plain(policy: Policy, problem: Problem) -> Policy:
    """``policy`` made ready for ``problem`` without the devices for speed that its ``fit`` may add."""
    hooks: Any = policy
    fitted: Policy = hooks.plain(problem) if has_method(policy, "plain") else policy.fit(problem)
    return fitted
