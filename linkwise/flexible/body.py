"""`FlexibleBody`: a deformable body as a recursion needs it, and the ways to make one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

import numpy as np
from scipy import linalg

from linkwise.array_types import Array, FloatArray
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelError, ModelWarning, UnknownNameError
from linkwise.flexible.body_sources import BodySources
from linkwise.flexible.integrals import Frozen, ModalIntegrals
from linkwise.flexible.reduction import Reduction
from linkwise.flexible.structure import NodeKey

_CAREFREE_SPIN = 0.1
"""Share of the lowest frequency: up to this spin the missing stiffening changes that frequency by less than 1 %."""


@dataclass(frozen=True, eq=False)
class FlexibleNode(Frozen):
    """A node of a flexible body and what the modes do to it, in root axes, from the root.

    At η it is at r(η) = position + Γη + ½η*Qη, turned by the small rotation Λη.
    """

    number: int
    name: str | None
    position: FloatArray
    """(3,): r⁰"""
    Gamma: FloatArray
    """(3, m)"""
    Lambda: FloatArray
    """(3, m)"""
    Q: FloatArray
    """(3, m, m), symmetric in the last two"""

    @property
    def key(self) -> NodeKey:
        """Name of the node, or its number where it has none."""
        return self.number if self.name is None else self.name


@dataclass(frozen=True, eq=False)
class FlexibleBody(Frozen, BodySources):
    """A deformable body reduced to m modal coordinates η: data only, frozen.

    The body deforms in its frame, whose motion V = [ω; v] and η̇ are independent, and

        x(η) = x⁰ + Γ(x⁰)η + ½η*Q(x⁰)η

    is where the particle x⁰ is in that frame. Usually the frame is that of the root node, where every mode vanishes in
    displacement and rotation. A frame that floats (as one along a beam's chord, whose ends turn) is that of no node:
    `held` says which node the joint holds, and the joint must leave free what the modes move there.

    Kinetic energy follows from the coefficients `integrals`; `linkwise.flexible.integrals` writes it down, with what is
    kept and why. Elastic energy is ½η*Kη, dissipated power η̇*Dη̇, gravity acts on h(η) and on the mass. With Q in x(η)
    there is no further term for geometric stiffening.
    """

    nodes: tuple[FlexibleNode, ...]
    """Kept nodes; the first is the body's frame, where every mode vanishes: that of the root, if it does not float."""
    stiffness: FloatArray
    """K, (m, m)"""
    damping: FloatArray
    """D, (m, m)"""
    integrals: ModalIntegrals
    boundary: str
    """The kind of modes: "cantilever", "free", "craig-bampton", "nodal"."""
    stiffening: bool
    """Whether Q is known. Without it a body that spins fast grows softer instead of stiffer."""
    reduction: Reduction | None = None
    """Account of the reduction; None for a body that was read as it is."""
    held: int = 0
    """The place in `nodes` of the node that the joint holds: 0, or the root's in a frame that floats."""

    def __post_init__(self) -> None:
        super().__post_init__()
        m = len(self.stiffness)
        wanted: dict[str, tuple[Array, tuple[int, ...]]]
        wanted = {name: (getattr(self, name), (m, m)) for name in ("stiffness", "damping")}
        for name, shape in self.integrals.shapes(m).items():
            wanted[f"the integral {name}"] = getattr(self.integrals, name), shape
        for node in self.nodes:
            for name, shape in (("position", (3,)), ("Gamma", (3, m)), ("Lambda", (3, m)), ("Q", (3, m, m))):
                wanted[f"{name} of node {node.key!r}"] = getattr(node, name), shape
        for what, (array, shape) in wanted.items():
            if array.shape != shape:
                raise InputError(f"{what} has the wrong shape", got=str(array.shape), allowed=f"{shape}: {m} modes")
        keys = [node.key for node in self.nodes]
        if len(set(keys)) < len(keys):
            raise InputError("two nodes of a flexible body have one name", got=str(keys[:12]))
        at_root = [np.vstack([node.Gamma, node.Lambda]) for node in self.nodes[:1]]
        if not at_root or np.abs(at_root[0]).max(initial=0.0) > 1e-9:
            raise ModelError(
                "the first node must be the root, where every mode vanishes", got=repr(self.nodes[:1])[:60]
            )
        if not 0 <= self.held < len(self.nodes):
            raise InputError(
                "the node that the joint holds is not there", got=str(self.held), allowed="a place in nodes"
            )

    # ---------------------------------------------------------------------------------------------------- what it is

    @property
    def modes(self) -> int:
        """m, the number of modal coordinates."""
        return len(self.stiffness)

    @property
    def material_nodes(self) -> tuple[FlexibleNode, ...]:
        """The nodes that are pieces of the body: all, without a frame that floats."""
        return self.nodes[1:] if self.held else self.nodes

    @property
    def mass(self) -> float:
        """The mass, kg."""
        return self.integrals.mass

    @property
    def com(self) -> FloatArray:
        """The mass centre at rest, from the root, m."""
        centre: FloatArray = self.integrals.h0 / self.mass
        return centre

    @property
    def inertia(self) -> FloatArray:
        """3×3 at rest, about the mass centre, root axes, kg m²."""
        c = self.com
        return self.integrals.J0 - self.mass * (c @ c * np.eye(3) - np.outer(c, c))

    def node(self, key: NodeKey) -> FlexibleNode:
        """A node by its name or number; "root" is always the root, which the joint holds."""
        for node in self.nodes:
            if (isinstance(key, str) and node.name == key) or (not isinstance(key, str) and node.number == key):
                return node
        if key == "root":
            return self.nodes[self.held]
        raise UnknownNameError("node", key, [node.key for node in self.nodes])

    @property
    def frequencies(self) -> Array:
        """Frequencies of the modes, Hz, ascending: with the root free for free modes, held for all others."""
        return self.free_frequencies if self.boundary == "free" else self.held_frequencies

    @property
    def held_frequencies(self) -> Array:
        """Frequencies with the root held, Hz."""
        return _frequencies(self.stiffness, self.integrals.Me)

    @property
    def free_frequencies(self) -> Array:
        """Frequencies with the root free to move, Hz: the elastic ones, without the six zeros."""
        M = self.integrals.mass_matrix(np.zeros(self.modes))
        m = self.modes
        follow = M[:m, m:] @ np.linalg.lstsq(M[m:, m:], M[m:, :m], rcond=1e-13)[0]
        return _frequencies(self.stiffness, M[:m, :m] - follow)

    def kinetic_energy(self, eta: FloatArray, eta_dot: FloatArray, V: FloatArray) -> float:
        """T(η, η̇, V), J: of modal coordinates η (m) and their rates (m) on a root that moves by V = [ω; v] (6)."""
        x = np.concatenate([eta_dot, V])
        return float(0.5 * x @ self.integrals.mass_matrix(np.asarray(eta, dtype=float)) @ x)

    def in_spinning_modes(self, rate: Sequence[float], modes: int) -> FlexibleBody:
        """Body in the `modes` lowest modes that it has when it spins steadily.

        A fast spin bends modes away from those at rest. Take a body with many modes at rest, and from it the few that
        it has at about the spin that it will have: these serve for slower spins and for rest as well.

        Args:
            rate: (ωx, ωy, ωz) of the root, rad/s.
            modes: how many.
        """
        from linkwise.flexible.element_assembly import in_spinning_modes

        return in_spinning_modes(self, rate, modes)

    def random_deformation(self, rng: np.random.Generator) -> FloatArray:
        """Random η (m), uniform; each mode moves no node by more than 2 % of the body's size."""
        reach = max((float(np.linalg.norm(node.position)) for node in self.nodes), default=0.0)
        size = max(reach, float(np.sqrt(np.trace(self.integrals.J0) / self.mass)))
        moved = np.max(
            [np.abs(node.Gamma).max(axis=0) + size * np.abs(node.Lambda).max(axis=0) for node in self.nodes], 0
        )
        scale: FloatArray = 0.02 * size / np.where(moved > 0.0, moved, np.inf)
        return scale * rng.uniform(-1.0, 1.0, self.modes)

    def check_spin(self, rate: float) -> None:
        """Warn where a spin of `rate` rad/s is too fast for a body without geometric stiffening."""
        if self.stiffening or not self.modes:
            return
        lowest = 2 * np.pi * float(self.held_frequencies[0])
        if abs(rate) > _CAREFREE_SPIN * lowest:
            warnings.warn(
                ModelWarning(
                    "this flexible body has no geometric stiffening and spins fast",
                    got=f"{abs(rate):.3g} rad/s, lowest mode {lowest:.3g} rad/s",
                    allowed=f"up to {_CAREFREE_SPIN * lowest:.3g} rad/s the error of that mode stays below 1 %",
                    do="give K_geo to from_arrays, or build the body with beam, frame, plate or from_mesh",
                ),
                stacklevel=2,
            )

    def __repr__(self) -> str:
        hertz = self.frequencies
        shown = ", ".join(f"{each:.4g}" for each in hertz[:4]) + (", …" if len(hertz) > 4 else "")
        return f"FlexibleBody({self.mass:.4g} kg, {self.modes} modes: {shown} Hz, {len(self.nodes)} nodes)"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the reduced body as plain arrays; `from_npz` reads it again."""
        from linkwise.flexible.files.npz import write_body

        write_body(self, path)


def frame_node(number: int, modes: int) -> FlexibleNode:
    """The frame of a body as its first node."""
    return FlexibleNode(
        number, "frame", np.zeros(3), np.zeros((3, modes)), np.zeros((3, modes)), np.zeros((3, modes, modes))
    )


def _frequencies(K: FloatArray, M: FloatArray) -> FloatArray:
    if not len(K):
        return np.zeros(0)
    mu = linalg.eigh(M, K, eigvals_only=True)[::-1]
    hertz: FloatArray = 1.0 / (2 * np.pi * np.sqrt(np.maximum(mu, np.finfo(float).tiny)))
    return hertz
