"""Jain 1991, Jain: the algorithms for serial chains as operator expressions, and the identities between these."""

from __future__ import annotations

import numpy as np

from linkwise.joints import Prismatic, Revolute, Spherical, Universal
from linkwise.mechanism.placement import transform
from linkwise.model.model import Model, ModelBuilder
from linkwise.operators import RULES
from linkwise.papers.algorithms import algorithm_table, chain_model
from linkwise.papers.report_page import Formulas, ReportPage, mathml, power

CITED = "A. Jain, <i>Unified formulation of dynamics for serial rigid multibody systems</i> (1991)"
FINE = 1e-9


def branched_model() -> Model:
    """Seven bodies on joints of four types, with two branchings."""
    rng = np.random.default_rng(4)
    builder = ModelBuilder("branched")
    tree = [("world", Spherical()), ("b0", Revolute((0, 0, 1))), ("b1", Prismatic((1, 0, 0))),
            ("b0", Universal((1, 0, 0), (0, 1, 0))),
            ("b3", Revolute((0, 1, 0))), ("b3", Revolute((1, 0, 0))), ("b5", Spherical())]  # fmt: skip
    for k, (parent, joint) in enumerate(tree):
        builder.add_body(
            f"b{k}", parent, joint, transform(xyz=rng.normal(size=3).tolist(), rpy=rng.normal(size=3).tolist()),
            mass=1.0 + float(rng.random()), com=(0.3 * rng.normal(size=3)).tolist(), inertia=np.diag([0.5, 0.6, 0.7]),
        )  # fmt: skip
    return builder.build()


def rule_errors(models: list[Model]) -> dict[str, float]:
    """The largest error of each rule, relative, over the models for which it holds: both sides as whole matrices."""
    errors: dict[str, float] = {}
    for seed, model in enumerate(models):
        rng = np.random.default_rng(seed)
        q = model.random_configuration(rng)
        ops = model.operators(model.assemble(q) if model.closures else q, np.zeros(model.nv))
        for rule in RULES.values():
            if rule.holds_for(ops):
                left, right = (np.asarray(side.dense()) for side in rule.sides(ops))
                error = float(np.abs(left - right).max(initial=0.0) / max(1.0, np.abs(left).max(initial=0.0)))
                errors[rule.name] = max(errors.get(rule.name, 0.0), error)
    return errors


def identity_table(page: ReportPage, paper: str, models: list[Model], caption: str) -> None:
    """The identities of one paper, by equation, and how well they hold."""
    errors = rule_errors(models)
    grouped: dict[str, list[str]] = {}
    for rule in RULES.values():
        for source in rule.source.split("; "):
            if source.startswith(paper) and rule.name in errors:
                grouped.setdefault(source.removeprefix(f"{paper} "), []).append(rule.name)
    rows: list[list[str | bool]] = []
    for source, names in sorted(grouped.items(), key=lambda item: _order(item[0])):
        worst = max(errors[name] for name in names)
        rows.append([source, Formulas("\n".join(RULES[name].statement for name in names)), power(worst), worst < FINE])
    page.table(["", "identity", "error", ""], rows, caption, words=True)


def _order(source: str) -> tuple[int, float, str]:
    word, number = source.split(",")[0].split(" ")
    digits = number.removeprefix("A.").split("-")[0]
    return (word != "eq.", float(digits) + 100.0 * number.startswith("A."), source)


def unified_section(page: ReportPage) -> None:
    """Write the section of Jain 1991, everything in it that is numbered."""
    page.section("Jain 1991", "One formulation for all algorithms", CITED)
    page.text(
        f"The paper writes the dynamics of a chain with a few operators over all links ({mathml('φ')} shifts and adds "
        "up forces "
        "from tip to base, H picks out what a joint lets through, M holds the inertias) and derives the known "
        f"algorithms, from {mathml('O(n³)')} to {mathml('O(n)')}, from the mass matrix {mathml('𝓜 = HφMφ*H*')} and its "
        "factors."
    )
    page.part("Sections 3 to 5 and table 1: the algorithms")
    page.text(
        "Table 1 of the paper puts side by side the letters in which Vereshchagin, Featherstone, Brandl, Johanni and "
        "Otter, Bae and Haug, and Rosenthal write one and the same O(n) algorithm. Here each of them runs in its own "
        "letters, and all must give the same accelerations."
    )
    algorithm_table(page, "Jain 1991", ("featherstone_link",))
    page.part("Section 6 and before: the identities")
    identity_table(
        page, "Jain 1991", [chain_model(6), branched_model()],
        "Both sides of every identity as whole matrices, on the chain of six links and on a tree of seven bodies with "
        "four types of joints; largest difference, relative. The paper states them for chains.",
    )  # fmt: skip
    _derived(page)


def _derived(page: ReportPage) -> None:
    """𝓜⁻¹ found by rule, and the forward dynamics of lemma 6.5."""
    model = branched_model()
    rng = np.random.default_rng(1)
    q, (v, tau) = model.random_configuration(rng), rng.normal(size=(2, model.nv))
    ops = model.operators(q, v)
    H, phi, M = ops.H, ops.phi, ops.M
    mobility = (H @ phi @ M @ phi.T @ H.T).inv()
    error = float(np.abs(mobility.dense() @ model.mass_matrix(q) - np.eye(model.nv)).max())
    right = model.forward_dynamics(q, v, tau)
    found = np.asarray(mobility @ (ops.vector(tau) - ops.C))
    forward = float(np.abs(found - right).max() / np.abs(right).max())
    page.found(
        [
            (
                error < FINE,
                f"Lemma 6.4: asked for the inverse of {mathml('HφMφ*H*')}, the library answers "
                f"{mathml(repr(mobility))}, as the paper does; times {mathml('𝓜')} that is the identity to "
                f"{error:.0e}.",
            ),
            (
                forward < FINE,
                f"Lemma 6.5: applied to T − C as sweeps, it gives the accelerations of the compiled forward dynamics "
                f"to {forward:.0e}.",
            ),
        ]
    )
