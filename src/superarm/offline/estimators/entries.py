r"""Means of all entries, and intervals for them that hold at all times at once.

Of an entry with mean p, let :math:`S_n` be the sum of its first n outcomes in [0, 1], and :math:`\hat p = S_n/n`. With
probability at least :math:`1 - \delta`, for all n at once,

.. math:: n\,kl(\hat p, p) \le \log\frac1\delta + \log\pi - \log B(S_n + \tfrac12,\ n - S_n + \tfrac12) - n H(\hat p)

where B is the beta function and H the entropy: the mixture martingale with the prior Beta(1/2, 1/2) of
[KrichevskyTrofimov1981]_, and Ville's inequality. The last three terms are at most :math:`\log 2 + \frac12\log n`. The
proof is in ``docs/theory/offline.md``. It needs that an outcome has mean p whatever happened before: the rounds in
which an arm was shown may have been chosen by any policy that looks at the past.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from superarm.core.arrays import Bools, Floats
from superarm.core.tally import Tally
from superarm.indices import kl_upper
from superarm.problem import Problem

if TYPE_CHECKING:
    from superarm.offline.log import Log


class EntryMeans(NamedTuple):
    """How often each entry was observed in each group, and the sum of its outcomes, (n_groups, n_entries)."""

    seen: Floats
    total: Floats

    @property
    def mean(self) -> Floats:
        """The mean of each entry; 0 where nothing was observed."""
        return self.total / np.maximum(self.seen, 1.0)


class EntryIntervals(NamedTuple):
    """Lower ends, means and upper ends of all entries, (n_groups, n_entries)."""

    low: Floats
    mean: Floats
    high: Floats


def entry_means(log: "Log", rounds: Bools | None = None) -> EntryMeans:
    """The means of all entries over the rounds of a mask (n,); over all rounds by default."""
    used = log.observed if rounds is None else log.observed & rounds[log.rows.round][:, None]
    place = (log.groups[log.rows.round][:, None] * log.problem.n_entries + log.entries)[used]
    shape = (log.n_groups, log.problem.n_entries)
    size = shape[0] * shape[1]
    count = np.bincount(place, minlength=size).astype(float)
    total = np.bincount(place, log.rows.outcome[used], size).astype(float)
    return EntryMeans(count.reshape(shape), total.reshape(shape))


def seen_shares(log: "Log", rounds: Bools) -> Floats:
    r"""How often an entry was seen when its arm was shown, in the rounds of a mask (n,): (n_groups, n_entries).

    :math:`(1 + seen)/(1 + shown)`: exactly 1 if nothing is missing, and never 0.
    """
    shown = ((log.rows.slot >= 0) & rounds[log.rows.round])[:, None] & (log.entries >= 0)
    place = log.groups[log.rows.round][:, None] * log.problem.n_entries + log.entries
    shape = (log.n_groups, log.problem.n_entries)
    counts = [np.bincount(place[used], minlength=shape[0] * shape[1]) for used in (shown & log.observed, shown)]
    return np.asarray((1.0 + counts[0]) / (1.0 + counts[1])).reshape(shape)


def pooled_means(problem: Problem, tally: Tally) -> EntryMeans:
    """The means of all entries of a tally, as one group."""
    seen = np.broadcast_to(tally.counts(tally.pulls), tally.total.shape)
    return EntryMeans(*(problem.support.to_user(part[0]).reshape(1, -1) for part in (seen, tally.total)))


def threshold(count: Floats, total: Floats, delta: float) -> Floats:
    r"""The largest :math:`n\,kl(\hat p, p)` that the interval allows; see the module's formula.

    >>> round(float(threshold(np.array(1.0), np.array(0.0), 0.05)), 6) == round(float(np.log(2 / 0.05)), 6)
    True
    """
    from scipy.special import betaln, xlogy  # not above: importing it takes a seventh of the service's start

    mean = total / np.maximum(count, 1.0)
    entropy = -xlogy(mean, mean) - xlogy(1.0 - mean, 1.0 - mean)
    mixture = np.log(np.pi) - betaln(total + 0.5, count - total + 0.5) - count * entropy
    return np.asarray(np.log(1.0 / delta) + mixture)


def entry_intervals(means: EntryMeans, delta: float) -> EntryIntervals:
    """Intervals that hold for all entries and at all times together with probability 1 - ``delta``."""
    n_intervals = means.seen.size
    allowed = threshold(means.seen, means.total, delta / n_intervals)
    level = np.where(means.seen > 0.0, allowed / np.maximum(means.seen, 1.0), np.inf)
    mean = np.clip(means.mean, 0.0, 1.0)
    return EntryIntervals(np.minimum(1.0 - _invert(1.0 - mean, level), mean), mean, _invert(mean, level))


def _invert(mean: Floats, level: Floats) -> Floats:
    """The largest q with kl(mean, q) <= level, for each entry; 1 where nothing is known."""
    known = np.isfinite(level)
    high = kl_upper(mean.reshape(1, -1), np.where(known, level, 1.0).reshape(1, -1))
    return np.where(known, high.reshape(mean.shape), 1.0)
