"""The policies by their names in the papers: each an assembly of index, oracle and intake."""

import numpy as np

from superarm.arrays import count
from superarm.indices import KL, UCB1, UCBV, AnglePosterior, Bernstein, BetaPosterior, Hoeffding, KLMoss, Mean
from superarm.intake import Coin
from superarm.oracles import Default, Oracle, TopArms
from superarm.policies import (
    BatchPolicy,
    Delta,
    EpsilonGreedy,
    Forgetting,
    IndexPolicy,
    JointPolicy,
    LeastPlayed,
    NoStart,
    OneGaussian,
    Policy,
    SetBonus,
    Uniform,
    traits,
)

_DEFAULT = Default()
_TOP = TopArms()


def bc_ucb(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""BC-UCB, exactly as in the paper: the empirical-Bernstein index with :math:`\rho = 3`.

    .. math:: q_{ij} = \min\{1, \hat p + \sqrt{6\hat V\log t/N} + 9\log t/N\}

    Implements [MerlisMannor2019]_ (Algorithm 1). With these constants it explores for long; a smaller ``rho``
    scales exploration openly, outside of the theorem.

    >>> bc_ucb().confidence
    Bernstein(rho=3.0)
    """
    return IndexPolicy(Bernstein(rho), oracle)


def kl_ucb(rho: float = 1.0, c: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""KL-UCB for semi-bandits, the recommended default: :math:`N\,kl(\hat p, q) \le \rho\log t + c\log\log t`.

    Has a bound of the same form as BC-UCB's, with smaller constants and no :math:`\gamma_\infty` term, for
    ``rho=3, c=0`` with explicit constants (``docs/theory``). Implements [GarivierCappe2011]_ for batches.
    """
    return IndexPolicy(KL(rho, c), oracle)


def cucb(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""CUCB: a Hoeffding radius :math:`\sqrt{3\log t/(2N)}` an entry. Implements [ChenWangYuan2013]_ (Algorithm 1)."""
    return IndexPolicy(Hoeffding(rho), oracle)


def ucb_v(zeta: float = 1.0, c: float = 1.0 / 6.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """UCB-V with the tuned constants that work in practice. After [AudibertMunosSzepesvari2009]_."""
    return IndexPolicy(UCBV(zeta, c), oracle)


def kl_moss(oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """Anytime KL-MOSS: strong in practice, also when items are fully dependent. After [MenardGarivier2017]_."""
    return IndexPolicy(KLMoss(), oracle)


def joint_kl_moss(pooled: float = 100.0, own: float = 50.0, oracle: Oracle = _DEFAULT) -> JointPolicy:
    r"""KL-MOSS that learns how far the items of an arm err together: the least regret in practice. superarm's own.

    .. math:: N_j\,kl(\hat p_{ij}, q_{ij}) \le \eta_j \log^+\Bigl(\frac{t}{N_j}\cdot\frac{k}{n\_arms}\Bigr)

    where :math:`\eta_j \in [0, 1]` is the variance of arm j's outcome as a share of the largest it could have. Never
    above :func:`kl_moss`, and equal to it with one binary item, so its radius has the same form; near the best
    policies for independent items where items are independent. No regret bound is known (``docs/champion.md``).

    >>> import superarm as sa
    >>> joint_kl_moss().confidence
    KLMoss()
    """
    return JointPolicy(KLMoss(), oracle, pooled=pooled, own=own)


def cts(oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """Combinatorial Thompson sampling with Beta posteriors; outcomes inside [0, 1] are rounded by a coin.

    Implements [WangChen2018]_ (CTS, Algorithm 1). Its analysis needs an exact oracle and independent arms.
    """
    return IndexPolicy(BetaPosterior(), oracle, Coin())


def angle_ts(oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """Thompson sampling of the angle arcsin √p: best when the items of an arm are independent. superarm's own."""
    return IndexPolicy(AnglePosterior(), oracle)


def escb(c: float = 4.0) -> SetBonus:
    r"""ESCB-2: one bonus :math:`\sqrt{f(t)/2\,\sum_{j \in A} 1/N_j}` a batch: modular rewards, independent arms.

    Implements [CombesEtAl2015]_ (section 3) with :math:`f = \log t + c\,k\log\log t`; their theorem has ``c=4``. Exact
    while the batches are few, an approximation beyond: the policy's ``fit`` says which.

    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=4, n_items=1, reward=sa.Linear(), actions=sa.Subsets(2))
    >>> type(escb().fit(problem).finder).__name__
    'EveryBatch'
    """
    return SetBonus(c)


def cucb_t(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""CUCB for triggered arms: a radius :math:`\sqrt{3\log t/(2N)}`, N counting observations, triggered ones too.

    Implements [WangChen2017]_ (Algorithm 1). No arm is played for its own sake: one never observed scores 1.
    """
    return IndexPolicy(Hoeffding(rho), oracle, start=NoStart())


def bcucb_t(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""BCUCB-T: BC-UCB's radius :math:`\sqrt{6\hat V\log t/N} + 9\log t/N` for triggered arms.

    Its regret is free of the batch size under the TPVM condition of smoothness, which disjunctive and conjunctive
    cascades and layered networks satisfy. Implements [LiuEtAl2022]_ (Algorithm 1). A smaller ``rho`` explores less,
    outside of the theorem.

    >>> bcucb_t().confidence
    Bernstein(rho=3.0)
    """
    return IndexPolicy(Bernstein(rho), oracle, start=NoStart())


def cascade_ucb1(rho: float = 3.0, oracle: Oracle = _TOP) -> IndexPolicy:
    r"""CascadeUCB1: lists by :math:`\hat p + \sqrt{1.5\log(t-1)/N}`, the largest first, not clipped at 1.

    Implements [KvetonEtAl2015]_ (Algorithm 1, section 4.1). Lists worst first: ``oracle=Reversed()``. Differs: without
    the free sample of every arm (``environments.FreeSamples``), arms that were never observed are listed first.

    >>> cascade_ucb1().confidence
    UCB1(rho=3.0)
    """
    return IndexPolicy(UCB1(rho), oracle)


def cascade_kl_ucb(rho: float = 1.0, c: float = 3.0, oracle: Oracle = _TOP) -> IndexPolicy:
    r"""CascadeKL-UCB: lists by the largest q with :math:`N\,kl(\hat p, q) \le \log t + 3\log\log t`, largest first.

    Implements [KvetonEtAl2015]_ (Algorithm 1, section 4.1); minimax up to logarithms, [VialEtAl2022]_. Differs: as
    :func:`cascade_ucb1`.
    """
    return IndexPolicy(KL(rho, c), oracle)


def cascade_ucb_v(zeta: float = 2.0, c: float = 1.0, oracle: Oracle = _TOP) -> IndexPolicy:
    r"""CascadeUCB-V: lists by the empirical-Bernstein index :math:`\hat p + \sqrt{4\hat V\log t/N} + 6\log t/N`.

    The variance-aware cascade after [VialEtAl2022]_, with the constants of UCB-V, [AudibertMunosSzepesvari2009]_;
    ``zeta=3`` has BC-UCB's. Differs: clipped at 1, and as :func:`cascade_ucb1`.
    """
    return IndexPolicy(UCBV(zeta, c), oracle)


def ts_cascade(oracle: Oracle = _TOP) -> OneGaussian:
    """TS-Cascade: Thompson sampling with one Gaussian number a round for all arms.

    Implements [CheungTanZhong2019]_ (Algorithm 1).
    """
    return OneGaussian(oracle)


def escb_delta(rho: float = 1.0) -> BatchPolicy:
    r"""ESCB for rewards of any shape: one bonus :math:`\sqrt{2\rho\log t\,Var(A)}` a batch, by the delta method.

    After [CombesEtAl2015]_. Caveat: it assumes that arms and the items of an arm are independent.

    >>> escb_delta().hope
    Delta(rho=1.0)
    """
    return BatchPolicy(Delta(rho))


def least_played(c: float = 4.0) -> BatchPolicy:
    r"""One bonus :math:`2\gamma_g\lVert w\rVert_2\sqrt{f(t)/\min_{j \in A} N_j}` a batch: for independent items.

    superarm's own, with the bound that :class:`superarm.policies.LeastPlayed` states for ``c=4``; a smaller ``c``
    explores less and leaves it. Caveat: the bound needs independent arms and items.
    """
    return BatchPolicy(LeastPlayed(c))


def epsilon_greedy(epsilon: float = 0.1, decay: float = 0.0, oracle: Oracle = _DEFAULT) -> EpsilonGreedy:
    """A random batch with probability ``epsilon / t**decay``, otherwise the best for the empirical means."""
    return EpsilonGreedy(IndexPolicy(Mean(), oracle), epsilon, decay)


def follow_the_leader(oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """The best batch for the empirical means, always: what happens without exploration."""
    return IndexPolicy(Mean(), oracle)


def sliding_window(of: Policy, window: int, blocks: int = 16) -> Forgetting:
    """Any policy on the last ``window`` rounds alone, for worlds that change. After [GarivierMoulines2011]_ (SW-UCB).

    The window moves by a ``blocks``-th of it at a time: exactly, in memory for ``blocks`` tallies.

    >>> sliding_window(kl_ucb(), window=1600).block
    100
    """
    count(window, "window", 1)
    count(blocks, "blocks", 1)
    return Forgetting(of, -(-window // blocks), np.ones(blocks), traits.intake(of))


def discounted(of: Policy, half_life: int) -> Forgetting:
    """Any policy on a tally whose every ``half_life`` rounds count half as much as the next: for worlds that change.

    After [GarivierMoulines2011]_ (D-UCB), exact, and forgotten for good after eight half-lives. It remembers about
    twice ``half_life`` rounds.

    >>> discounted(kl_ucb(), half_life=500).weights[:3].tolist()
    [1.0, 0.5, 0.25]
    """
    count(half_life, "half_life", 1)
    return Forgetting(of, half_life, 0.5 ** np.arange(8.0), traits.intake(of))


def uniform() -> Uniform:
    """A batch at random every round."""
    return Uniform()
