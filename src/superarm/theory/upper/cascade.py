r"""Lists that are read from the top: bounds for arms that are observed with some probability only.

The proof is in ``docs/theory/triggered.md``. Position n of a list is reached with probability :math:`\tau_n`, and the
gap of a list is at most

.. math:: \Bigl(y\bar M\sum_{i,n} w_i\tau_{in}\frac{f}{N_{in}}\Bigr)^{1/2} + z\sum_{i,n} w_i\tau_{in}\frac{f}{N_{in}}

where y and z depend on the cascade and on the index: this is the TPVM condition of [LiuEtAl2022]_, proved here with its
constants. :math:`N_{ij}` counts observations.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from superarm.core.errors import InvalidArgument
from superarm.environments import Cascade, ConjunctiveCascade, Environment, FreeSamples
from superarm.rewards import Conjunctive, Coverage
from superarm.simulation.instances import Instance
from superarm.theory.bound import BERNSTEIN_FAILURES, Bound, Setting, grow, initial_and_failed, setting
from superarm.theory.gaps import Gaps
from superarm.theory.upper.kl_ucb import DEFAULT_LEVEL, Exploration

CAP = 4.0
"""No single observation is charged more than this times the weight of its item."""


class CascadeWidth(NamedTuple):
    """The constants y and z of a cascade and an index."""

    main: float
    slow: float


KL_WIDTHS: Mapping[type, CascadeWidth] = {Cascade: CascadeWidth(2.0, 0.0), ConjunctiveCascade: CascadeWidth(8.0, 0.0)}
"""For the KL index, whose angles need no second term."""

BERNSTEIN_WIDTH = CascadeWidth(48.0, 28.0)
"""For the index of BC-UCB, in both cascades."""

BERNSTEIN_LEVEL = Exploration(np.log, lambda t: BERNSTEIN_FAILURES)


def upper_bound_cascade(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""BCUCB-T (``bcucb_t()``, and ``bc_ucb()``) on a disjunctive or conjunctive cascade.

    .. math:: R(T) \le \bar M\sum_j\Bigl[\Bigl(\frac{96\bar M}{\Delta_{j,\min}} + 112\Bigr)
              \log\Bigl(1 + \frac{4K\bar M}{\Delta_{j,\min}}\Bigr)\log T + 4\Bigr]
              + L\Delta_{\max}\Bigl(1 + M\frac{2\pi^2}{3}\Bigr)

    Theorem of ``docs/theory/triggered.md``, derived for superarm under the TPVM condition of [LiuEtAl2022]_, which the
    page proves for both cascades. The batch size enters as log K. Assumes the same means in every round, arms that are
    independent within a round, every arm in some batch, immediate feedback, and at most one free sample of each arm;
    for ``bc_ucb()``, which first tries every arm, the action set ``Subsets``, where it does so at the top of a list.

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_cascade(instances.cascade(n_arms=16, k=4), 10**6)):.4g}"
    '1.609e+06'
    """
    _find_cascade(instance)
    return _cascade("upper_bound_cascade", setting(instance, known), horizon, BERNSTEIN_WIDTH, BERNSTEIN_LEVEL)


def upper_bound_cascade_kl(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""``cascade_kl_ucb()`` and ``kl_ucb()`` on a disjunctive or conjunctive cascade.

    With :math:`f(T) = \log T + 3\log^+\log T`,

    .. math:: R(T) \le \bar M\sum_j\Bigl[\frac{2y\bar M}{\Delta_{j,\min}}
              \log\Bigl(1 + \frac{4K\bar M}{\Delta_{j,\min}}\Bigr)f(T) + 4\Bigr]
              + L\Delta_{\max}\bigl(1 + 2eM(\log^+\log T + 2.3)\bigr)

    where y = 2 for the disjunctive and y = 8 for the conjunctive cascade. Theorem of ``docs/theory/triggered.md``,
    derived for superarm under the TPVM condition of [LiuEtAl2022]_ for the policy of [KvetonEtAl2015]_. Assumptions as
    for :func:`upper_bound_cascade`.

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_cascade_kl(instances.cascade(n_arms=16, k=4), 10**6)):.4g}"
    '9.685e+04'
    """
    width = KL_WIDTHS[_find_cascade(instance)]
    return _cascade("upper_bound_cascade_kl", setting(instance, known), horizon, width, DEFAULT_LEVEL)


def _cascade(name: str, s: Setting, horizon: Any, width: CascadeWidth, exploration: Exploration) -> Bound:
    with np.errstate(divide="ignore"):
        spread = np.log1p(CAP * s.k * s.weight / s.minimum)
        main = float(np.sum(2.0 * width.main * s.weight / s.minimum * spread)) * s.weight
        slow = float(np.sum(4.0 * width.slow * spread)) * s.weight if width.slow else 0.0
    observed, failed = CAP * s.weight * len(s.minimum), initial_and_failed(s, exploration.failures)
    return grow(name, s, horizon, main, slow, lambda t: observed + failed(t), exploration.level)


def _find_cascade(instance: Instance) -> type:
    """The kind of cascade that answers; refused if the theorem is not for this instance."""
    environment: Environment = instance.environment
    if isinstance(environment, FreeSamples) and environment.n <= 1:
        environment = environment.environment
    kinds: Mapping[type, type] = {Cascade: Coverage, ConjunctiveCascade: Conjunctive}
    for kind, reward in kinds.items():
        if isinstance(environment, kind) and isinstance(instance.problem.reward, reward):
            return kind
    raise InvalidArgument(
        "instance", "it is not a cascade with its own reward, or has more than one free sample per arm",
        "give Cascade with Coverage, or ConjunctiveCascade with Conjunctive",
    )  # fmt: skip
