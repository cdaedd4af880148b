r"""Random numbers as a function of (key, round, index): the only source of randomness in kernels.

A NumPy ``Generator`` returns numbers in the order of the calls, so two policies that play different arms would get
different outcomes for the same arm. Here the number drawn for arm ``j`` in round ``t`` depends on ``(key, t, j)``
alone: policies share their random numbers, feedback may come in any order, and an agent's state contains a key and a
round, not a generator.

The bits are those of SplitMix64, [Steele2014]_: ``mix`` applied to an arithmetic sequence of odd step.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from superarm._jit import inlined, kernel, wrapping
from superarm._renamed import old_fields
from superarm.errors import InvalidArgument

_STEP = np.uint64(0x9E3779B97F4A7C15)
_ROUND_STEP = np.uint64(0xD1342543DE82EF95)
_INDEX_STEP = np.uint64(0xAF251AF3B0F025B5)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_ALMOST_1 = 1.0 - 2.0**-53
CENTRAL = 0.425
"""How far from 1/2 the formula for the centre of the normal distribution is used."""

_30, _27, _31, _11, _38 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11), np.uint64(38)
_27_ONES = np.uint64(2**27 - 1)


class Stream(NamedTuple):
    """A keyed random number stream: ``seek`` sets its position; ``uniform``, ``normal`` and ``beta`` draw from it."""

    key: Any  # uint64, (1,)
    state: Any  # uint64, (1,)


def new_stream(seed: np.random.SeedSequence) -> Stream:
    """Make a stream keyed by ``seed``.

    >>> import numpy as np
    >>> first = new_stream(np.random.SeedSequence(7))
    >>> seek(first, 3, 0); a = uniform(first)
    >>> seek(first, 3, 0); a == uniform(first)
    True
    """
    key = seed.generate_state(1, np.uint64)
    return Stream(key, key.copy())


@old_fields(world="environment", mind="policy", coin="rounding")
class RunStreams(NamedTuple):
    """The random number streams of a run: for the environment, for the policy, and for the intake of outcomes."""

    environment: Stream
    policy: Stream
    rounding: Stream


Seed: TypeAlias = int | Sequence[int] | np.random.SeedSequence | np.random.Generator | None
"""What random numbers may be made from."""


def seed_sequence(seed: Seed, name: str = "seed") -> np.random.SeedSequence:
    """A seed as NumPy's sequence: made from ints, drawn from a ``Generator``, or from the system's entropy for None.

    >>> seed_sequence(7).entropy
    7
    """
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, np.random.Generator):
        return np.random.SeedSequence(seed.integers(2**32, size=4).tolist())
    try:
        return np.random.SeedSequence(seed)
    except (TypeError, ValueError):
        wrong = f"{seed!r} is not a seed"
        raise InvalidArgument(name, wrong, "give an int >= 0, a SeedSequence, a Generator or None") from None


def child_seeds(seed: np.random.SeedSequence, n: int) -> list[np.random.SeedSequence]:
    """The first ``n`` seeds that ``seed`` would spawn; unlike ``spawn``, it does not change the caller's sequence."""
    return [
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, child), pool_size=seed.pool_size)
        for child in range(n)
    ]


def run_streams(seed: np.random.SeedSequence) -> RunStreams:
    """Make independent streams from one seed; an ``Agent`` with the same seed has the same last two."""
    return RunStreams(*(new_stream(child) for child in child_seeds(seed, 3)))


@kernel
def mix(z: Any) -> Any:
    """A bijection of 64-bit words that maps neighbours far apart: the finaliser of SplitMix64.

    Its products wrap around; as plain Python, the functions that call it allow that, once for all that they do.
    """
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@wrapping
def seek(stream: Stream, t: int, index: int) -> None:
    """Set the stream to the start of the numbers of (``t``, ``index``): a round, and an arm, an item or any integer."""
    stream.state[0] = mix(mix(stream.key[0] ^ np.uint64(t) * _ROUND_STEP) + np.uint64(index) * _INDEX_STEP)


@wrapping
def round_key(t: int) -> Any:
    """The word by which round ``t`` enters: ``key ^ round_key(t)`` determines all numbers of the round."""
    return np.uint64(t) * _ROUND_STEP


@wrapping
def uniform(stream: Stream) -> float:
    """A uniform number in [0, 1), a multiple of 2**-53."""
    state = later_state(stream.state[0], 1)
    stream.state[0] = state
    return number_at(state)


@wrapping
def later_state(state: Any, n: Any) -> Any:
    """The state of a stream after ``n`` more uniform numbers: what one loop draws can be drawn in any order."""
    return state + np.uint64(n) * _STEP


@wrapping
def number_at(state: Any) -> float:
    """The uniform number by which a stream comes to ``state``."""
    bits = mix(state)  # of the upper 53 bits 26 and 27: processors convert many numbers of 32 bits at once, not of 64
    return (float(np.int32(bits >> _38)) * 2.0**27 + float(np.int32((bits >> _11) & _27_ONES))) * 2.0**-53


@kernel
def integer(stream: Stream, n: int) -> int:
    """A random integer in 0, …, n-1; probabilities are equal up to 2**-53 · n."""
    return min(n - 1, int(uniform(stream) * n))


@kernel
def normal(stream: Stream) -> float:
    """A standard normal number, by inversion of one uniform number: every call uses exactly one."""
    return quantile(move_inside(uniform(stream)))


@inlined
def move_inside(u: float) -> float:
    """A number in (0, 1) for a uniform number in [0, 1)."""
    return min(u + 5.551115123125783e-17, _ALMOST_1)


@kernel
def quantile(u: float) -> float:
    """The quantile function of the standard normal on (0, 1), to about 1e-16: algorithm AS 241, [Wichura1988]_."""
    d = u - 0.5
    if abs(d) <= CENTRAL:
        return central_quantile(d)
    r = math.sqrt(-math.log(u if d < 0.0 else 1.0 - u))
    z = tail_quantile(r - 1.6) if r <= 5.0 else _far_tail(r - 5.0)
    return -z if d < 0.0 else z


@inlined
def central_quantile(d: float) -> float:
    """The quantile at 1/2 + ``d``, for numbers ``d`` up to ``CENTRAL``."""
    r = 0.180625 - d * d
    return d * _centre_numerator(r) / _centre_denominator(r)


@inlined
def _centre_numerator(r: float) -> float:
    a = (2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853
    a = ((a * r + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427
    return (a * r + 133.14166789178437745) * r + 3.387132872796366608


@inlined
def _centre_denominator(r: float) -> float:
    b = (5226.495278852545925 * r + 28729.085735721942674) * r + 39307.89580009271061
    b = ((b * r + 21213.794301586595867) * r + 5394.1960214247511077) * r + 687.1870074920579083
    return (b * r + 42.313330701600911252) * r + 1.0


@inlined
def tail_quantile(r: float) -> float:
    """The quantile from which the part p of the distribution lies outwards, for r + 1.6 = sqrt(-log p) up to 5."""
    a = (7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177
    a = ((a * r + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.7694972214606914055
    b = (1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966
    b = ((b * r + 0.14810397642748007459) * r + 0.68976733498510000455) * r + 1.6763848301838038494
    return ((a * r + 4.6303378461565452959) * r + 1.42343711074968357734) / ((b * r + 2.05319162663775882187) * r + 1.0)


@kernel
def _far_tail(r: float) -> float:
    a = (2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 0.0012426609473880784386
    a = ((a * r + 0.026532189526576123093) * r + 0.29656057182850489123) * r + 1.7848265399172913358
    b = (2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r + 1.8463183175100546818e-5
    b = ((b * r + 7.868691311456132591e-4) * r + 0.0148753612908506148525) * r + 0.13692988092273580531
    return ((a * r + 5.4637849111641143699) * r + 6.6579046435011037772) / ((b * r + 0.59983220655588793769) * r + 1.0)


@kernel
def gamma(stream: Stream, shape: float) -> float:
    """A Gamma(shape, 1) number, by the squeeze method of [MarsagliaTsang2000]_."""
    boost = 1.0
    if shape < 1.0:
        boost = math.pow(1.0 - uniform(stream), 1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        z = normal(stream)
        v = 1.0 + c * z
        if v > 0.0:
            v = v * v * v
            u = 1.0 - uniform(stream)
            if u < 1.0 - 0.0331 * z * z * z * z or math.log(u) < 0.5 * z * z + d * (1.0 - v + math.log(v)):
                return boost * d * v


@kernel
def beta(stream: Stream, a: float, b: float) -> float:
    """A Beta(a, b) number, as a ratio of Gamma numbers."""
    x = gamma(stream, a)
    y = gamma(stream, b)
    total = x + y
    if total > 0.0:
        return x / total
    return 1.0 if uniform(stream) * (a + b) < a else 0.0  # both underflow: the distribution is concentrated at 0 and 1
