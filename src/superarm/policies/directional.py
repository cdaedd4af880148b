"""Directional policies: greedy with one confidence bound per arm, on the sum that the arm would add to the batch."""

from typing import Any, ClassVar

import numpy as np

from superarm.actions.base import new_batches, pick_arms
from superarm.actions.subsets import Subsets
from superarm.core.arrays import Bools, Floats, Ints, best_arms
from superarm.core.component import Component, named
from superarm.core.directions import direction_bounds
from superarm.core.errors import InvalidArgument
from superarm.core.moments import Moments
from superarm.core.ops import op
from superarm.core.support import Dense
from superarm.core.tally import View
from superarm.indices import KL, Index, KLMoss
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.default import Default
from superarm.oracles.greedy import Greedy
from superarm.oracles.heaviest import Modular
from superarm.policies.base import Policy, try_every_arm
from superarm.policies.index import IndexPolicy
from superarm.policies.memory import MomentMemory
from superarm.problem import Problem
from superarm.rewards import Coverage


class SampleVariance(Component):
    """How the empirical variance of a weighted sum of an arm's items is bounded."""

    products: ClassVar[bool] = False
    """Whether the sums of products of any two items have to be recorded."""


class Triangle(SampleVariance):
    r"""The triangle inequality with the sum of :math:`u_i X_i`: memory and time grow with the number of items.

    The formula is that of :func:`superarm.core.directions.direction_bounds`; u are the item weights at the time when
    the tally was made. Exact where c is a multiple of u, as for the first arm of a batch.
    """


class Covariance(SampleVariance):
    """The empirical covariance: exact for all weights, with memory and time that grow with the square of the items."""

    products = True


class DirectionalPolicy(Policy[Any]):
    r"""Greedy with one confidence bound per arm, on the sum that the arm would add to the batch.

    For a reward whose gain is linear in the arm's parameters, an arm adds :math:`\sum_i c_i p_{ij}` to a batch, with
    weights c that depend on the batch alone (for coverage, :math:`c_i = w_i\prod_l(1 - p_{il})` over the arms l chosen
    so far). The sum :math:`\sum_i c_i X_{ij}` was observed in every pull of arm j, so that its mean has a bound of its
    own, which knows how the items of the arm vary together. Each step adds the arm with the largest

    .. math:: U_j = b\,U\bigl(\tfrac{m_j}{b}, \tfrac{v_j}{b^2}, \tfrac{h_j}{b}, x_j\bigr), \qquad b = \sum_i c_i,\
              x_j = level(N_j, t)

    where m, v and h are the empirical mean of the sum, a bound of its empirical variance (``spread``) and one of its
    largest value, U is the bound of :mod:`superarm.core.directions`, and c is computed at the empirical means.
    Derived for superarm from the index of [CappeEtAl2013]_ and greedy, [NemhauserWolseyFisher1978]_; what is proved is
    in ``docs/theory/directional.md``.

    With one binary item, or equal items that always agree, this is the index policy itself. An arm with pulls of which
    an entry was not seen, or that the moments do not hold, has the smaller of this bound from the pulls they hold and
    of the sum of the bounds of its entries from all pulls. On a reward whose gain is not linear, or an action set that
    greedy does not serve, it decides as the index policy with bounds per entry.

    Parameters
    ----------
    index
        The index whose ``level`` is used, and whose ``score`` where bounds per entry are needed.
    spread
        How the variance of a sum is computed: ``Triangle()`` or ``Covariance()``.
    oracle
        The oracle that suits the problem decides whether greedy serves it.

    Examples
    --------
    >>> DirectionalPolicy(KLMoss())
    DirectionalPolicy(index=KLMoss(), spread=Triangle(), oracle=Default())
    """

    index: Index
    spread: SampleVariance = Triangle()
    oracle: Oracle = Default()
    caveat = (
        "On rewards whose gain is not linear in the parameters of an arm, and on action sets that greedy does not "
        "serve, its bounds are those of single entries, as those of the index policy."
    )

    def check(self) -> None:
        self.require_family("index", Index, "KLMoss()")
        self.require_family("spread", SampleVariance, "Triangle()")
        self.require_family("oracle", Oracle, "Greedy()")
        if not self.index.monotone:
            raise InvalidArgument("index", "a sampled index has no level", "take e.g. KLMoss()", "DirectionalPolicy")

    def validate(self, problem: Problem) -> None:
        self.oracle.validate(problem)

    def applies(self, problem: Problem) -> bool:
        """Whether bounds per arm are used: the gain is linear, and greedy serves the problem."""
        oracle = self.oracle.resolve(problem) if isinstance(self.oracle, Default) else self.oracle
        greedy = isinstance(oracle, Greedy) or (isinstance(oracle, Modular) and problem.actions.matroid)
        return greedy and problem.reward.linear_gain

    @property
    def by_entry(self) -> IndexPolicy:
        """The policy with bounds per entry."""
        return IndexPolicy(self.index, self.oracle)

    def new_memory(self, problem: Problem, replications: int, partial: bool = False) -> Any:
        """One with moments, or that of the policy with bounds per entry."""
        if not self.applies(problem):
            return self.by_entry.new_memory(problem, replications, partial)
        return MomentMemory(self, problem, replications, partial)

    def moments(self, problem: Problem, rows: int) -> Moments:
        """Moments of no observations."""
        return Moments(problem.support, problem.weights, rows, self.spread.products)

    def choose(self, problem: Problem, view: View, memory: Any) -> Ints:
        if not self.applies(problem):
            return self.by_entry.choose(problem, view, memory)
        return try_every_arm(problem, view, lambda: self._grow(problem, view, memory.tally.moments))

    def _grow(self, problem: Problem, view: View, moments: Moments) -> Ints:
        reward, tally, step = problem.reward, view.tally, _Steps(self, problem, view, moments)
        if type(reward) is Coverage and type(problem.actions) is Subsets and step.complete:
            return step.cover(problem)
        states = reward.empty_states(problem, len(view))

        def pick(allowed: Bools) -> Ints:
            c = reward.derivative(problem.weights[None], states, 0.0)
            return step(np.ascontiguousarray(np.broadcast_to(c, states.shape)), allowed)

        return pick_arms(
            problem.actions, view, pick, lambda arm: problem.support.join(states, tally.mean, arm, reward.join)
        )

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


class _Steps:
    """What is the same for all steps of a choice: the levels of arms, and bounds per entry where they are needed."""

    def __init__(self, policy: DirectionalPolicy, problem: Problem, view: View, moments: Moments) -> None:
        self.view, self.support, self.moments = view, problem.support, moments
        whole, pulls = self.moments.pulls, view.tally.pulls
        known = np.where(whole > 0.0, view.counts - (pulls - whole), 1.0)
        level = policy.index.level(known, view.t, problem.k / problem.n_arms)
        self.level = np.ascontiguousarray(np.where(whole > 0.0, level, np.inf))  # nothing is known: the bound is 1
        self.covariance = self.moments.covariance if policy.spread.products else self.moments.covariance[:, :, :0]
        self.q, self.limited = None, whole < pulls
        if self.limited.any():
            self.q = policy.by_entry.scores(problem, view)

    @property
    def complete(self) -> bool:
        """Whether every arm has an entry for every item, and every pull was seen whole."""
        return self.q is None and isinstance(self.support, Dense)

    def sample(self) -> tuple[Floats, ...]:
        m = self.moments
        return m.mean, m.deviation, m.top, np.ascontiguousarray(self.covariance), m.spread, m.peak

    def cover(self, problem: Problem) -> Ints:
        """All steps at once, for Coverage on Subsets."""
        view, u = self.view, self.moments.reference
        out, size = new_batches(problem.actions, view), view.pinned.shape[1]
        direction = (self.level, u, problem.weights, view.tally.mean, view.counts, view.eligible, size, out)
        op("directional_coverage", 50 * self.level.size * problem.n_items)(*self.sample(), *direction)
        return out

    def __call__(self, c: Floats, allowed: Bools) -> Ints:
        """The arm (R,) of the largest bound among the ``allowed`` ones, for the weights ``c`` (R, n_items)."""
        limit = np.full(self.level.shape, np.inf)
        if self.q is not None:
            limit = np.where(self.limited, self.support.sum_items(self.support.by_item(c) * self.q), np.inf)
        return (self._dense if isinstance(self.support, Dense) else self._sparse)(c, limit, allowed)

    def _dense(self, c: Floats, limit: Floats, allowed: Bools) -> Ints:
        u, arm, bound = self.moments.reference, np.empty(len(c), np.int64), np.empty(len(c))
        ratio = np.divide(c, u, out=np.zeros(c.shape), where=u > 0.0)
        order = np.argsort(ratio, 1, kind="stable")
        direction = (self.level, limit, u, c, ratio, order, self.view.counts, allowed, arm, bound)
        op("directional_step", 50 * self.level.size * len(u))(*self.sample(), *direction)
        return arm

    def _sparse(self, c: Floats, limit: Floats, allowed: Bools) -> Ints:
        """First the arm of the largest roof, then those whose roof reaches its bound."""
        roofs, bounds = np.where(allowed, np.minimum(self._roofs(c), limit), -np.inf), np.full(allowed.shape, -np.inf)
        lead = np.zeros(allowed.shape, bool)
        lead[np.arange(len(c)), roofs.argmax(1)] = True
        for _ in range(2):
            r, j = np.nonzero(lead & allowed)
            bounds[r, j] = np.minimum(self._bounds(c, r, j), limit[r, j])
            lead = (roofs >= bounds.max(1)[:, None]) & (bounds == -np.inf)
        return best_arms(bounds, self.view.counts)

    def _bounds(self, c: Floats, r: Ints, j: Ints) -> Floats:
        m, own = self.moments, r if len(self.moments) > 1 else np.zeros_like(r)
        places = self.support.row_entries[j]
        inside, items = places >= 0, self.support.items[places]
        mean, deviation, top = (
            np.where(inside, part[own[:, None], places], 0.0) for part in (m.mean, m.deviation, m.top)
        )
        rows, u = np.where(inside, c[r[:, None], items], 0.0), np.where(inside, m.reference[items], 0.0)
        sample = (mean, deviation, top, m.spread[own, j], m.peak[own, j], self.covariance[own, j])
        return direction_bounds(rows, u, sample, self.level[r, j])

    def _sums(self, c: Floats, entries: Floats) -> Floats:
        """The sums of ``c`` (R, n_items) times ``entries`` over the items of each arm, (R, n_arms)."""
        sums, entries = (
            np.empty(self.level.shape),
            np.ascontiguousarray(np.broadcast_to(entries, (len(c), self.support.size))),
        )
        op("sparse_sums", 8 * entries.size)(self.support.start, self.support.items, c, entries, sums)
        return sums

    def _roofs(self, c: Floats) -> Any:
        r"""A number (R, n_arms) that no bound exceeds, in closed form; ``docs/theory/directional.md`` has the notation.

        Let :math:`\kappa>0`, :math:`\kappa(1-m)\le1`, :math:`\varrho=\kappa(h-m)\le\frac12`,
        :math:`A=x+\kappa^2v\psi(\varrho)` and
        :math:`\psi(\varrho)=\frac12+\frac\varrho3+\frac{\varrho^2}4+\frac{2\varrho^3}5`. Then

        .. math:: U\le m+\frac{1-e^{-A}}\kappa\le m+\frac A\kappa\Bigl(1-\frac A2+\frac{A^2}6\Bigr).

        Proof: let :math:`\lambda=\kappa/(1+\kappa m)\le1`. For the two-point law
        :math:`(1-\lambda Y)/(1-\lambda m)=1-r`, :math:`r=\kappa(Y-m)\le\varrho`, and
        :math:`-\log(1-r)-r=r^2\int_0^1\frac{s\,ds}{1-rs}`, whose integral grows with r, is at most
        :math:`r^2\int_0^1\frac{s\,ds}{1-\varrho s}=r^2\sum_n\frac{\varrho^n}{n+2}\le r^2\psi(\varrho)`.
        As :math:`Er=0` and :math:`Er^2=\kappa^2v`, :math:`-E\log(1-r)\le\kappa^2v\psi(\varrho)`. So
        :math:`U\le U_\lambda\le m+\frac{1-\lambda m}\lambda(1-e^{-A})`; here :math:`(1-\lambda m)/\lambda=1/\kappa`.
        The form grows with the first m, with v and h, and falls with the m in h - m and 1 - m: an upper bound of the
        mean serves for the first and a lower one for the second.

        The deviation of a sum is at most :math:`aS_j + \sum_i|c_i - au_i|\sqrt{\hat V_{ij}}` for any a.
        """
        m, x, u = self.moments, self.level, self.moments.reference[None]
        ratio = np.divide(c, u, out=np.where(c > 0.0, np.inf, 0.0), where=u > 0.0)
        a = np.median(np.where(ratio < np.inf, ratio, 0.0), 1)[:, None]
        b = self._sums(c, np.ones_like(m.mean))
        share = 1.0 / np.where(b > 0.0, b, 1.0)
        mean = share * self._sums(c, m.mean)
        deviation = share * (a * m.spread + self._sums(np.abs(c - a * u), m.deviation))
        with np.errstate(all="ignore"):
            most = np.fmin(self._sums(c, m.top), ratio.max(1)[:, None] * m.peak)
        above = np.maximum(0.0, np.minimum(1.0, share * most) - mean)
        steep = deviation / np.sqrt(2.0 * np.maximum(x, 1e-60)) + (2.0 / 3.0) * above
        inverse = np.maximum(np.maximum(steep, 1.0 - mean), np.maximum(2.0 * above, 1e-9))
        w = above / inverse
        with np.errstate(all="ignore"):
            width = x * inverse + deviation * deviation / inverse * (0.5 + w * (1.0 / 3.0 + w * (0.25 + 0.4 * w)))
            e = width / inverse
            roof = mean + width * (1.0 - e * (0.5 - e * (1.0 / 6.0)))
        return b * (1.0 + 1e-7) * np.where(roof < 1.0, roof, 1.0)


@named
def directional_kl_moss(spread: SampleVariance = Triangle(), oracle: Oracle = Default()) -> DirectionalPolicy:  # noqa: B008
    r"""Greedy with one bound per arm, on the sum that it would add to the batch, at the level of KL-MOSS.

    .. math:: x_j = \log^+\Bigl(\frac{t}{N_j}\cdot\frac{k}{n\_arms}\Bigr) / N_j

    superarm's own, with the level of ``kl_moss``, after [AudibertBubeck2009]_ and [MenardGarivier2017]_. The bound of
    an arm uses no data of other arms, and there is no constant to tune. No regret bound is known at this level, as none
    is for ``kl_moss`` on semi-bandits. Its regret on many instances is in ``docs/background/choosing-a-policy.md``.

    Parameters
    ----------
    spread
        How the variance of a sum of items is computed: ``Triangle()``, with memory that grows with the number of
        items, or ``Covariance()``, which is exact and whose memory and time grow with its square.
    oracle
        The oracle for problems that greedy does not serve; by default the one that suits the problem.

    Examples
    --------
    >>> directional_kl_moss().index
    KLMoss()
    """
    return DirectionalPolicy(KLMoss(), spread, oracle)


@named
def directional_kl_ucb(
    rho: float = 1.0,
    c: float = 3.0,
    spread: SampleVariance = Triangle(),  # noqa: B008
    oracle: Oracle = Default(),  # noqa: B008
) -> DirectionalPolicy:
    r"""Greedy with one bound per arm, on the sum that it would add, at the level :math:`\rho\log t + c\log\log t`.

    superarm's own. What is proved, and for which index, is in ``docs/theory/directional.md``.

    Parameters
    ----------
    rho, c
        The constants of the level, as those of ``kl_ucb``.
    spread, oracle
        As those of :func:`directional_kl_moss`.

    Examples
    --------
    >>> directional_kl_ucb().index
    KL(rho=1, c=3)
    """
    return DirectionalPolicy(KL(rho, c), spread, oracle)
