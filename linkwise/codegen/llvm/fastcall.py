"""A Python function for one state, all of it machine code.

For a small robot the arithmetic takes a hundred nanoseconds, and unpacking arguments in Python several
times as much. So the builtin function itself is emitted: it looks at each ndarray in place, makes the result
with NumPy's allocator, runs the program on plain scalars and returns. Whatever is not exactly as expected
(lists, other dtypes, strides, keywords, batches) goes to a Python callable with the same arguments.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, Literal

from linkwise.codegen.llvm import jit, layouts, transcendental
from linkwise.codegen.llvm.body import Body
from linkwise.codegen.llvm.ir import Function, Shape, module_text
from linkwise.codegen.llvm.machines import Machine
from linkwise.codegen.llvm.plan import make_plan
from linkwise.codegen.llvm.source import attributes, entries_used
from linkwise.tracing.program import ArraySpec, Program

ENTRY = "linkwise_single"
# A program beyond this many nodes takes so long that a call's overhead does not show, and much stack.
LARGEST = 50_000

available = layouts.available


def identity() -> str:
    """What the code relies on beyond the machine; part of the cache key."""
    offsets = (layouts.TYPE, layouts.DATA, layouts.NDIM, layouts.DIMS, layouts.DESCR, layouts.FLAGS)
    return f"ndarray at {' '.join(map(str, offsets))}, tuple at {layouts.ITEMS}"


Result = Literal["array", "tuple", "named tuple", "call"]
"""What is returned: the array, a plain tuple, a named tuple of that, or what a callable makes of it."""


def result_of(program: Program, make_result: Callable[..., Any] | None) -> Result:
    """What a function of this program returns."""
    if make_result is None:
        return "array" if len(program.outputs) == 1 else "tuple"
    if make_result is tuple:
        return "tuple"
    return "call" if _named_tuple(make_result) is None else "named tuple"


def _named_tuple(make_result: Callable[..., Any]) -> type[Any] | None:
    """The class of named tuples that is asked for, itself or by its ``_make``; None for any other callable."""
    kind = getattr(make_result, "__self__", None) if getattr(make_result, "__name__", "") == "_make" else make_result
    return kind if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields") else None


def single_module(program: Program, machine: Machine, result: Result) -> str:
    """The module's text: the body on scalars, and the function that Python calls."""
    plan = make_plan(program)
    vector = Shape(64, machine.vector_bytes // 8)
    body = Body(program, plan, Shape(64, 1), vector, masked=machine.masked)
    grouped = [f for entry in entries_used(plan) for f in transcendental.functions(entry, machine, 64)]
    outside = [f"@{name} = external global i8" for name in _OBJECTS]
    made = [*grouped, *body.functions, _entry(program, body.frame_bytes, result)]
    return f"; {program.name}, one state\n" + module_text(
        made, [*outside, _dims(program), attributes(machine), *_WEIGHTS]
    )


# Branches of checks: nearly always passed, nearly never failed.
_WEIGHTS = ('!0 = !{!"branch_weights", i32 2000, i32 1}', '!1 = !{!"branch_weights", i32 1, i32 2000}')

_OBJECTS = ("lw_ndarray", "lw_float64")


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


def _entry(program: Program, frame_bytes: int, result: Result) -> Function:
    f = Function(f"define ptr @{ENTRY}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) #0")
    f.label("entry")
    frame = f.emit(f"alloca [{max(frame_bytes, 1)} x i8], align 64")
    f.do("%passed = alloca [2 x ptr], align 8")
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
    if result == "array":
        f.do(f"ret ptr {returned[0]}")
    else:
        _return_tuple(f, returned, result)
    f.label("slow")
    slow = [("ptr", _bound(f, _SLOW)), ("ptr", "%args"), ("i64", "%nargs"), ("ptr", "%kwnames")]
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


def _bound(f: Function, item: int) -> str:
    """An item of the tuple that the function is bound to."""
    return f.load("ptr", f.address("i8", "%self", layouts.ITEMS + 8 * item), 8)


def _return_tuple(f: Function, values: list[str], result: Result) -> None:
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
    if result == "tuple":
        f.do(f"ret ptr {plain}")
        return
    # Named tuples are made by ``tuple.__new__`` itself, which is what their ``_make`` does in Python.
    arguments = [_bound(f, _KIND), plain] if result == "named tuple" else [plain]
    for k, argument in enumerate(arguments):
        f.store("ptr", argument, f.address("ptr", "%passed", k), 8)
    call = [("ptr", _bound(f, _CALLEE)), ("ptr", "%passed"), ("i64", str(len(arguments))), ("ptr", "null")]
    made = f.call("ptr", "PyObject_Vectorcall", call)
    _call_void(f, "Py_DecRef", plain)
    f.do(f"ret ptr {made}")


def _call_void(f: Function, name: str, argument: str) -> None:
    f.declare(f"declare void @{name}(ptr)")
    f.do(f"call void @{name}(ptr {argument})")


class _MethodDef(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL_KEYWORDS = 0x0080 | 0x0002

_SLOW, _CALLEE, _KIND = 0, 1, 2


class _Bound(tuple[Any, ...]):
    """What a single-state function is bound to, as ``__self__``: its ordinary path, and all that its code refers to.

    The last item holds the code and the method definition. They go when the function goes: it lets go of this tuple
    when it is freed, as the last thing it does (CPython's ``meth_dealloc`` says that a method definition may be kept
    alive by ``__self__``), and the collector, which cannot take a tuple apart, does not see into that item.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """A builtin pickles as an attribute of what it is bound to: here of the object whose method it stands for."""
        return _itself, (getattr(self[_SLOW], "__self__", None),)


def _itself(thing: object) -> object:
    return thing


def make_function(
    obj: bytes,
    slow: Callable[..., Any],
    name: str,
    signature: str,
    doc: str,
    make_result: Callable[..., Any] | None,
    imports: Mapping[str, int],
) -> Callable[..., Any]:
    """Load an object made from :func:`single_module` and wrap its entry as a builtin function."""
    kind = None if make_result is None else _named_tuple(make_result)
    library = jit.load(obj, (ENTRY,), {**imports, **layouts.addresses()})
    text = f"{name}{signature}\n--\n\n{doc}"
    method = _MethodDef(name.encode(), library[ENTRY], _FASTCALL_KEYWORDS, text.encode())
    callee = make_result if kind is None else layouts.TUPLE_NEW
    function: Any = _new_function(
        ctypes.addressof(method), _Bound((slow, callee, kind, jit.unseen(library, method))), "linkwise"
    )
    return function  # type: ignore[no-any-return]


_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
