"""What a policy says of itself beyond the protocol, with one accessor for each; a policy that says nothing has the
default."""

from typing import Any

from superarm.intake import Exact, Intake
from superarm.policies.base import Policy
from superarm.problem import Problem


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
    fit: Any = getattr(policy, "plain", policy.fit)
    fitted: Policy = fit(problem)
    return fitted
