r"""The smoothness of a reward, [MerlisMannor2019]_ (definition of monotone Gini-smooth rewards).

.. math:: \gamma_\infty = \sup_{x, i}\frac{\partial f}{\partial x_i}, \qquad
          \gamma_g = \sup_x\sqrt{\sum_i x_i(1 - x_i)\Bigl(\frac{\partial f}{\partial x_i}\Bigr)^2}
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from superarm.core.arrays import Floats, count, floats
from superarm.core.errors import InvalidArgument
from superarm.rewards import Reward, Smoothness, has_proof
from superarm.theory.certificate import MAX_BOXES, enclose_slopes, maximise_slopes, slopes

Status: TypeAlias = Literal["exact", "bounded", "claimed", "not certified"]
CHECKED_BOXES = 500
"""A claim is checked on so many boxes, beside maximisation."""
MAX_MULTILINEAR_K = 16
"""Multilinear rewards are evaluated on all corners of the cube up to this dimension."""


@dataclass(frozen=True)
class SmoothnessCertificate:
    """Smoothness parameters, and how they are known.

    Attributes
    ----------
    gamma_inf, gamma_g
        Exact values or proven upper bounds, which a bound may use; infinite if neither is known.
    status
        ``exact`` (closed form), ``bounded`` (proven from above), ``claimed`` (tested and not refuted, not proven) or
        ``not certified``.
    found_inf, found_g
        The largest values that maximisation found: lower estimates.
    argmax_inf, argmax_g
        The points where they are attained, (k,).
    """

    gamma_inf: float
    gamma_g: float
    status: Status
    found_inf: float
    found_g: float
    argmax_inf: Floats
    argmax_g: Floats

    def __str__(self) -> str:
        bound = "not certified from above" if self.status == "not certified" else f"<= {self.gamma_g:.6g}"
        exact = f"= {self.gamma_g:.6g}" if self.status == "exact" else bound
        top = f"= {self.gamma_inf:.6g}" if self.status == "exact" else f"<= {self.gamma_inf:.6g}"
        return (
            f"gamma_inf {top} (found {self.found_inf:.6g}), gamma_g {exact} (found {self.found_g:.6g} at "
            f"{np.array2string(self.argmax_g, precision=4)}), {self.status}"
        )


class Refuted(InvalidArgument):
    """A claimed smoothness that a point of the cube contradicts: ``point`` (k,) has slope or Gini slope ``value``."""

    def __init__(self, parameter: str, claim: float, value: float, point: Floats) -> None:
        where = np.array2string(point, precision=6)
        super().__init__(parameter, f"claimed {claim:.9g}, but is {value:.9g} at x = {where}", "claim at least that")
        self.parameter, self.claim, self.value, self.point = parameter, claim, value, point


def smoothness(
    reward: Any, k: int, claim: tuple[float, float] | None = None, boxes: int = MAX_BOXES
) -> SmoothnessCertificate:
    r"""The smoothness of ``reward`` for batches of ``k`` arms, and how it is known.

    The rewards of superarm have closed forms: coverage exactly :math:`\gamma_g = 1/2`, where [MerlisMannor2019]_ gives
    the bound :math:`1/\sqrt e`; logistic by a search in one dimension. A reward of your own, a component or a plain
    function of k parameters, gets a lower estimate by maximisation, and an upper bound by interval arithmetic if its
    code allows: arithmetic and NumPy's ``exp``, ``log``, ``sqrt``, ``minimum`` and their like, no branching on
    parameters. A ``claim`` of (gamma_inf,
    gamma_g), or the one that its own ``smoothness(k)`` makes, is tested; a wrong one raises :class:`Refuted`, with the
    point that refutes it.

    >>> from superarm.rewards import Coverage
    >>> found = smoothness(Coverage(), k=10)
    >>> found.gamma_inf, found.gamma_g, found.status
    (1.0, 0.5, 'exact')
    >>> smoothness(lambda x: x[0] * x[1], k=2, claim=(1.0, 0.4))
    Traceback (most recent call last):
    superarm.theory.smoothness.Refuted: gamma_g: claimed 0.4, but is 0.5 at x = [...]; claim at least that
    """
    count(k, "k", 1)
    own = reward.smoothness(k) if isinstance(reward, Reward) else None
    if own is not None and has_proof(reward):
        top, at, gini, at_gini = maximise_slopes(slopes(reward, k), k) if claim is not None else _not_searched(k)
        _check_claim(claim, top, at, gini, at_gini)
        return SmoothnessCertificate(*own, "exact", top, gini, at, at_gini)
    claims = own if claim is None else claim
    (top, at, gini, at_gini), above = _test_claim(reward, int(k), claims, boxes)
    if above is not None:
        return SmoothnessCertificate(above[0], above[1], "bounded", top, gini, at, at_gini)
    if claims is not None:
        return SmoothnessCertificate(claims[0], claims[1], "claimed", top, gini, at, at_gini)
    return SmoothnessCertificate(math.inf, math.inf, "not certified", top, gini, at, at_gini)


def _not_searched(k: int) -> tuple[float, Floats, float, Floats]:
    return math.nan, np.full(k, math.nan), math.nan, np.full(k, math.nan)


def _check_claim(claim: tuple[float, float] | None, top: float, at: Floats, gini: float, at_gini: Floats) -> None:
    if claim is None:
        return
    for name, said, found, point in (("gamma_inf", claim[0], top, at), ("gamma_g", claim[1], gini, at_gini)):
        if found > said * (1.0 + 1e-6) + 1e-9:
            raise Refuted(name, float(said), found, point)


def _test_claim(reward: Any, k: int, claim: tuple[float, float] | None, boxes: int) -> tuple[Any, Any]:
    """What maximisation finds, and proven bounds if there are any, also where they are attained: none refutes it."""
    gradient = slopes(reward, k)
    found = maximise_slopes(gradient, k)
    _check_claim(claim, *found)
    differentiable = isinstance(reward, Reward) and type(reward).derivative is not Reward.derivative
    above = enclose_slopes(reward, k, boxes) if differentiable else None
    if above is None or not _differentiates(reward, k):
        return found, None
    for at in above[2:]:  # a steep place that is too narrow for a search
        slope = gradient(at)
        _check_claim(claim, float(slope.max()), at, float(np.sqrt(np.sum(at * (1.0 - at) * slope**2))), at)
    return found, above[:2]


def check_own_claim(reward: Reward, k: int) -> None:
    """Refuse what a reward's own ``smoothness(k)`` claims if a point is found that refutes it."""
    claim = reward.smoothness(k)
    if claim is not None and not has_proof(reward):
        _test_claim(reward, k, claim, CHECKED_BOXES)


def _differentiates(reward: Any, k: int) -> bool:
    """Whether the reward's ``derivative`` agrees with differences of its ``worth`` at random points."""

    def worth(x: Floats) -> float:
        state = reward.start(np.ones(1))
        for q in x:
            state = reward.join(state, np.full(1, q))
        return float(reward.worth(np.ones(1), state)[0])

    rng = np.random.default_rng(0)
    points = np.concatenate([rng.uniform(0.0, 1.0, (32, k)), rng.choice([1e-4, 1.0 - 1e-4], (16, k))])  # and corners
    numeric, stated = slopes(worth, k), slopes(reward, k)
    return all(np.allclose(numeric(x), stated(x), rtol=1e-4, atol=1e-6) for x in points)


def multilinear(f: Callable[[tuple[int, ...]], float], k: int) -> SmoothnessCertificate:
    r"""The smoothness of :math:`x \mapsto E f(X)`, the multilinear extension of a function ``f`` of k independent bits.

    :math:`\gamma_\infty` is the largest change by one bit, exactly, and
    :math:`\gamma_g \le \sup_x sd f(X) \le (\max f - \min f)/2`, exactly 1/2 for a monotone Boolean f that is not
    constant (``docs/theory/README.md``). Derived for superarm; the definition is that of [MerlisMannor2019]_.

    >>> multilinear(lambda bits: float(sum(bits) >= 2), k=3).gamma_g
    0.5
    """
    if not 1 <= k <= MAX_MULTILINEAR_K:
        raise InvalidArgument("k", f"{k}", f"give 1 <= k <= {MAX_MULTILINEAR_K}, since all corners are evaluated")
    corners = list(itertools.product((0, 1), repeat=k))
    value = np.array([float(f(bits)) for bits in corners]).reshape((2,) * k)
    changes = [np.diff(value, axis=i) for i in range(k)]
    steps = np.array([c.max() for c in changes])
    monotone = all(bool((c >= 0.0).all()) for c in changes)
    if not monotone:
        raise InvalidArgument(
            "f", "it decreases where a bit is set", "give a monotone function, which the theory needs"
        )
    spread = float(value.max() - value.min())
    boolean = set(np.unique(value)) == {0.0, 1.0}
    at, at_gini = _steepest_edge(changes, int(np.argmax(steps)), k)
    return SmoothnessCertificate(
        float(steps.max()), spread / 2.0, "exact" if boolean else "bounded", float(steps.max()),
        float(steps.max()) / 2.0, at, at_gini,
    )  # fmt: skip


def _steepest_edge(changes: list[Any], i: int, k: int) -> tuple[Floats, Floats]:
    """A corner where bit i matters most, and that corner with the bit at 1/2, where the Gini slope is half of it."""
    corner = np.array(np.unravel_index(int(np.argmax(changes[i])), changes[i].shape), float)
    at_gini = corner.copy()
    at_gini[i] = 0.5
    assert len(corner) == k
    return corner, at_gini


def sensitivity(smoothness: Smoothness | SmoothnessCertificate, u: Any, v: Any = 0.0) -> float:
    r"""The largest rise of one item's reward when parameters rise by at most :math:`u\sqrt{x(1-x)} + v`.

    .. math:: f(x + \epsilon) - f(x) \le 2\gamma_g\Bigl(\sum_j u_j^2\Bigr)^{1/2} + \gamma_\infty\sum_j v_j, \qquad
              0 \le \epsilon_j \le \min\bigl\{u_j\sqrt{x_j(1 - x_j)} + v_j,\ 1 - x_j\bigr\}

    for every x. [MerlisMannor2019]_ (lemma paramSens). Differs: the constant is 2 where the paper has
    :math:`3\sqrt2` (``docs/theory/README.md``).

    Parameters
    ----------
    smoothness
        The parameters of the reward for batches of this size: ``reward.smoothness(k)`` or ``theory.smoothness``.
    u, v
        Numbers, or one number per arm of the batch; not negative.

    Examples
    --------
    >>> from superarm.rewards import Coverage
    >>> sensitivity(Coverage().smoothness(3), u=[0.3, 0.0, 0.4], v=0.01)
    0.53
    """
    u_array, v_array = floats(u, "u", low=0.0, high=np.inf), floats(v, "v", low=0.0, high=np.inf)
    u_all, v_all = np.broadcast_arrays(np.atleast_1d(u_array), v_array)
    return float(2.0 * smoothness.gamma_g * np.sqrt(np.sum(u_all**2)) + smoothness.gamma_inf * np.sum(v_all))
