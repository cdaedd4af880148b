"""Greedy: add the arm of the largest gain until none may join; and the heaviest batch for modular rewards."""

from typing import TYPE_CHECKING

from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.next.actions.base import add_arms, new_batches
from superarm.next.actions.subsets import Subsets
from superarm.next.core.ops import op
from superarm.next.core.support import Dense
from superarm.next.oracles.base import Guarantee, Oracle
from superarm.next.rewards import Coverage

if TYPE_CHECKING:
    from superarm.next.core.problem import Problem
    from superarm.next.core.tally import View


class Greedy(Oracle):
    r"""Adds the arm with the largest gain until none may join; ties go to the fewest pulls, then the lowest number.

    For a monotone submodular reward, alpha is :math:`1 - (1 - 1/k)^k` on ``Subsets(k)`` [NemhauserWolseyFisher1978]_,
    1/2 on a matroid and 1/(1 + p) on a p-system [FisherNemhauserWolsey1978]_; 1 for a modular reward on a matroid.
    """

    def maximize(self, problem: "Problem", q: Floats, view: "View") -> Ints:
        fused = type(problem.reward) is Coverage and type(problem.actions) is Subsets
        if fused and isinstance(problem.support, Dense):
            out = new_batches(problem.actions, view)
            arguments = (q, problem.weights, view.counts, view.eligible, view.pinned.shape[1], out)
            op("greedy_coverage", q.size * problem.k)(*arguments)
            return out
        return greedy_by_steps(problem, q, view)

    def guarantee(self, problem: "Problem") -> Guarantee:
        reward, actions, k = problem.reward, problem.actions, problem.k
        if not (reward.submodular and reward.monotone and reward.additive):
            return Guarantee(0.0)
        if reward.modular and actions.matroid:
            return Guarantee(1.0)
        return Guarantee(1.0 - (1.0 - 1.0 / k) ** k if actions.uniform else 1.0 / (1.0 + actions.exchange))


def greedy_by_steps(problem: "Problem", q: Floats, view: "View") -> Ints:
    """Greedy for any reward on any action set, step by step over (R, n_arms)."""
    reward, states = problem.reward, problem.reward.empty_states(problem, len(view))
    return add_arms(
        problem.actions,
        view,
        lambda: reward.gains(problem, states, q),
        lambda arm: problem.support.join(states, q, arm, reward.join),
    )


class Modular(Oracle):
    """The batch whose arms are worth most alone, for modular rewards: exact where ``heaviest`` of the set is."""

    def maximize(self, problem: "Problem", q: Floats, view: "View") -> Ints:
        states = problem.reward.empty_states(problem, len(view))
        return problem.actions.heaviest(problem.reward.gains(problem, states, q), view)

    def guarantee(self, problem: "Problem") -> Guarantee:
        return Guarantee(1.0 if problem.actions.tractable else 0.0)

    def validate(self, problem: "Problem") -> None:
        if not problem.reward.modular:
            raise InvalidArgument("oracle", f"{problem.reward!r} is not modular", "take Greedy()")
