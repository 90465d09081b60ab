"""Requirements of a method on a mechanism, checked before it runs, with an error that says what to use instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkwise.errors import InputError
from linkwise.joints import Joint
from linkwise.mechanism.flexible_link import FlexibleLink
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.flattening import flatten
from linkwise.spatial.scalar import is_zero

_ANY = 'use another method, e.g. "articulated_body"'


def no_mimics(tree: Tree, method: str) -> None:
    """A coordinate shared by two joints couples them across the tree: no recursion over the links is left."""
    for link in tree:
        if link.is_mimic:
            raise InputError(
                f"the method {method} cannot treat joints that follow others",
                got=f"the joint of {link.name!r} follows another",
                allowed="independent joints",
                do='use "direct_cholesky" or "conjugate_gradient", which take them',
            )


def serial(tree: Tree, method: str) -> None:
    """Each link on the one before."""
    for link in tree:
        if link.parent != link.index - 1:
            raise InputError(
                f"the method {method} is for serial chains",
                got=f"{link.name!r} hangs on link {link.parent}, not on link {link.index - 1}",
                allowed="every body on the one before",
                do=_ANY,
            )


def joint_types(tree: Iterable[Link], method: str, allowed: Sequence[type[Joint]]) -> None:
    """Only joints of these types."""
    for link in tree:
        if not isinstance(link.joint, tuple(allowed)):
            raise InputError(
                f"the method {method} does not know this joint",
                got=f"{link.joint!r} of {link.name!r}",
                allowed=", ".join(kind.__name__ for kind in allowed),
                do=_ANY,
            )


def small_deflections(tree: Tree, method: str, allowed: Sequence[type[Joint]]) -> None:
    """Joints of these types, and flexible links whose points move along their modes and do nothing else."""
    for link in tree:
        if not isinstance(link, FlexibleLink):
            joint_types([link], method, allowed)
            continue
        joint_types([link.hinge], method, allowed)
        of, mass = link.deformation.integrals, link.deformation.mass
        if (
            of.a.any()
            or of.B.any()
            or mass.dM
            or not all(is_zero(x) for x in (*flatten(mass.dA)[0], *flatten(mass.dJ)[0]))
        ):
            raise InputError(
                f"the method {method} is for links whose points move along their modes",
                got=f"{link.name!r} shortens as it bends, or has sections that turn",
                allowed="modes of particles: FlexibleBody.from_modes(...) without second=",
                do="use model.inverse_dynamics",
            )


def fixed_axes(tree: Tree, method: str) -> None:
    """Joints whose S is constant in the link's own axes."""
    for link in tree:
        if not link.joint.fixed_axes:
            raise InputError(
                f"the method {method} needs joint axes fixed in their links",
                got=f"{link.joint!r} of {link.name!r}",
                allowed="revolute, prismatic, helical, cylindrical, planar, spherical and free joints",
                do=_ANY,
            )


def no_armature(tree: Tree, method: str) -> None:
    """No rotor inertias: they belong to two bodies at once."""
    for link in tree:
        if not all(is_zero(J) for J in link.armature):
            raise InputError(
                f"the method {method} has no place for rotor inertias",
                got=f"armature {link.armature} at the joint of {link.name!r}",
                allowed="armature 0",
                do=_ANY,
            )


def own_mass(tree: Tree, method: str) -> None:
    """Every link has mass: its inertia is inverted, or its mass centre is used."""
    for link in tree:
        if is_zero(link.inertia.m):
            raise massless(link, method)


def massless(link: Link, method: str) -> InputError:
    """The error for a link that cannot be treated as a body by itself."""
    return InputError(
        f"the method {method} needs links that are bodies by themselves",
        got=f"{link.name!r} has no mass, or no inertia about some axis",
        allowed="positive mass and inertia (lay out with regroup=False)",
        do=_ANY,
    )
