"""Policies for cascades, which play lists with the best arm first, by their names in the papers."""

from superarm.indices import KL, UCB1, UCBV
from superarm.oracles import Oracle, TopArms
from superarm.policies.index_policy import IndexPolicy
from superarm.policies.one_gaussian import OneGaussian

_TOP = TopArms()


def cascade_ucb1(rho: float = 3.0, oracle: Oracle = _TOP) -> IndexPolicy:
    r"""CascadeUCB1: lists by :math:`\hat p + \sqrt{1.5\log(t-1)/N}`, the largest first, not clipped at 1.

    Implements [KvetonEtAl2015]_ (Algorithm 1, section 4.1). Differs: without the free sample of every arm
    (``environments.FreeSamples``), arms that were never observed are listed first. ``oracle=Reversed()`` lists the best
    arm last.

    ``rho`` scales the exploration; the paper has 3.

    >>> cascade_ucb1().confidence
    UCB1(rho=3.0)
    """
    return IndexPolicy(UCB1(rho), oracle)


def cascade_kl_ucb(rho: float = 1.0, c: float = 3.0, oracle: Oracle = _TOP) -> IndexPolicy:
    r"""CascadeKL-UCB: lists by the largest q with :math:`N\,kl(\hat p, q) \le \log t + 3\log\log t`, largest first.

    Implements [KvetonEtAl2015]_ (Algorithm 1, section 4.1); minimax up to logarithms, [VialEtAl2022]_.
    ``theory.upper_bound_cascade_kl`` computes a regret bound. Differs: as :func:`cascade_ucb1`.

    ``rho`` and ``c`` are the constants of the exploration.
    """
    return IndexPolicy(KL(rho, c), oracle)


def cascade_ucb_v(zeta: float = 2.0, c: float = 1.0, oracle: Oracle = _TOP) -> IndexPolicy:
    r"""CascadeUCB-V: lists by the empirical-Bernstein index :math:`\hat p + \sqrt{4\hat V\log t/N} + 6\log t/N`.

    The variance-aware cascade after [VialEtAl2022]_, with the constants of UCB-V, [AudibertMunosSzepesvari2009]_.
    Differs: clipped at 1, and as :func:`cascade_ucb1`.

    ``zeta`` and ``c`` are the constants of the radius; ``zeta=3, c=1`` are those of BC-UCB.
    """
    return IndexPolicy(UCBV(zeta, c), oracle)


def ts_cascade(oracle: Oracle = _TOP) -> OneGaussian:
    """TS-Cascade: Thompson sampling with one Gaussian number per round for all arms.

    Implements [CheungTanZhong2019]_ (Algorithm 1).
    """
    return OneGaussian(oracle)
