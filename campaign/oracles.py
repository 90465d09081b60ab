"""What a result is compared with: another library, forty digits, the other way to run a sweep, laws of mechanics."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

import linkwise as lw
from campaign.mechanisms import Recipe, nudged
from campaign.surface import Method
from tests.catalogue_methods import method_of

Array = np.ndarray[Any, Any]
Arguments = dict[str, Any]

UNDEFINED = {"operational_inertia"}
"""Functions whose value need not exist: a body with fewer than six freedoms has no inertia in the others."""

SOLVES = {
    "forward_dynamics", "mass_solve", "mass_matrix_inverse", "linearize_forward", "perturb_forward",
    "operational_admittance",
}  # fmt: skip
"""Functions that solve with the mass matrix: they can have no more digits than its condition leaves."""

WEIGHED = {
    "inverse_dynamics", "bias_force", "gravity_force", "external_force", "mass_matrix", "mass_product",
    "coriolis_matrix", "momentum", "kinetic_energy", "potential_energy", "joint_wrenches", "linearize_inverse",
    "perturb_inverse", "centroidal_momentum", "centroidal_momentum_matrix", "centroidal_inertia",
}  # fmt: skip
"""Functions whose results are proportional to the masses."""

SINGULAR = 1e14
"""Condition of a mass matrix from which on no digits are expected of what solves with it."""

DIGITS = 40
NUDGE = 2.0**-51
ALLOWED = 10.0
"""How many times the change that rounding every constant and input once would make, a result may be off. What solves
with the mass matrix may also be off by three such roundings times the condition of that matrix, in units in which its
diagonal is one. Of a thousand questions the worst had 3.4 of the ten, and 0.9 of the three."""
SOLVED = 3.0
CLOSE = 1e-8
"""Of the largest number: agreement of two ways in double precision, for masses and lengths of a usual size."""


def parts(result: Any) -> list[Array]:
    """The arrays of a result."""
    return [np.asarray(x) for x in result] if isinstance(result, tuple) else [np.asarray(result)]


def call(model: lw.Model, method: Method, arguments: Arguments, **options: Any) -> Any:
    """``model.method(...)`` with what it takes of the arguments, optional arrays by name."""
    required = [arguments[name] for name in method.arrays]
    named = {name: arguments[name] for name in (*method.optional, *method.static) if name in arguments}
    if "p" in method.options and "p" in arguments:
        named["p"] = arguments["p"]
    return method_of(model, method.name)(*required, **named, **options)


def agree(ours: Any, expected: Any, tolerance: float, against: str) -> None:
    """Raise AssertionError unless all arrays agree, relative to the largest number of each."""
    for k, (a, b) in enumerate(zip(parts(ours), parts(expected), strict=True)):
        a, b = a.astype(float), b.astype(float)
        assert a.shape == b.shape, f"against {against}: shape {a.shape}, expected {b.shape}"
        if a.size:
            error = float(np.abs(a - b).max() / (np.abs(b).max() + 1e-3))
            assert error < tolerance, f"against {against}: part {k} is off by {error:.1e}, allowed {tolerance:.0e}"


# Pinocchio.
@lru_cache(maxsize=8)
def _pinocchio(recipe: Recipe) -> Any:
    from tests.oracles.pinocchio_oracle import from_model

    return from_model(recipe.build())


def pinocchio(recipe: Recipe, method: Method, one: Arguments, result: Any) -> bool:
    """Whether Pinocchio has this function and this mechanism; raises if it answers otherwise."""
    from tests.oracles.pinocchio_oracle import Oracle

    if not recipe.is_known_to_pinocchio or recipe.parameters or not hasattr(Oracle, method.name):
        return False
    if "point" in one or one.get("body", "") not in ("", *(b.name for b in recipe.build().bodies)):
        return False
    given = [one[n] for n in method.arrays] + ([one["body"]] if "body" in one else [])
    more = {"f_ext": one["f_ext"]} if "f_ext" in one else {}
    agree(result, getattr(_pinocchio(recipe), method.name)(*given, **more), CLOSE, "Pinocchio")
    return True


# Forty digits.
def _exactly(model: lw.Model, method: Method, one: Arguments) -> list[Array]:
    import mpmath

    def lifted(value: Any) -> Any:
        if isinstance(value, str):
            return value
        array = np.asarray(value, object)
        flat = np.empty(array.size, object)
        flat[:] = [x if isinstance(x, mpmath.mpf) else mpmath.mpf(float(x)) for x in array.reshape(-1)]
        return flat.reshape(array.shape)

    return parts(call(model, method, {name: lifted(value) for name, value in one.items()}))


def forty_digits(recipe: Recipe, method: Method, one: Arguments, result: Any, seed: int) -> float:
    """How far the result is off, as a part of what is allowed; raises if that is more than all of it."""
    import mpmath

    model = recipe.build().with_sweeps("unrolled")
    rng = np.random.default_rng(seed)
    with mpmath.workdps(DIGITS):
        exact = _exactly(model, method, one)
        moved = []
        for _ in range(2):
            near = {n: x if isinstance(x, str) else _off(rng, x) for n, x in one.items()}
            moved.append(_exactly(nudged(model, rng, NUDGE), method, near))
        worst, natural = 0.0, _natural_size(model, method, one)
        condition = _condition(model, one) if method.name in SOLVES else 0.0
        for k, (ours, right) in enumerate(zip(parts(result), exact, strict=True)):
            assert ours.shape == right.shape, f"against {DIGITS} digits: shape {ours.shape}, expected {right.shape}"
            if not right.size:
                continue
            size = max(abs(x) for x in np.ravel(right))
            change = max(abs(x) for other in moved for x in np.ravel(other[k] - right))
            error = max(abs(x) for x in np.ravel(ours.astype(object) - right))
            if size < NUDGE * natural:  # zero but for the rounding of the model's constants
                limit = ALLOWED * NUDGE * natural
                assert error < limit, f"against {DIGITS} digits: {float(error):.1e} where there is nothing"
                continue
            if condition > SINGULAR:
                continue
            limit = ALLOWED * (change + NUDGE * size) + SOLVED * NUDGE * size * condition
            ratio = float(error / limit)
            worst = max(worst, ratio)
            assert ratio < 1.0, (
                f"against {DIGITS} digits: part {k} is off by {float(error / (size or 1)):.1e} of its size, "
                f"{ratio:.1f} times what is allowed for rounded data"
            )
    return worst


def _condition(model: lw.Model, one: Arguments) -> float:
    """Of the mass matrix, in units in which its diagonal is one."""
    if not model.nv:
        return 0.0
    M = model.mass_matrix(one["q"], **_extra(one))
    scale = 1.0 / np.sqrt(np.diag(M))
    return float(np.linalg.cond(M * np.outer(scale, scale)))


def _natural_size(model: lw.Model, method: Method, one: Arguments) -> float:
    """What the terms of a sum may amount to that is zero in the end."""
    largest = max(float(np.abs(x).max(initial=0.0)) for x in one.values() if not isinstance(x, str))
    return (max(1.0, model.mass) if method.name in WEIGHED else 1.0) * (1.0 + largest) ** 2


def _off(rng: np.random.Generator, x: Any) -> Any:
    array = np.asarray(x, float)
    return array + NUDGE * np.linalg.norm(array) * rng.normal(size=array.shape)


# The other way to run the sweeps.
def other_sweeps(recipe: Recipe, method: Method, one: Arguments, result: Any) -> bool:
    """Rolled against unrolled."""
    if recipe.sweeps != "rolled" or not recipe.is_ordinary:
        return False
    agree(result, call(recipe.build().with_sweeps("unrolled"), method, one), CLOSE, "unrolled sweeps")
    return True


# Laws of mechanics.
Law = Callable[[lw.Model, Arguments, Any], None]


def _near(a: Any, b: Any, law: str, tolerance: float = CLOSE) -> None:
    agree(np.asarray(a), np.asarray(b), tolerance, law)


def _extra(a: Arguments, *names: str) -> dict[str, Any]:
    return {name: a[name] for name in ("p", *names) if name in a}


def _forward(m: lw.Model, a: Arguments, vdot: Any) -> None:
    again = m.inverse_dynamics(a["q"], a["v"], vdot, **_extra(a, "f_ext"))
    size = np.abs(again).max(initial=0.0) + np.abs(m.bias_force(a["q"], a["v"], **_extra(a, "f_ext"))).max(initial=0.0)
    _near(again / (1 + size), a["tau"] / (1 + size), "ID(FD(τ)) = τ")


def _mass_matrix(m: lw.Model, a: Arguments, M: Any) -> None:
    _near(M, M.T, "M = M*", 1e-14)
    if len(M):
        scale = np.sqrt(np.diag(M))
        assert np.linalg.eigvalsh(M / np.outer(scale, scale)).min() > -1e-10, "M is not positive"
    x = np.linspace(-1.0, 1.0, m.nv)
    _near(M @ x, m.mass_product(a["q"], x, **_extra(a)), "M x = mass_product")


def _mass_matrix_inverse(m: lw.Model, a: Arguments, W: Any) -> None:
    x = np.linspace(-1.0, 1.0, m.nv)
    y = W @ x
    _near(m.mass_solve(a["q"], x, **_extra(a)), y, "M⁻¹ x = mass_solve", 1e-6)


def _kinetic(m: lw.Model, a: Arguments, T: Any) -> None:
    _near(T, 0.5 * a["v"] @ m.mass_product(a["q"], a["v"], **_extra(a)), "T = ½ v*Mv")


def _coriolis(m: lw.Model, a: Arguments, C: Any) -> None:
    force = m.bias_force(a["q"], a["v"], **_extra(a)) - m.gravity_force(a["q"], **_extra(a))
    size = 1 + np.abs(m.bias_force(a["q"], a["v"], **_extra(a))).max(initial=0.0)
    _near(C @ a["v"] / size, force / size, "C v = c - g")


def _jacobian(m: lw.Model, a: Arguments, J: Any) -> None:
    if "point" not in a:
        x = np.linspace(-1.0, 1.0, m.nv)
        _near(J @ x, m.velocity(a["q"], x, a["body"], **_extra(a)), "J v = velocity")


def _centroidal(m: lw.Model, a: Arguments, A: Any) -> None:
    x = np.linspace(-1.0, 1.0, m.nv)
    _near(A @ x, m.centroidal.momentum(a["q"], x, **_extra(a)), "A v = centroidal momentum")


def _poses(m: lw.Model, a: Arguments, poses: Any) -> None:
    for pose in poses.reshape(-1, 4, 4):
        _near(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), "R R* = 1", 1e-12)


def _integrate(m: lw.Model, a: Arguments, q1: Any) -> None:
    small = a["dv"] / (1 + np.abs(a["dv"]).max(initial=0.0))
    _near(m.difference(a["q"], m.integrate(a["q"], small)), small, "q ⊖ (q ⊕ dv) = dv", 1e-7)


def _perturbed(which: str, inner: str) -> Law:
    def law(m: lw.Model, a: Arguments, change: Any) -> None:
        lin = getattr(m, which)(a["q"], a["v"], a[inner], **_extra(a, "f_ext"))
        terms = [lin.dq @ a["dq"], lin.dv @ a["dv"], lin[3] @ a[f"d{inner}"]]
        size = 1 + sum(np.abs(t).max(initial=0.0) for t in terms)
        _near(change / size, sum(terms) / size, f"δ = {which} times the changes", 1e-6)

    return law


def _gravity(m: lw.Model, a: Arguments, g: Any) -> None:
    """g·v = dU/dt along v, by differences in forty digits."""
    import mpmath

    if m.parameters.names:
        return
    v = np.linspace(-1.0, 1.0, m.nv)
    with mpmath.workdps(DIGITS):
        h = mpmath.mpf(10) ** -13
        q = np.array([mpmath.mpf(x) for x in a["q"].tolist()] + [None], object)[:-1]
        ends = []
        for sign in (1, -1):
            step = np.array([sign * h * mpmath.mpf(x) for x in v.tolist()] + [None], object)[:-1]
            ends.append(m.potential_energy(m.integrate(q, step)))
        power = float((ends[0] - ends[1]) / (2 * h))
    _near(g @ v / (1 + np.abs(g).max(initial=0)), power / (1 + np.abs(g).max(initial=0)), "g·v = dU/dt")


LAWS: dict[str, Law] = {
    "forward_dynamics": _forward,
    "mass_matrix": _mass_matrix,
    "mass_matrix_inverse": _mass_matrix_inverse,
    "kinetic_energy": _kinetic,
    "coriolis_matrix": _coriolis,
    "jacobian": _jacobian,
    "centroidal_momentum_matrix": _centroidal,
    "poses": _poses,
    "integrate": _integrate,
    "perturb_inverse": _perturbed("linearize_inverse", "vdot"),
    "perturb_forward": _perturbed("linearize_forward", "tau"),
    "gravity_force": _gravity,
}


def laws(recipe: Recipe, method: Method, one: Arguments, result: Any) -> bool:
    """Whether a law is known for this function; raises if it is broken."""
    law = LAWS.get(method.name)
    if law is None or not recipe.is_ordinary:
        return False
    law(recipe.build(), one, result)
    return True


# Derivatives.
def differences(recipe: Recipe, method: Method, one: Arguments, result: Any) -> bool:
    """Derivatives against central differences in forty digits, along one random direction."""
    import mpmath

    inner = {"linearize_inverse": ("inverse_dynamics", "vdot"), "linearize_forward": ("forward_dynamics", "tau")}
    if method.name not in inner or recipe.parameters or not recipe.is_ordinary or one.get("order", 1) != 1:
        return False
    name, third = inner[method.name]
    model = recipe.build().with_sweeps("unrolled")
    direction = np.cos(np.arange(3 * model.nv)).reshape(3, model.nv)
    with mpmath.workdps(DIGITS):
        h = mpmath.mpf(10) ** -13

        def vector(x: Any) -> Any:
            flat = np.empty(np.size(x), object)
            flat[:] = [mpmath.mpf(float(y)) for y in np.ravel(x)]
            return flat.reshape(np.shape(x))

        more = {"f_ext": vector(one["f_ext"])} if "f_ext" in one else {}
        ends = []
        for sign in (1, -1):
            dq, dv, dx = (vector(d) * (sign * h) for d in direction)
            q = model.integrate(vector(one["q"]), dq)
            ends.append(getattr(model, name)(q, vector(one["v"]) + dv, vector(one[third]) + dx, **more))
        slope = ((ends[0] - ends[1]) / (2 * h)).astype(float)
    terms = [matrix @ d for matrix, d in zip((result[1], result[2], result[3]), direction, strict=True)]
    size = 1 + sum(np.abs(t).max(initial=0.0) for t in terms)
    agree(sum(terms) / size, slope / size, CLOSE, "differences in forty digits")
    return True
