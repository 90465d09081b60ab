"""Second derivatives of the dynamics: a linearised function, differentiated along every direction of a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import InputError
from linkwise.targets import check_on_host

if TYPE_CHECKING:
    from linkwise.functions.function import CompiledFunction
    from linkwise.model.linearization import Linearization


class SecondOrderInverse(NamedTuple):
    """τ (..., nv), its derivatives (..., nv, nv) and second derivatives (..., nv, nv, nv).

    ``dqdv[i, j, k]`` is ∂²τ_i/∂q_j∂v_k: how ``dq[i, j]`` changes along the k-th velocity. ``dqdvdot`` is ∂𝓜/∂q with the
    axis of q in the middle. Second derivatives that are zero for every mechanism (∂²τ/∂v∂v̇, ∂²τ/∂v̇²) are left out.
    """

    tau: Any
    dq: Any
    dv: Any
    dvdot: Any
    dqdq: Any
    dqdv: Any
    dvdv: Any
    dqdvdot: Any


class SecondOrderForward(NamedTuple):
    """v̇ (..., nv), its derivatives (..., nv, nv) and second derivatives (..., nv, nv, nv).

    ``dqdtau[i, j, k]`` is ∂²v̇_i/∂q_j∂τ_k: how ``dq[i, j]`` changes along the k-th force. ∂²v̇/∂v∂τ and ∂²v̇/∂τ² are zero.
    """

    vdot: Any
    dq: Any
    dv: Any
    dtau: Any
    dqdq: Any
    dqdv: Any
    dvdv: Any
    dqdtau: Any


def check_second_order(name: str, order: object, out: object) -> None:
    """Raises InputError where what is asked for beside first derivatives is not there."""
    if order != 2:
        raise InputError(f"no such order of {name}", got=repr(order), allowed="1 or 2")
    if out is not None:
        raise InputError(f"{name} of second order takes no out", do="drop the out= argument")


def second_order(
    model: Linearization,
    name: str,
    order: object,
    state: tuple[ArrayLike, ArrayLike, ArrayLike],
    f_ext: ArrayLike | None,
    t: ArrayLike | None,
    p: ArrayLike | None,
    out: object,
    threads: int | None,
) -> tuple[Any, list[Any]]:
    """The first-order result, and its change along every direction of q, v and the third argument."""
    check_second_order(name, order, out)
    check_on_host("derivatives of second order are computed", *state, f_ext, t, p)
    first = model._run(name, *state, f_ext=f_ext, t=t, p=p, threads=threads)
    arrays = [(np.asarray(x), 1) for x in state]
    optional = []
    if f_ext is not None:
        arrays.append((np.asarray(f_ext), 2))
        optional.append("f_ext")
    if t is not None:
        arrays.append((np.asarray(t), 0))
        optional.append("t")
    if model._parameter_count:
        arrays.append((np.asarray(model.nominal_parameters if p is None else p), 1))
    lanes = [np.expand_dims(x, x.ndim - axes) for x, axes in arrays]  # every direction is a state of a batch
    function = model.function(name, *optional)
    rates = []
    for direction, wanted in zip((n for n, _ in function.inputs[:3]), (("dq",), ("dq", "dv"), ("dq",)), strict=True):
        along = _part(function, wanted).jvp(direction)
        result = along.general(*lanes, np.eye(model.nv), threads=threads)
        rates.append(type(result)._make(np.moveaxis(x, -3, -1) for x in result))
    return first, rates


def _part(function: CompiledFunction, wanted: Sequence[str]) -> CompiledFunction:
    """A function with some of the outputs of another."""
    from collections import namedtuple

    from linkwise.functions.function import CompiledFunction

    kind = namedtuple("Part", wanted)  # type: ignore[misc]
    known = function.__dict__.setdefault("_parts", {})
    if tuple(wanted) not in known:

        def text(*flat: Sequence[Any]) -> Any:
            whole = function.text(*flat)
            return kind._make(getattr(whole, name) for name in wanted)

        name = f"{function.name}_{'_'.join(wanted)}"
        known[tuple(wanted)] = CompiledFunction(name, text, function.inputs, "", function.charts)
    part: CompiledFunction = known[tuple(wanted)]
    return part
