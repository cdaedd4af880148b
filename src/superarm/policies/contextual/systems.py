r"""The systems :math:`G = ridge\,I + \sum w\,\phi\phi^\top` of several parameter vectors, solved together.

Eight systems at once take hardly longer than one: loops over them become vector instructions, and number by number they
are the operations on one system in the same order. Cholesky's method, [GolubVanLoan2013]_ (section 4.2).
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import kernel, lean
from superarm.arrays import Floats, Ints
from superarm.context.observations import ContextTally
from superarm.policies.contextual.lane_algebra import LANES, factorise_lanes, invert_lanes, solve_lanes, square_lanes
from superarm.policies.contextual.linear_algebra import factorise, invert_factor, solve_factor, square_factor


class Correction(NamedTuple):
    """What is added to the precision and the response of a tally, in their shapes; no rows if nothing is."""

    precision: Floats
    response: Floats


class Systems(NamedTuple):
    """Buffers for up to eight systems: the parameter vectors they are of, two triangles, a vector, and a number each.

    Coordinate ``at`` of system n is number ``at * stride + n`` of a triangle or a vector, where the stride is ``LANES``
    for several systems and 1 for one alone.
    """

    group: Ints
    factor: Floats
    inverse: Floats
    vector: Floats
    total: Floats


@kernel
def make_systems(n_groups: int, d: int) -> Systems:
    """Buffers for systems of ``d`` coordinates, with room for one if there is only one parameter vector."""
    lanes, size = LANES if n_groups > 1 else 1, d * (d + 1) // 2
    return Systems(
        np.zeros(lanes, np.int64),
        np.zeros(lanes * size),
        np.zeros(lanes * size),
        np.zeros(lanes * d),
        np.zeros(LANES),
    )


@lean
def load_systems(
    work: Systems, waiting: int, tally: ContextTally, more: Correction, pending: Floats, ridge: float
) -> int:
    """Write G and the response of the first ``waiting`` of ``work.group``, with the pending precision; the stride."""
    d, stride = tally.response.shape[1], 1 if waiting == 1 else LANES
    factor, vector = work.factor, work.vector
    for n in range(stride):
        g = work.group[min(n, waiting - 1)]  # lanes to spare repeat the last system
        at = 0
        for r in range(d):
            vector[r * stride + n] = tally.response[g, r]
            for c in range(r + 1):
                factor[(at + c) * stride + n] = tally.precision[g, at + c]
            if len(more.precision) > 0:
                vector[r * stride + n] += more.response[g, r]
                for c in range(r + 1):
                    factor[(at + c) * stride + n] += more.precision[g, at + c]
            if len(pending) > 0:
                for c in range(r + 1):
                    factor[(at + c) * stride + n] += pending[g, at + c]
            factor[(at + r) * stride + n] += ridge
            at += r + 1
    return stride


@lean
def factorise_systems(work: Systems, d: int, stride: int) -> None:
    """Replace every G by its Cholesky factor."""
    if stride == LANES:
        factorise_lanes(work.factor, d, work.total)
    else:
        factorise(work.factor, d, work.inverse)


@lean
def solve_systems(work: Systems, d: int, stride: int) -> None:
    """Replace the responses by the solutions of factorised systems."""
    if stride == LANES:
        solve_lanes(work.factor, d, work.vector, work.total)
    else:
        solve_factor(work.factor, d, work.vector)


@lean
def invert_systems(work: Systems, d: int, stride: int) -> None:
    """Replace the Cholesky factors by the inverses of the systems."""
    if stride == LANES:
        invert_lanes(work.factor, d, work.inverse, work.total)
        square_lanes(work.inverse, d, work.factor)
    else:
        invert_factor(work.factor, d, work.inverse)
        square_factor(work.inverse, d, work.factor)


@lean
def read_system(numbers: Floats, stride: int, lane: int, out: Floats) -> None:
    """Write the numbers of one system to ``out``."""
    for at in range(len(out)):
        out[at] = numbers[at * stride + lane]
