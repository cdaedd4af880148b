"""Index policies on logistic models whose features are one-hot: KL-UCB is their likelihood-ratio index, exactly."""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel, lean
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.context import Context, LogisticModel
from superarm.context.design import Design, fill_own_features, group_of, own_size
from superarm.context.observations import ContextFeedback, ContextRound, ContextTally
from superarm.context.sums import UNWEIGHTED, record_sums
from superarm.indices import Index, level, score, unknown
from superarm.oracles import Guarantee, Oracle, maximize
from superarm.policies.base import first_batch
from superarm.policies.contextual.ridge import record_counts
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.support import Support, span


def is_one_hot(context: Context, design: Design) -> bool:
    """Whether the features of every entry have one coordinate that is 1, and others that are 0.

    >>> import superarm as sa
    >>> from superarm.context.design import make_design
    >>> country = sa.Features(categorical={"country": ["NO", "SE"]})
    >>> contexts = [sa.Context(country, model=sa.models.Logistic(intercept=one)) for one in (False, True)]
    >>> [is_one_hot(context, make_design(context, 2, 1)) for context in contexts]
    [True, False]
    """
    user = context.features.size == 0 or (context.features.one_hot and not context.model.intercept)
    rows = design.arms
    arm = bool(((rows == 0.0) | (rows == 1.0)).all() and (rows.sum(axis=1) == 1.0).all())
    return user and arm and design.crossed and design.n_pair == 0 and design.n_item == 0


class Cells(NamedTuple):
    """Buffers: optimistic parameters (n_entries,) and the pulls of every arm's cell (n_arms,)."""

    q: Floats
    mean: Floats
    pulls: Floats


@component
class GroupedPolicy(NamedTuple):
    r"""The likelihood-ratio index of a logistic model with one-hot features, which is KL-UCB's.

    .. math:: q = \max\{\sigma(\phi^\top\theta) : L(\theta) - L(\hat\theta) \le \beta_t\}
              = \max\{q : N\,kl(\hat p, q) \le \beta_t\}

    where N and :math:`\hat p` are the pulls and the mean of the coordinate that :math:`\phi` selects: the likelihood L
    is a sum over coordinates, and every index depends on one of them. Implements [GarivierCappe2011]_ per coordinate;
    decisions are those of ``kl_ucb`` bit for bit where every entry has its own coordinate, for binary outcomes. ``fit``
    of ``LogisticPolicy`` chooses it, and takes Beta posteriors as the index of Thompson sampling.
    """

    confidence: Index
    oracle: Oracle
    design: Any

    def prepare(self, problem: Problem, tally: ContextTally) -> Cells:
        return Cells(np.zeros(len(tally.total)), np.zeros(len(tally.total)), np.zeros(len(tally.pulls)))

    def choose(self, problem: Problem, current: ContextRound, memory: Cells, stream: Stream) -> Ints:
        score_cells(self.confidence, self.design, problem, current, memory, stream)
        candidates = Candidates(memory.pulls, current.candidates.eligible)
        action = first_batch(problem.actions, candidates)
        if len(action) > 0:
            return action
        return maximize(self.oracle, problem, memory.q, candidates, stream)

    def learn(
        self,
        problem: Problem,
        tally: ContextTally,
        memory: Cells,
        feedback: ContextFeedback,
        stream: Stream,
        sign: float,
    ) -> None:
        record_counts(tally, problem.terms.support, feedback, stream, sign)
        record_sums(tally, self.design, problem.terms.support, feedback, sign)

    @lean
    def fill_weights(self, memory: Cells, support: Support, action: Ints, weights: Floats, shifts: Floats) -> None:
        for o in range(len(weights)):
            weights[o] = UNWEIGHTED

    @interpreted
    def parameters(
        self, problem: Problem, current: ContextRound, memory: Cells, stream: Stream
    ) -> tuple[Floats, Floats]:
        """The empirical means of the cells, and their KL bounds."""
        score_cells(self.confidence, self.design, problem, current, memory, stream)
        return memory.mean, memory.q

    @interpreted
    def coefficients(self, problem: Problem, tally: ContextTally, memory: Cells) -> Floats:
        """The empirical mean of every coordinate, in place of its log-odds, which may be infinite."""
        d = tally.response.shape[1]
        diagonal = tally.precision[:, [r * (r + 1) // 2 + r for r in range(d)]]
        return tally.response / np.maximum(diagonal, 1.0)

    @interpreted
    def learns_from(self, model: Any) -> bool:
        """Whether the policy reads contexts of this model."""
        return isinstance(model, LogisticModel)

    @interpreted
    def fit(self, problem: Problem) -> "GroupedPolicy":
        return self

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


@kernel
def score_cells(
    confidence: Index, design: Design, problem: Problem, current: ContextRound, memory: Cells, stream: Stream
) -> None:
    """Write mean and KL bound of every entry's coordinate, and the pulls of every arm's, pending ones included."""
    u = np.zeros(own_size(design))
    for j in range(problem.n_arms):
        fill_own_features(design, current.context, j, u)
        r = int(np.argmax(u))
        at = r * (r + 1) // 2 + r
        first, last = span(problem.terms.support, j)
        memory.pulls[j] = 0.0
        for e in range(first, last):
            g = group_of(design, j, e)
            observed = current.tally.precision[g, at] / UNWEIGHTED if u[r] > 0.0 else 0.0
            waiting = current.pending[g, at] / UNWEIGHTED if current.pending.size > 0 and u[r] > 0.0 else 0.0
            memory.pulls[j] = max(memory.pulls[j], observed + waiting)
            if observed > 0.0:
                memory.mean[e] = current.tally.response[g, r] / UNWEIGHTED / observed
                x = level(confidence, observed + waiting, current.t, 1.0)
                memory.q[e] = score(confidence, memory.mean[e], 0.0, x, stream)
            else:
                memory.mean[e] = 0.0
                memory.q[e] = unknown(confidence)
