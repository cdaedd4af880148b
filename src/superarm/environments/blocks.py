from typing import Any, NamedTuple

import numpy as np

from superarm import arrays
from superarm._jit import component
from superarm.arrays import Bools, Floats, Ints, Probabilities
from superarm.errors import InvalidArgument
from superarm.streams import Stream, seek, uniform
from superarm.support import Support


class _BlockTables(NamedTuple):
    p: Probabilities
    chance: Probabilities
    base: Probabilities
    block: Ints
    shock: Floats


@component
class Blocks(_BlockTables):
    r"""Outcomes with a pattern of dependence of its own for each arm, which is independent of all other arms.

    .. math:: X_{ij} = base_{ij} + (1 - base_{ij})\,1\{U_{ij} < chance_{ij}\}, \qquad
              E X_{ij} = base_{ij} + (1 - base_{ij})\,chance_{ij}

    Entries of an arm in one block share one uniform number per round; entries of block 0 have their own. Block -b uses
    one minus the number of block b, so that the two move against each other. In a round that is a shock for the arm,
    all its entries share one number.

    Parameters
    ----------
    chance
        The probability of the high outcome 1, (n_arms, n_items).
    block
        The number of the block of each entry, same shape: 0, or from -n_items to n_items.
    shock
        For each arm, the probability that a round is a shock, (n_arms,); 0 by default.
    base
        The low outcome, in the shape of ``chance``; 0 by default.

    Examples
    --------
    >>> Blocks([[0.5, 0.5], [0.2, 0.2]], [[1, 1], [0, 0]], base=[[0.0, 0.0], [0.5, 0.5]]).means(1)
    array([[0.5, 0.5],
           [0.6, 0.6]])
    """

    __slots__ = ()

    def __new__(cls, chance: Any, block: Any, shock: Any = None, base: Any = None) -> "Blocks":
        high = arrays.probabilities(chance, "chance")
        low = np.zeros_like(high) if base is None else arrays.probabilities(base, "base")
        shocks = np.zeros(len(high)) if shock is None else arrays.floats(shock, "shock", low=0.0, high=1.0)
        blocks = np.ascontiguousarray(np.asarray(block), np.int64)
        for name, shape in (("block", blocks.shape), ("base", low.shape)):
            if shape != high.shape or len(shape) != 2:
                raise InvalidArgument(name, f"shape {shape}", f"give shape {high.shape}, that of chance", "Blocks")
        if shocks.shape != (len(high),):
            raise InvalidArgument("shock", f"shape {shocks.shape}", "give one number per arm", "Blocks")
        if np.abs(blocks).max() > high.shape[1]:
            raise InvalidArgument("block", "a number is too large", "number blocks from 1 to n_items", "Blocks")
        return super().__new__(cls, low + (1.0 - low) * high, high, low, blocks, shocks)

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        n_items = self.chance.shape[1]
        shared = np.empty(n_items + 1)
        at = 0
        for j in action:
            seek(stream, t, j)
            shock = uniform(stream) < self.shock[j]
            for b in range(n_items + 1):
                shared[b] = uniform(stream)
            for i in range(n_items):
                b = 0 if shock else abs(self.block[j, i])
                u = shared[b] if shock or b > 0 else uniform(stream)
                if self.block[j, i] < 0 and not shock:
                    u = 1.0 - u
                low = self.base[j, i]
                outcome[at] = low + (1.0 - low) * (1.0 if u < self.chance[j, i] else 0.0)
                at += 1

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]
