r"""How far a reward can rise when its parameters do: the sensitivity lemma, [MerlisMannor2019]_ (lemma paramSens)."""

from typing import Any

import numpy as np

from superarm.arrays import floats
from superarm.rewards import Smoothness
from superarm.theory.smoothness import SmoothnessCertificate


def sensitivity(smoothness: Smoothness | SmoothnessCertificate, u: Any, v: Any = 0.0) -> float:
    r"""The largest rise of one item's reward when parameters rise by at most :math:`u\sqrt{x(1-x)} + v`.

    .. math:: f(x + \epsilon) - f(x) \le 2\gamma_g\Bigl(\sum_j u_j^2\Bigr)^{1/2} + \gamma_\infty\sum_j v_j, \qquad
              0 \le \epsilon_j \le \min\bigl\{u_j\sqrt{x_j(1 - x_j)} + v_j,\ 1 - x_j\bigr\}

    for every x. [MerlisMannor2019]_ (lemma paramSens). Differs: the constant is 2 where the paper has
    :math:`3\sqrt2` (``docs/theory/sensitivity.md``).

    Parameters
    ----------
    smoothness
        The parameters of the reward for batches of this size: ``reward.smoothness(k)`` or ``theory.smoothness``.
    u, v
        Numbers, or one number per arm of the batch; not negative.

    Examples
    --------
    >>> import superarm as sa
    >>> sensitivity(sa.Coverage().smoothness(3), u=[0.3, 0.0, 0.4], v=0.01)
    0.53
    """
    u_array, v_array = floats(u, "u", low=0.0, high=np.inf), floats(v, "v", low=0.0, high=np.inf)
    u_all, v_all = np.broadcast_arrays(np.atleast_1d(u_array), v_array)
    return float(2.0 * smoothness.gamma_g * np.sqrt(np.sum(u_all**2)) + smoothness.gamma_inf * np.sum(v_all))
