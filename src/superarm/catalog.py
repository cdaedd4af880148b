"""The policies by their names in the papers; each function combines an index, an oracle and an intake.

``docs/model/choosing-a-policy.md`` says which one to take.

The argument ``oracle`` is the algorithm that finds a batch for the scores; by default the one that suits the problem.
"""

import numpy as np

from superarm.arrays import count
from superarm.indices import (
    KL,
    UCBV,
    AnglePosterior,
    Bernstein,
    BetaPosterior,
    GaussianSample,
    Hoeffding,
    KLMoss,
    Mean,
)
from superarm.intake import Coin
from superarm.oracles import Default, Oracle
from superarm.policies import (
    BatchPolicy,
    Delta,
    EpsilonGreedy,
    Forgetting,
    IndexPolicy,
    JointPolicy,
    LeastPlayed,
    NoStart,
    Policy,
    SetBonus,
    SharedDraw,
    Uniform,
    cascade_catalog,
    covariance_catalog,
    directional_catalog,
    traits,
)

cascade_ucb1 = cascade_catalog.cascade_ucb1
cascade_kl_ucb = cascade_catalog.cascade_kl_ucb
cascade_ucb_v = cascade_catalog.cascade_ucb_v
ts_cascade = cascade_catalog.ts_cascade
directional_kl_moss = directional_catalog.directional_kl_moss
directional_kl_ucb = directional_catalog.directional_kl_ucb
escb_c = covariance_catalog.escb_c
ols_ucb_c = covariance_catalog.ols_ucb_c

_DEFAULT = Default()


def bc_ucb(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""BC-UCB, exactly as in the paper: the empirical-Bernstein index with :math:`\rho = 3`.

    .. math:: q_{ij} = \min\{1, \hat p + \sqrt{6\hat V\log t/N} + 9\log t/N\}

    Implements [MerlisMannor2019]_ (Algorithm 1). With these constants the index is 1 until N exceeds 9 log t.

    ``rho`` scales the exploration; the theorem is for 3.

    >>> bc_ucb().confidence
    Bernstein(rho=3.0)
    """
    return IndexPolicy(Bernstein(rho), oracle)


def kl_ucb(rho: float = 1.0, c: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""KL-UCB for semi-bandits, superarm's default: :math:`N\,kl(\hat p, q) \le \rho\log t + c\log\log t`.

    The default ``rho=1, c=3``, the choice of [GarivierCappe2011]_, has a regret bound of the form of BC-UCB's, with
    smaller constants and no :math:`\gamma_\infty` term (``theory.upper_bound_kl_default``), and so has
    ``rho=3, c=0`` (``theory.upper_bound_kl``, and ``theory.upper_bound_kl_late`` for late feedback); proofs in
    ``docs/theory/kl-ucb.md``. Other constants have none. Implements [GarivierCappe2011]_ for batches.

    ``rho`` and ``c`` are the constants of the exploration.
    """
    return IndexPolicy(KL(rho, c), oracle)


def cucb(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""CUCB: a Hoeffding radius :math:`\sqrt{3\log t/(2N)}` per entry. Implements [ChenWangYuan2013]_ (Algorithm 1).

    ``rho`` scales the exploration; the paper has 3.
    """
    return IndexPolicy(Hoeffding(rho), oracle)


def ucb_v(zeta: float = 1.0, c: float = 1.0 / 6.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """UCB-V with smaller constants than those of its theorem. After [AudibertMunosSzepesvari2009]_.

    ``zeta`` and ``c`` are the constants of the radius; ``zeta=3, c=1`` is :func:`bc_ucb`.
    """
    return IndexPolicy(UCBV(zeta, c), oracle)


def kl_moss(oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """Anytime KL-MOSS: an arm is explored until it has had its share of the pulls. After [MenardGarivier2017]_.

    No regret bound is known on semi-bandits.
    """
    return IndexPolicy(KLMoss(), oracle)


def joint_kl_moss(pooled: float = 100.0, own: float = 50.0, oracle: Oracle = _DEFAULT) -> JointPolicy:
    r"""KL-MOSS with a radius that is scaled by the estimated dependence between the items of an arm. superarm's own.

    .. math:: N_j\,kl(\hat p_{ij}, q_{ij}) \le \eta_j \log^+\Bigl(\frac{t}{N_j}\cdot\frac{k}{n\_arms}\Bigr)

    where :math:`\eta_j \in [0, 1]` estimates the variance of arm j's outcome as a share of the largest it could have.
    No regret bound is known. On adversarial instances it plays a wrong arm for good in a tenth of the runs and more,
    where :func:`directional_kl_moss` hardly ever does (``docs/champion.md``).

    ``pooled`` is how many pulls the cautious value 1 counts for in the estimate for all arms together, ``own`` how many
    pulls that estimate counts for in the one of a single arm.

    >>> joint_kl_moss().confidence
    KLMoss()
    """
    return JointPolicy(KLMoss(), oracle, pooled=pooled, own=own)


def cts(oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """Combinatorial Thompson sampling with Beta posteriors; outcomes inside [0, 1] are replaced by coin flips.

    Implements [WangChen2018]_ (CTS, Algorithm 1). Its analysis needs an exact oracle and independent arms.
    """
    return IndexPolicy(BetaPosterior(), oracle, Coin())


def angle_ts(oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """Thompson sampling of the angle arcsin √p, as if all entries were independent. superarm's own.

    No regret bound is known.
    """
    return IndexPolicy(AnglePosterior(), oracle)


def gaussian_cts(scale: float = 0.5, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""Thompson sampling with Gaussian samples :math:`\hat p + scale\,Z/\sqrt{N + 1}`, one for each entry.

    After [AgrawalGoyal2012]_ and [WangChen2018]_, for rewards of any shape. No regret bound is known here.

    ``scale`` is the standard deviation after no pull.

    >>> gaussian_cts().confidence
    GaussianSample(scale=0.5)
    """
    return IndexPolicy(GaussianSample(scale), oracle)


def shared_cts(scale: float = 0.5, oracle: Oracle = _DEFAULT) -> SharedDraw:
    r"""Thompson sampling with one Gaussian number :math:`Z_t` per round: :math:`\hat p + scale\,Z_t/\sqrt{N + 1}`.

    After CTS3, [JinEtAl2026]_, which has ``scale=1`` and a theorem for exact oracles, also with dependent outcomes.

    ``scale`` is the standard deviation after no pull.

    >>> shared_cts().confidence
    GaussianSample(scale=0.5)
    """
    return SharedDraw(GaussianSample(scale), oracle)


def escb(c: float = 4.0) -> SetBonus:
    r"""ESCB-2: one bonus :math:`\sqrt{f(t)/2\,\sum_{j \in A} 1/N_j}` per batch: modular rewards, independent arms.

    Implements [CombesEtAl2015]_ (section 3) with :math:`f = \log t + c\,k\log\log t`. The best batch is found exactly
    if there are few batches, and approximately otherwise; ``fit`` chooses.

    ``c`` is the constant of the exploration; the theorem has 4.

    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=4, n_items=1, reward=sa.Linear(), actions=sa.Subsets(2))
    >>> type(escb().fit(problem).finder).__name__
    'EveryBatch'
    """
    return SetBonus(c)


def cucb_t(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""CUCB for triggered arms: a radius :math:`\sqrt{3\log t/(2N)}`, where N counts all observations.

    Implements [WangChen2017]_ (Algorithm 1). There are no initial rounds that play every arm: an arm that was never
    observed scores 1.

    ``rho`` scales the exploration; the paper has 3.
    """
    return IndexPolicy(Hoeffding(rho), oracle, start=NoStart())


def bcucb_t(rho: float = 3.0, oracle: Oracle = _DEFAULT) -> IndexPolicy:
    r"""BCUCB-T: the radius of BC-UCB, :math:`\sqrt{6\hat V\log t/N} + 9\log t/N`, for triggered arms.

    Its regret bound grows with the logarithm of the batch size only under the TPVM condition of smoothness.
    ``theory.upper_bound_cascade`` computes one for disjunctive and conjunctive cascades. Implements [LiuEtAl2022]_
    (Algorithm 1).

    ``rho`` scales the exploration; the theorem is for 3.

    >>> bcucb_t().confidence
    Bernstein(rho=3.0)
    """
    return IndexPolicy(Bernstein(rho), oracle, start=NoStart())


def escb_delta(rho: float = 1.0) -> BatchPolicy:
    r"""ESCB for any differentiable reward: one bonus :math:`\sqrt{2\rho\log t\,Var(A)}` per batch, by the delta method.

    After [CombesEtAl2015]_. Caveat: it assumes that arms and the items of an arm are independent.

    ``rho`` scales the exploration.

    >>> escb_delta().hope
    Delta(rho=1.0)
    """
    return BatchPolicy(Delta(rho))


def least_played(c: float = 4.0) -> BatchPolicy:
    r"""One bonus :math:`2\gamma_g\lVert w\rVert_2\sqrt{f(t)/\min_{j \in A} N_j}` per batch, for independent items.

    superarm's own. No regret bound is proved for it (see :class:`superarm.policies.LeastPlayed`). Caveat: it assumes
    that arms and the items of an arm are independent.

    ``c`` is the constant of the exploration.
    """
    return BatchPolicy(LeastPlayed(c))


def epsilon_greedy(epsilon: float = 0.1, decay: float = 0.0, oracle: Oracle = _DEFAULT) -> EpsilonGreedy:
    """A random batch with probability ``epsilon / t**decay``, otherwise the best batch at the empirical means.

    Parameters
    ----------
    epsilon
        The probability of a random batch in the first round.
    decay
        How fast that probability falls; 0 keeps it constant.
    """
    return EpsilonGreedy(IndexPolicy(Mean(), oracle), epsilon, decay)


def follow_the_leader(oracle: Oracle = _DEFAULT) -> IndexPolicy:
    """The best batch at the empirical means in every round: a baseline without exploration."""
    return IndexPolicy(Mean(), oracle)


def sliding_window(of: Policy, window: int, blocks: int = 16) -> Forgetting:
    """Any policy on the last ``window`` rounds alone, for means that change. After [GarivierMoulines2011]_ (SW-UCB).

    The window moves by ``window / blocks`` rounds at a time. Sums are exact; the memory is that of ``blocks`` tallies.

    Parameters
    ----------
    of
        The policy.
    window
        How many rounds are remembered, at most.
    blocks
        In how many blocks they are kept.

    Examples
    --------
    >>> sliding_window(kl_ucb(), window=1600).block
    100
    """
    count(window, "window", 1)
    count(blocks, "blocks", 1)
    return Forgetting(of, -(-window // blocks), np.ones(blocks), traits.intake(of))


def discounted(of: Policy, half_life: int) -> Forgetting:
    """Any policy on a tally in which weights halve every ``half_life`` rounds, for means that change.

    After [GarivierMoulines2011]_ (D-UCB), in steps of ``half_life`` rounds and exact; rounds older than eight
    half-lives have no weight. The weights of all rounds add up to about twice ``half_life``.

    Parameters
    ----------
    of
        The policy.
    half_life
        After how many rounds an observation counts half.

    Examples
    --------
    >>> discounted(kl_ucb(), half_life=500).weights[:3].tolist()
    [1.0, 0.5, 0.25]
    """
    count(half_life, "half_life", 1)
    return Forgetting(of, half_life, 0.5 ** np.arange(8.0), traits.intake(of))


def uniform() -> Uniform:
    """A random batch in every round."""
    return Uniform()
