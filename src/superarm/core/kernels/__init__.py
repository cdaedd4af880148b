"""The loops that numba compiles, each once: plain functions over arrays, by the public interface of numba.

The functions and their arguments are those of ``reference``, which has the same bits in NumPy and says what they do.
Loops over arms are innermost, so that they run in vector registers without fastmath; sums over items run in natural
order. Screens and ``play`` have no twins: they decide as the plain operations do.
"""

from superarm.core.kernels.directional import directional_coverage, directional_step
from superarm.core.kernels.graphs import assignment, heaviest_path
from superarm.core.kernels.greedy import coverage_value, greedy_coverage, sparse_sums, top_k
from superarm.core.kernels.indices import bernstein, beta, beta_sparse, gammas, kl
from superarm.core.kernels.play import play
from superarm.core.kernels.screen import screened
from superarm.core.kernels.sparse_screen import sparse_screened
from superarm.core.kernels.statistics import flip, flip_sparse, record, record_sparse
from superarm.core.kernels.systems import add_terms, factorise, invert_systems, quadratic_forms, solve_systems

__all__ = [
    "add_terms",
    "assignment",
    "bernstein",
    "beta",
    "beta_sparse",
    "coverage_value",
    "directional_coverage",
    "directional_step",
    "factorise",
    "flip",
    "flip_sparse",
    "gammas",
    "greedy_coverage",
    "heaviest_path",
    "invert_systems",
    "kl",
    "play",
    "quadratic_forms",
    "record",
    "record_sparse",
    "screened",
    "solve_systems",
    "sparse_screened",
    "sparse_sums",
    "top_k",
]
