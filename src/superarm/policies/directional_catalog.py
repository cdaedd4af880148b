"""Directional policies at two levels of exploration, by name."""

from superarm.indices import KL, KLMoss
from superarm.oracles import Default, Oracle
from superarm.policies.directional_policy import DirectionalPolicy
from superarm.policies.directions import SampleVariance, Triangle

_TRIANGLE, _DEFAULT = Triangle(), Default()


def directional_kl_moss(spread: SampleVariance = _TRIANGLE, oracle: Oracle = _DEFAULT) -> DirectionalPolicy:
    r"""Greedy with one bound per arm, on the sum that it would add to the batch, at the level of KL-MOSS.

    .. math:: x_j = \log^+\Bigl(\frac{t}{N_j}\cdot\frac{k}{n\_arms}\Bigr) / N_j

    superarm's own, with the level of :func:`kl_moss`, after [AudibertBubeck2009]_ and [MenardGarivier2017]_. The bound
    of an arm uses no data of other arms, and there is no constant to tune. No regret bound is
    known at this level, as none is for :func:`kl_moss` on semi-bandits. Its regret on many instances is in
    ``docs/contest.md``.

    Parameters
    ----------
    spread
        How the variance of a sum of items is computed: ``policies.Triangle()``, with memory that grows with the number
        of items, or ``policies.Covariance()``, which is exact and whose memory and time grow with its square.
    oracle
        The oracle for problems that greedy does not serve; by default the one that suits the problem.

    Examples
    --------
    >>> directional_kl_moss().confidence
    KLMoss()
    """
    return DirectionalPolicy(KLMoss(), spread, oracle)


def directional_kl_ucb(
    rho: float = 1.0, c: float = 3.0, spread: SampleVariance = _TRIANGLE, oracle: Oracle = _DEFAULT
) -> DirectionalPolicy:
    r"""Greedy with one bound per arm, on the sum that it would add, at the level :math:`\rho\log t + c\log\log t`.

    superarm's own. What is proved, and for which index, is in ``docs/theory/directional.md``.

    Parameters
    ----------
    rho, c
        The constants of the level, as those of :func:`kl_ucb`.
    spread, oracle
        As those of :func:`directional_kl_moss`.

    Examples
    --------
    >>> directional_kl_ucb().confidence
    KL(rho=1.0, c=3.0)
    """
    return DirectionalPolicy(KL(rho, c), spread, oracle)
