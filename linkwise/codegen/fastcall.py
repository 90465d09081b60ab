"""A Python function for one state, all of it machine code.

For a small robot the arithmetic takes a hundred nanoseconds, and unpacking arguments in Python several
times as much. So the builtin function itself is emitted: it looks at each ndarray in place, makes the result
with NumPy's allocator, runs the program on plain scalars and returns. Whatever is not exactly as expected
(lists, other dtypes, strides, keywords, batches) goes to a Python callable with the same arguments.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from linkwise.codegen import jit, layouts, transcendental
from linkwise.codegen.body import Body
from linkwise.codegen.ir import Function, Shape, module_text
from linkwise.codegen.llvm import attributes, entries_used
from linkwise.codegen.plan import make_plan
from linkwise.codegen.target import Machine
from linkwise.tracing.program import ArraySpec, Program

ENTRY = "linkwise_single"
# A program beyond this many nodes takes so long that a call's overhead does not show, and much stack.
LARGEST = 50_000

available = layouts.available


def identity() -> str:
    """What the code relies on beyond the machine; part of the cache key."""
    offsets = (layouts.TYPE, layouts.DATA, layouts.NDIM, layouts.DIMS, layouts.DESCR, layouts.FLAGS)
    return "ndarray at " + " ".join(map(str, offsets))


def single_module(program: Program, machine: Machine, as_tuple: bool) -> str:
    """The module's text: the body on scalars, and the function that Python calls."""
    plan = make_plan(program)
    vector = Shape(64, machine.vector_bytes // 8)
    body = Body(program, plan, Shape(64, 1), vector, masked=machine.masked)
    grouped = [f for entry in entries_used(plan) for f in transcendental.functions(entry, machine, 64)]
    outside = [f"@{name} = external global i8" for name in _OBJECTS]
    made = [*grouped, *body.functions, _entry(program, body.frame_bytes, as_tuple)]
    return f"; {program.name}, one state\n" + module_text(
        made, [*outside, _dims(program), attributes(machine), *_WEIGHTS]
    )


# Branches of checks: nearly always passed, nearly never failed.
_WEIGHTS = ('!0 = !{!"branch_weights", i32 2000, i32 1}', '!1 = !{!"branch_weights", i32 1, i32 2000}')

_OBJECTS = ("lw_ndarray", "lw_float64", "lw_slow", "lw_result")


def _dims(program: Program) -> str:
    """Shapes of the outputs, as the allocator wants them: arrays of 64-bit integers in memory."""
    lines = []
    for k, array in enumerate(program.outputs):
        numbers = ", ".join(f"i64 {n}" for n in array.shape) or "i64 0"
        lines.append(f"@dims{k} = private constant [{max(1, len(array.shape))} x i64] [{numbers}]")
    return "\n".join(lines)


def _check(f: Function, argument: str, array: ArraySpec) -> str:
    """One argument's data pointer; leaves for ``slow`` unless it is the plain array we know."""

    def require(holds: str) -> None:
        further = f.name()[1:]
        f.do(f"br i1 {holds}, label %{further}, label %slow, !prof !0")
        f.label(further)

    def field(kind: str, offset: int, align: int) -> str:
        return f.load(kind, f.address("i8", argument, offset), align)

    require(f.emit(f"icmp eq ptr {field('ptr', layouts.TYPE, 8)}, @lw_ndarray"))
    require(f.emit(f"icmp eq ptr {field('ptr', layouts.DESCR, 8)}, @lw_float64"))
    require(f.emit(f"icmp eq i32 {field('i32', layouts.NDIM, 4)}, {len(array.shape)}"))
    wanted = layouts.C_CONTIGUOUS | layouts.ALIGNED
    flags = f.emit(f"and i32 {field('i32', layouts.FLAGS, 4)}, {wanted}")
    require(f.emit(f"icmp eq i32 {flags}, {wanted}"))
    if array.shape:
        dims = field("ptr", layouts.DIMS, 8)
        for k, size in enumerate(array.shape):
            require(f.emit(f"icmp eq i64 {f.load('i64', f.address('i64', dims, k), 8)}, {size}"))
    return field("ptr", layouts.DATA, 8)


def _entry(program: Program, frame_bytes: int, as_tuple: bool) -> Function:
    f = Function(f"define ptr @{ENTRY}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) #0")
    f.label("entry")
    frame = f.emit(f"alloca [{max(frame_bytes, 1)} x i8], align 64")
    if as_tuple:
        f.do("%pair = alloca [2 x ptr], align 8")
    # Arguments.
    few = f.emit(f"icmp eq i64 %nargs, {len(program.inputs)}")
    plain = f.emit("icmp eq ptr %kwnames, null")
    f.do(f"br i1 {f.emit(f'and i1 {few}, {plain}')}, label %counted, label %slow, !prof !0")
    f.label("counted")
    data = []
    for k, array in enumerate(program.inputs):
        data.append(_check(f, f.load("ptr", f.address("ptr", "%args", k), 8), array))
    # Results, then the arithmetic.
    made: list[str] = []
    for k, array in enumerate(program.outputs):
        made.append(_new_array(f, k, len(array.shape), made))
    data += [f.load("ptr", f.address("i8", array, layouts.DATA), 8) for array in made]
    f.do(f"call void @body({', '.join(f'ptr {place}' for place in [*data, frame])})")
    returned = [
        f.call("ptr", "lw_array_return", [("ptr", array)]) if not spec.shape else array
        for array, spec in zip(made, program.outputs, strict=True)
    ]
    if as_tuple:
        _return_tuple(f, returned)
    else:
        f.do(f"ret ptr {returned[0]}")
    f.label("slow")
    slow = [("ptr", "@lw_slow"), ("ptr", "%args"), ("i64", "%nargs"), ("ptr", "%kwnames")]
    f.do(f"ret ptr {f.call('ptr', 'PyObject_Vectorcall', slow)}")
    return f


def _new_array(f: Function, k: int, ndim: int, earlier: list[str]) -> str:
    """A fresh array; when memory is out, give back the earlier ones and fail."""
    _call_void(f, "Py_IncRef", "@lw_float64")  # the allocator keeps the reference it is given
    head = [("ptr", "@lw_ndarray"), ("ptr", "@lw_float64"), ("i32", str(ndim)), ("ptr", f"@dims{k}")]
    array = f.call("ptr", "lw_array_new", [*head, ("ptr", "null"), ("ptr", "null"), ("i32", "0"), ("ptr", "null")])
    failed = f.emit(f"icmp eq ptr {array}, null")
    f.do(f"br i1 {failed}, label %failed{k}, label %made{k}, !prof !1")
    f.label(f"failed{k}")
    for other in earlier:
        _call_void(f, "Py_DecRef", other)
    f.do("ret ptr null")
    f.label(f"made{k}")
    return array


def _return_tuple(f: Function, values: list[str]) -> None:
    """A tuple of the values, or what the callable asked for makes of one."""
    plain = f.call("ptr", "PyTuple_New", [("i64", str(len(values)))])
    f.do(f"br i1 {f.emit(f'icmp eq ptr {plain}, null')}, label %no_tuple, label %tuple, !prof !1")
    f.label("no_tuple")
    for value in values:
        _call_void(f, "Py_DecRef", value)
    f.do("ret ptr null")
    f.label("tuple")
    for k, value in enumerate(values):
        f.call("i32", "PyTuple_SetItem", [("ptr", plain), ("i64", str(k)), ("ptr", value)])
    # Three words: the callable, or null where a plain tuple will do; its first argument, if it takes two; how many.
    callee = f.load("ptr", "@lw_result", 8)
    f.do(f"br i1 {f.emit(f'icmp eq ptr {callee}, null')}, label %is_plain, label %named")
    f.label("is_plain")
    f.do(f"ret ptr {plain}")
    f.label("named")
    first = f.load("ptr", f.address("ptr", "@lw_result", 1), 8)
    count = f.load("i64", f.address("ptr", "@lw_result", 2), 8)
    f.store("ptr", first, "%pair", 8)
    f.store("ptr", plain, f.address("ptr", "%pair", 1), 8)
    start = f.address("ptr", "%pair", f.emit(f"sub i64 2, {count}"))
    call = [("ptr", callee), ("ptr", start), ("i64", count), ("ptr", "null")]
    result = f.call("ptr", "PyObject_Vectorcall", call)
    _call_void(f, "Py_DecRef", plain)
    f.do(f"ret ptr {result}")


def _call_void(f: Function, name: str, argument: str) -> None:
    f.declare(f"declare void @{name}(ptr)")
    f.do(f"call void @{name}(ptr {argument})")


def _result_call(make_result: Callable[..., Any] | None) -> tuple[Any, ...]:
    """What to call with the plain tuple, and what to put before it.

    Named tuples are made by ``tuple.__new__`` itself, which is what their ``_make`` does in Python.
    """
    if make_result is None or make_result is tuple:
        return (None,)
    kind = getattr(make_result, "__self__", None) if getattr(make_result, "__name__", "") == "_make" else make_result
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return layouts.TUPLE_NEW, kind
    return (make_result,)


class _MethodDef(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL_KEYWORDS = 0x0080 | 0x0002

# Code and method definition must outlive the function object. A finaliser runs while the object is still being
# taken apart, so what it lets go is kept a little longer.
_retired: deque[Any] = deque(maxlen=64)


def make_function(
    obj: bytes,
    program: Program,
    slow: Callable[..., Any],
    name: str,
    doc: str,
    make_result: Callable[..., Any] | None,
    imports: Mapping[str, int],
) -> Callable[..., Any]:
    """Load an object made from :func:`single_module` and wrap its entry as a builtin function."""
    callee, *first = _result_call(make_result)
    result = (ctypes.c_void_p * 3)(
        *(None if x is None else id(x) for x in (callee, *(first or [None]))), 1 + len(first)
    )
    linked = {
        **imports,
        **layouts.addresses(),
        "lw_slow": id(slow),
        "lw_result": ctypes.addressof(result),
    }
    library = jit.Library(obj, (ENTRY,), linked)
    signature = f"{name}({', '.join(array.name for array in program.inputs)})\n--\n\n{doc}"
    method = _MethodDef(name.encode(), library[ENTRY], _FASTCALL_KEYWORDS, signature.encode())
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    # The function holds the tuple and so everything its code refers to by address.
    function: Any = new(ctypes.addressof(method), (slow, callee, *first), "linkwise")
    needed = (library, method, result)
    # One reference that nobody drops: when the interpreter ends it clears modules and finalisers in an order of its
    # own, and a function that outlives its method definition would crash it.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(needed))
    weakref.finalize(function, _retire, needed).atexit = False
    return function  # type: ignore[no-any-return]


def _retire(needed: tuple[Any, ...]) -> None:
    """Called while a function is being freed in ordinary times: keep what it needs a little longer, then let go."""
    _retired.append(needed)
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(needed))
