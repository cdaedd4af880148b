from typing import NamedTuple

from superarm._jit import component, for_kernels, interpreted, kernel, lean
from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.indices import Index, monotone
from superarm.intake import Exact, Intake
from superarm.oracles import Default, Guarantee, Oracle, maximize
from superarm.parameters import positive
from superarm.policies.base import Round, first_batch
from superarm.policies.dependence import Dependence, dependence, effects, observe
from superarm.policies.scoring import ArmView, Estimates, estimate_arms, score_arm, update_estimates
from superarm.problem import Problem
from superarm.rewards import initial_states, join_arm
from superarm.rewards.base import derivative
from superarm.streams import Stream
from superarm.tally import Feedback, Tally


class Learnt(NamedTuple):
    """The estimates of every entry, and what was seen of every arm as a whole."""

    estimates: Estimates
    seen: Dependence


@component
class JointPolicy(NamedTuple):
    r"""An index policy whose radius for an arm fits how far the arm's items err together, which it learns.

    .. math:: q_{ij}(t) = score(\hat p_{ij}, \hat V_{ij}, \eta_j x_j), \qquad x_j = level(N_j, t), \qquad
              A_t = Oracle(q(t))

    The index of [MerlisMannor2019]_ (Algorithm 1) at a level scaled by the design effect :math:`\eta_j \in [0, 1]` of
    ``superarm.policies.dependence``. A radius grows like :math:`\sqrt{\eta_j x_j}`, so the radii of an arm add up
    to :math:`\sqrt{2 x_j Var(\sum_i d_i X_{ij})}` to first order: what the sum of its items needs, not what each needs
    in the worst case of all others. The weights d are those that the last arm of the leading batch,
    :math:`Oracle(\hat p)`, meets. With one binary item, or equal items that always agree, :math:`\eta_j = 1`, and
    the policy is the index policy itself; comonotone items with different means have less, and m independent ones are
    near 1/m.

    What is proved: scores grow with the level, so :math:`\hat p \le q \le` the plain index. What is not: that
    q exceeds p with high probability, since :math:`\eta_j` is an estimate; a dependence so rare that it has not shown
    yet is not guarded against, and items of weight 0 dilute the estimate. On instances where arms differ in their
    dependence, a fifth to a third of the runs played a wrong arm for the whole second half (``docs/champion.md``):
    ``DirectionalPolicy`` takes its place. ``pooled`` is how many pulls the cautious
    value 1 counts for in the estimate for all arms together, ``own`` how many pulls that estimate counts for in the one
    of a single arm.
    """

    confidence: Index
    oracle: Oracle = Default()
    intake: Intake = Exact()
    pooled: float = 100.0
    own: float = 50.0

    def _check(self) -> None:
        positive(self, "pooled", "own")

    @property
    def caveat(self) -> str:
        return (
            "It estimates how the items of an arm depend on one another, in part from other arms: where arms differ in "
            "that, it can keep playing a wrong arm. directional_kl_moss uses the arm's own outcomes alone."
        )

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> Learnt:
        return Learnt(estimate_arms(problem, tally), dependence(problem, tally))

    def choose(self, problem: Problem, current: Round, memory: Learnt, stream: Stream) -> Ints:
        action = first_batch(problem.actions, current.candidates)
        if len(action) > 0:
            return action
        leader = maximize(self.oracle, problem, memory.estimates.mean, current.candidates, stream)
        weights = _met_by_the_last(problem, memory.estimates.mean, leader)
        eta = effects(problem, memory.seen, weights, self.pooled, self.own)
        _rate(self.confidence, problem, current, memory.estimates, eta, stream)
        return maximize(self.oracle, problem, memory.estimates.q, current.candidates, stream)

    def learn(
        self, problem: Problem, tally: Tally, memory: Learnt, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        update_estimates(tally, problem.terms.support, feedback, self.intake, stream, sign, memory.estimates)
        for j in feedback.action:
            observe(problem, tally, memory.seen, j)

    @interpreted
    def fit(self, problem: Problem) -> "JointPolicy":
        if not monotone(self.confidence):
            raise InvalidArgument("confidence", "a sampled index has no radius", "take e.g. KLMoss()", "JointPolicy")
        return self._replace(oracle=self.oracle.fit(problem))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


@kernel
def _met_by_the_last(problem: Problem, mean: Floats, leader: Ints) -> Floats:
    """What a unit of each item is worth to the last arm of ``leader``, (n_items,)."""
    states = initial_states(problem.reward, problem.terms)
    for j in leader[:-1]:
        join_arm(problem.reward, problem.terms, states, mean, j)
    for i in range(len(states)):
        states[i] = derivative(problem.reward, problem.terms.weights[i], states[i], 0.0)
    return states


@lean
def _rate(confidence: Index, problem: Problem, current: Round, memory: Estimates, eta: Floats, stream: Stream) -> None:
    """Write the score of every entry of every eligible arm into ``memory.q``, at its scaled level."""
    for j in range(problem.n_arms):
        if current.candidates.eligible[j]:
            view = ArmView(j, current.candidates.counts[j], current.t, eta[j])
            score_arm(confidence, problem, current.tally, memory, view, stream)
