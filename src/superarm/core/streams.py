r"""Random numbers as a function of (key, round, index, place): the only source of randomness in runs and agents.

The number of arm ``j`` in round ``t`` depends on ``(key, t, j)`` and its place alone: policies share their random
numbers, feedback may come in any order, and an agent's state holds a key and a round, not a generator. The bits are
those of SplitMix64, [Steele2014]_. ``keys`` has one word for each replication, (R,).
"""

from typing import Any, NamedTuple

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.numeric import log_of_chance

_U = np.uint64
STEP, ROUND, INDEX = _U(0x9E3779B97F4A7C15), _U(0xD1342543DE82EF95), _U(0xAF251AF3B0F025B5)
MIX1, MIX2 = _U(0xBF58476D1CE4E5B9), _U(0x94D049BB133111EB)
SHARED = 1 << 62
"""The index of numbers that belong to a round and to no arm."""

Seed = None | int | np.random.SeedSequence | np.random.Generator


class RunKeys(NamedTuple):
    """The keys of the environment, of the policy, and of the rounding of outcomes, each (R,)."""

    environment: Any
    policy: Any
    rounding: Any


def seed_sequence(seed: Any) -> np.random.SeedSequence:
    """The seed sequence of any seed: None is fresh entropy, a generator gives its next number.

    >>> seed_sequence(7).entropy
    7
    """
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, np.random.Generator):
        return np.random.SeedSequence(int(seed.integers(2**63)))
    whole = seed is None or (isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0)
    if not whole:
        raise InvalidArgument("seed", f"{seed!r}", "give None, an int >= 0, a numpy SeedSequence or a numpy Generator")
    return np.random.SeedSequence(None if seed is None else int(seed))


def run_keys(seeds: list[np.random.SeedSequence]) -> RunKeys:
    """The keys of replications with these seeds; the caller's sequences stay as they are.

    >>> [keys.shape for keys in run_keys(np.random.SeedSequence(3).spawn(2))]
    [(2,), (2,), (2,)]
    """

    def child(seed: np.random.SeedSequence, n: int) -> Any:
        key = (*seed.spawn_key, n)
        own = np.random.SeedSequence(seed.entropy, spawn_key=key, pool_size=seed.pool_size)
        return own.generate_state(1, np.uint64)[0]

    return RunKeys(*(np.array([child(seed, n) for seed in seeds], np.uint64) for n in range(3)))


def mix(z: Any) -> Any:
    """A bijection of 64-bit words that maps neighbours far apart: the finaliser of SplitMix64."""
    z = (z ^ (z >> _U(30))) * MIX1
    z = (z ^ (z >> _U(27))) * MIX2
    return z ^ (z >> _U(31))


def number(z: Any) -> Floats:
    """The uniform number in [0, 1) of a state, a multiple of 2**-53."""
    return (mix(z) >> _U(11)).astype(float) * 2.0**-53


def states(keys: Any, t: int, index: Any) -> Any:
    """The state of every (replication, index) in round ``t``: (R,) and (R, n) or (n,) give (R, n).

    A component that needs very many numbers can begin sequences of its own with these words.

    >>> states(np.array([5], np.uint64), 3, np.array([SHARED])).dtype
    dtype('uint64')
    """
    base = mix(keys ^ _U(int(t) * int(ROUND) % 2**64))
    return mix(base[:, None] + np.asarray(index).astype(np.uint64) * INDEX)


def round_keys(keys: Any, t: int) -> Any:
    """Keys of their own for round ``t``, (R,): for a policy that is told another time than that of the round."""
    return mix(keys ^ _U(int(t) * int(ROUND) % 2**64))


def uniform(keys: Any, t: int, index: Any, n: int = 1) -> Floats:
    """``n`` uniform numbers for each index (an arm, or any integer) of round ``t``: (R, len(index), n).

    >>> uniform(np.array([5], np.uint64), 3, np.arange(4), 2).shape
    (1, 4, 2)
    """
    steps = np.arange(1, n + 1, dtype=np.uint64) * STEP
    return number(states(keys, t, index)[:, :, None] + steps)


def shared_uniform(keys: Any, t: int, n: int = 1) -> Floats:
    """``n`` uniform numbers of round ``t`` that all arms share, (R, n): for arms that move together.

    >>> shared_uniform(np.array([5, 6], np.uint64), 3).shape
    (2, 1)
    """
    return uniform(keys, t, np.array([SHARED]), n)[:, 0]


def coins(keys: Any, t: int, arms: Ints, chance: Floats) -> Floats:
    """1 with probability ``chance`` (R, K, n), otherwise 0, for the arms (R, K) of round ``t``.

    >>> coins(np.array([5], np.uint64), 3, np.array([[4, 0]]), np.array([[[1.0], [0.0]]])).tolist()
    [[[1.0], [0.0]]]
    """
    return (uniform(keys, t, np.maximum(arms, 0), chance.shape[2]) < chance).astype(float)


def move_inside(u: Floats) -> Floats:
    """Numbers in (0, 1) for uniform numbers in [0, 1)."""
    return np.minimum(u + 5.551115123125783e-17, 1.0 - 2.0**-53)


def normal(u: Floats) -> Floats:
    """Standard normal numbers, by inversion of uniform numbers in [0, 1).

    >>> normal(np.array([0.5, 0.975])).round(6).tolist()
    [0.0, 1.959964]
    """
    return quantile(move_inside(u))


def quantile(u: Floats) -> Floats:
    """The quantile function of the standard normal on (0, 1): algorithm AS 241, [Wichura1988]_.

    >>> quantile(np.array([0.5, 0.975])).round(6).tolist()
    [0.0, 1.959964]
    """
    d = u - 0.5
    r = 0.180625 - d * d
    a = (2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853
    a = ((a * r + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427
    a = (a * r + 133.14166789178437745) * r + 3.387132872796366608
    b = (5226.495278852545925 * r + 28729.085735721942674) * r + 39307.89580009271061
    b = ((b * r + 21213.794301586595867) * r + 5394.1960214247511077) * r + 687.1870074920579083
    centre = d * a / ((b * r + 42.313330701600911252) * r + 1.0)
    with np.errstate(all="ignore"):
        depth = np.sqrt(-log_of_chance(np.where(d < 0.0, u, 1.0 - u)))
        tail = np.where(depth <= 5.0, _near_tail(depth - 1.6), _far_tail(depth - 5.0))
    return np.where(np.abs(d) <= 0.425, centre, np.where(d < 0.0, -tail, tail))


def _near_tail(r: Floats) -> Any:
    a = (7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177
    a = ((a * r + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.7694972214606914055
    b = (1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966
    b = ((b * r + 0.14810397642748007459) * r + 0.68976733498510000455) * r + 1.6763848301838038494
    return ((a * r + 4.6303378461565452959) * r + 1.42343711074968357734) / ((b * r + 2.05319162663775882187) * r + 1.0)


def _far_tail(r: Floats) -> Any:
    a = (2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 0.0012426609473880784386
    a = ((a * r + 0.026532189526576123093) * r + 0.29656057182850489123) * r + 1.7848265399172913358
    b = (2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r + 1.8463183175100546818e-5
    b = ((b * r + 7.868691311456132591e-4) * r + 0.0148753612908506148525) * r + 0.13692988092273580531
    return ((a * r + 5.4637849111641143699) * r + 6.6579046435011037772) / ((b * r + 0.59983220655588793769) * r + 1.0)
