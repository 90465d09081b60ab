"""Random calls: any function of any mechanism, with arrays of any shape, layout and type between guard pages.

Each call is compared bit for bit with the same call on plain arrays; one of its states also with an oracle. What must
be refused must be refused with an InputError.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import linkwise as lw
from campaign import oracles
from campaign.guarded import Guarded
from campaign.mechanisms import Recipe, random_recipe
from campaign.shrink import shrink
from campaign.surface import Method, methods
from campaign.trial import Log, Trial, said
from linkwise.algorithms.catalogue import INPUTS
from tests.random_trees import random_q

ORACLES = ("pinocchio", "laws", "other_sweeps", "differences")
LAYOUTS = ("plain", "fortran", "reversed", "strided", "read-only", "list")
MISTAKES = ("short", "complex", "text", "batches", "out shape", "out read-only", "out dtype", "threads")
_FULL = (...,)


@dataclass(frozen=True)
class Given:
    """How one array is handed in: its type, its layout ("end+3": three bytes before a guard page), its batch axes."""

    dtype: str = "f8"
    layout: str = "plain"
    axes: str = "all"
    """All of the batch's: "all"; none, one for all states: "none"; of length one: "ones"."""


@dataclass(frozen=True)
class Case:
    """One call, in full."""

    mechanism: Recipe
    function: str
    seed: int = 0
    batch: tuple[int, ...] = ()
    given: tuple[Given, ...] = ()
    """For the required arrays, then the optional ones; plain where the tuple is too short."""
    optional: tuple[str, ...] = ()
    order: int = 1
    dt: float | None = None
    out: str = ""
    """The layout of the arrays to fill, if any; "input" fills the first array handed in."""
    threads: int | None = None
    bad: float | None = None
    """What one state is spoiled with: the others must not notice."""
    mistake: str = ""
    oracle: str = ""

    def array(self, k: int) -> Given:
        """How the k-th array is handed in."""
        return self.given[k] if k < len(self.given) else Given()


def random_case(rng: np.random.Generator, recipe: Recipe, names: Sequence[str]) -> Case:
    """Any call of one of these functions."""
    method = methods()[str(rng.choice(names))]
    optional = tuple(name for name in method.optional if rng.random() < 0.3)
    names = (*method.arrays, *optional)
    batch = _batch(rng)
    case = Case(recipe, method.name, int(rng.integers(2**31)), batch, optional=optional)
    if not method.is_in_catalogue:
        times = [1e-4, 1e-2, 0.1] if recipe.is_ordinary else [1e-4]  # others move so fast that it takes minutes
        dt = float(rng.choice(times)) if "dt" in method.static and rng.random() < 0.05 else None
        return replace(case, batch=tuple(min(n, 3) for n in batch[:1]), dt=dt)
    if "order" in method.static and rng.random() < 0.02 and recipe.bodies < 3:
        return replace(case, order=2, batch=tuple(min(n, 3) for n in batch[:1]))
    dtype = rng.choice(["f8", "f4", "mixed"], p=[0.6, 0.2, 0.2])
    given = tuple(Given(_dtype(rng, str(dtype), batch), _layout(rng), _axes(rng)) for _ in names)
    if all(g.axes != "all" for g in given):  # somebody must say how large the batch is
        given = (replace(given[0], axes="all"), *given[1:])
    case = replace(case, given=given)
    if rng.random() < 0.4 and not any(g.dtype == "O" for g in given):
        case = replace(case, out="input" if rng.random() < 0.1 else _layout(rng).replace("list", "plain"))
        case = replace(case, out="plain" if case.out == "read-only" else case.out)
    if rng.random() < 0.3:
        case = replace(case, threads=int(rng.integers(1, 4)))
    what = rng.random()
    if what < 0.05:
        return replace(case, mistake=str(rng.choice(MISTAKES)))
    if what < 0.12 and math.prod(batch) > 1:
        return replace(case, bad=float(rng.choice([np.nan, np.inf, 1e300])))
    if what < 0.35:
        return replace(case, oracle=str(rng.choice(ORACLES)))
    if what < 0.36:
        return replace(case, oracle="forty_digits")
    return case


def _batch(rng: np.random.Generator) -> tuple[int, ...]:
    kind = rng.random()
    if kind < 0.2:
        return ()
    if kind < 0.26:
        return [(0,), (3, 0, 2), (0, 5), (1, 0)][rng.integers(4)]
    if kind < 0.8:
        return (int(rng.integers(1, 41)),)
    if kind < 0.985:
        return tuple(int(n) for n in rng.integers(1, 5, size=rng.integers(2, 4)))
    return (int(rng.integers(10_000, 30_000)),)


def _dtype(rng: np.random.Generator, kind: str, batch: tuple[int, ...]) -> str:
    if kind != "mixed":
        return kind
    few = math.prod(batch) <= 4
    return str(rng.choice(["f8", "f4", ">f8", "i8", "f2", ">f4", "i1", *(["O"] if few else [])]))


def _layout(rng: np.random.Generator) -> str:
    if rng.random() < 0.6:
        return f"{rng.choice(['start', 'end'])}+{0 if rng.random() < 0.5 else rng.integers(1, 72)}"
    return str(rng.choice(LAYOUTS))


def _axes(rng: np.random.Generator) -> str:
    return str(rng.choice(["all", "none", "ones"], p=[0.8, 0.1, 0.1]))


class _Call:
    """A case on its way: the numbers, the arrays made of them, and the guards around these."""

    def __init__(self, case: Case) -> None:
        self.case, self.model = case, case.mechanism.build()
        self.method: Method = methods()[case.function]
        rng = np.random.default_rng(case.seed)
        self.names = (*self.method.arrays, *case.optional)
        self.values = {name: self._numbers(rng, k, name) for k, name in enumerate(self.names)}
        self.static: dict[str, Any] = {}
        if "body" in self.method.static:
            self.static["body"] = self.model.bodies[-1].name if rng.random() < 0.5 else "tool"
        if case.order != 1:
            self.static["order"] = case.order
        if case.dt is not None:
            self.static["dt"] = case.dt
        if self.model.parameters.names and "p" in self.method.options:
            self.static["p"] = self.model.parameters.nominal
        self.guards: list[Guarded] = []
        self.bad_state = int(rng.integers(math.prod(case.batch) or 1))

    def _numbers(self, rng: np.random.Generator, k: int, name: str) -> Any:
        """Values of one input, of its own batch shape, already rounded to its type."""
        case, core = self.case, INPUTS[name].shape(self.model)
        axes = case.array(k).axes
        batch = case.batch if axes == "all" else () if axes == "none" else (1,) * len(case.batch)
        if INPUTS[name].divided == "q":
            few = random_q(self.model, rng, (min(math.prod(batch), 16),))
            values = np.resize(few, (*batch, *core)) if few.size else np.zeros((*batch, *core))
        else:
            values = rng.normal(size=(*batch, *core)) * float(rng.choice([1.0, 1.0, 1e-3, 30.0]))
        dtype = np.dtype(case.array(k).dtype)
        if dtype.kind == "i":
            values = np.clip(np.round(2 * values), -100, 100)
            if INPUTS[name].divided == "q":  # no quaternion of length zero
                values = np.abs(values) + 1.0
        return np.asarray(values).astype(dtype)

    # Arrays.
    def plain(self, dtype: Any = None) -> dict[str, Any]:
        """All arrays with all batch axes, contiguous, in the precision of the call."""
        kind = self.dtype if dtype is None else dtype
        return {
            name: np.array(np.broadcast_to(x, (*self.case.batch, *INPUTS[name].shape(self.model))), kind, order="C")
            for name, x in self.values.items()
        }

    @property
    def dtype(self) -> Any:
        """What the call computes in."""
        single = all(x.dtype == np.float32 for x in self.values.values()) and "p" not in self.static
        return np.dtype(np.float32 if single else np.float64)

    @property
    def is_symbolic(self) -> bool:
        """Whether some array holds objects, so that the text runs eagerly."""
        return any(x.dtype == object for x in self.values.values())

    def laid_out(self, array: Any, layout: str) -> Any:
        """The same numbers somewhere else."""
        if "+" in layout and array.dtype != object:
            side, shift = layout.split("+")
            guard = Guarded(array.shape, array.dtype, side, int(shift))
            guard.array[...] = array
            self.guards.append(guard)
            return guard.array
        if layout == "fortran" and array.ndim:
            return np.asfortranarray(array)
        if layout == "reversed" and array.ndim:
            return np.ascontiguousarray(array[::-1])[::-1]
        if layout == "strided" and array.ndim:
            return np.repeat(array, 2, axis=-1)[..., ::2]
        if layout == "read-only":
            array = array.copy()
            array.flags.writeable = False
        return array

    def arguments(self) -> dict[str, Any]:
        """The arrays as the case says."""
        made = {}
        for k, (name, values) in enumerate(self.values.items()):
            given = self.case.array(k)
            # A list forgets its type: of single precision or of integers it is a list of doubles.
            exact = given.dtype == "f8" and values.size
            made[name] = values.tolist() if given.layout == "list" and exact else self.laid_out(values, given.layout)
        return made

    def one(self, k: int) -> dict[str, Any]:
        """The k-th state alone, in double precision."""
        state = {n: x.reshape(-1, *INPUTS[n].shape(self.model))[k] for n, x in self.plain(np.float64).items()}
        return {**state, **self.static}

    def out(self, like: list[Any], arguments: dict[str, Any]) -> Any:
        """Arrays to fill, or None."""
        how = self.case.out
        if not how:
            return None
        first = next(iter(arguments.values()), None)
        if how == "input":
            same = isinstance(first, np.ndarray) and len(like) == 1 and first.shape == like[0].shape
            if same and first.dtype == like[0].dtype and first.flags.writeable:
                return first
            how = "plain"
        made = [self.laid_out(np.full_like(x, 7.0), how) for x in like]
        return made[0] if len(made) == 1 else tuple(made)


def check(case: Case) -> None:
    """Make the call; raise AssertionError if anything about it is not as it must be."""
    with np.errstate(all="ignore"):
        if case.mistake:
            _check_refusal(_Call(case))
        else:
            _check_call(_Call(case))


def _check_call(it: _Call) -> None:
    case = it.case
    expected = oracles.parts(oracles.call(it.model, it.method, {**it.plain(), **it.static}))
    for array in expected:
        assert array.shape[: len(case.batch)] == case.batch, f"shape {array.shape} for a batch {case.batch}"
        assert array.dtype == it.dtype or not it.method.is_in_catalogue, f"dtype {array.dtype}, expected {it.dtype}"
        if it.dtype == np.float64 and case.mechanism.is_ordinary and case.function not in oracles.UNDEFINED:
            assert np.isfinite(array.astype(float)).all(), "not finite"
    if case.bad is not None and _spoil(it):
        _check_isolation(it, expected)
        return
    arguments = it.arguments()
    options: dict[str, Any] = {}
    if "out" in it.method.options and case.order == 1:
        options["out"] = it.out(expected, arguments)
    if "threads" in it.method.options:
        options["threads"] = case.threads
    before = {n: np.array(x, copy=True) for n, x in arguments.items() if x is not options.get("out")}
    result = oracles.parts(oracles.call(it.model, it.method, {**arguments, **it.static}, **options))
    for guard in it.guards:
        assert guard.intact(), "bytes beside an array were written to"
    for name, old in before.items():
        assert _same(np.asarray(arguments[name]), old), f"the input {name} was changed"
    if options.get("out") is not None:
        for filled, array in zip(oracles.parts(options["out"]), result, strict=True):
            assert array.base is None or np.shares_memory(filled, array) or filled.size <= 1, "out was not returned"
            assert _same(np.asarray(filled), array), "out was not filled"
    same_way = not it.is_symbolic and not (case.batch == () and case.function in it.model.__dict__)
    for array, right in zip(result, expected, strict=True):
        assert array.shape == right.shape, f"shape {array.shape}, expected {right.shape}"
        if same_way:
            assert _same(array, right), f"not the bits of the plain call: {_difference(array, right):.1e}"
        elif case.mechanism.is_ordinary and case.function not in oracles.UNDEFINED:
            assert _difference(array, right) < 1e-8, f"off the plain call by {_difference(array, right):.1e}"
    if case.oracle and math.prod(case.batch) and case.function not in oracles.UNDEFINED:
        _ask_oracle(it)


def _ask_oracle(it: _Call) -> None:
    """One state in double precision, from a batch and alone."""
    case = it.case
    k = it.bad_state
    whole = oracles.call(it.model, it.method, {**it.plain(np.float64), **it.static})
    cut = len(case.batch)
    rows = [x.reshape(-1, *x.shape[cut:])[k] for x in oracles.parts(whole)]
    result = type(whole)._make(rows) if isinstance(whole, tuple) else rows[0]
    one = it.one(k)
    if case.oracle == "forty_digits":
        if it.method.is_in_catalogue and case.order == 1:
            oracles.forty_digits(case.mechanism, it.method, one, result, case.seed)
        return
    getattr(oracles, case.oracle)(case.mechanism, it.method, one, result)


def _spoil(it: _Call) -> bool:
    """Put the bad value into one state of one array that has all batch axes."""
    for name, values in it.values.items():
        core = INPUTS[name].shape(it.model)
        if values.shape == (*it.case.batch, *core) and values.dtype.kind == "f" and math.prod(core):
            values.reshape(-1, math.prod(core))[it.bad_state, 0] = it.case.bad
            return True
    return False


def _check_isolation(it: _Call, expected: list[Any]) -> None:
    if it.is_symbolic:
        return
    arguments = it.arguments()
    result = oracles.parts(oracles.call(it.model, it.method, {**arguments, **it.static}))
    others = np.arange(math.prod(it.case.batch)) != it.bad_state
    for array, right in zip(result, expected, strict=True):
        rows = [x.reshape(len(others), -1)[others] for x in (array, right)]
        assert _same(*rows), "a state that is not finite changed another"


def _check_refusal(it: _Call) -> None:
    mistake, arguments = it.case.mistake, it.arguments()
    first = it.names[0]
    options: dict[str, Any] = {}
    array = np.asarray(arguments[first])
    if mistake == "short":
        arguments[first] = array[..., :-1]
    elif mistake == "complex":
        arguments[first] = np.zeros(array.shape, complex)
    elif mistake == "text":
        arguments[first] = np.full(array.shape, "x")
        if not array.size:
            arguments[first] = "x"
    elif mistake == "batches":
        if len(it.names) < 2 or not it.case.batch:
            return
        core = INPUTS[it.names[1]].shape(it.model)
        arguments[first] = np.ones((5, *INPUTS[first].shape(it.model)))
        arguments[it.names[1]] = np.ones((7, *core))
    elif mistake == "threads":
        options["threads"] = [0, -1, 1.5, "2"][it.case.seed % 4]
    else:
        if it.is_symbolic:
            return
        like = oracles.parts(oracles.call(it.model, it.method, {**it.plain(), **it.static}))
        outs = [np.empty_like(x) for x in like]
        if mistake == "out shape":
            outs[0] = np.empty((*outs[0].shape, 1), outs[0].dtype)
        elif mistake == "out dtype":
            outs[0] = outs[0].astype(np.float16)
        else:
            outs[0].flags.writeable = False
        options["out"] = outs[0] if len(outs) == 1 else tuple(outs)
    options = {name: x for name, x in options.items() if name in it.method.options}
    if not options and ("out" in mistake or mistake == "threads"):
        return
    try:
        oracles.call(it.model, it.method, {**arguments, **it.static}, **options)
    except lw.InputError as refusal:
        assert str(refusal).strip(), "an error without a message"
        return
    raise AssertionError(f"a mistake was not noticed: {mistake}")


def _same(a: Any, b: Any) -> bool:
    if a.dtype == object:
        return bool((a == b).all())
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _difference(a: Any, b: Any) -> float:
    a, b = np.asarray(a).astype(float), np.asarray(b).astype(float)
    return float(np.abs(a - b).max(initial=0.0) / (np.abs(b).max(initial=0.0) + 1e-3))


def simpler(case: Case) -> Iterator[Case]:
    """Cases with one thing less."""
    for recipe in case.mechanism.simpler():
        yield replace(case, mechanism=recipe)
    plain = Case(case.mechanism, case.function)
    for name in ("out", "threads", "optional", "given", "bad", "oracle", "order", "dt", "seed"):
        if getattr(case, name) != getattr(plain, name):
            yield replace(case, **{name: getattr(plain, name)})
    for batch in ((), (1,), (2,), tuple(case.batch[:1]), (math.prod(case.batch),), (math.prod(case.batch) // 2,)):
        if len(batch) < len(case.batch) or (len(batch) == len(case.batch) and batch < case.batch):
            yield replace(case, batch=batch)
    for k, given in enumerate(case.given):
        for change in (Given(), replace(given, layout="plain"), replace(given, dtype="f8"), replace(given, axes="all")):
            if change != given:
                yield replace(case, given=(*case.given[:k], change, *case.given[k + 1 :]))


def as_test(case: Case, failure: str) -> str:
    """The case as a test."""
    return (
        f"def test_call_of_{case.function}() -> None:\n"
        f'    """{failure.splitlines()[0][:100]}"""\n'
        f"    from campaign.mechanisms import Recipe\n"
        f"    from campaign.trials.calls import Case, Given, check\n\n"
        f"    check({_short(case)})\n"
    )


def _short(value: Any) -> str:
    """A dataclass with only the fields that are not the usual ones."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))}{',' if len(value) == 1 else ''})"
    if not hasattr(value, "__dataclass_fields__"):
        return repr(value)
    shown = []
    for name, field in value.__dataclass_fields__.items():
        here = getattr(value, name)
        if here != field.default:
            shown.append(f"{name}={_short(here)}")
    return f"{type(value).__name__}({', '.join(shown)})"


class Calls(Trial):
    """Random calls of all functions."""

    name, unit, target, chunk = "calls", "random calls", 10**6, 1000
    share, patience = 4.0, 300.0
    functions = 8
    """Tried on one mechanism: compiling takes most of the time."""

    def case(self, seed: int, number: int) -> Case:
        """The case of a number; those of one chunk share a mechanism and a few functions."""
        rng = np.random.default_rng([seed, number // self.chunk])
        recipe = random_recipe(rng)
        names = [str(name) for name in rng.permutation(list(methods()))[: self.functions]]
        return random_case(np.random.default_rng([seed, number // self.chunk, number]), recipe, names)

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Make the calls; of a function that fails, no more on this mechanism: it would say the same again."""
        broken: set[str] = set()
        for number in numbers:
            case = self.case(seed, number)
            if log.expired or len(broken) == self.functions:
                return
            if case.function in broken:
                continue
            log.begin(number, _short(case))
            try:
                check(case)
            except Exception as error:
                log.fail(number, f"{said(error)}\n  {_short(case)}")
                broken.add(case.function)
            log.done()

    def shrunk(self, seed: int, number: int, seconds: float) -> str:
        """The smallest case that fails in the same way."""
        case, failure = shrink(self.case(seed, number), simpler, check, seconds)
        return as_test(case, failure or "does not fail alone: it needs the calls before it")
