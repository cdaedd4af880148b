from typing import NamedTuple

from superarm._jit import component, for_kernels, interpreted, lean
from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.indices import Index, unclipped
from superarm.indices.traits import caveat
from superarm.intake import Exact, Intake
from superarm.oracles import Default, Exhaustive, Guarantee, Oracle, maximize
from superarm.oracles.base import BatchBuffer, maximize_into
from superarm.oracles.traits import ranking
from superarm.policies.base import Policy, Round, first_batch, write_first_batch
from superarm.policies.fast.listed import Screened
from superarm.policies.fast.sieve import Sieve, suits_sieve
from superarm.policies.fast.sparse_sieve import SparseSieve, suits_sparse_sieve
from superarm.policies.scoring import Estimates, estimate_arms, score_arms, update_estimates
from superarm.policies.start import NoStart, Start, TryEveryArm, tries_first
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.tally import Feedback, Tally


@component
class IndexPolicy(NamedTuple):
    r"""Score every entry, then maximise: BC-UCB, CUCB, KL-UCB, CTS and their kin.

    While an arm has no pull, play a batch that contains one, unless ``start`` is ``NoStart()``. Otherwise

    .. math:: q_{ij}(t) = score(\hat p_{ij}(t-1), \hat V_{ij}(t-1), N_j(t-1), t), \qquad A_t = Oracle(q(t))

    Implements [MerlisMannor2019]_ (Algorithm 1), for any index and oracle. An entry that was never seen, though
    its arm was pulled, scores 1, and so does an arm that was never observed: ``NoStart`` does not play it for its own
    sake, as [WangChen2017]_ (Algorithm 1) for triggered arms. ``fit`` takes a device of ``superarm.policies.fast``
    where one makes the same decisions faster.
    """

    confidence: Index
    oracle: Oracle = Default()
    intake: Intake = Exact()
    start: Start = TryEveryArm()

    @property
    def caveat(self) -> str:
        return caveat(self.confidence)

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> Estimates:
        return estimate_arms(problem, tally)

    def choose(self, problem: Problem, current: Round, memory: Estimates, stream: Stream) -> Ints:
        if tries_first(self.start, current.candidates):
            action = first_batch(problem.actions, current.candidates)
            if len(action) > 0:
                return action
        score_arms(self.confidence, problem, current, memory, stream)
        return maximize(self.oracle, problem, memory.q, current.candidates, stream)

    @lean
    def choose_into(
        self, problem: Problem, current: Round, memory: Estimates, stream: Stream, batch: BatchBuffer
    ) -> int:
        if tries_first(self.start, current.candidates):
            size = write_first_batch(problem.actions, current.candidates, batch.chosen)
            if size > 0:
                return size
        score_arms(self.confidence, problem, current, memory, stream)
        return maximize_into(self.oracle, problem, memory.q, current.candidates, stream, batch)

    @lean
    def learn(
        self, problem: Problem, tally: Tally, memory: Estimates, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        update_estimates(tally, problem.terms.support, feedback, self.intake, stream, sign, memory)

    @interpreted
    def fit(self, problem: Problem) -> Policy:
        plain = self.plain(problem)
        if not isinstance(self.start, TryEveryArm):
            return plain
        if suits_sieve(*plain[:2], problem):
            return Sieve(*plain[:3])
        return SparseSieve(*plain[:3]).fit(problem) if suits_sparse_sieve(*plain[:2], problem) else plain

    @interpreted
    def plain(self, problem: Problem) -> "IndexPolicy":
        """The policy made ready for this problem without any device for speed: the reference of all of them."""
        oracle = self.oracle.fit(problem)
        if unclipped(self.confidence) and not ranking(oracle):
            raise InvalidArgument(
                "oracle", "the index lies above 1", "take one that only ranks arms, as TopArms() does"
            )
        return self._replace(oracle=oracle)

    @interpreted
    def parameters(self, problem: Problem, current: Round, memory: Estimates, stream: Stream) -> tuple[Floats, Floats]:
        """The empirical means, and the scores."""
        score_arms(self.confidence, problem, current, memory, stream)
        return memory.mean, memory.q

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


def without_start(confidence: Index, oracle: Oracle = Default(), intake: Intake = Exact()) -> IndexPolicy:  # noqa: B008
    """An index policy that decides by its index from the first round on."""
    return IndexPolicy(confidence, oracle, intake, NoStart())


def screened(policy: IndexPolicy) -> Screened:
    """The screened form of an index policy on listed batches, e.g. ``screened(bc_ucb())``; it decides alike.

    It is meant for long runs on disjoint batches. On batches that share arms it is slower than the plain policy, so
    ``fit`` does not choose it.

    >>> import superarm as sa
    >>> instance = sa.instances.disjoint_batches(8)
    >>> policies = {"plain": sa.cucb(), "screened": screened(sa.cucb())}
    >>> results = sa.simulate(instance, policies, horizon=200, replications=1, progress=False)
    >>> bool((results.regret["plain"] == results.regret["screened"]).all())
    True
    """
    if not isinstance(policy, IndexPolicy):
        raise InvalidArgument("policy", f"{type(policy).__name__} is no index policy", "give e.g. bc_ucb()")
    if not isinstance(policy.start, TryEveryArm):
        raise InvalidArgument("policy", "it has no start that tries every arm", "take the plain policy")
    if not isinstance(policy.oracle, Exhaustive | Default):
        raise InvalidArgument("policy", "its oracle is not exhaustive", "leave the oracle as it is by default")
    return Screened(policy.confidence, intake=policy.intake)
