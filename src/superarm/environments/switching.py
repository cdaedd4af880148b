from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.arrays import Bools, Floats, Ints, probabilities
from superarm.environments.base import flip
from superarm.errors import InvalidArgument
from superarm.streams import Stream
from superarm.support import Support


class _Phases(NamedTuple):
    p: Floats
    since: Ints


@component
class Switching(_Phases):
    """Independent binary outcomes whose parameters change at known rounds: ``p[n]`` holds from round ``since[n]`` on.

    Parameters
    ----------
    p
        The parameters of each phase, (n_phases, n_arms, n_items), or (n_phases, n_entries) for a sparse problem.
    since
        The first round of each phase, increasing from 1.

    Examples
    --------
    >>> environment = Switching([[[0.1], [0.9]], [[0.9], [0.1]]], since=[1, 100])
    >>> environment.means(99)[0, 0], environment.means(100)[0, 0]
    (np.float64(0.1), np.float64(0.9))
    """

    __slots__ = ()

    def __new__(cls, p: Any, since: Any) -> "Switching":
        phases = np.ascontiguousarray([probabilities(one, "p") for one in p])
        starts = np.asarray(since, np.int64)
        if starts.shape != (len(phases),) or not starts.size or starts[0] != 1 or (np.diff(starts) <= 0).any():
            raise InvalidArgument(
                "since", f"{starts.tolist()}", f"give {len(phases)} increasing rounds, the first of them 1", "Switching"
            )
        return super().__new__(cls, phases, starts)

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        p = self.p[np.searchsorted(self.since, t, side="right") - 1].reshape(-1)
        flip(support, p, action, t, stream, outcome)

    def means(self, t: int) -> Floats:
        return self.p[np.searchsorted(self.since, t, side="right") - 1]  # type: ignore[no-any-return]

    @interpreted
    def changes(self, horizon: int) -> Ints:
        return self.since[self.since <= horizon]
