"""Functions that belong to a mechanism are what they were when the model was built, in all that follows from it."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import linkwise as lw

HINGE = lw.Revolute(axis=(0, 1, 0))
ROD = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": np.diag([0.1, 0.1, 0.01])}


class Number:
    """A number that functions read, and that changes."""

    def __init__(self, value):
        self.value = value


def pendulums(name):
    b = lw.ModelBuilder(name)
    b.add_body("upper", joint=HINGE, joint_name="a", **ROD)
    b.add_body("lower", parent="upper", joint=HINGE, joint_name="b", placement=lw.transform(xyz=(0, 0, -1)), **ROD)
    return b


def bead(kind):
    b = lw.ModelBuilder("bead")
    b.add_body("bead", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    b.add_closure("on", body_a="world", body_b="bead", joint=kind)
    return b


def custom_joint(n):
    def rolling(q):
        c, s, r = lw.math.cos(q[0]), lw.math.sin(q[0]), n.value
        return [[c, -s, 0, r * s], [s, c, 0, r - r * c], [0, 0, 1, 0], [0, 0, 0, 1]]

    b = lw.ModelBuilder("rolling", gravity=(0, -9.81, 0))
    b.add_body("wheel", joint=lw.CustomJoint(rolling, n=1), mass=2.0, com=(0.1, 0, 0), inertia=np.eye(3))
    return b


def joint_function(n):
    b = pendulums("geared")
    b.add_coupling("gear", lambda q: q[0] - n.value * q[1])
    return b


def timed_joint_function(n):
    b = pendulums("driven")
    b.add_coupling("drive", lambda q, t: q[0] - n.value * lw.math.sin(t), joints=["b"])
    return b


def rate_function(n):
    b = pendulums("rates")
    b.add_coupling("rates", lambda q, v, t: v[0] - n.value * v[1] * lw.math.cos(q[0]))
    return b


def prescribed(n):
    b = pendulums("led")
    b.add_coupling("led", lw.closures.Prescribed("a", lambda t: n.value * t * t))
    return b


def prescribed_frame(n):
    return bead(
        lw.closures.PrescribedFrame(lw.Spherical(), lambda t: [n.value * lw.math.sin(t), n.value * t, n.value * t * t])
    )


def prescribed_frame_of_a_surface(n):
    kind = lw.closures.PointOnSurface(lambda x, y, z: z - n.value * x * x)
    return bead(lw.closures.PrescribedFrame(kind, lambda t: [n.value * t * t, 0.0, 0.0]))


def distance(n):
    return bead(lw.closures.Distance(lambda t: n.value + 0.1 * lw.math.sin(n.value * t)))


def curve(n):
    return bead(lw.closures.PointOnCurve(lambda x, y, z: z - n.value * x * x, lambda x, y, z: y - n.value * x))


def surface(n):
    return bead(lw.closures.PointOnSurface(lambda x, y, z: (x * x + y * y) * n.value - z))


KINDS = [
    custom_joint, joint_function, timed_joint_function, rate_function, prescribed, prescribed_frame,
    prescribed_frame_of_a_surface, distance, curve, surface,
]  # fmt: skip


def said(model):
    """What different functions of a model say of one state, each traced for itself."""
    rng = np.random.default_rng(3)
    q, v, tau = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    timed = {"t": 0.3} if any(closure.type.time_dependent for closure in model.closures) else {}
    if model.closures:
        yield model.constraint_forces(q, v, tau, **timed).multipliers
        yield model.closure_error(q, **timed)
    else:
        yield model.mass_matrix(q)
        yield model.pose(q, model.bodies[0].name)
    yield model.forward_dynamics(q, v, tau, **timed)


@pytest.mark.parametrize("kind", KINDS)
def test_one_model_is_one_whatever_changes(kind):
    number = Number(0.7)
    builder = kind(number)
    reference = list(said(builder.build()))
    model, copied = builder.build(), pickle.loads(pickle.dumps(builder.build()))
    for k, (a, b, expected) in enumerate(zip(said(model), said(copied), reference, strict=True)):
        np.testing.assert_array_equal(a, expected)
        np.testing.assert_array_equal(b, expected)
        number.value = 0.8 + 0.1 * k  # between any two functions
    assert not np.allclose(next(said(builder.build())), reference[0])
    assert model == copied != builder.build()


def test_models_of_equal_formulas_are_equal():
    first, second = (custom_joint(Number(value)).build() for value in (2.0, 2.0))
    assert first == second
    assert hash(first) == hash(second)
    assert first.joints[0].type == second.joints[0].type
    assert first != custom_joint(Number(3.0)).build()
    assert "rolling" in repr(first.joints[0].type)


def test_copies_keep_the_formulas():
    number = Number(0.7)
    model = joint_function(number).build()
    expected = model.closure_error([0.3, 0.2])
    number.value = 3.0
    for changed in (
        model.with_gravity((0, 0, 0)),
        model.renamed({"upper": "first"}),
        model.with_body("lower", mass=3.0),
        model.with_coupling("more", lw.closures.Coupling.gear("a", "b", 2.0)).without("more"),
    ):
        np.testing.assert_array_equal(changed.closure_error([0.3, 0.2]), expected)


def test_a_class_that_reads_what_changes_is_refused_when_it_has_changed():
    number = Number(0.7)

    @dataclass(frozen=True)
    class Height(lw.closures.Closure):
        equations = ("height",)

        def residual(self, X, t):
            return [X.p[2] - number.value]

    class Screw(lw.Prismatic):
        def transform(self, q):
            return super().transform([number.value * q[0]])

    closed = bead(Height()).build()
    tree = lw.ModelBuilder("tree")
    tree.add_body("nut", joint=Screw(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3))
    opened = tree.build()
    q = closed.neutral()
    closed.closure_error(q)
    opened.mass_matrix([0.1])
    opened.pose([0.1], "nut")
    number.value = 0.9
    with pytest.raises(lw.ModelError, match=r"closure 'on' has changed(?s:.)*Height(?s:.)*build the model again"):
        closed.forward_dynamics(q, np.zeros(6), np.zeros(6))
    with pytest.raises(lw.ModelError, match=r"joint .* has changed(?s:.)*Screw"):
        opened.forward_dynamics([0.1], [0.0], [0.0])
    assert closed.closure_error(q) == pytest.approx(-0.7)  # as it was compiled
    assert bead(Height()).build().closure_error(q) == pytest.approx(-0.9)
