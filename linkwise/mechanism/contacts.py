"""Scenes of contacts: grounds, materials of surfaces, which bodies meet, and how steps with contact are solved."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

from numpy.typing import ArrayLike

from linkwise.dataclass import Converted, dataclass, default, replace
from linkwise.errors import InputError
from linkwise.mechanism.bodies_and_joints import IDENTITY, Pose
from linkwise.mechanism.description import FIRST_PAIR_BIT, SIZES, Geometry, Kind
from linkwise.mechanism.materials import Material

PLANE = Geometry("plane", (), None, (1.0, 1.0, 1.0), IDENTITY, "ground")


@dataclass(frozen=True)
class Ground:
    """Something fixed in the world that bodies touch: a plane, a box, a heightfield, ….

    Args:
        placement: 4×4 pose in the world; a plane is z = 0 of it, with the ground below.
        material: of its surface; that of the bodies if not given.
        velocity: m/s, of the surface in its own frame, as of a belt (3).
        spin: rad/s, of the surface about its origin (3), as of a turntable.
        shape: what it is: ``lw.shapes.heightfield(…)``, ``lw.shapes.terrain(…)`` or any other; a plane if not given.
        name: to be told apart by.
    """

    placement: Converted[Pose, ArrayLike] = default(IDENTITY)
    material: Material | None = None
    velocity: Converted[tuple[float, float, float], ArrayLike] = default((0.0, 0.0, 0.0))
    spin: Converted[tuple[float, float, float], ArrayLike] = default((0.0, 0.0, 0.0))
    shape: Geometry = PLANE
    name: str = "ground"

    def __post_init__(self) -> None:
        from linkwise.mechanism.body_checks import checked_pose, checked_vector

        object.__setattr__(self, "placement", checked_pose(self.placement, f"the placement of {self.name!r}"))
        if not isinstance(self.shape, Geometry):
            raise InputError(
                f"the shape of {self.name!r} is not one",
                got=repr(self.shape),
                allowed="lw.shapes.heightfield(…), lw.shapes.terrain(…), lw.Geometry(…)",
                do="of a body's shape take the outline: lw.shapes.box((1, 1, 1)).collisions[0]",
            )
        check_material(self.material)
        for what in ("velocity", "spin"):
            object.__setattr__(self, what, checked_vector(getattr(self, what), f"the {what} of {self.name!r}"))
        if self.shape.kind == "plane" and (self.velocity[2], *self.spin[:2]) != (0.0, 0.0, 0.0):
            raise InputError(
                f"the plane {self.name!r} moves in itself alone, as a belt or a turntable does",
                got=f"velocity {self.velocity}, spin {self.spin}",
                allowed="velocity along x and y, spin about z",
                do="for a ground that rises or tilts, add a body with a joint, and drive it",
            )


@dataclass(frozen=True)
class ContactRules:
    """Rules by which a step with contact is solved.

    Args:
        solver: ``"dual"``: sweeps over impulses, and Newton steps, written out for every point; ``"primal"``: loops
            over the nearest points, and Newton steps on the velocities of the freedoms; ``"auto"``: one of these, or
            loops with Newton steps on the rows of the points that are used: the one that takes the fewest operations,
            by count (:mod:`linkwise.contact.choice`).
        sweeps: passes over all contacts of the dual solver, in its first round.
        polish: Newton steps after them; all are kept only where they bring the laws nearer.
        rounds: the most rounds, the first of them with the Newton steps before, each other one with a Newton step on
            smoothed laws; only states that miss the ``tolerance`` go on. With 1, every step takes the same work.
        tolerance: of impulses, relative, by which laws may be missed; in float32 what its digits allow, 2e-5.
        passes: evaluations of the bias force in a step; two make it of second order. With one, or one round, energies
            are not looked at where joints turn far in a step, either.
        recovery: m/s, with which surfaces that overlap part at most.
        overlap: m; simulations whose rigid surfaces overlap by more at the start are refused.
        friction_speed: m/s (rad/s): where compliant contacts are integrated as forces, friction has 71 % of its full
            value at this speed of slip. Steps with ``method="moreau"`` need none.
        joint_limits: whether joints stop at the ends of their ranges, as rigid as contacts: a row for each.
        joint_friction: whether dry friction of joints is exact, so that they stand still: a row for each.
            Simulations choose both by their :class:`JointRules`.
        backward: derivatives of steps: ``"exact"``, those of the solution, at its kinks those of one side; or
            ``"smooth"``: contacts that are open, stick or slip count a little as what they nearly are, so that
            descent sees a contact before it is made. Steps themselves are the same.
        smoothing: of ``"smooth"``, N s: the impulse over which the slopes on both sides of a kink are blended.
        passive: whether no step of a mechanism creates energy, as none of bodies that nothing but contact couples does:
            velocities at the end, of what flies those against its mass centre, are scaled, all by one factor, to the
            energy that works explain. Small overlaps of what does not fly part only as far as what moves can pay for.
            Otherwise energy errs with the step, as little as the rule's order says where nothing strikes; where a joint
            turns by more than 0.08 rad in a step, and fully from 0.12 rad on, it is balanced in any case.
        points: of loops over points, how many are kept, the nearest of all; as many as the scene is likely to need if
            not given, of bodies that move freely eight each. Others that are as near as bodies could come in a step are
            counted: ``overflow``.
        substeps: parts, at the most, that a step of a simulation goes in where surfaces are so fast that they could
            pass through each other: in none of them farther than a quarter of what the thinnest pair has in thickness.
            With 1, steps are as long as ``dt`` says, and a warning tells where that is too long.
    """

    solver: Literal["auto", "dual", "primal"] = "auto"
    sweeps: int = 4
    polish: int = 8
    rounds: int = 107
    tolerance: float = 1e-9
    passes: int = 2
    recovery: float = 0.1
    overlap: float = 0.05
    friction_speed: float = 1e-3
    joint_limits: bool = False
    joint_friction: bool = False
    backward: Literal["exact", "smooth"] = "exact"
    smoothing: float = 1e-3
    passive: bool = False
    points: int | None = None
    substeps: int = 1

    @property
    def bounds_energy(self) -> bool:
        """Whether energies are balanced where joints turn far in a step."""
        return self.passes > 1 and self.rounds > 1

    @property
    def width_of_derivatives(self) -> float:
        """N s, over which derivatives blend the slopes on both sides of a kink; zero where they are exact."""
        return self.smoothing if self.backward == "smooth" else 0.0

    def __post_init__(self) -> None:
        from linkwise.checks import finite_number, finite_numbers

        if self.solver not in ("auto", "dual", "primal"):
            raise InputError("no such contact solver", got=repr(self.solver), allowed="auto, dual, primal")
        counts = (("points", 1), ("sweeps", 1), ("polish", 0), ("rounds", 1), ("passes", 1), ("substeps", 1))
        for name, least in counts:
            value = getattr(self, name)
            if (name, value) != ("points", None) and (not isinstance(value, int) or value < least):
                what = {"points": "points", "substeps": "parts"}.get(name, "passes")
                raise InputError(f"{name} is not a number of {what}", got=repr(value), allowed=f"{least} or more")
        for name in ("joint_limits", "joint_friction", "passive"):
            value = getattr(self, name)
            if value not in (True, False):
                raise InputError(f"{name} is neither true nor false", got=repr(value), allowed="True, False")
        for name, unit in (("recovery", " m/s"), ("overlap", " m"), ("tolerance", "")):
            if name != "overlap" or self.overlap != math.inf:
                finite_numbers(getattr(self, name), name, 1, least=0.0, allowed=f"0{unit} or more")
        if self.backward not in ("exact", "smooth"):
            raise InputError("no such derivatives of steps", got=repr(self.backward), allowed="exact, smooth")
        finite_number(self.smoothing, "smoothing", above=0.0, allowed="more than 0 N s")
        finite_number(self.friction_speed, "friction_speed", above=0.0, allowed="more than 0 m/s")


USUAL = ContactRules()
"""Those where nothing is said."""


@dataclass(frozen=True)
class ContactScene:
    """Scene of contacts: what may touch what.

    Args:
        grounds: what is fixed in the world.
        material: of all surfaces but those of the next; None: as shapes have it, else :class:`Material` as it is.
        materials: of some bodies, links or shapes, by name.
        only: names of those that touch; all with shapes for contact if None.
        between: pairs of them that may touch each other; None: all that can, none if ``only`` is given.
        exclude: pairs of them that never do.
        rules: how steps are solved.
        softness: ``"file"`` where surfaces give way as their file says (:attr:`Geometry.compliance`).
    """

    grounds: tuple[Ground, ...] = ()
    material: Material | None = None
    materials: tuple[tuple[str, Material], ...] = ()
    only: tuple[str, ...] | None = None
    between: tuple[tuple[str, str], ...] | None = None
    exclude: tuple[tuple[str, str], ...] = ()
    rules: ContactRules = USUAL
    softness: Literal["rigid", "file"] = "rigid"

    def of_shape(self, body: str | None, shape: Geometry) -> Material | None:
        """The material of a shape of a body, or of the world (None), if anything is said of it."""
        own = dict(self.materials)
        named = (own[name] for name in shape.names_on(body) if name in own)
        found = next(named, self.material or shape.material)
        if self.softness == "file" and shape.compliance is not None:
            found = _softened(found or Material(), shape.compliance)
        return found

    def of_pair(self, body: str, shape: Geometry, other: str | Ground | None, other_shape: Geometry) -> Material:
        """The material of two that touch; of a ground, or what a file fixes, without one, that of the body."""
        if not isinstance(other, Ground):
            named = self._named(body, shape, other, other_shape)
            if named is not None:
                return named
        own, second = self._surfaces(body, shape, other, other_shape)
        if own is None:
            return (second or Material()).acting
        return (own if second is None else own.with_other(second)).acting

    def rubs_along_first(self, body: str, shape: Geometry, other: str | Ground | None, other_shape: Geometry) -> bool:
        """Whether the direction of friction is one of the first of two shapes, and turns with that."""
        own, second = self._surfaces(body, shape, other, other_shape)
        if own is None or own.is_isotropic:
            return False
        if second is None:
            return own is not self.material
        return second.is_isotropic if own.priority == second.priority else own.priority > second.priority

    def _surfaces(
        self, body: str, shape: Geometry, other: str | Ground | None, other_shape: Geometry
    ) -> tuple[Material | None, Material | None]:
        """The materials of two that touch; None of a ground, or what a file fixes, that has none."""
        if isinstance(other, Ground):
            return self.of_shape(body, shape), other.material
        second = self.of_shape(other, other_shape)
        return self.of_shape(body, shape), Material() if second is None and other is not None else second

    def _named(self, body: str, shape: Geometry, other: str | None, other_shape: Geometry) -> Material | None:
        """The material of two shapes that a file names as a pair, unless the scene has another for them."""
        shared = (shape.contype & other_shape.conaffinity) | (other_shape.contype & shape.conaffinity)
        names = {*shape.names_on(body), *other_shape.names_on(other)}
        if not shared >> FIRST_PAIR_BIT or self.material is not None or names & set(dict(self.materials)):
            return None
        for pair in (*shape.pairs, *other_shape.pairs):
            if shared >> pair.bit & 1:
                return _softened(pair.material, pair.compliance if self.softness == "file" else None).acting
        return None

    def touches(self, body: str | None, shape: Geometry) -> bool:
        """Whether a shape of a body touches anything at all; None for what is fixed to the world."""
        named = {*(self.only or ()), *(name for two in self.between or () for name in two)}
        return body is None or self.only is None or not named.isdisjoint(shape.names_on(body))

    def unknown(self, bodies: Sequence[str], fixed: Sequence[str]) -> Iterator[tuple[str, str, Sequence[str]]]:
        """Names in it of no body or shape, nor, of pairs that never touch, of one in the world; with those known."""
        of_bodies = *(self.only or ()), *(name for pair in self.between or () for name in pair), *dict(self.materials)
        yield from (("body or shape", name, bodies) for name in of_bodies if name not in bodies)
        known = [*bodies, *fixed, *(ground.name for ground in self.grounds)]
        apart = (name for pair in self.exclude for name in pair)
        yield from (("body or ground", name, known) for name in apart if name not in known)

    def may_touch(self, a: Collection[str], b: Collection[str], fixed: bool) -> bool:
        """Whether two shapes may, by all names of each; ``fixed``: the second to the world."""
        if among(self.exclude, a, b):
            return False
        if fixed:
            return self.only is None or any(name in a for name in self.only)
        return self.only is None if self.between is None else among(self.between, a, b)


def among(pairs: Iterable[tuple[str, str]], a: Collection[str], b: Collection[str]) -> bool:
    """Whether one of some pairs names two things, in either order, by all names of each."""
    return any((x in a and y in b) or (y in a and x in b) for x, y in pairs)


def _softened(material: Material, compliance: tuple[float, float] | None) -> Material:
    if compliance is None:
        return material
    stiffness, damping = compliance
    return replace(material, stiffness=stiffness if stiffness > 0.0 else math.inf, damping=damping, law="linear")


def checked_scene(
    names: Sequence[str],
    grounds: Sequence[Ground],
    only: Sequence[str] | None,
    material: Material | Mapping[str, Material] | None,
    between: Sequence[tuple[str, str]] | None,
    exclude: Sequence[tuple[str, str]],
    rules: ContactRules | None,
    softness: Literal["rigid", "file"] = "rigid",
    fixed: Sequence[str] = (),
) -> ContactScene:
    """A scene for bodies and shapes of these names, and shapes in the world; raises InputError where it is none."""
    from linkwise.errors import UnknownNameError

    for ground in grounds:
        if not isinstance(ground, Ground):
            raise InputError("this is not a ground", got=repr(ground), allowed="lw.Ground(...)")
    if softness not in ("rigid", "file"):
        raise InputError("no such softness", got=repr(softness), allowed='"rigid", or "file": as the file says')
    if isinstance(only, str):
        raise InputError("bodies are given as a list of names", got=repr(only), allowed=f"only=[{only!r}]")
    for argument, given_names in (("only", only), ("between", between), ("exclude", exclude)):
        if not isinstance(given_names, Iterable | None):
            raise InputError(
                f"{argument} is a list", got=repr(given_names), allowed="names, or pairs of names, of bodies or shapes"
            )
    if not isinstance(rules, ContactRules | None):
        raise InputError("these are not rules of contacts", got=repr(rules), allowed="lw.ContactRules(...)")
    both: dict[str, Iterable[object]] = {"between": between or (), "exclude": exclude}
    for argument, pairs in both.items():
        for pair in pairs:
            if not isinstance(pair, Sequence) or len(set(pair)) != 2:
                raise InputError(
                    f"{argument} is a list of pairs of bodies",
                    got=repr(pair),
                    allowed=f'names of two different bodies: {argument}=[("hand", "cup")]',
                )
    own = dict(material) if isinstance(material, Mapping) else {}
    for each in (*own.values(), *([] if isinstance(material, Mapping) else [material])):
        check_material(each)
    scene = ContactScene(
        tuple(grounds),
        material if isinstance(material, Material) else None,
        tuple(own.items()),
        None if only is None else tuple(only),
        None if between is None else tuple((a, b) for a, b in between),
        tuple((a, b) for a, b in exclude),
        ContactRules() if rules is None else rules,
        softness,
    )
    for what, name, known in scene.unknown(names, fixed):
        raise UnknownNameError(what, name, known)
    return scene


def check_material(given: object) -> None:
    """Raise InputError for what is neither a material nor None."""
    if not isinstance(given, Material | None):
        do = "lw.Material(friction=0.8)"
        raise InputError("this is not a material", got=repr(given), allowed="lw.Material(...)", do=do)


def check_outline(shape: Geometry) -> None:
    """Raise InputError for a shape that has no surface: sizes or corners that are missing, negative or not finite."""
    from linkwise.checks import finite_numbers
    from linkwise.mechanism.body_checks import checked_pose

    of = f"the {shape.kind} of {shape.name!r}"
    if shape.kind not in get_args(Kind):
        raise InputError(f"{of} is of no known kind", got=repr(shape.kind), allowed=", ".join(get_args(Kind)))
    count = SIZES.get(shape.kind, 0)
    if count:
        above = 0.0 if shape.kind == "ellipsoid" else -math.inf
        finite_numbers(shape.size, f"the size of {of}", count, least=0.0, above=above)
    if shape.kind == "convex":
        corners = [x for corner in shape.vertices for x in corner]
        finite_numbers(corners, f"a corner of {of}", 3 * max(len(shape.vertices), 1))
    checked_pose(shape.placement, f"the placement of {of}")
