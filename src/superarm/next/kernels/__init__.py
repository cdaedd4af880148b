"""The loops that numba compiles, each once: plain functions over arrays, by the public interface of numba.

The functions and their arguments are those of ``reference``, which has the same bits in NumPy and says what they do.
Loops over arms are innermost, so that they run in vector registers without fastmath; sums over items run in natural
order.
"""

from superarm.next.kernels.greedy import coverage_value, greedy_coverage, sparse_sums, top_k
from superarm.next.kernels.indices import bernstein, beta, beta_sparse, kl
from superarm.next.kernels.statistics import flip, flip_sparse, record, record_sparse
from superarm.next.kernels.systems import add_terms, factorise, invert_systems, quadratic_forms, solve_systems

__all__ = [
    "add_terms",
    "bernstein",
    "beta",
    "beta_sparse",
    "coverage_value",
    "factorise",
    "flip",
    "flip_sparse",
    "greedy_coverage",
    "invert_systems",
    "kl",
    "quadratic_forms",
    "record",
    "record_sparse",
    "solve_systems",
    "sparse_sums",
    "top_k",
]
