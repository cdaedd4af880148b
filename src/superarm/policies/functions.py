"""A policy as two functions, for the first idea."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from superarm.core.arrays import Ints
from superarm.core.errors import InvalidArgument
from superarm.core.tally import Feedback, Tally, View
from superarm.policies.base import Policy

if TYPE_CHECKING:
    from superarm.core.problem import Problem


class FunctionPolicy(Policy):
    """A policy made of functions; see :func:`policy`."""

    choose_function: Callable[..., Any]
    learn_function: Callable[..., Any] | None = None

    def prepare(self, problem: "Problem", tally: Tally) -> dict[str, Any]:
        return {}

    def choose(self, problem: "Problem", view: View, memory: Any) -> Ints:
        return self.choose_function(problem, view, memory)

    def learn(self, problem: "Problem", tally: Tally, memory: Any, feedback: Feedback, sign: float = 1.0) -> None:
        tally.record(feedback, sign)
        if self.learn_function is not None:
            self.learn_function(problem, memory, feedback, sign)


def policy(choose: Callable[..., Any], learn: Callable[..., Any] | None = None) -> FunctionPolicy:
    """A policy of your own from one or two functions, without a class.

    Parameters
    ----------
    choose
        ``choose(problem, view, memory)`` returns the batches (R, K), one row per replication, padded with -1.
        ``view.tally.mean`` (R, n_items, n_arms) and ``view.counts`` (R, n_arms) hold what is known, ``memory`` is a
        dict of your own.
    learn
        ``learn(problem, memory, feedback, sign)`` brings ``memory`` up to date; ``sign`` is -1 when feedback is taken
        back. The tally is kept without it.

    Examples
    --------
    >>> import numpy as np
    >>> from superarm.core.problem import Problem
    >>> from superarm.rewards import Coverage
    >>> from superarm.actions import Subsets
    >>> def fewest_pulls(problem, view, memory):
    ...     return np.argsort(view.counts, axis=1, kind="stable")[:, : problem.k]
    >>> problem = Problem(4, 2, Coverage(), Subsets(2))
    >>> policy(fewest_pulls).choose(problem, problem.view(), {})
    array([[0, 1]])
    >>> policy(fewest_pulls)
    policy(fewest_pulls)
    """
    for name, function in (("choose", choose), ("learn", learn)):
        if not (callable(function) or (name == "learn" and function is None)):
            raise InvalidArgument(name, f"{function!r} is not a function", f"give a function {name}(problem, …)")
    made = FunctionPolicy(choose, learn)
    names = [getattr(function, "__name__", repr(function)) for function in (choose, learn) if function is not None]
    made.convert("written", f"policy({', '.join(names)})")
    return made
