"""sin and cos, exp, log, atan2 for a whole vector at a time.

Each is one small function over arrays of vectors, ``f(arguments..., results..., count)``, so that a
program that needs many of them (one per joint) stays short, and a single state can put all its
joints into the lanes of one vector. Errors stay below two units in the last place.

The polynomials interpolate at Chebyshev nodes, which is within a small factor of the best possible,
with coefficients computed in sixty digits; their own error is below 2e-17 relative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from linkwise.dataclass import dataclass
from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.ir import FunctionText, LaneShape, LaneValue

# sin(r) = r + r^3 S(r^2) and cos(r) = 1 - r^2/2 + r^4 C(r^2) for |r| <= pi/4 and a little more.
_SIN_64 = (
    -0.16666666666666666,
    0.008333333333330802,
    -0.00019841269836537808,
    2.755731598872591e-06,
    -2.5051108263967758e-08,
    1.591644053715536e-10,
)
_COS_64 = (
    0.041666666666666664,
    -0.0013888888888887304,
    2.4801587298627582e-05,
    -2.7557317200521634e-07,
    2.0876131516333237e-09,
    -1.1381575947444187e-11,
)
_SIN_32 = (-0.1666666716337204, 0.008333331905305386, -0.00019840057939291, 2.7246246645518113e-06)
_COS_32 = (0.0416666641831398, -0.0013888288522139192, 2.4544904590584338e-05)
# exp(r) = 1 + r + r^2 E(r) for |r| <= log(2)/2.
_EXP = (
    0.5,
    0.1666666666666667,
    0.04166666666666667,
    0.008333333333326084,
    0.0013888888888883711,
    0.0001984126987500228,
    2.480158732567746e-05,
    2.755725517000089e-06,
    2.755727347871858e-07,
    2.5105312729622103e-08,
    2.09147553258932e-09,
)
# log((1 + s)/(1 - s)) = 2 s + s^3 L(s^2) for |s| <= (sqrt(2) - 1)/(sqrt(2) + 1).
_LOG = (
    0.6666666666666666,
    0.4000000000000089,
    0.28571428570795937,
    0.2222222239345263,
    0.181817954545265,
    0.15386249788196105,
    0.1326850331279476,
    0.13089445145246312,
)
# atan(t) = t + t^3 A(t^2) for |t| <= tan(pi/8).
_ATAN = (
    -0.3333333333333333,
    0.19999999999999804,
    -0.14285714285659729,
    0.11111111105145725,
    -0.09090908753017178,
    0.07692296361048218,
    -0.06666424634599337,
    0.05878926110528101,
    -0.052304330074828924,
    0.0455149623749493,
    -0.034568068014968874,
    0.016282993238924487,
)

# pi/2 in three parts. In double precision the first two have 33 bits, so that their products with a
# whole number below 2^20 are exact, fused or not. In single precision there are too few bits for that:
# all 24 are used, and exactness rests on the fused operation (machines without it go through doubles).
_HALF_PI_64 = tuple(map(float.fromhex, ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2e037073p-69")))
_HALF_PI_32 = tuple(map(float.fromhex, ("0x1.921fb4p+0", "0x1.4442d0p-24", "0x1.84698ap-48")))
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
_TWO_OVER_PI, _LOG2_E = float.fromhex("0x1.45f306dc9c883p-1"), float.fromhex("0x1.71547652b82fep+0")
_PI, _PI_LOW = float.fromhex("0x1.921fb54442d18p+1"), float.fromhex("0x1.1a62633145c07p-53")

# Beyond this the three parts run out of bits and the library's scalar functions take over.
_REDUCIBLE = 1e5

# Names under which the runtime links the C library's functions. Not their own names: LLVM knows
# those, and would turn a sin beside a cos into a call of something we did not ask for.
LIBRARY = {"lw_libm_sin": "sin", "lw_libm_cos": "cos"}


def _polynomial(x: LaneValue, coefficients: Sequence[float]) -> LaneValue:
    """Horner: the shortest in instructions; other vectors in flight hide its latency."""
    total = x * coefficients[-1] + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        total = total * x + coefficient
    return total


def _nearest(x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """The nearest whole number, as a real and as low bits of an integer, by the rounding of one sum."""
    magic = 1.5 * 2.0**52 if x.shape.bits == 64 else 1.5 * 2.0**23
    shifted = x + magic
    return shifted - magic, shifted.as_integer()


def _sincos(x: LaneValue, fused: bool = True) -> tuple[LaneValue, LaneValue, LaneValue]:
    """sin, cos, and where they are not to be trusted (|x| too large, infinite or NaN).

    Where products and sums are rounded apart, what the reduction's last sum rounds off is carried along too.
    """
    shape = x.shape
    sign_bit = -(1 << (shape.bits - 1))
    size = abs(x)  # by symmetry; so that sin(-0) is -0
    turns, quadrant = _nearest(size * _TWO_OVER_PI)
    first, second, third = _HALF_PI_64 if shape.bits == 64 else _HALF_PI_32
    whole, part = size - turns * first, turns * second
    r = whole - part
    if shape.bits == 32:  # its parts have no bits to spare, so what is rounded off could not be told exactly
        r, lost = r - turns * third, None
    else:
        low = ((whole - r) - part) - turns * third  # what the second part rounded off, and the third part
        r, high = r + low, r
        lost = None if fused else (high - r) + low
    z = r * r
    s = (r * z) * _polynomial(z, _SIN_64 if shape.bits == 64 else _SIN_32)
    c = z * (z * _polynomial(z, _COS_64 if shape.bits == 64 else _COS_32) - 0.5)
    s, c = (s + r, c + 1.0) if lost is None else ((s + lost) + r, (c - r * lost) + 1.0)
    odd = (quadrant & 1).compare("ne", 0)
    # Quadrants 2 and 3 turn the sign of sin, 1 and 2 that of cos.
    flip_s = ((quadrant << (shape.bits - 2)) ^ x.as_integer()) & sign_bit
    flip_c = ((quadrant + 1) << (shape.bits - 2)) & sign_bit
    sine = (odd.choose(c, s).as_integer() ^ flip_s).as_real()
    cosine = (odd.choose(s, c).as_integer() ^ flip_c).as_real()
    return sine, cosine, size.compare("ugt", _REDUCIBLE)


def _exp(x: LaneValue) -> LaneValue:
    # Beyond these the result is 0 or infinity; NaN fails both comparisons and passes through.
    x = x.compare("olt", -750.0).choose(x.constant(-750.0), x)
    x = x.compare("ogt", 710.0).choose(x.constant(710.0), x)
    k, bits = _nearest(x * _LOG2_E)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    value = (r * r) * _polynomial(r, _EXP) + r + 1.0
    # 2^k in two factors: k may be too small or too large for one. The low bits of the shifted sum are k.
    whole = (bits << 32) >> 32
    half = whole >> 1
    first = ((half + 1023) << 52).as_real()
    second = (((whole - half) + 1023) << 52).as_real()
    return value * first * second


def _log(x: LaneValue) -> LaneValue:
    tiny = x.compare("olt", 2.0**-1022)
    scaled = tiny.choose(x * 2.0**54, x)
    bits = scaled.as_integer()
    # Exponent such that the rest m lies in [sqrt(1/2), sqrt(2)): add 1 where the fraction is below sqrt(2).
    above = bits - 0x3FE6A09E667F3BCD
    exponent = (above >> 52).convert() - tiny.choose(x.constant(54.0), 0.0)
    m = ((above & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD).as_real()
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    series = z * _polynomial(z, _LOG)
    # log(1+f) = f - f^2/2 + s (f^2/2 + series): the large term f stays exact to the end.
    value = (f - (half_square - (s * (half_square + series) + exponent * _LN2_LOW))) + exponent * _LN2_HIGH
    value = x.compare("oeq", float("inf")).choose(x, value)
    value = x.compare("ult", 0.0).choose(x.constant(float("nan")), value)
    return x.compare("oeq", 0.0).choose(x.constant(-float("inf")), value)


def _atan2(y: LaneValue, x: LaneValue) -> LaneValue:
    a, b = abs(y), abs(x)
    steep = b.compare("olt", a)
    large, small = steep.choose(a, b), steep.choose(b, a)
    # Finite and away from overflow, with the same quotient: infinity counts as 1 against 0, or against 1.
    infinite = large.compare("oeq", float("inf"))
    both = small.compare("oeq", float("inf"))
    one = x.constant(1.0)
    small = infinite.choose(both.choose(one, 0.0), small)
    large = infinite.choose(one, large)
    huge = large.compare("ogt", 2.0**1000)
    large, small = huge.choose(large * 0.25, large), huge.choose(small * 0.25, small)
    empty = large.compare("oeq", 0.0)
    large = empty.choose(one, large)
    # Above tan(pi/8) turn by pi/4: atan(s/l) = pi/4 + atan((s - l)/(s + l)).
    turn = small.compare("ogt", large * 0.41421356237309503)
    t = turn.choose(small - large, small) / turn.choose(small + large, large)
    z = t * t
    bend = (t * z) * _polynomial(z, _ATAN)
    angle_low = turn.choose(bend + _PI_LOW / 4, bend)
    # The angle is c + g (t + low) with c one of 0, pi/4, pi/2, 3pi/4, pi and g a sign; c is kept in two parts.
    negative = x.as_integer().compare("slt", 0)
    high = turn.choose(x.constant(_PI / 4), 0.0)
    mirrored = steep.choose(x.constant(_PI / 2), 0.0)
    mirrored_low = steep.choose(x.constant(_PI_LOW / 2), 0.0)
    # steep: pi/2 - angle
    high = steep.choose(mirrored - high, high)
    t = steep.choose(-t, t)
    angle_low = steep.choose(mirrored_low - angle_low, angle_low)
    # negative: pi - angle
    high = negative.choose(_PI - high, high)
    t = negative.choose(-t, t)
    angle_low = negative.choose(_PI_LOW - angle_low, angle_low)
    angle = high + (t + angle_low)
    signed = ((y.as_integer() & -(1 << 63)) ^ angle.as_integer()).as_real()
    return x.compare("uno", y).choose(x + y, signed)


@dataclass(frozen=True)
class Vectorised:
    """One entry of the table: how many arrays it reads and writes, and its functions' text."""

    arguments: int
    results: int
    compute: Callable[..., Sequence[LaneValue]]


TABLE: dict[str, Vectorised] = {
    "sincos": Vectorised(1, 2, _sincos),
    "exp": Vectorised(1, 1, lambda x: (_exp(x),)),
    "log": Vectorised(1, 1, lambda x: (_log(x),)),
    "atan2": Vectorised(2, 1, lambda y, x: (_atan2(y, x),)),
}

# Which table entry an operation belongs to, and which of its results the operation is.
ENTRY_OF = {"sin": ("sincos", 0), "cos": ("sincos", 1), "exp": ("exp", 0), "log": ("log", 0), "atan2": ("atan2", 0)}


def function_name(entry: str) -> str:
    """Name of the functions of an entry in a module."""
    return f"lanes_{entry}"


def computed(entry: str, inside: Sequence[LaneValue], machine: Machine) -> tuple[Sequence[LaneValue], LaneValue | None]:
    """Results of one table entry for one vector, and where they are not to be trusted, if that can be."""
    # Single precision borrows double's exp, log and atan2: rarely used, and exact enough by far.
    through_double = inside[0].shape.bits == 32 and not (entry == "sincos" and machine.fma)
    compute = partial(_sincos, fused=False) if entry == "sincos" and not machine.fma else TABLE[entry].compute
    found = list(compute(*(map(_widen, inside) if through_double else inside)))
    doubtful = found.pop() if entry == "sincos" else None
    return [_narrow(value) for value in found] if through_double else found, doubtful


def functions(entry: str, machine: Machine, bits: int) -> list[FunctionText]:
    """The functions of one table entry: a loop over vectors, and for sincos the scalar way out."""
    row = TABLE[entry]
    shape = LaneShape(bits, machine.vector_bytes * 8 // bits)
    pointers = [f"%p{i}" for i in range(row.arguments + row.results)]
    parameters = ", ".join(f"ptr {pointer}" for pointer in pointers)
    body = FunctionText(f"define internal void @{function_name(entry)}({parameters}, i64 %count) #0")
    body.label("entry")
    with body.counted("%count", some=True, again="after"):
        places = [body.address(shape.real, pointer, "%i") for pointer in pointers]
        inside = [LaneValue(body, shape, body.load(shape.real, place, shape.size)) for place in places[: row.arguments]]
        results, doubtful = computed(entry, inside, machine)
        for value, place in zip(results, places[row.arguments :], strict=True):
            body.store(shape.real, value.name, place, shape.size)
        made = [body]
        if doubtful is not None:
            body.do(f"br i1 {doubtful.any()}, label %rare, label %after")
            body.label("rare")
            body.do(f"call void @lanes_sincos_rare(ptr {places[0]}, ptr {places[1]}, ptr {places[2]})")
            made.append(_rare(shape))
        body.do("br label %after")
    body.do("ret void")
    return made


def _widen(value: LaneValue) -> LaneValue:
    shape = LaneShape(64, value.shape.lanes)
    return LaneValue(value.function, shape, value.function.emit(f"fpext {value.type} {value.name} to {shape.real}"))


def _narrow(value: LaneValue) -> LaneValue:
    shape = LaneShape(32, value.shape.lanes)
    return LaneValue(value.function, shape, value.function.emit(f"fptrunc {value.type} {value.name} to {shape.real}"))


def _rare(shape: LaneShape) -> FunctionText:
    """Redo by the C library the lanes whose argument is too large, one by one; the others stay as they are."""
    scalar = LaneShape(shape.bits, 1)
    f = FunctionText("define internal void @lanes_sincos_rare(ptr %x, ptr %s, ptr %c) noinline cold #0")
    f.label("entry")
    with f.counted(shape.lanes, some=True, again="after"):
        x, s, c = (f.address(scalar.real, pointer, "%i") for pointer in ("%x", "%s", "%c"))
        value = LaneValue(f, scalar, f.load(scalar.real, x, scalar.size))
        f.do(f"br i1 {abs(value).compare('ugt', _REDUCIBLE).name}, label %redo, label %after")
        f.label("redo")
        wide = value if shape.bits == 64 else _widen(value)
        for name, place in (("lw_libm_sin", s), ("lw_libm_cos", c)):
            result = LaneValue(f, wide.shape, f.call("double", name, [("double", wide.name)]))
            f.store(scalar.real, (result if shape.bits == 64 else _narrow(result)).name, place, scalar.size)
        f.do("br label %after")
    f.do("ret void")
    return f
