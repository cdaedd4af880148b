"""The one hand-written vector loop: weighted sums of many arms at once, in single precision.

A loop over arms that numba vectorises keeps its sums in memory; here they stay in registers. Measured on 1000 arms ×
100 items: 5.6 µs a pass against 8.2 µs for the best loop numba makes of Python, and 45 µs in double precision. The
sums only screen, so their rounding may differ between machines; what decides is computed elsewhere.
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


weighted_sums: Any = _plain if numba.config.DISABLE_JIT else intrinsic(_typed)  # type: ignore[attr-defined]
