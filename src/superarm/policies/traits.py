"""What a policy says of itself beyond the protocol, with one accessor for each: see ``PolicyHooks``."""

from typing import Any

from superarm.errors import InvalidArgument
from superarm.intake import Exact, Intake
from superarm.moments import fit_moments, no_moments
from superarm.parameters import has_method
from superarm.policies.base import NO_MOMENTS, MomentsAsked, Policy
from superarm.problem import Problem
from superarm.tally import Tally, empty, moments_of, with_moments


def is_policy(value: Any) -> bool:
    """Whether ``value`` is a policy, rather than a class, a catalogue function or something else."""
    return has_method(value, "choose")


def require_policy(value: Any, name: str) -> None:
    """Raise ``InvalidArgument`` unless ``value`` is a policy."""
    if not is_policy(value):
        remedy = (
            f"wrap it: IndexPolicy({value!r})"
            if has_method(value, "score")
            else "give e.g. kl_ucb(), parentheses included"
        )
        raise InvalidArgument(name, f"{value!r} is not a policy", remedy)


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


def without_refits(policy: Policy) -> Policy:
    """``policy`` without observations that it would keep for refits."""
    hooks: Any = policy
    bare: Policy = hooks.without_refits() if has_method(policy, "without_refits") else policy
    return bare


def moments(policy: Any, problem: Problem) -> MomentsAsked:
    """Which moments ``policy``, made ready for ``problem``, asks of the tally; none by default."""
    asked: MomentsAsked = policy.moments(problem) if has_method(policy, "moments") else NO_MOMENTS
    return asked


def fit_tally(policy: Any, problem: Problem, tally: Tally) -> Tally:
    """``tally`` with the moments that ``policy``, made ready for ``problem``, asks for; those of no pulls if new."""
    asked = moments(policy, problem)
    if not asked.recorded:
        return with_moments(tally, no_moments()) if tally.moments.size else tally
    return with_moments(tally, fit_moments(moments_of(tally), problem.support, problem.weights, asked.products))


def empty_tally(policy: Any, problem: Problem) -> Tally:
    """An empty tally, for ``policy`` made ready for ``problem``."""
    return fit_tally(policy, problem, empty(problem.support))


def explains(policy: Any) -> bool:
    """Whether ``policy`` chooses by parameters of entries, and defines ``parameters``, which returns them."""
    return has_method(policy, "parameters")


def learns_from(policy: Any, model: Any) -> bool:
    """Whether ``policy`` reads the contexts of problems with that model; False unless it says so."""
    return has_method(policy, "learns_from") and bool(policy.learns_from(model))


def reads_context(policy: Any) -> bool:
    """Whether ``policy`` is made for problems with a context."""
    return has_method(policy, "learns_from")
