"""The loops that numba compiles, each once: plain functions over arrays, by the public interface of numba.

The functions and their arguments are those of ``reference``, which has the same bits in NumPy and says what they do.
Loops over arms are innermost, so that they run in vector registers without fastmath; sums over items run in natural
order.
"""

from superarm.next.kernels.directional import directional_coverage, directional_step
from superarm.next.kernels.greedy import coverage_value, greedy_coverage, sparse_sums, top_k
from superarm.next.kernels.indices import bernstein, beta, beta_sparse, kl
from superarm.next.kernels.statistics import flip, flip_sparse, record, record_sparse

__all__ = [
    "bernstein",
    "beta",
    "beta_sparse",
    "coverage_value",
    "directional_coverage",
    "directional_step",
    "flip",
    "flip_sparse",
    "greedy_coverage",
    "kl",
    "record",
    "record_sparse",
    "sparse_sums",
    "top_k",
]
