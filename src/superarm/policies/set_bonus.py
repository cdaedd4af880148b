import math
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import capacity
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.intake import Exact
from superarm.oracles import Guarantee
from superarm.oracles.default import MAX_ENUMERATED_BATCHES
from superarm.oracles.gains import gains
from superarm.parameters import nonnegative
from superarm.policies.base import Round, first_batch
from superarm.policies.scoring import estimate_all, update_estimates
from superarm.policies.set_search import Ascent, SetSearch, search, suitable
from superarm.problem import Problem
from superarm.rewards import initial_states
from superarm.streams import Stream
from superarm.tally import Feedback, Tally, most_missed


class Sums(NamedTuple):
    """Empirical mean and deviation of every entry (n_entries,), and the most each arm can be worth (n_arms,)."""

    mean: Floats
    deviation: Floats
    reach: Floats


@component
class SetBonus(NamedTuple):
    r"""One bonus for the whole batch: for modular rewards and independent arms.

    .. math:: A_t \in \arg\max_A \sum_{j \in A} \hat r_j + \sqrt{\frac{f(t)}{2} \sum_{j \in A} \frac{b_j^2}{N_j}},
              \qquad f(t) = \log t + c\,k \log\log t

    where :math:`\hat r_j` is what arm j is worth at its empirical means and :math:`b_j` the most it can be worth (1
    with one item of weight 1). Implements ESCB-2 of [CombesEtAl2015]_ (section 3), their ``c = 4``. ``fit`` chooses
    the search: ``EveryBatch``, exact, while there are at most 5,000 batches, and ``Ascent``, an approximation,
    beyond. An arm counts the pulls of its entry that was seen least, and is worth all it can be while an entry was
    never seen.
    """

    c: float = 4.0
    finder: SetSearch = Ascent()

    def _check(self) -> None:
        nonnegative(self, "c")

    @property
    def caveat(self) -> str:
        return "Its bonus assumes that arms are independent."

    def prepare(self, problem: Problem, tally: Tally) -> Sums:
        entries = len(tally.total)
        everyone = _everyone(problem.n_arms)
        start = initial_states(problem.reward, problem.terms)
        memory = Sums(np.zeros(entries), np.zeros(entries), gains(problem, start, np.ones(entries), everyone))
        estimate_all(tally, problem.terms.support, memory)
        return memory

    def choose(self, problem: Problem, current: Round, memory: Sums, stream: Stream) -> Ints:
        action = first_batch(problem.actions, current.candidates)
        if len(action) > 0:
            return action
        worth = gains(problem, initial_states(problem.reward, problem.terms), memory.mean, current.candidates)
        f = math.log(current.t)
        if current.t > 2:
            f += self.c * capacity(problem.actions, problem.n_arms) * math.log(f)
        spread = np.zeros(problem.n_arms)
        for j in range(problem.n_arms):
            missed = most_missed(current.tally, problem.terms.support, j)
            if current.tally.pulls[j] <= missed:
                worth[j] = memory.reach[j]
            seen = max(1.0, current.candidates.counts[j] - missed)
            spread[j] = 0.5 * f * memory.reach[j] * memory.reach[j] / seen
        return search(self.finder, problem, worth, spread, current.candidates)

    def learn(
        self, problem: Problem, tally: Tally, memory: Sums, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        update_estimates(tally, problem.terms.support, feedback, Exact(), stream, sign, memory)

    @interpreted
    def fit(self, problem: Problem) -> "SetBonus":
        if not problem.reward.modular:
            raise InvalidArgument("policy", "escb needs a modular reward", "take kl_ucb(), or the reward Linear()")
        return self._replace(finder=suitable(problem, MAX_ENUMERATED_BATCHES))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.finder.guarantee(problem)


@kernel
def _everyone(n_arms: int) -> Candidates:
    return Candidates(np.zeros(n_arms), np.ones(n_arms, np.bool_))
