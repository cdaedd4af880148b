r"""A two-level model of entries, fitted to a tally: what all arms have in common says where a new one starts.

An outcome of entry (j, i) has the mean :math:`p_{ji}`, with

.. math:: \theta_j \sim Gamma(\alpha_j,\ mean\ e^{\langle x_j, \eta\rangle}), \qquad
          p_{ji} \mid \theta_j \sim Beta(mean\ \theta_j\lambda_i,\ squared\ coefficient\ of\ variation \approx 1/\kappa)

:math:`\theta_j` is the effect of arm j, :math:`\lambda_i` the lift of item i. :math:`x_j` is what is known of the arm
in advance (``Covariates``): 1, the score of its rank in the present list, and features of the arm. The strengths
:math:`\alpha` and :math:`\kappa` are numbers of events (clicks), not of pulls: they mean the same at click rates of
0.1 % and of 10 %. Outcomes are divided by their dispersion :math:`\phi`, the variance of an outcome over its mean: an
event is 1 for a click, and many events for a purchase. All of it is estimated by marginal likelihood, after
[GelmanEtAl2013]_ (chapter 5). The likelihood does not mind that a policy chose what was observed; moments would.

Every function is one of arrays with a leading axis for replications. Sums are taken in a fixed order and logarithms are
those of ``core.numeric``, so that the same tally gives the same numbers everywhere.
"""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.moments import JointTally
from superarm.core.numeric import decay, log, log1p, sigmoid
from superarm.core.ops import op
from superarm.core.streams import STEP, mix, quantile, states
from superarm.core.support import AnySupport, Dense

STRENGTHS = 2.0 ** np.arange(-2.0, 7.0)
"""The values of both strengths that are compared: 1/4 to 64 events."""

RANK_EFFECT = (0.5, 0.4)
"""How much the logarithm of a mean is expected to rise with the score of the rank, and the deviation of that. With 0.5
the first six of 200 arms have three times the mean of the others."""

UNRANKED_EFFECT, FEATURE_EFFECT = (0.0, 1.0), (0.0, 0.5)
"""The same for having no rank, beyond what the score says, and for a feature of arms in [-1, 1]."""

STEPS = 4
"""Steps of the search for effects at each strength, which begins where that at the strength before has ended."""

TOGETHER = 1.5
"""From so many entries on, in the mean, the entries of an arm are seen together."""

_LOGS = log(STRENGTHS)
_FLIP, _COIN = np.uint64(1 << 32), np.uint64(1 << 33)


class Prior(NamedTuple):
    """The fitted model of R replications: (R,), (R,), (R, n_items), (R,), (R,), (R, n_columns).

    ``together`` is how many entries of an arm were seen at once, in the mean; ``effects`` are those of the columns of
    ``Covariates``.
    """

    together: Floats
    dispersion: Floats
    lift: Floats
    kappa: Floats
    alpha: Floats
    effects: Floats


class Covariates(NamedTuple):
    """What is known of arms before any is shown: the columns ``x`` (n_columns, n_arms), the first of ones.

    ``expected`` and ``precision`` (n_columns - 1,) are the prior of the effects of the others. ``unranked`` (n_arms,)
    is 1 for an arm without a rank where others have one, otherwise 0.
    """

    x: Floats
    expected: Floats
    precision: Floats
    unranked: Floats

    @classmethod
    def of(cls, n_arms: int, ranking: tuple[int, ...] = (), features: Floats | None = None) -> "Covariates":
        """Those of a ranking, best arm first, which may be of some arms only, and of ``features`` (n_arms, d)."""
        unranked = np.full(n_arms, float(len(ranking) > 0))
        unranked[list(ranking)] = 0.0
        rows = [] if features is None else [(row, FEATURE_EFFECT) for row in features.T]
        if ranking:
            rows = [(normal_scores(ranking, n_arms), RANK_EFFECT), (unranked, UNRANKED_EFFECT), *rows]
        x = np.array([np.ones(n_arms), *(row for row, _ in rows)])
        expected, deviation = np.array([effect for _, effect in rows]).reshape(-1, 2).T
        return cls(x, expected, deviation**-2.0, unranked)

    def means(self, effects: Floats, centre: Any = 0.0) -> Floats:
        """The means of arms before any is observed, (R, n_arms), at most 1; ``centre`` is taken from the columns."""
        logs = _in_order(np.swapaxes(effects[:, :, None] * (self.x - centre), 1, 2))
        return decay(-np.clip(logs, -30.0, 0.0))

    def strengths(self, alpha: Any, effects: Floats) -> Any:
        """The strengths of arms, (R, n_arms): one whose rank is not known varies as much as ranks make a difference."""
        if not self.unranked.any():
            return alpha
        return alpha / (1.0 + alpha * effects[:, 1:2] ** 2 * self.unranked)


def normal_scores(ranking: tuple[int, ...], n_arms: int) -> Floats:
    """The quantile of the standard normal distribution at the rank of each arm; the others share the rest of the sum.

    If the logarithms of means are normal and the ranking is theirs with normal errors, they are linear in this score.

    >>> normal_scores((2, 0), 4).round(2).tolist()
    [0.32, -0.73, 1.15, -0.73]
    """
    top = quantile(1.0 - (np.arange(len(ranking)) + 0.5) / n_arms)
    scores = np.full(n_arms, -_in_order(top) / max(n_arms - len(ranking), 1))
    scores[list(ranking)] = top
    return scores


@dataclass
class Observed:
    """How often every entry was seen, the sums of its outcomes and of their squares, and what was known of the arms.

    ``pulls`` (R,) are how many pulls there were, ``correlation`` (R, n_arms + 1) is how strongly the items of an arm
    vary together, and those of all arms.
    """

    support: AnySupport
    pulls: Floats
    n: Floats
    total: Floats
    square: Floats
    known: Covariates
    correlation: Floats

    @classmethod
    def of(cls, tally: JointTally, known: Covariates, n_segments: int = 1) -> "Observed":
        """What a tally holds; if it has a row for each of some segments, these become items.

        Taking feedback back before what it replaced may leave an entry with less than nothing for a while.
        """
        n = np.maximum(np.broadcast_to(tally.counts(tally.pulls), tally.total.shape), 0.0)
        total, square, support = np.clip(tally.total, 0.0, n), tally.square, tally.support
        pulls = _in_order(tally.pulls.reshape(len(n) // n_segments, -1))
        if n_segments > 1:
            support = Dense(n_segments * support.n_items, support.n_arms)
            n, total, square = (part.reshape(support.shape(-1)) for part in (n, total, square))
        return cls(support, pulls, n, total, square, known, tally.correlation(n_segments))

    def across(self, x: Any) -> Any:
        """Numbers of replications (R,), so that they broadcast against entries."""
        return x.reshape(-1, *[1] * (self.n.ndim - 1))

    def repeats(self, together: Floats) -> Any:
        """How often the entries of a pull say the same: 1 if they vary alone, ``together`` (R,) if all vary alike."""
        return self.across(1.0 + (together - 1.0) * self.correlation[:, -1])

    def sum_all(self, entries: Floats) -> Floats:
        """The sum over all entries, (R,), in a fixed order."""
        return _in_order(self.support.sum_items(entries))

    def events(self, dispersion: Floats) -> tuple[Floats, Floats]:
        """Observations and outcomes, both divided by the dispersion."""
        scale = self.across(dispersion)
        return self.n / scale, self.total / scale


def fit(observed: Observed, cap: float) -> Prior:
    """The prior of maximal marginal likelihood, averaged over a grid of strengths, which are at most ``cap``."""
    support, across = observed.support, observed.across
    total = observed.sum_all(observed.total)
    ratio = (observed.sum_all(np.maximum(observed.square, 0.0)) + 0.01) / (total + 0.01)
    dispersion = np.where(total > 0.0, np.clip(ratio, 0.002, 1.0), 1.0)
    n, s = observed.events(dispersion)
    together = np.maximum(observed.sum_all(observed.n) / np.maximum(observed.pulls, 1.0), 1.0)
    base = (observed.sum_all(s) + 1.0) / (observed.sum_all(n) + 30.0)
    lift = np.ones((len(n), support.n_items))
    for _ in range(2):
        theta = (1.0 + support.sum_items(s)) / (1.0 / base[:, None] + support.sum_items(n * support.by_item(lift)))
        lift = (4.0 + support.sum_arms(s)) / (4.0 + support.sum_arms(n * support.by_arm(theta)))
    shown = n * support.by_item(lift)
    expected = shown * support.by_arm(theta)
    kappa = np.full(len(n), np.inf)
    if support.widest > 1:
        kappa = np.minimum(_average(_entry_likelihood(observed, (shown, s, expected), base))[0], cap)
    trust = _trust(across(kappa), expected) / observed.repeats(together)
    events, exposure = support.sum_items(trust * s), support.sum_items(trust * shown)
    likelihood, effects = _arm_likelihood(events, exposure, base, observed.known)
    alpha, chance = _average(likelihood)
    return Prior(together, dispersion, lift, kappa, np.minimum(alpha, cap), _in_order(chance[:, None] * effects))


def _entry_likelihood(observed: Observed, events: tuple[Floats, Floats, Floats], base: Floats) -> Floats:
    """The log-likelihood of each kappa, (R, n): every entry is predicted from the other entries of its arm."""
    shown, s, expected = events
    support, across, seen = observed.support, observed.across, shown > 0.0
    likelihood = np.repeat(-0.5 * (log(STRENGTHS / 2.0) / 1.5)[None] ** 2, len(s), 0)
    for place, kappa in enumerate(STRENGTHS):
        trust = _trust(kappa, expected)
        a = 1.0 + support.by_arm(support.sum_items(trust * s)) - trust * s
        b = across(1.0 / base) + support.by_arm(support.sum_items(trust * shown)) - trust * shown
        density = _negative_binomial(s, shown * a / b, 1.0 / (1.0 / a + 1.0 / kappa + 1.0 / (a * kappa)))
        likelihood[:, place] += observed.sum_all(np.where(seen, density, 0.0))
    return likelihood


def _arm_likelihood(s: Floats, shown: Floats, base: Floats, known: Covariates) -> tuple[Floats, Floats]:
    r"""The log-likelihood of each alpha, (R, n), and the effects (R, n_columns, n) at which it is so large.

    ``s`` and ``shown`` (R, n_arms) are the events of arms and how often they were shown, ``base`` (R,) the mean that is
    expected before any is observed. Columns are centred at what was shown, so that ``base`` is the mean there. The
    effects are found by steps of Fisher's scoring, [McCullaghNelder1989]_ (section 2.5), each at most 1:

    .. math:: \eta \leftarrow \eta + (X^T W M X + P)^{-1}\bigl(X^T W (s - m) - P(\eta - \eta_0)\bigr),
              \qquad w_j = \alpha_j / (\alpha_j + m_j)
    """
    centre = _in_order(shown[:, None] * known.x) / np.maximum(_in_order(shown), 1e-9)[:, None]
    centre[:, 0] = 0.0
    x = known.x - centre[:, :, None]
    first = np.concatenate([log(base)[:, None], np.tile(known.expected, (len(s), 1))], 1)
    precision = np.array([1.0, *known.precision])
    likelihood = np.repeat(-0.5 * _LOGS[None] ** 2, len(s), 0)
    effects, found = first, np.empty((*first.shape, len(STRENGTHS)))
    for place, strength in enumerate(STRENGTHS):
        for _ in range(STEPS):
            mean = known.means(effects, centre[:, :, None]) * shown
            alpha = known.strengths(strength, effects)
            share = alpha / (alpha + mean)
            step = _in_order((share * (s - mean))[:, None] * x) - precision * (effects - first)
            factor = _in_order((share * mean)[:, None, None] * x[:, :, None] * x[:, None]) + np.diag(precision)
            op("factorise", factor.size)(factor)
            op("solve_systems", factor.size)(factor, step)
            effects = effects + np.clip(step, -1.0, 1.0)
        found[:, :, place] = effects
        mean = known.means(effects, centre[:, :, None]) * shown
        density = _negative_binomial(s, mean, known.strengths(strength, effects))
        likelihood[:, place] += _in_order(np.where(shown > 0.0, density, 0.0))
    found[:, 0] -= _in_order(np.swapaxes(centre[:, :, None] * found, 1, 2))
    return likelihood, found


class Posterior:
    """What is known of arms and entries under a prior.

    ``shape`` and ``rate`` (R, n_arms) are those of the Gamma distribution of the arms' effects.
    """

    def __init__(self, observed: Observed, prior: Prior) -> None:
        support, self.observed, self.prior = observed.support, observed, prior
        self.n, self.s = observed.events(prior.dispersion)
        self.lift, self.first = support.by_item(prior.lift), np.zeros(len(self.n), np.uint64)
        alpha = observed.known.strengths(prior.alpha[:, None], prior.effects)
        mean = observed.known.means(prior.effects)
        shown = self.n * self.lift
        theta = (alpha + support.sum_items(self.s)) / (alpha / mean + support.sum_items(shown))
        trust = _trust(observed.across(prior.kappa), shown * support.by_arm(theta)) / observed.across(prior.together)
        self.shape = alpha + support.sum_items(trust * self.s)
        self.rate = alpha / mean + support.sum_items(trust * shown)

    def in_segment(self, segment: Ints, n_segments: int) -> "Posterior":
        """The same with the entries of the ``segment`` (R,) of each decision alone."""
        n_items, own = self.n.shape[1] // n_segments, copy(self)
        rows = np.arange(len(segment)) if len(self.n) > 1 else 0
        shape = (len(self.n), n_segments, n_items, -1)
        own.n, own.s, own.lift = (part.reshape(shape)[rows, segment] for part in (self.n, self.s, self.lift))
        own.first = (segment * n_items).astype(np.uint64)
        own.observed = replace(self.observed, support=Dense(n_items, self.shape.shape[1]))
        return own

    def means(self) -> Floats:
        """The posterior means of all entries."""
        a, b = self._shapes(self.shape / self.rate)
        return a if b is None else a / (a + b)

    def spread(self) -> Any:
        """The coefficients of variation of entries, broadcast to them: they fall as the entry itself is seen.

        That of a Beta distribution with few events is 1 / sqrt(a). What is expected of the entry errs with its arm.
        """
        by_arm = self.observed.support.by_arm(1.0 / self.shape)
        a, b = self._shapes(self.shape / self.rate)
        return np.sqrt(by_arm if b is None else 1.0 / a + ((a - self.s) / a) ** 2 * by_arm)

    def upper(self, counts: Floats) -> Floats:
        r"""Upper bounds of all entries, given how often their arms were shown, (R, n_arms).

        .. math:: q = m\,(1 + \sqrt{2x} + x), \qquad x = v^2\log^+\Bigl(\frac{\bar N}{N_j}\Bigr)

        with m the mean of the entry, v its coefficient of variation and :math:`\bar N` the mean of all counts. A Gamma
        distribution is above q with probability :math:`N_j/\bar N` at most, [BoucheronEtAl2013]_ (section 2.4). The
        level is that of MOSS, [AudibertBubeck2009]_: an arm that had its share of the pulls is taken at its mean.
        """
        share = _in_order(counts)[:, None] / (counts.shape[1] * np.maximum(counts, 1.0))
        x = self.observed.support.by_arm(log(np.maximum(share, 1.0))) * self.spread() ** 2
        return _below_one(self.means() * (1.0 + np.sqrt(2.0 * x) + x))

    def draw(self, sharpness: Any, keys: Any, t: int, waiting: Any = 0.0) -> Floats:
        """A draw of all entries from the posterior with ``sharpness`` times as much data; one effect per arm.

        Pending pulls, ``waiting`` (R, n_arms), make the effects of arms more certain, and change no mean. Where several
        entries of an arm are seen at once, the sharpness is at most 1: they may say the same thing several times.
        """
        support, alone = self.observed.support, self.prior.together < TOGETHER
        arms = states(keys, t, np.arange(support.n_arms))
        sharpness = np.where(alone, sharpness, min(sharpness, 1.0))[:, None]
        sharper = sharpness * (1.0 + waiting / self.rate)
        a, b = self._shapes(_gammas(mix(arms), sharper * self.shape) / (sharper * self.rate))
        if b is None:
            return a
        own, sharp = mix(self._places(arms)), self.observed.across(sharpness)
        x, y = _gammas(own, sharp * a), _gammas(own ^ _FLIP, sharp * b)
        return x / (x + y)

    def _shapes(self, theta: Floats) -> tuple[Floats, Floats | None]:
        """Both parameters of the Beta distributions of entries; with one item per arm only their means."""
        kappa = self.observed.across(self.prior.kappa)
        rate = self.observed.support.by_arm(theta) * self.lift
        mean = np.clip(rate, 1e-6, 0.9)
        if np.isinf(kappa).any():
            return _below_one(np.maximum(rate, 1e-6)), None
        strength = np.maximum(kappa * (1.0 - mean) / mean, 0.5)
        return strength * mean + self.s, strength * (1.0 - mean) + (self.n - self.s)

    def _places(self, arms: Any) -> Any:
        """The state of the random numbers of each entry, from those of the arms (R, n_arms).

        An entry that is seen together with others of its arm takes the number that they have in common with a chance
        whose square is their correlation, so that two of them do so as often as they vary together: errors of
        independent draws would cancel out in a batch.
        """
        support, together = self.observed.support, np.asarray(self.prior.together >= 1.5, float)
        if isinstance(support, Dense):
            places = self.first[:, None] + np.arange(1, support.n_items + 1, dtype=np.uint64)
            own, shared = (
                arms[:, None, :] + (places * STEP)[:, :, None],
                arms[:, None, :] + (places[:, :1] * STEP)[:, :, None],
            )
        else:
            places = (np.arange(support.size) - support.start[support.arm_of] + 1).astype(np.uint64)
            own, shared = arms[:, support.arm_of] + places * STEP, arms[:, support.arm_of] + STEP
        chance = support.by_arm(np.sqrt(self.observed.correlation[:, :-1]))
        coin = (mix(own ^ _COIN) >> np.uint64(40)).astype(float) < chance * 2.0**24
        return np.where(coin & (self.observed.across(together) > 0.0), shared, own)


def _trust(kappa: Any, expected: Floats) -> Any:
    """By how much an entry counts for its arm: it says at most kappa events about it."""
    return 1.0 if np.isinf(kappa).any() else kappa / (kappa + expected)


def _below_one(rate: Floats) -> Floats:
    """Rates of which those above 0.9 keep their order, below 1."""
    return np.where(rate > 0.9, 1.0 - 0.1 * decay(10.0 * np.maximum(rate - 0.9, 0.0)), rate)


def _average(likelihood: Floats) -> tuple[Floats, Floats]:
    """The geometric mean of the strengths (R,) under their log-probabilities (R, n), and the probabilities."""
    chance = decay(likelihood.max(1, keepdims=True) - likelihood)
    chance = chance / _in_order(chance)[:, None]
    mean = _in_order(chance * _LOGS)
    return sigmoid(mean) / sigmoid(-mean), chance  # the first is exp(mean)


def _negative_binomial(s: Floats, mean: Floats, shape: Any) -> Floats:
    """The logarithm of the density at ``s`` without the terms that do not depend on ``mean`` and ``shape``."""
    mean = np.maximum(mean, 1e-12)
    count = _log_gamma(s + shape) - _log_gamma(np.asarray(shape))
    return count - shape * log1p(mean / shape) - s * log1p(shape / mean)


def _log_gamma(x: Floats) -> Floats:
    """log Gamma(x) - log(2 pi) / 2 of numbers > 0, by Stirling's series at x + 8."""
    below, z = x * (x + 1.0) * (x + 2.0) * (x + 3.0), x + 8.0
    below = below * ((x + 4.0) * (x + 5.0) * (x + 6.0) * (x + 7.0))
    r = 1.0 / (z * z)
    series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r / 1680.0))) / z
    return (z - 0.5) * log(z) - z + series - log(below)


def _gammas(own: Any, shape: Floats) -> Floats:
    flat, x = np.ascontiguousarray(np.broadcast_to(shape, own.shape)).reshape(-1), np.empty(own.size)
    op("gammas", 100 * x.size)(own.reshape(-1), flat, x)
    return x.reshape(own.shape)


def _in_order(x: Floats) -> Floats:
    """The sum over the last axis, from the first to the last."""
    return np.cumsum(x, -1)[..., -1]
