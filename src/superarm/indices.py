r"""Indices: rules that turn the statistics of entries into optimistic values.

An index is a *level* and a *score*. The level :math:`x = f(t) / N_j` is the exploration of an arm with :math:`N_j`
pulls at time :math:`t`. The score is the optimistic value of an entry with a given empirical mean and standard
deviation at that level. Both work on arrays, element by element. Except for sampled indices, scores lie in [mean, 1]
and increase with the level, and levels increase with :math:`t`.
"""

import math
from typing import Any, ClassVar

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Floats
from superarm.core.component import Component
from superarm.core.numeric import at_least, log
from superarm.core.ops import op
from superarm.core.support import AnySupport, Dense


class Chance:
    """The random numbers of a sampled index in one round, one for each entry.

    The number of entry (item i, arm j) depends on the key, the round, j and i alone.
    """

    def __init__(self, keys: Any, t: int, support: AnySupport) -> None:
        self.keys, self.t, self.support = keys, t, support

    def uniform(self) -> Floats:
        """Uniform numbers in [0, 1), in the shape of entries."""
        rows = streams.uniform(self.keys, self.t, np.arange(self.support.n_arms), self.support.widest)
        if isinstance(self.support, Dense):
            return np.ascontiguousarray(rows.transpose(0, 2, 1))
        return rows[:, self.support.row_entries >= 0]

    def normal(self) -> Floats:
        """Standard normal numbers, by inversion of the uniform ones."""
        return streams.normal(self.uniform())


class Index(Component):
    """An index. Subclass it and define ``level`` and ``score`` on arrays.

    >>> class LogLog(Index):
    ...     c: float = 0.5
    ...     monotone = True
    ...     def level(self, pulls, t, share): return self.c * np.log(np.log(t + 2.0) + 1.0) / pulls
    ...     def score(self, mean, deviation, level, chance): return np.minimum(1.0, mean + np.sqrt(level))
    >>> LogLog().level(np.array([4.0]), 1, 0.1).round(3).tolist()
    [0.093]
    """

    monotone: ClassVar[bool] = False
    """Whether scores grow with the level, and levels with t and not with pulls: policies can then skip arms."""
    unclipped: ClassVar[bool] = False
    """Whether scores may exceed 1: for oracles that rank arms, and exact ones for rewards that add up."""
    unknown: ClassVar[float] = 1.0
    """The score of an entry that was never observed."""
    prior: ClassVar[bool] = False
    """Whether an entry that was never observed is scored as any other, after 0 pulls: drawn from a prior."""
    random: ClassVar[bool] = False
    """Whether scores are drawn at random, by ``chance``."""
    caveat: ClassVar[str] = ""
    """What the index assumes that may not hold, in a sentence for reports."""
    any_outcome: ClassVar[Any] = False
    """Whether outcomes may be any numbers, and not only those in [0, 1]."""
    consistent: ClassVar[Any] = False
    """Whether it is proved that regret grows more slowly than every power of T, on every instance, if the oracle is
    exact; ``independent`` if on those with independent entries. Asymptotic rates are about such policies."""
    kind: ClassVar[int | None] = None
    """The formula that kernels know this index's ``score`` by; None for all others."""

    def level(self, pulls: Any, t: Any, share: float) -> Any:
        """The level of arms at time ``t`` after ``pulls`` > 0 pulls; ``share`` is k / n_arms."""
        raise NotImplementedError

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        """The optimistic values of entries, in [0, 1]; ``chance`` has random numbers for sampled indices."""
        raise NotImplementedError

    def positive(self, *names: str) -> None:
        """Refuse parameters that are not finite numbers above 0."""
        for name in names:
            self.require(name, 0.0 < getattr(self, name) < math.inf, "give a finite number > 0")


class _LogarithmicLevel(Index):
    r"""An index whose level is ``numerator(t)`` / pulls."""

    @property
    def consistent(self) -> bool:  # type: ignore[override]
        return bool(getattr(self, "rho", 0.0) >= 1.0)

    def numerator(self, t: Any) -> Any:
        """f(t), of a number or an array."""
        raise NotImplementedError

    def level(self, pulls: Any, t: Any, share: float) -> Any:
        return self.numerator(t) / pulls


class Bernstein(_LogarithmicLevel):
    r"""Mean plus an empirical-Bernstein radius, clipped at 1: the index of BC-UCB.

    .. math:: q = \min\{1,\ mean + deviation\sqrt{2x} + 3x\}, \qquad x = \rho \log t / pulls

    Implements [MerlisMannor2019]_ (Algorithm 1, line 6); their constants are ``rho=3``, which gives
    :math:`\sqrt{6\hat V\log t/N} + 9\log t/N`. A smaller ``rho`` explores less; the theorem does not cover it.

    >>> index, pulls = Bernstein(), np.array([[[1000.0]]])
    >>> index.score(np.array([[[0.1]]]), np.array([[[0.3]]]), index.level(pulls, 100, 0.1), None).round(6).item()
    0.191314
    """

    rho: float = 3.0
    monotone = True
    kind = 0

    def check(self) -> None:
        self.positive("rho")

    def numerator(self, t: Any) -> Any:
        return self.rho * log(t)

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        if mean.ndim != 3:
            return np.minimum(1.0, mean + deviation * np.sqrt(2.0 * level) + 3.0 * level)
        q = np.empty(mean.shape)
        op("bernstein", mean.size)(mean, deviation, level, q)
        return q


class Hoeffding(_LogarithmicLevel):
    r"""Mean plus a Hoeffding radius, clipped at 1: the index of CUCB.

    .. math:: q = \min\{1,\ mean + \sqrt{x / 2}\}, \qquad x = \rho \log t / pulls

    Implements [ChenWangYuan2013]_ (Algorithm 1); ``rho=3`` gives their :math:`\sqrt{3\log t/(2N)}`.

    >>> index, pulls = Hoeffding(), np.array([[[1000.0]]])
    >>> index.score(np.array([[[0.1]]]), None, index.level(pulls, 100, 0.1), None).round(6).item()
    0.183113
    """

    rho: float = 3.0
    monotone = True
    kind = 2

    def check(self) -> None:
        self.positive("rho")

    def numerator(self, t: Any) -> Any:
        return self.rho * log(t)

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        return np.minimum(1.0, mean + np.sqrt(0.5 * level))


class _KLScore(Index):
    monotone = True
    kind = 1

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        return kl_upper(mean, level)


def kl_upper(mean: Any, level: Any) -> Floats:
    """max{q : kl(mean, q) <= level} of entries, dense or sparse.

    >>> kl_upper(np.array([[[0.25]]]), np.array([[[0.130812035941]]])).round(6).item()
    0.5
    """
    q = np.empty(mean.shape)
    if mean.ndim == 3:
        op("kl", mean.size)(mean, np.ascontiguousarray(level), q)
    else:
        level = np.ascontiguousarray(np.broadcast_to(level, mean.shape))
        op("kl", mean.size)(mean[:, None], level[:, None], q[:, None])
    return q


class KL(_KLScore, _LogarithmicLevel):
    r"""The KL upper confidence bound: the inversion of Chernoff's bound for binary outcomes.

    .. math:: q = \max\{q : kl(mean, q) \le x\}, \qquad x = \frac{\rho \log t + c \log^+ \log t}{pulls}

    Implements [GarivierCappe2011]_ for the semi-bandit.

    Parameters
    ----------
    rho, c
        The constants of the level. ``rho=1, c=3`` is the choice of [GarivierCappe2011]_ and the default. For it and for
        ``rho=3, c=0`` there are theorems with explicit constants (``docs/theory/kl-ucb.md``).
    """

    rho: float = 1.0
    c: float = 3.0

    def check(self) -> None:
        self.positive("rho")
        self.require("c", 0.0 <= self.c < math.inf, "give a finite number >= 0")

    def numerator(self, t: Any) -> Any:
        log_t = log(t)
        return self.rho * log_t + self.c * log(at_least(log_t, 1.0))


class KLMoss(_KLScore):
    r"""The anytime KL-MOSS bound: the level is 0 once an arm has had its share t k / n_arms of the pulls.

    .. math:: q = \max\{q : kl(mean, q) \le x\}, \qquad
              x = \log^+\Bigl(\frac{t}{pulls}\cdot\frac{k}{n\_arms}\Bigr) / pulls

    After [AudibertBubeck2009]_ (MOSS) and [MenardGarivier2017]_ (kl-UCB++), with k arms per round. Differs: no regret
    bound is known for it on semi-bandits. Where :math:`kl(\hat p, p) \le x`, which this level does not make likely, the
    width has the form :math:`u\sqrt{p(1-p)} + v`.
    """

    def level(self, pulls: Any, t: Any, share: float) -> Any:
        return np.maximum(0.0, log(t * share / pulls)) / pulls


class UCBV(_LogarithmicLevel):
    r"""UCB-V: an empirical-Bernstein radius with two constants, clipped at 1.

    .. math:: q = \min\{1,\ mean + deviation\sqrt{2x} + 3cx\}, \qquad x = \zeta\log t / pulls

    After [AudibertMunosSzepesvari2009]_.
    """

    zeta: float = 1.0
    c: float = 1.0 / 6.0
    monotone = True

    @property
    def consistent(self) -> bool:  # type: ignore[override]
        """With 3 zeta c < 1, as by default, regret can grow like a power of T."""
        return self.zeta >= 1.0 and self.c >= 1.0

    def check(self) -> None:
        self.positive("zeta")
        self.require("c", 0.0 <= self.c < math.inf, "give a finite number >= 0")

    def numerator(self, t: Any) -> Any:
        return self.zeta * log(t)

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        return np.minimum(1.0, mean + deviation * np.sqrt(2.0 * level) + 3.0 * self.c * level)


class UCB1(_LogarithmicLevel):
    r"""Mean plus a Hoeffding radius, not clipped: the index of CascadeUCB1.

    .. math:: q = mean + \sqrt{x / 2}, \qquad x = \rho \log(t - 1) / pulls

    Implements [KvetonEtAl2015]_ (section 4.1); ``rho=3`` gives their :math:`\sqrt{1.5\log(t-1)/N}`. The score may
    exceed 1, so that arms with few pulls are still ordered: for oracles that rank arms (``TopArms``), and exact ones
    for ``Linear``, where it is CombUCB1 of [KvetonEtAl2015c]_ (Algorithm 1). :class:`Hoeffding` is the same, clipped,
    with log t. In the first round the logarithm is taken as 0. For outcomes of another scale, take ``rho`` times 4
    variances (of a sub-Gaussian bound).
    """

    rho: float = 3.0
    unclipped = True
    any_outcome = True
    unknown = math.inf

    def check(self) -> None:
        self.positive("rho")

    def numerator(self, t: Any) -> Any:
        return self.rho * log(at_least(t - 1.0, 1.0))

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        return mean + np.sqrt(0.5 * level)


class LLR(_LogarithmicLevel):
    r"""Mean plus the radius of LLR, learning with linear rewards, not clipped.

    .. math:: q = mean + \sqrt{x}, \qquad x = (k + 1) \log t / pulls

    Implements [GaiKrishnamachariJain2012]_ (Algorithm 1, LLR). ``k`` is the size of the largest batch. As
    :class:`UCB1`, it is for oracles that rank, and exact ones for ``Linear``.

    >>> LLR(3).score(0.1, None, LLR(3).level(np.array([400.0]), 100, 0.1), None).round(6).tolist()
    [0.314597]
    """

    k: int
    unclipped = True
    any_outcome = True
    unknown = math.inf
    consistent = True

    def check(self) -> None:
        self.require("k", self.k >= 1, "give the size of a batch")

    def numerator(self, t: Any) -> Any:
        return (self.k + 1.0) * log(t)

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        return mean + np.sqrt(level)


class Plays(Index):
    r"""Another index with another clock: of plays of arms, k per round, in place of rounds, or of the last round.

    .. math:: level(pulls,\ k\,t), \qquad level(pulls,\ k\,T)

    With ``horizon``, T, the level is that of the last round from the beginning. MP-KL-UCB is ``Plays(KL(c=0.0), k)`` in
    the published code of [KomiyamaEtAl2015]_; in print its clock counts rounds.

    >>> Plays(Hoeffding(), 3).level(np.array([1.0]), 2, 0.1) == Hoeffding().level(np.array([1.0]), 6, 0.1)
    array([ True])
    """

    index: Index
    k: int
    horizon: int = 0

    def check(self) -> None:
        self.require_family("index", Index, "KL()")
        self.require("k", self.k >= 1, "give the size of a batch")
        self.require("horizon", self.horizon >= 0, "give the number of rounds, or 0 if it is not known")

    unclipped = property(lambda self: self.index.unclipped)  # type: ignore[assignment]
    unknown = property(lambda self: self.index.unknown)  # type: ignore[assignment]
    prior = property(lambda self: self.index.prior)  # type: ignore[assignment]
    random = property(lambda self: self.index.random)  # type: ignore[assignment]
    any_outcome = property(lambda self: self.index.any_outcome)
    caveat = property(lambda self: self.index.caveat)  # type: ignore[assignment]
    consistent = property(lambda self: not self.horizon and self.index.consistent)

    def level(self, pulls: Any, t: Any, share: float) -> Any:
        return self.index.level(pulls, self.k * (self.horizon or t), share)

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        return self.index.score(mean, deviation, level, chance)


class Mean(Index):
    """The empirical mean, without exploration: follow the leader, and the greedy part of epsilon-greedy.

    A baseline of [AuerCesaBianchiFischer2002]_.
    """

    monotone = True
    any_outcome = True

    def level(self, pulls: Any, t: Any, share: float) -> Any:
        return 0.0 * pulls

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        return mean.copy()


class BetaPosterior(Index):
    r"""A sample from the posterior of a Bernoulli parameter under a uniform prior: Thompson sampling.

    .. math:: q \sim Beta(1 + S,\ 1 + N - S), \qquad S = mean \cdot N,\ N = pulls

    Implements [WangChen2018]_ (CTS, Algorithm 1). Here the level of an arm is its number of pulls. An entry that was
    never observed is drawn from the prior.
    """

    prior = True
    consistent = "independent"
    random = True
    caveat = "It samples every entry independently, as if arms and items were; its analysis assumes that they are."

    def level(self, pulls: Any, t: Any, share: float) -> Any:
        return pulls

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        q, pulls = np.empty(mean.shape), np.ascontiguousarray(np.broadcast_to(level, mean.shape))
        if isinstance(chance.support, Dense):
            op("beta", 100 * mean.size)(chance.keys, chance.t, mean, pulls, q)
        else:
            op("beta_sparse", 100 * mean.size)(chance.keys, chance.t, chance.support.start, mean, pulls, q)
        return q


class GaussianSample(Index):
    r"""A Gaussian sample around the empirical mean, clipped to [0, 1].

    .. math:: q = \min\Bigl\{1, \max\Bigl\{0, mean + \frac{scale\,Z}{\sqrt{N + 1}}\Bigr\}\Bigr\}, \qquad Z \sim N(0, 1)

    Thompson sampling after [AgrawalGoyal2012]_ with a Gaussian in place of the Beta law. Here the level of an arm is
    its number of pulls.

    Parameters
    ----------
    scale
        The standard deviation after no pull. 1/2 is that of a sub-Gaussian bound of outcomes in [0, 1].
    """

    scale: float = 0.5
    random = True
    caveat = "It samples every entry independently, as if arms and items were."

    def check(self) -> None:
        self.positive("scale")

    def level(self, pulls: Any, t: Any, share: float) -> Any:
        return pulls

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        return np.clip(mean + self.scale * chance.normal() / np.sqrt(level + 1.0), 0.0, 1.0)


class BoostedGaussian(Index):
    r"""A Gaussian sample around the mean whose variance is boosted, not clipped: the index of BG-CTS.

    .. math:: q = mean + scale\,Z\sqrt{g / N}, \qquad
              g = 2 (1 + \lambda) \frac{\log t + (k + 2)\log\log t + \frac{k}{2}\log(1 + e / \lambda)}{\log t}

    Implements [ZhangCombes2024]_ (BG-CTS, Algorithm 1): its regret on ``Linear`` with an exact oracle is polynomial in
    the size of the problem. As in the authors' code, :math:`\log\log t` begins at 0 in round e, the last term is left
    out at :math:`\lambda = 0`, and an entry that was never observed is drawn with the variance :math:`10^{16} g`.

    Parameters
    ----------
    k
        The size of a batch, the paper's m.
    scale
        The standard deviation of outcomes, or of a sub-Gaussian bound of them; 1/2 for outcomes in [0, 1].
    slack
        The paper's :math:`\lambda`; 0 in its experiments.

    Examples
    --------
    >>> BoostedGaussian(5).level(np.array([4.0]), 1000, 0.5).round(6).tolist()
    [0.369807]
    """

    k: int
    scale: float = 0.5
    slack: float = 0.0
    random = True
    unclipped = True
    any_outcome = True
    prior = True
    caveat = "It samples every entry independently, as if arms and items were."

    def check(self) -> None:
        self.require("k", self.k >= 1, "give the size of a batch")
        self.positive("scale")
        self.require("slack", 0.0 <= self.slack < math.inf, "give a finite number >= 0")

    def level(self, pulls: Any, t: Any, share: float) -> Any:
        late = log(at_least(t, math.e))
        more = 0.5 * self.k * math.log1p(math.e / self.slack) if self.slack else 0.0
        boost = 2.0 * (1.0 + self.slack) * (late + (self.k + 2.0) * log(late) + more)
        square = self.scale * self.scale
        boost = boost / np.where(np.less(t, 2.0), 1.0, log(at_least(t, 2.0)))
        return square * boost / (pulls + 1e-16 * square)

    def score(self, mean: Any, deviation: Any, level: Any, chance: Any) -> Any:
        return mean + np.sqrt(level) * chance.normal()
