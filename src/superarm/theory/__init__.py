"""The theory of the paper, computed on a concrete instance: smoothness, gaps, upper and lower bounds, the proof.

Bounds are functions of an instance and of one or more horizons; where the paper's statement is wrong or loose, the
docstring and ``docs/theory`` say how the function differs.

- ``smoothness.py``, ``certificate.py``, ``intervals.py``: the smoothness parameters of a reward, and their proof.
- ``gaps.py``, ``search.py``: the gaps of an instance, by enumeration or branch and bound.
- ``bound.py``, ``upper/``, ``lower.py``, ``graves_lai.py``: the bounds; ``sequences.py``: what Theorem 1 is made of.
- ``theorems.py``: which theorem is for which policy and instance, and what the theorems assume.
- ``proof.py``: the steps of the proof, checked along a run; ``report.py``: the bounds beside simulated regret.
"""

from superarm.theory.bound import Bound, Setting, crossover, setting
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.graves_lai import graves_lai
from superarm.theory.lower import LowerBound, kl_inf, lower_bound, lower_bound_gap_free, lower_bound_independent
from superarm.theory.proof import Trace, follow
from superarm.theory.report import bounds_report
from superarm.theory.sequences import Sequences, best_sequences, factor, geometric, levels
from superarm.theory.smoothness import Refuted, SmoothnessCertificate, multilinear, sensitivity, smoothness
from superarm.theory.theorems import theorems_for
from superarm.theory.upper.bc_ucb import (
    ChargeFactors,
    charge_factors,
    upper_bound_sharp,
    upper_bound_sharp_gap_free,
)
from superarm.theory.upper.cascade import upper_bound_cascade, upper_bound_cascade_kl
from superarm.theory.upper.contextual import CONTEXT_CAVEAT, upper_bound_c2_ucb, upper_bound_vac2_ucb
from superarm.theory.upper.directional import upper_bound_directional, upper_bound_directional_greedy
from superarm.theory.upper.kl_ucb import (
    upper_bound_kl,
    upper_bound_kl_default,
    upper_bound_kl_default_gap_free,
    upper_bound_kl_gap_free,
    upper_bound_kl_late,
)
from superarm.theory.upper.local import local_slopes, upper_bound_local, upper_bound_local_default
from superarm.theory.upper.paper import (
    printed_corollary,
    printed_theorem,
    printed_wang_chen,
    trivial,
    upper_bound,
    upper_bound_gap_free,
    upper_bound_sequences,
    upper_bound_unsplit,
    upper_bound_wang_chen,
)

__all__ = [
    "CONTEXT_CAVEAT",
    "Bound",
    "ChargeFactors",
    "Gaps",
    "LowerBound",
    "Refuted",
    "Sequences",
    "Setting",
    "SmoothnessCertificate",
    "Trace",
    "best_sequences",
    "bounds_report",
    "charge_factors",
    "crossover",
    "factor",
    "follow",
    "gaps",
    "geometric",
    "graves_lai",
    "kl_inf",
    "levels",
    "local_slopes",
    "lower_bound",
    "lower_bound_gap_free",
    "lower_bound_independent",
    "multilinear",
    "printed_corollary",
    "printed_theorem",
    "printed_wang_chen",
    "sensitivity",
    "setting",
    "smoothness",
    "theorems_for",
    "trivial",
    "upper_bound",
    "upper_bound_c2_ucb",
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
    "upper_bound_vac2_ucb",
    "upper_bound_wang_chen",
]
