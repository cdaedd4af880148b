"""The theory of the paper, computable on a concrete instance: smoothness, gaps, bounds, the proof, the headline."""

from superarm.theory.bound import Bound, Setting, setting
from superarm.theory.crossover import crossover
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.graves_lai import graves_lai
from superarm.theory.lower import LowerBound, lower_bound, lower_bound_gap_free
from superarm.theory.printed import printed_corollary, printed_theorem, printed_wang_chen
from superarm.theory.proof import Trace, follow
from superarm.theory.report import bounds_report
from superarm.theory.sequences import Sequences, best_sequences, factor, geometric, levels
from superarm.theory.smoothness import Certificate, Refuted, multilinear, smoothness
from superarm.theory.upper import (
    trivial,
    upper_bound,
    upper_bound_gap_free,
    upper_bound_kl,
    upper_bound_kl_gap_free,
    upper_bound_sequences,
    upper_bound_sharp,
    upper_bound_wang_chen,
)

__all__ = [
    "Bound",
    "Certificate",
    "Gaps",
    "LowerBound",
    "Refuted",
    "Sequences",
    "Setting",
    "Trace",
    "best_sequences",
    "bounds_report",
    "crossover",
    "factor",
    "follow",
    "gaps",
    "geometric",
    "graves_lai",
    "levels",
    "lower_bound",
    "lower_bound_gap_free",
    "multilinear",
    "printed_corollary",
    "printed_theorem",
    "printed_wang_chen",
    "setting",
    "smoothness",
    "trivial",
    "upper_bound",
    "upper_bound_gap_free",
    "upper_bound_kl",
    "upper_bound_kl_gap_free",
    "upper_bound_sequences",
    "upper_bound_sharp",
    "upper_bound_wang_chen",
]
