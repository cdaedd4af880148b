"""Sums in vector registers as LLVM instructions, by numba's private interfaces: see ``_lanes.py``.

``_numba_private.HAS_LANES`` says whether they can be used.
"""

# mypy: disable-error-code="no-untyped-call"
from typing import Any

from numba.extending import intrinsic


def weighted_sums(width: int) -> Any:
    """The function ``weighted_sums`` of ``_lanes.py`` as an intrinsic, ``width`` sums at once.

    ``z`` holds numbers in single precision, or whole numbers of 16 bits, which are made such numbers in the register.
    """
    from llvmlite import ir
    from numba.core import cgutils, types

    number, word = ir.FloatType(), ir.IntType(32)
    numbers, words = ir.VectorType(number, width), ir.VectorType(word, width)

    def lanes(builder: Any, array: Any, place: Any, of: Any = numbers) -> Any:
        return builder.bitcast(builder.gep(array.data, [place]), of.as_pointer())

    def spread(builder: Any, value: Any) -> Any:
        undefined = ir.Constant(numbers, ir.Undefined)
        one = builder.insert_element(undefined, value, ir.Constant(word, 0))
        return builder.shuffle_vector(one, undefined, ir.Constant(words, [0] * width))

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        z, slope, start, sums = (context.make_array(signature.args[n])(context, builder, args[n]) for n in (0, 2, 3, 5))
        whole = signature.args[0].dtype == types.int16
        stored = ir.VectorType(ir.IntType(16), width) if whole else numbers
        fma = _llvm(builder, numbers, [numbers] * 3, f"llvm.fmuladd.v{width}f32")
        total = cgutils.alloca_once(builder, numbers)
        builder.store(builder.load(lanes(builder, start, args[4]), align=4), total)
        with cgutils.for_range(builder, builder.extract_value(slope.shape, 0)) as loop:
            weight = spread(builder, builder.load(builder.gep(slope.data, [loop.index])))
            place = builder.add(args[1], builder.mul(loop.index, ir.Constant(loop.index.type, width)))
            row = builder.load(lanes(builder, z, place, stored), align=2 if whole else 4)
            row = builder.sitofp(row, numbers) if whole else row
            builder.store(builder.call(fma, [weight, row, builder.load(total)]), total)
        found = builder.load(total)
        builder.store(found, lanes(builder, sums, args[4]), align=4)
        # numbers that are not negative, and minus infinity, have the order of their bits as integers
        largest = _llvm(builder, word, [words], f"llvm.vector.reduce.smax.v{width}i32")
        return builder.bitcast(builder.call(largest, [builder.bitcast(found, words)]), number)

    def typed(context: Any, z: Any, first: Any, slope: Any, start: Any, at: Any, sums: Any) -> Any:
        return types.float32(z, types.intp, slope, start, types.intp, sums), emit

    return intrinsic(typed)


def add_lanes() -> Any:
    """The function ``add_lanes`` of ``_lanes.py`` as an intrinsic."""
    from llvmlite import ir
    from numba.core import types

    word = ir.IntType(32)

    def gather(builder: Any, numbers: Any) -> Any:
        vector = ir.Constant(ir.VectorType(ir.DoubleType(), 8), ir.Undefined)
        for lane, number in enumerate(numbers):
            vector = builder.insert_element(vector, number, ir.Constant(word, lane))
        return vector

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        before = [builder.extract_value(args[0], lane) for lane in range(8)]
        sums = builder.fadd(gather(builder, before), gather(builder, args[1:]))
        after = ir.Constant(args[0].type, ir.Undefined)
        for lane in range(8):
            number = builder.extract_element(sums, ir.Constant(word, lane))
            after = builder.insert_value(after, number, lane)
        return after

    def typed(context: Any, sums: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
        lanes = types.UniTuple(types.float64, 8)
        return lanes(lanes, *[types.float64] * 8), emit

    return intrinsic(typed)


def _llvm(builder: Any, result: Any, parameters: Any, name: str) -> Any:
    from llvmlite import ir
    from numba.core import cgutils

    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, parameters), name)


def fixed_sums(width: int, group: int) -> Any:
    """The function ``fixed_sums`` of ``_lanes.py`` as an intrinsic, ``width`` sums at once, ``group`` to a register.

    The numbers have 16 bits, or 8 without a sign, which are made 16 in the register.
    """
    from llvmlite import ir
    from numba.core import cgutils, types

    kinds = ir.IntType(16), ir.IntType(32), ir.FloatType()
    codes, words, numbers = (ir.VectorType(kind, n) for kind, n in zip(kinds, (2 * group, group, group), strict=True))
    products = ir.VectorType(kinds[1], 2 * group)

    def lanes(builder: Any, array: Any, place: Any, offset: int, of: Any) -> Any:
        place = builder.add(place, ir.Constant(place.type, offset))
        return builder.bitcast(builder.gep(array.data, [place]), of.as_pointer())

    def spread(builder: Any, value: Any, of: Any) -> Any:
        undefined = ir.Constant(of, ir.Undefined)
        one = builder.insert_element(undefined, value, ir.Constant(kinds[1], 0))
        return builder.shuffle_vector(one, undefined, ir.Constant(words, [0] * group))

    def add_pairs(builder: Any, a: Any, b: Any) -> Any:
        """The sums of two neighbouring products; x86 has an instruction for these three steps."""
        product = builder.mul(builder.sext(a, products), builder.sext(b, products))
        undefined = ir.Constant(products, ir.Undefined)
        first, second = (
            builder.shuffle_vector(product, undefined, ir.Constant(words, list(range(n, 2 * group, 2)))) for n in (0, 1)
        )
        return builder.add(first, second)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        z, slope, start, sums = (context.make_array(signature.args[n])(context, builder, args[n]) for n in (0, 2, 6, 8))
        stored = ir.VectorType(ir.IntType(signature.args[0].dtype.bitwidth), 2 * group)
        totals = [cgutils.alloca_once(builder, words) for _ in range(width // group)]
        for total in totals:
            builder.store(ir.Constant(words, [0] * group), total)
        with cgutils.for_range(builder, args[4]) as loop:
            pair = builder.load(builder.gep(slope.data, [builder.add(args[3], loop.index)]))
            weights = builder.bitcast(spread(builder, pair, words), codes)
            place = builder.add(args[1], builder.mul(loop.index, ir.Constant(loop.index.type, 2 * width)))
            for n, total in enumerate(totals):
                row = builder.load(lanes(builder, z, place, 2 * group * n, stored), align=1)
                row = row if stored == codes else builder.zext(row, codes)
                builder.store(builder.add(builder.load(total), add_pairs(builder, row, weights)), total)
        unit, largest = spread(builder, args[5], numbers), ir.Constant(words, [-(2**31)] * group)
        for n, total in enumerate(totals):
            before = builder.load(lanes(builder, start, args[7], group * n, numbers), align=4)
            value = builder.fadd(before, builder.fmul(unit, builder.sitofp(builder.load(total), numbers)))
            builder.store(value, lanes(builder, sums, args[7], group * n, numbers), align=4)
            bits = builder.bitcast(value, words)  # as in weighted_sums, their order is that of the numbers
            largest = builder.select(builder.icmp_signed(">", bits, largest), bits, largest)
        reduce = _llvm(builder, kinds[1], [words], f"llvm.vector.reduce.smax.v{group}i32")
        return builder.bitcast(builder.call(reduce, [largest]), kinds[2])

    def typed(
        context: Any, z: Any, first: Any, slope: Any, at: Any, pairs: Any, unit: Any, start: Any, place: Any, sums: Any
    ) -> Any:
        whole = types.intp
        return types.float32(z, whole, slope, whole, whole, types.float32, start, whole, sums), emit

    return intrinsic(typed)
