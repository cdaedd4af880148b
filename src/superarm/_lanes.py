"""The hand-written vector instructions: sums in registers that numba would not put there.

``weighted_sums`` sums over the items for many arms at once, in single precision. A loop over arms that numba vectorises
keeps its sums in memory; here they stay in registers. The sums only screen, so their rounding may differ between
machines; what decides is computed elsewhere. ``add_lanes`` adds eight numbers to eight sums in double precision, the
same bits everywhere; what computes the eight numbers becomes vector instructions too. ``python -m benchmarks.lanes``
shows what both are worth.
"""

# mypy: disable-error-code="no-untyped-call"
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

WIDTH = 64
"""Arms summed at once: eight registers of eight numbers."""

_FLOAT, _INT = ir.FloatType(), ir.IntType(32)
_FLOATS, _INTS = ir.VectorType(_FLOAT, WIDTH), ir.VectorType(_INT, WIDTH)


def _plain(z: Any, first: int, slope: Any, start: Any, at: int, sums: Any) -> Any:
    block = z[first : first + WIDTH * len(slope)].reshape(len(slope), WIDTH)
    sums[at : at + WIDTH] = start[at : at + WIDTH] + slope @ block
    return sums[at : at + WIDTH].max()


def _typed(context: Any, z: Any, first: Any, slope: Any, start: Any, at: Any, sums: Any) -> Any:
    """``sums[at + a] = start[at + a] + sum_i slope[i] * z[first + WIDTH * i + a]`` for the lanes a; the largest."""
    return types.float32(z, types.intp, slope, start, types.intp, sums), _emit


def _emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    z, slope, start, sums = (context.make_array(signature.args[n])(context, builder, args[n]) for n in (0, 2, 3, 5))
    fma = _intrinsic(builder, _FLOATS, [_FLOATS] * 3, f"llvm.fmuladd.v{WIDTH}f32")
    total = cgutils.alloca_once(builder, _FLOATS)
    builder.store(builder.load(_lanes(builder, start, args[4]), align=4), total)
    with cgutils.for_range(builder, builder.extract_value(slope.shape, 0)) as loop:
        weight = _spread(builder, builder.load(builder.gep(slope.data, [loop.index])))
        place = builder.add(args[1], builder.mul(loop.index, ir.Constant(loop.index.type, WIDTH)))
        row = builder.load(_lanes(builder, z, place), align=4)
        builder.store(builder.call(fma, [weight, row, builder.load(total)]), total)
    lanes = builder.load(total)
    builder.store(lanes, _lanes(builder, sums, args[4]), align=4)
    # floats that are not negative, and minus infinity, are in the order of their bits as integers
    largest = _intrinsic(builder, _INT, [_INTS], f"llvm.vector.reduce.smax.v{WIDTH}i32")
    return builder.bitcast(builder.call(largest, [builder.bitcast(lanes, _INTS)]), _FLOAT)


def _intrinsic(builder: Any, result: Any, parameters: Any, name: str) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, parameters), name)


def _lanes(builder: Any, array: Any, place: Any) -> Any:
    return builder.bitcast(builder.gep(array.data, [place]), _FLOATS.as_pointer())


def _spread(builder: Any, number: Any) -> Any:
    undefined = ir.Constant(_FLOATS, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(_INTS, [0] * WIDTH))


def _plain_add(sums: Any, *terms: Any) -> Any:
    return tuple(a + x for a, x in zip(sums, terms, strict=True))


def _typed_add(context: Any, sums: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    """The eight ``sums``, each plus one of the eight terms."""
    lanes = types.UniTuple(types.float64, 8)
    return lanes(lanes, *[types.float64] * 8), _emit_add


def _emit_add(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    before = [builder.extract_value(args[0], lane) for lane in range(8)]
    sums = builder.fadd(_gathered(builder, before), _gathered(builder, args[1:]))
    after = ir.Constant(args[0].type, ir.Undefined)
    for lane in range(8):
        number = builder.extract_element(sums, ir.Constant(_INT, lane))
        after = builder.insert_value(after, number, lane)
    return after


def _gathered(builder: Any, numbers: Any) -> Any:
    vector = ir.Constant(ir.VectorType(ir.DoubleType(), 8), ir.Undefined)
    for lane, number in enumerate(numbers):
        vector = builder.insert_element(vector, number, ir.Constant(_INT, lane))
    return vector


weighted_sums: Any = _plain if numba.config.DISABLE_JIT else intrinsic(_typed)  # type: ignore[attr-defined]
add_lanes: Any = _plain_add if numba.config.DISABLE_JIT else intrinsic(_typed_add)  # type: ignore[attr-defined]
