"""Links whose motions and forces have more than six numbers: no operator assumes the width of a block."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism.tree import Link
from linkwise.operators import RULES
from linkwise.operators.array_blocks import ArrayBlocks, TreeLayout, rows_of
from linkwise.operators.engine import Engine
from linkwise.operators.links import Lanes, RigidLinks
from linkwise.operators.maps import AxisEntries
from linkwise.operators.scalar_blocks import ScalarBlocks
from linkwise.operators.state import Operators
from tests.operators.checks import difference, largest

PARENTS = (-1, 0, 1, 1, 0, -1, 5)
WIDTHS = (8, 6, 9, 6, 7, 11, 6)
FREEDOMS = (3, 1, 4, 6, 2, 6, 1)


class Wide:
    """A block of any size by its entries."""

    def __init__(self, rows):
        self.entries = [list(row) for row in rows]

    def rows(self):
        return self.entries

    @property
    def T(self):
        return Wide(zip(*self.entries, strict=True))

    def times(self, other):
        return Wide([[AxisEntries(row).dot(column) for column in other.T.entries] for row in self.entries])

    def __matmul__(self, x):
        return AxisEntries(AxisEntries(row).dot(x) for row in self.entries)

    def __add__(self, other):
        return Wide(AxisEntries(a) + AxisEntries(b) for a, b in zip(self.entries, other.entries, strict=True))

    def congruence(self, X):
        return self.times(X).times(self.T)

    def without(self, u, g, axis):
        return Wide(
            [x - u_i * g_j for x, g_j in zip(row, g, strict=True)] for row, u_i in zip(self.entries, u, strict=True)
        )


def vectors(size):
    """A type of vectors with so many numbers."""
    return type("Numbers", (AxisEntries,), {"zero": classmethod(lambda cls: cls([0.0] * size))})


class Given:
    """A link with any blocks whatever."""

    def __init__(self, k, phi, H, M, armature):
        self.indices, self.index, self.parent = [k], k, PARENTS[k]
        self.vectors = vectors(WIDTHS[k])
        self.phi, self.inertia, self.armature = Wide(phi), Wide(M), armature
        self.articulated = self.inertia
        self.S = [AxisEntries(row) for row in H]


def random_blocks(seed, rotors):
    """φ(p,k), H, M and J_r of each link; those on the base come from six numbers."""
    rng = np.random.default_rng(seed)
    out = []
    for k, (width, freedoms) in enumerate(zip(WIDTHS, FREEDOMS, strict=True)):
        above = 6 if PARENTS[k] < 0 else WIDTHS[PARENTS[k]]
        half = rng.normal(size=(width, width))
        M = half @ half.T + np.eye(width)
        H = rng.normal(size=(freedoms, width))
        out.append((rng.normal(size=(above, width)) / 3, H, M, rotors * rng.uniform(0.1, 1.0, freedoms)))
    return out


def dense_of(blocks):
    """E_φ, H, M and J_r as plain matrices."""
    links, joints = np.cumsum((0, *WIDTHS)), np.cumsum((0, *FREEDOMS))
    E, M = np.zeros((2, links[-1], links[-1]))
    H, J = np.zeros((joints[-1], links[-1])), np.zeros((joints[-1], joints[-1]))
    for k, (phi, h, m, rotor) in enumerate(blocks):
        here, axes = slice(*links[k : k + 2]), slice(*joints[k : k + 2])
        M[here, here], H[axes, here], J[axes, axes] = m, h, np.diag(rotor)
        if PARENTS[k] >= 0:
            E[slice(*links[PARENTS[k] : PARENTS[k] + 2]), here] = phi
    return E, H, M, J


def operators_of(blocks):
    return Operators(Engine(blocks), lambda name: None, False)


def of_arrays(blocks, batch=()):
    plan = TreeLayout(PARENTS, WIDTHS, FREEDOMS, [f"link {k}" for k in range(len(PARENTS))])
    return operators_of(ArrayBlocks(plan, [Given(k, *own) for k, own in enumerate(blocks)], batch, np.dtype(float)))


def of_scalars(blocks):
    floats = [[np.asarray(x).tolist() for x in own] for own in blocks]
    return operators_of(ScalarBlocks([Given(k, *own) for k, own in enumerate(floats)]))


def near(a, b, tolerance=1e-10):
    a, b = np.asarray(a, float), np.asarray(b, float)
    return a.shape == b.shape and largest(a - b) <= tolerance * max(1.0, largest(b))


@pytest.mark.parametrize("make", [of_arrays, of_scalars])
@pytest.mark.parametrize("rotors", [0.0, 1.0])
def test_letters_and_identities_of_blocks_of_different_widths(make, rotors):
    """formulas of Jain 1991 §2–6 and Rodriguez 1989 §2.2, each side by LAPACK from the plain matrices."""
    blocks = random_blocks(1, rotors)
    ops, (E, H, M, J) = make(blocks), dense_of(blocks)
    one = np.eye(len(E))
    phi = np.linalg.inv(one - E)
    mass = H @ phi @ M @ phi.T @ H.T + J
    assert ops.phi.shape == (sum(WIDTHS), sum(WIDTHS))
    assert near(ops.E_phi.dense(), E)
    assert near(ops.phi.dense(), phi)
    assert near(ops.H.dense(), H)
    assert near(ops.mass_matrix.dense(), mass)
    assert near(ops.mass_matrix.inv().dense() @ mass, np.eye(len(mass)), 1e-8)
    P, D, G, K, psi, R, Upsilon = (
        getattr(ops, word).dense().astype(float) for word in ("P", "D", "G", "K", "psi", "R", "Upsilon")
    )
    assert near(D, H @ P @ H.T + J)
    assert near(G @ D, P @ H.T)
    assert near(K, E @ G)
    assert near(psi, np.linalg.inv(one - E + K @ H))  # ψ⁻¹ = φ⁻¹ + KH
    blockwise = ops.M.dense().astype(float) != 0.0  # block diagonals only: E R E* has blocks between siblings too
    assert near(R, M + blockwise * (E @ R @ E.T))
    assert near(P, M + blockwise * (E @ (P - G @ D @ G.T) @ E.T))
    factor = np.eye(len(mass)) + H @ phi @ K
    assert near(factor @ D @ factor.T, mass)
    Omega = psi.T @ H.T @ np.linalg.solve(D, H @ psi)
    assert near(ops.Omega.dense(), Omega)
    assert near(Upsilon, blockwise * Omega)
    for i, j in ((0, 0), (2, 3), (3, 4), (5, 6), (2, 6)):
        rows, cols = (slice(ops.phi.rows.starts[k], ops.phi.rows.starts[k + 1]) for k in (i, j))
        assert near(ops.Omega.block(i, j), Omega[rows, cols])
        assert near(ops.phi.block(i, j), phi[rows, cols])
    assert near(ops.M.inv().dense() @ M, one)


@pytest.mark.parametrize("rotors", [0.0, 1.0])
def test_every_rule_holds_at_any_width(rotors):
    ops = of_arrays(random_blocks(2, rotors))
    rng = np.random.default_rng(0)
    for rule in RULES.values():
        if rule.holds_for(ops):
            left, right = rule.sides(ops)
            assert difference(left, right, rng.normal(size=(left.cols.size, 3))) < 1e-10, rule.name


def test_batches_of_any_width():
    states = [random_blocks(seed, 1.0) for seed in range(3)]

    def over(columns):
        """Arrays of lanes, one lane for each state."""
        together = np.stack(columns, axis=-1)
        out = np.empty(together.shape[:-1], object)
        for index in np.ndindex(out.shape):
            out[index] = Lanes(together[index][None])
        return out

    whole = of_arrays([[over(parts) for parts in zip(*link, strict=True)] for link in zip(*states, strict=True)], (3,))
    for k, blocks in enumerate(states):
        one = of_arrays(blocks)
        for word in ("phi", "R", "P", "D", "K", "Upsilon", "mass_matrix"):
            assert near(getattr(whole, word).dense()[k], getattr(one, word).dense())


def test_vectors_of_different_widths():
    ops = of_arrays(random_blocks(1, 0.0))
    x = ops.vector(np.arange(float(sum(WIDTHS))), "x")
    with pytest.raises(lw.InputError, match="different sizes"):
        x.blocks()
    assert near((ops.phi.inv() @ (ops.phi @ x)).value, x.value)
    assert repr(ops) == f"<operators: {len(WIDTHS)} links, nv = {sum(FREEDOMS)}>"


# A real link with a tail: a hinged body with a mass that slides in it, motions [η̇; V], forces [χ; F].


@dataclass(frozen=True, eq=False)
class Tailed(Link):
    """A hinged body and its slider as one link."""

    slider: Link = None

    @property
    def blocks(self):
        return TailedBlocks


@dataclass(frozen=True, eq=False)
class OnSlider(Link):
    """A rigid link whose parent is a slider."""

    slider: Link = None

    @property
    def blocks(self):
        return OnSliderBlocks


def at_slider(slider, q):
    """[Π*; φ]: forces on the slider, seen by the tail and by the body (7 × 6)."""
    return Wide([list(slider.S(q)[0]), *rows_of(slider.phi(q))])


class TailedBlocks(RigidLinks):
    @staticmethod
    def vectors_of(link):
        return vectors(7)

    @staticmethod
    def freedoms(link):
        return 2

    @staticmethod
    def reads(link):
        return [link.q_start, link.slider.q_start], [link.v_start, link.slider.v_start]

    @property
    def own_slider(self):
        return replace(self.link.slider, q_start=1, v_start=1)

    @property
    def phi(self):
        return Wide([0.0, *row] for row in rows_of(self.link.phi(self.q)))

    @property
    def S(self):
        return AxisEntries([0.0, *self.link.S(self.q)[0]]), AxisEntries([1.0] + [0.0] * 6)

    @property
    def inertia(self):
        body = [[0.0] * 7, *([0.0, *row] for row in rows_of(self.link.inertia))]
        return Wide(body) + at_slider(self.own_slider, self.q).congruence(Wide(rows_of(self.link.slider.inertia)))

    articulated = inertia

    @property
    def armature(self):
        return (*self.link.armature, *self.link.slider.armature)


class OnSliderBlocks(RigidLinks):
    @staticmethod
    def vectors_of(link):
        return vectors(6)

    @property
    def S(self):
        return tuple(AxisEntries(s) for s in self.link.S(self.q))

    @staticmethod
    def reads(link):
        return [link.q_start, link.slider.q_start], [link.v_start]

    @property
    def phi(self):
        slider = replace(self.link.slider, q_start=1)
        return at_slider(slider, self.q).times(Wide(rows_of(self.link.phi(self.q))))

    @property
    def inertia(self):
        return Wide(rows_of(self.link.inertia))

    articulated = inertia


def mechanism(arms):
    """On each arm a hinged body, a slider in it, and two hinged bodies on the slider."""
    rng = np.random.default_rng(3)
    builder = lw.ModelBuilder("sliders")

    def add(name, parent, joint):
        inertia = np.diag(rng.uniform(1.0, 1.5, 3))
        placement = lw.transform(xyz=rng.normal(size=3), rpy=rng.normal(size=3))
        builder.add_body(name, parent, joint, placement, mass=2.0, com=rng.normal(size=3), inertia=inertia)

    for k in range(arms):
        add(f"body{k}", "world", lw.Revolute(axis=(0, 1, 0)))
        add(f"slider{k}", f"body{k}", lw.Prismatic(axis=(0.6, 0.0, 0.8)))
        add(f"left{k}", f"slider{k}", lw.Revolute(axis=(0, 0, 1)))
        add(f"right{k}", f"slider{k}", lw.Revolute(axis=(1, 0, 0)))
    return builder.build()


def with_tails(tree):
    """The same tree with bodies and sliders as one link each."""
    links = []
    for k in range(0, len(tree.links), 4):
        body, slider, *on = tree.links[k : k + 4]
        at = len(links)
        fields = {name: getattr(body, name) for name in Link.__dataclass_fields__}
        links.append(Tailed(**{**fields, "index": at}, slider=slider))
        for i, link in enumerate(on):
            fields = {name: getattr(link, name) for name in Link.__dataclass_fields__}
            links.append(OnSlider(**{**fields, "index": at + 1 + i, "parent": at}, slider=slider))
    return replace(tree, links=tuple(links))


def test_a_link_with_a_tail_is_a_link_and_a_slider():
    """The mass matrix and its inverse are those of the tree in which the sliders are links of their own."""
    model = mechanism(3)
    rng = np.random.default_rng(0)
    q = rng.normal(size=(4, model.nq))
    tree = with_tails(model._trees.in_body_frames)
    arrays = operators_of(ArrayBlocks.of(tree, q, None))
    assert arrays.phi.cols.sizes == (7, 6, 6) * 3
    expected = model.mass_matrix(q)
    assert near(arrays.mass_matrix.dense(), expected)
    assert near(arrays.mass_matrix.inv().dense() @ expected, np.broadcast_to(np.eye(model.nv), expected.shape), 1e-9)
    scalars = operators_of(ScalarBlocks.of(tree, q[0].tolist(), None))
    assert near(scalars.mass_matrix.dense(), expected[0])
    assert near(scalars.mass_matrix.inv().dense(), np.linalg.inv(expected[0]))
    assert near(scalars.Omega.dense(), arrays.Omega.dense()[0])
