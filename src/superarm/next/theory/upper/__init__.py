"""Upper bounds of the regret on a given instance, [MerlisMannor2019]_ and after; proofs are in ``docs/theory``.

One function per theorem: ``upper_bound_…`` of an instance; most are also available for given numbers, a ``Setting``.

- ``paper.py``: the statements of the paper and of its comparison, corrected; and as printed.
- ``bc_ucb.py``: BC-UCB with sharper constants, and the charges that the theorems of the next files share.
- ``kl_ucb.py``: KL-UCB at both levels, and with late feedback.
- ``local.py``: KL-UCB with the slopes of the reward at the true parameters.
- ``directional.py``: the directional policy, where its direction is known.
- ``cascade.py``: lists that are read from the top.
- ``contextual.py``: the policies on linear models.
"""

from superarm.next.theory.upper.bc_ucb import sharp, sharp_gap_free, upper_bound_sharp, upper_bound_sharp_gap_free
from superarm.next.theory.upper.cascade import upper_bound_cascade, upper_bound_cascade_kl
from superarm.next.theory.upper.directional import upper_bound_directional, upper_bound_directional_greedy
from superarm.next.theory.upper.kl_ucb import (
    kl,
    kl_default,
    kl_default_gap_free,
    kl_gap_free,
    kl_late,
    upper_bound_kl,
    upper_bound_kl_default,
    upper_bound_kl_default_gap_free,
    upper_bound_kl_gap_free,
    upper_bound_kl_late,
)
from superarm.next.theory.upper.local import local_slopes, upper_bound_local, upper_bound_local_default
from superarm.next.theory.upper.paper import (
    corollary,
    theorem,
    trivial,
    upper_bound,
    upper_bound_gap_free,
    upper_bound_sequences,
    upper_bound_unsplit,
    upper_bound_wang_chen,
    wang_chen,
)

__all__ = [
    "corollary",
    "kl",
    "kl_default",
    "kl_default_gap_free",
    "kl_gap_free",
    "kl_late",
    "local_slopes",
    "sharp",
    "sharp_gap_free",
    "theorem",
    "trivial",
    "upper_bound",
    "upper_bound_cascade",
    "upper_bound_cascade_kl",
    "upper_bound_directional",
    "upper_bound_directional_greedy",
    "upper_bound_gap_free",
    "upper_bound_kl",
    "upper_bound_kl_default",
    "upper_bound_kl_default_gap_free",
    "upper_bound_kl_gap_free",
    "upper_bound_kl_late",
    "upper_bound_local",
    "upper_bound_local_default",
    "upper_bound_sequences",
    "upper_bound_sharp",
    "upper_bound_sharp_gap_free",
    "upper_bound_unsplit",
    "upper_bound_wang_chen",
    "wang_chen",
]
