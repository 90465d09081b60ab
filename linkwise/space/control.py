"""Attitude control: laws, how wheels and thrusters share what they ask for, dumping of momentum, rates from attitudes.

A law here is a function ``(t, q, v, p)`` of the moment in N m that is to act on a body, in its own axes: traced, like
every control, so it goes into the torque of wheels, the command of thrusters, or :class:`BodyMoment` for an ideal one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_not_negative, check_positive
from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.sim.elements import Element, Vector, Wrenches, checked_numbers, frame_pose, frame_velocity, law, vector
from linkwise.space.propulsion import Thruster
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.quaternions import between, conjugate, from_matrix, moved, multiply, normalized
from linkwise.spatial.scalar import Scalar, dot, where
from linkwise.spatial.vectors import Vec

Law = Callable[[Scalar, Vector, Vector, Vector], Sequence[Scalar]]
Attitude = ArrayLike | Callable[..., Vector]  # a quaternion (4), or a function (t, p) of it


def attitude_error(attitude: Sequence[Scalar], target: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Quaternion from a target to an attitude, the shorter way: its scalar part is not negative.

    Args:
        attitude: quaternion (4), w first, of the body in the world.
        target: quaternion (4).
    """
    error = multiply(conjugate(normalized(target)), normalized(attitude))
    sign = where(error[0] < 0.0, -1.0, 1.0)
    return tuple(each * sign for each in error)


def mrp(quaternion: Sequence[Scalar]) -> Vec:
    """Modified Rodrigues parameters of a rotation, of length at most one (the shadow set beyond half a turn).

    >>> [round(x, 6) for x in mrp((0.0, 0.0, 0.0, 1.0))]
    [0.0, 0.0, 1.0]
    """
    w, x, y, z = quaternion
    sign = where(w < 0.0, -1.0, 1.0)
    sigma: Vec = Vec(x, y, z) * (sign / (1.0 + w * sign))
    return sigma


class QuaternionFeedback:
    """Law τ = -kp 2 ε - kd (ω - ω_d) [+ ω × I ω], with ε the vector part of the error's quaternion.

    Args:
        model: the mechanism.
        body: name of the body to be turned.
        target: attitude in the world, a quaternion (4), w first, or a function ``(t, p)`` of it.
        kp: N m/rad.
        kd: N m s/rad.
        rate: angular velocity that belongs to the target, in the world's axes, rad/s, or a function ``(t, p)`` of it.
        inertia: (3, 3) kg m² in the body's axes, by which gyroscopic moments are cancelled; None leaves them.
    """

    def __init__(
        self,
        model: Model,
        body: str,
        target: Attitude = (1.0, 0.0, 0.0, 0.0),
        *,
        kp: float,
        kd: float,
        rate: ArrayLike | Callable[..., Vector] = (0.0, 0.0, 0.0),
        inertia: ArrayLike | None = None,
    ) -> None:
        model.frame(body)  # says what is wrong with a name
        check_not_negative(kp=kp, kd=kd)
        self.model, self.body, self.kp, self.kd = model, body, float(kp), float(kd)
        self.target = target if callable(target) else tuple(checked_numbers(target, 4, "the target").tolist())
        self.rate = rate if callable(rate) else tuple(checked_numbers(rate, 3, "the rate").tolist())
        self.inertia = None if inertia is None else np.asarray(inertia, float)
        if self.inertia is not None and self.inertia.shape != (3, 3):
            raise InputError("an inertia is a matrix", got=str(self.inertia.shape), allowed="(3, 3)")

    def __call__(self, t: Scalar, q: Vector, v: Vector, p: Vector) -> list[Scalar]:
        """Moment on the body in its own axes, N m."""
        error, rate, omega = self.seen(t, q, v, p)
        return list(self.turn(error) * -self.kp - rate * self.kd + self.gyroscopic(omega))

    def turn(self, error: Sequence[Scalar]) -> Vec:
        """The vector that kp multiplies, of the error as a quaternion."""
        _, x, y, z = error
        return Vec(2.0 * x, 2.0 * y, 2.0 * z)

    def seen(self, t: Scalar, q: Vector, v: Vector, p: Vector) -> tuple[tuple[Scalar, ...], Vec, Vec]:
        """Error as a quaternion, error of the rate, and the rate, in the body's axes."""
        R = frame_pose(self.model, q, p, self.body)[0]
        omega = R.transpose_times(frame_velocity(self.model, q, v, p, self.body)[0])
        target = self.target(t, p) if callable(self.target) else self.target
        wanted = self.rate(t, p) if callable(self.rate) else self.rate  # in the world's axes
        error = attitude_error(from_matrix(R), vector(target, 4, "the target"))
        return error, omega - R.transpose_times(Vec.of(vector(wanted, 3, "the rate"))), omega

    def gyroscopic(self, omega: Vec) -> Vec:
        """ω × I ω, where the law is to cancel it."""
        if self.inertia is None:
            return Vec.zero()
        return omega.cross(Mat3(self.inertia.tolist()) @ omega)


class MRPFeedback(QuaternionFeedback):
    """Law τ = -kp σ - kd (ω - ω_d) [+ ω × I ω], with σ the modified Rodrigues parameters of the error.

    Arguments as of :class:`QuaternionFeedback`; kp in N m, for σ, which is a quarter of a small angle.
    """

    def turn(self, error: Sequence[Scalar]) -> Vec:
        """The modified Rodrigues parameters σ."""
        return mrp(error)


class BodyMoment(Element):
    """Ideal actuator: the moment of a law on a body.

    Args:
        model: the mechanism.
        body: its name.
        law: function ``(t, q, v, p)`` of the moment (3) in its axes, N m.
    """

    def __init__(self, model: Model, body: str, law: Law) -> None:
        model.frame(body)
        if not callable(law):
            raise InputError("the law cannot be called", got=repr(law), allowed="law(t, q, v, p) -> (3)")
        self.model, self.body, self.law = model, body, law

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Wrenches:
        """The moment, and no force."""
        return {self.body: [*vector(law(self.law, t, q, v, p), 3, "the moment"), 0.0, 0.0, 0.0]}


# Who does it.
class WheelShares:
    """Torques of wheels by which a body gets the moment of a law: the least ones, by the pseudo-inverse.

    Args:
        law: function ``(t, q, v, p)`` of the moment (3) on the body, N m.
        axes: (n, 3) of the wheels, in the body's axes, n >= 3 for any moment.

    >>> WheelShares(lambda t, q, v, p: [1.0, 0.0, 0.0], np.eye(3))(0.0, (), (), ())[0]
    -1.0
    """

    def __init__(self, law: Law, axes: ArrayLike) -> None:
        A = np.asarray(axes, float)
        if A.ndim != 2 or A.shape[1] != 3:
            raise InputError("the axes of wheels are vectors", got=str(A.shape), allowed="(n, 3)")
        A = A / np.linalg.norm(A, axis=1, keepdims=True)
        if np.linalg.matrix_rank(A) < 3:
            raise InputError(
                "these wheels cannot turn the body about every axis",
                got=f"rank {np.linalg.matrix_rank(A)}",
                allowed="3",
            )
        self.law, self.shares = law, np.linalg.pinv(A.T)

    def __call__(self, t: Scalar, q: Vector, v: Vector, p: Vector) -> list[Scalar]:
        """Motor torques (n), N m: the body feels their opposite."""
        moment = vector(law(self.law, t, q, v, p), 3, "the moment")
        return [-dot(moment, row) for row in self.shares.tolist()]


def thruster_matrix(model: Model, thrusters: Sequence[Thruster], about: str, q: ArrayLike | None = None) -> Array:
    """Wrenches (6, n) on a body, [moment, force] about its origin in its axes, of n thrusters at full thrust.

    Args:
        model: the mechanism.
        thrusters: n of them.
        about: name of the body or frame.
        q: configuration; the model's start if not given.
    """
    place = np.asarray(model.start if q is None else q, float)
    X = model.pose(place, about)
    columns = []
    for each in thrusters:
        Y = np.linalg.inv(X) @ model.pose(place, each.body, node=each.node)
        force = Y[:3, :3] @ np.array(each.direction) * each.thrust
        at = Y[:3, :3] @ np.array(each.place) + Y[:3, 3]
        columns.append([*np.cross(at, force), *force])
    return np.array(columns, float).T


def least_fuel(matrix: ArrayLike, wrench: ArrayLike, flows: ArrayLike | None = None) -> Array:
    """Commands (n), 0 to 1, of thrusters that give a wrench with the least propellant: a linear programme by SciPy.

    Args:
        matrix: (6, n), or fewer rows, of :func:`thruster_matrix`.
        wrench: as many numbers as the matrix has rows.
        flows: propellant of each at full thrust (n), kg/s; all alike if not given.

    >>> least_fuel([[1.0, -1.0, 2.0]], [0.5], [1.0, 1.0, 4.0]).tolist()
    [0.5, 0.0, 0.0]
    """
    from scipy.optimize import linprog

    A, b = np.asarray(matrix, float), np.asarray(wrench, float)
    cost = np.ones(A.shape[1]) if flows is None else np.asarray(flows, float)
    scale = np.maximum(np.abs(A).max(axis=1), 1e-300)
    found = linprog(cost / cost.max(), A_eq=A / scale[:, None], b_eq=b / scale, bounds=(0.0, 1.0), method="highs")
    if not found.success:
        raise InputError(
            "these thrusters cannot give this wrench",
            got=np.array2string(b, precision=4),
            allowed="what commands between 0 and 1 can give",
            do="ask for less, or add thrusters",
        )
    return np.asarray(found.x)


def bounded_shares(matrix: ArrayLike, wrench: ArrayLike) -> Array:
    """Commands (n), 0 to 1, of thrusters whose wrench is nearest to the one asked for: bounded least squares by SciPy.

    Args:
        matrix: (6, n), or fewer rows, of :func:`thruster_matrix`.
        wrench: as many numbers as the matrix has rows.
    """
    from scipy.optimize import lsq_linear

    return np.asarray(lsq_linear(np.asarray(matrix, float), np.asarray(wrench, float), (0.0, 1.0), tol=1e-12).x)


class ThrusterShares:
    """Commands of thrusters by which a body gets the moment of a law, traced: opposite nozzles share what is asked for.

    The least-squares answer may be negative; since every nozzle has others that push against it, the least multiple of
    commands that push nothing at all is added, which makes all of them positive.

    Args:
        law: function ``(t, q, v, p)`` of the moment (3), N m, or of a wrench (6).
        matrix: (3, n) or (6, n), of :func:`thruster_matrix`.
    """

    def __init__(self, law: Law, matrix: ArrayLike) -> None:
        from scipy.optimize import linprog

        A = np.asarray(matrix, float)
        scale = np.abs(A).max()
        # Commands of at least one each that push nothing, with the smallest sum.
        idle = linprog(np.ones(A.shape[1]), A_eq=A / scale, b_eq=np.zeros(len(A)), bounds=(1.0, None), method="highs")
        if not idle.success or np.linalg.matrix_rank(A) < len(A):
            raise InputError(
                "these thrusters cannot push every way",
                got=f"{A.shape[1]} thrusters, rank {np.linalg.matrix_rank(A)}",
                allowed=f"rank {len(A)}, and none without others against it",
                do="least_fuel() and bounded_shares() take any thrusters",
            )
        self.law, self.rows = law, len(A)
        self.shares, self.idle = np.linalg.pinv(A), idle.x

    def __call__(self, t: Scalar, q: Vector, v: Vector, p: Vector) -> list[Scalar]:
        """Commands (n), not negative; thrusters end at 1."""
        asked = vector(law(self.law, t, q, v, p), self.rows, "the wrench")
        parts = [dot(asked, row) for row in self.shares.tolist()]
        lift: Scalar = 0.0
        for part, still in zip(parts, self.idle.tolist(), strict=True):
            need = part * (-1.0 / still)
            lift = where(need > lift, need, lift)
        return [part + lift * still for part, still in zip(parts, self.idle.tolist(), strict=True)]


# Momentum.
def dumping_dipole(field: Vec, momentum: Vec, gain: Scalar) -> Vec:
    """Dipole in A m² of torquers that take momentum out of wheels: m = k (h × B)/|B|².

    The moment m × B is -k times the part of h across the field.

    Args:
        field: magnetic field in the body's axes, tesla.
        momentum: of the wheels that is to go, in the body's axes, N m s.
        gain: k, 1/s.
    """
    dipole: Vec = momentum.cross(field) * (gain / field.dot(field))
    return dipole


def detumbling_dipole(field: Vec, omega: Vec, gain: Scalar) -> Vec:
    """Dipole in A m² that slows a tumbling body: m = k (ω × B)/|B|², the B-dot law with the rate of a gyro.

    Args:
        field: magnetic field in the body's axes, tesla.
        omega: angular velocity in the body's axes, rad/s.
        gain: k, N m s.
    """
    dipole: Vec = omega.cross(field) * (gain / field.dot(field))
    return dipole


# Rates.
def rate_between(first: Sequence[Scalar], last: Sequence[Scalar], seconds: Scalar) -> Vec:
    """Angular velocity in the body's axes, rad/s, that leads from one attitude to another in so many seconds."""
    rate: Vec = between(first, last) * (1.0 / seconds)
    return rate


class RateFilter:
    """Estimate of attitude and rate from attitudes that are measured at a rate (an α-β filter on rotations).

    One step is ``filter(state, measured)``, traced; the state is a quaternion (4) and a rate (3). Use it in the law of
    a sampled :class:`~linkwise.Controller`, which keeps the state.

    Args:
        period: between measurements, s.
        smooth: between 0 (believes each measurement) and 1 (believes none); by this α = 1 - s², β = (1 - s)².
    """

    def __init__(self, period: float, smooth: float = 0.6) -> None:
        check_positive(period=period)
        if not 0.0 <= smooth < 1.0:
            raise InputError("the memory of a filter lies between 0 and 1", got=repr(smooth), allowed="0 <= smooth < 1")
        self.period, self.smooth = float(period), float(smooth)

    def start(self, attitude: Sequence[float] = (1.0, 0.0, 0.0, 0.0)) -> list[float]:
        """State (7) at an attitude, at rest."""
        return [*attitude, 0.0, 0.0, 0.0]

    def __call__(self, state: Sequence[Scalar], measured: Sequence[Scalar]) -> list[Scalar]:
        """The state (7) after one more measurement (4)."""
        attitude, rate = list(state[:4]), Vec.of(list(state[4:7]))
        guess = moved(attitude, rate * self.period)
        off = between(guess, measured)
        alpha, beta = 1.0 - self.smooth**2, (1.0 - self.smooth) ** 2
        return [*moved(guess, off * alpha), *(rate + off * (beta / self.period))]
