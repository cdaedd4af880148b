"""The policies by their names in the papers; each function combines an index and an oracle.

The argument ``oracle`` is the algorithm that finds a batch for the scores; by default the one that suits the problem.
"""

import math
from typing import Any

from superarm.core.component import named
from superarm.core.errors import InvalidArgument
from superarm.indices import (
    KL,
    LLR,
    UCB1,
    UCBV,
    Bernstein,
    BetaPosterior,
    BoostedGaussian,
    GaussianSample,
    Hoeffding,
    KLMoss,
    Mean,
)
from superarm.oracles import Default, Ladder, Oracle, TopArms
from superarm.policies.batch import escb, escb_delta
from superarm.policies.covariance import escb_c, ols_ucb_c
from superarm.policies.directional import directional_kl_moss, directional_kl_ucb
from superarm.policies.dirichlet import shapes
from superarm.policies.forgetting import discounted, sliding_window
from superarm.policies.index import IndexPolicy
from superarm.policies.pooled import pooled_thompson
from superarm.policies.single_seed import SingleSeed
from superarm.policies.spending import SpendLadder, SpendSet
from superarm.policies.total import greedy_then_commit, total_thompson
from superarm.policies.wrappers import OneGaussian, epsilon_greedy, uniform

__all__ = [
    "bc_ucb",
    "bcucb_t",
    "bg_cts",
    "cascade_kl_ucb",
    "cascade_ucb1",
    "cascade_ucb_v",
    "comb_ucb1",
    "cts",
    "cucb",
    "cucb_t",
    "directional_kl_moss",
    "directional_kl_ucb",
    "discounted",
    "epsilon_greedy",
    "escb",
    "escb_c",
    "escb_delta",
    "follow_the_leader",
    "gaussian_cts",
    "greedy_then_commit",
    "kl_moss",
    "kl_ucb",
    "ladder",
    "llr",
    "ols_ucb_c",
    "pooled_thompson",
    "shapes",
    "shared_cts",
    "sliding_window",
    "spend_set",
    "total_thompson",
    "ts_cascade",
    "ucb_v",
    "uniform",
]

_DEFAULT, _TOP = Default(), TopArms()


@named
def bc_ucb(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""BC-UCB, exactly as in the paper: the empirical-Bernstein index with :math:`\rho = 3`.

    .. math:: q_{ij} = \min\{1, \hat p + \sqrt{6\hat V\log t/N} + 9\log t/N\}

    Implements [MerlisMannor2019]_ (Algorithm 1). With these constants the index is 1 until N exceeds 9 log t.

    ``rho`` scales the exploration; the theorem is for 3.

    >>> bc_ucb().index
    Bernstein(rho=3)
    """
    return IndexPolicy(Bernstein(rho), oracle)


@named
def kl_ucb(rho: float = 1.0, c: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""KL-UCB for semi-bandits, the choice with a proof: :math:`N\,kl(\hat p, q) \le \rho\log t + c\log\log t`.

    The default ``rho=1, c=3``, the choice of [GarivierCappe2011]_, has a regret bound of the form of BC-UCB's, with
    smaller constants and no :math:`\gamma_\infty` term. ``rho=3, c=0`` has one, too, also for late feedback
    (``theory.bounds``). The proofs are in ``docs/theory/kl-ucb.md``. Other constants have none. Implements
    [GarivierCappe2011]_ for batches.

    ``rho`` and ``c`` are the constants of the exploration.

    >>> kl_ucb(), kl_ucb(c=0.0) == kl_ucb()
    (kl_ucb(rho=1, c=3), False)
    """
    return IndexPolicy(KL(rho, c), oracle)


@named
def cucb(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""CUCB: a Hoeffding radius :math:`\sqrt{3\log t/(2N)}` per entry. Implements [ChenWangYuan2013]_ (Algorithm 1).

    Where items are ``Thresholds`` and scores lie on their edges, this is SDCB of [ChenHuEtAl2016]_ with this radius: to
    add it to the chance of every threshold is to lower the empirical distribution function by it. SDCB's regret is
    :math:`O(\log T)` and :math:`\tilde O(\sqrt T)`.

    ``rho`` scales the exploration; the paper has 3.

    >>> cucb().index
    Hoeffding(rho=3)
    """
    return IndexPolicy(Hoeffding(rho), oracle)


@named
def ucb_v(zeta: float = 1.0, c: float = 1.0 / 6.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """UCB-V with smaller constants than those of its theorem. After [AudibertMunosSzepesvari2009]_.

    ``zeta`` and ``c`` are the constants of the radius; ``zeta=3, c=1`` is :func:`bc_ucb`.

    >>> ucb_v(c=1.0)
    ucb_v(zeta=1, c=1)
    """
    return IndexPolicy(UCBV(zeta, c), oracle)


@named
def kl_moss(oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """Anytime KL-MOSS: an arm is explored until it has had its share of the pulls. After [MenardGarivier2017]_.

    No regret bound is known on semi-bandits.

    >>> kl_moss().index
    KLMoss()
    """
    return IndexPolicy(KLMoss(), oracle)


@named
def cts(oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """Combinatorial Thompson sampling with Beta posteriors; outcomes inside [0, 1] are replaced by coin flips.

    Implements [WangChen2018]_ (CTS, Algorithm 1): every entry starts from a uniform prior, and no arm is played for its
    own sake. Its analysis needs an exact oracle and independent arms.

    >>> cts().index, cts().rounding
    (BetaPosterior(), 'coin')
    """
    return IndexPolicy(BetaPosterior(), oracle, rounding="coin", start=False)


@named
def gaussian_cts(scale: float = 0.5, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""Thompson sampling with Gaussian samples :math:`\hat p + scale\,Z/\sqrt{N + 1}`, one for each entry.

    After [AgrawalGoyal2012]_ and [WangChen2018]_, for rewards of any shape. No regret bound is known here.

    ``scale`` is the standard deviation after no pull.

    >>> gaussian_cts().index
    GaussianSample(scale=0.5)
    """
    return IndexPolicy(GaussianSample(scale), oracle)


@named
def shared_cts(scale: float = 0.5, oracle: Oracle = _DEFAULT) -> SingleSeed:
    r"""CTS3: Thompson sampling with one Gaussian number per round: :math:`\hat p + scale\,Z_t/\sqrt{N + 1}`.

    After [JinEtAl2026]_, which has ``scale=1`` and a theorem for exact oracles, also with dependent outcomes.

    ``scale`` is the standard deviation after no pull.

    >>> shared_cts()
    shared_cts(scale=0.5)
    """
    return SingleSeed(scale, oracle)


@named
def cucb_t(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""CUCB for triggered arms: a radius :math:`\sqrt{3\log t/(2N)}`, where N counts all observations.

    Implements [WangChen2017]_ (Algorithm 1). There are no initial rounds that play every arm: an arm that was never
    observed scores 1.

    ``rho`` scales the exploration; the paper has 3.

    >>> cucb_t().start
    False
    """
    return IndexPolicy(Hoeffding(rho), oracle, start=False)


@named
def bcucb_t(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""BCUCB-T: the radius of BC-UCB, :math:`\sqrt{6\hat V\log t/N} + 9\log t/N`, for triggered arms.

    Its regret bound grows with the logarithm of the batch size only under the TPVM condition of smoothness.
    ``theory.bounds`` has one for disjunctive and conjunctive cascades. Implements [LiuEtAl2022]_ (Algorithm 1).

    ``rho`` scales the exploration; the theorem is for 3.

    >>> bcucb_t().index
    Bernstein(rho=3)
    """
    return IndexPolicy(Bernstein(rho), oracle, start=False)


@named
def follow_the_leader(oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """The best batch at the empirical means in every round: a baseline without exploration.

    >>> follow_the_leader().index
    Mean()
    """
    return IndexPolicy(Mean(), oracle)


@named
def cascade_ucb1(rho: float = 3.0, oracle: Oracle = _TOP) -> IndexPolicy:
    r"""CascadeUCB1: lists by :math:`\hat p + \sqrt{1.5\log(t-1)/N}`, the largest first, not clipped at 1.

    Implements [KvetonEtAl2015]_ (Algorithm 1, section 4.1). Differs: without the free sample of every arm
    (``environments.FreeSamples``), arms that were never observed are listed first. ``oracle=Reversed()`` lists the best
    arm last.

    ``rho`` scales the exploration; the paper has 3.

    >>> cascade_ucb1().index
    UCB1(rho=3)
    """
    return IndexPolicy(UCB1(rho), oracle)


@named
def comb_ucb1(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""CombUCB1: the batch of the largest sum of :math:`\hat p + \sqrt{1.5\log(t-1)/N}`, not clipped at 1.

    Implements [KvetonEtAl2015c]_ (Algorithm 1), for ``Linear`` and exact oracles.

    ``rho`` scales the exploration; the paper has 3.

    >>> comb_ucb1().index
    UCB1(rho=3)
    """
    return IndexPolicy(UCB1(rho), oracle)


@named
def llr(k: int, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""LLR: the batch of the largest sum of :math:`\hat p + \sqrt{(k + 1)\log t/N}`, not clipped at 1.

    Implements [GaiKrishnamachariJain2012]_ (Algorithm 1), for ``Linear`` and exact oracles.

    ``k`` is the size of the largest batch.

    >>> llr(5).index
    LLR(k=5)
    """
    return IndexPolicy(LLR(k), oracle)


@named
def bg_cts(k: int, scale: float = 0.5, slack: float = 0.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""BG-CTS: Thompson sampling with Gaussian samples of a variance that is boosted, and falls in proportion to 1/N.

    Implements [ZhangCombes2024]_ (Algorithm 1), for ``Linear`` and exact oracles: Beta posteriors can lock in, with
    regret that is exponential in the size of a batch; these do not. Every arm is played first.

    ``k`` is the size of a batch, ``scale`` the standard deviation of outcomes, ``slack`` the paper's λ.

    >>> bg_cts(5).index
    BoostedGaussian(k=5, scale=0.5, slack=0)
    """
    return IndexPolicy(BoostedGaussian(k, scale, slack), oracle)


@named
def cascade_kl_ucb(rho: float = 1.0, c: float = 3.0, oracle: Oracle = _TOP) -> IndexPolicy:
    r"""CascadeKL-UCB: lists by the largest q with :math:`N\,kl(\hat p, q) \le \log t + 3\log\log t`, largest first.

    Implements [KvetonEtAl2015]_ (Algorithm 1, section 4.1); minimax up to logarithms, [VialEtAl2022]_.
    ``theory.bounds`` has a regret bound. Differs: as :func:`cascade_ucb1`.

    ``rho`` and ``c`` are the constants of the exploration.

    >>> cascade_kl_ucb().oracle
    TopArms()
    """
    return IndexPolicy(KL(rho, c), oracle)


@named
def ladder(
    costs: Any = None, scale: float = 1.0, rho: float = 1.0, c: float = 3.0, spend: float = math.inf
) -> IndexPolicy | SpendLadder:
    r"""Arms that are tried from the top until one succeeds, each at a cost: the cheap and promising ones first.

    With a finite ``spend``, what a decision may cost in the mean, it is a :class:`SpendLadder`: it begins with the
    cheapest arm, and what a success is worth follows from the spend. ``costs`` are in units of the spend, and may be
    learnt, from a second item.

    Otherwise it is CC-UCB of [ZhouEtAl2018]_ with KL indices: the list of the largest net worth at the optimistic
    values. ``costs`` are what it costs to try each arm, in units of what a success is worth; without them they are
    learnt, as a second item (:class:`superarm.oracles.Ladder`).

    >>> ladder([0.1, 0.5], spend=0.2).spend
    0.2
    >>> ladder([0.1, 0.5]).oracle
    Ladder(costs=[0.1, 0.5], scale=1)
    """
    if spend == math.inf:
        return IndexPolicy(KL(rho, c), Ladder(costs, scale))
    if (rho, c) != (1.0, 3.0):
        raise InvalidArgument("rho", "given beside spend", "leave out rho and c: it has no confidence bounds", "ladder")
    return SpendLadder(spend, costs, scale)


@named
def spend_set(costs: Any = None, scale: float = 1.0, spend: float = 1.0) -> SpendSet:
    """A set of arms that run at once, all of which are paid, with a mean spend: the cheapest that fit at first.

    Costs are in units of the spend, and may be learnt, from a second item, as those of :func:`ladder`. Where no set
    may cost more than a budget, and costs are known, take ``Knapsack`` instead. See :class:`SpendSet`.

    >>> spend_set([0.1, 0.5], spend=0.2).spend
    0.2
    """
    return SpendSet(spend, costs, scale)


@named
def cascade_ucb_v(zeta: float = 2.0, c: float = 1.0, oracle: Oracle = _TOP) -> IndexPolicy:
    r"""CascadeUCB-V: lists by the empirical-Bernstein index :math:`\hat p + \sqrt{4\hat V\log t/N} + 6\log t/N`.

    The variance-aware cascade after [VialEtAl2022]_, with the constants of UCB-V, [AudibertMunosSzepesvari2009]_.
    Differs: clipped at 1, and as :func:`cascade_ucb1`.

    ``zeta`` and ``c`` are the constants of the radius; ``zeta=3, c=1`` are those of BC-UCB.

    >>> cascade_ucb_v().index
    UCBV(zeta=2, c=1)
    """
    return IndexPolicy(UCBV(zeta, c), oracle)


@named
def ts_cascade(oracle: Oracle = _TOP) -> OneGaussian:
    """TS-Cascade: Thompson sampling with one Gaussian number per round for all arms.

    Implements [CheungTanZhong2019]_ (Algorithm 1).

    >>> ts_cascade()
    ts_cascade()
    """
    return OneGaussian(oracle)
