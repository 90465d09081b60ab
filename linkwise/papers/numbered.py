"""List of what is numbered in the five papers, in order, in a few words, with the test of each.

A row's functions are those whose docstrings cite its numbers (docs/paper_citations.py), the classical algorithms and the
operator rules that name them, and what ``code`` adds where a docstring would have to cite too much.
"""

from __future__ import annotations

from linkwise.dataclass import dataclass


@dataclass(frozen=True)
class NumberedRow:
    """Some numbered things that belong together."""

    numbers: str
    what: str
    test: str = ""
    """``file::test``; empty for what is not implemented."""
    code: tuple[str, ...] = ()
    """Further functions: ``module:name``, the package left out."""
    why_not: str = ""
    """For what is not implemented."""
    exact: str = ""
    """Comparison that the test makes where it has no bound on an error."""


@dataclass(frozen=True)
class Paper:
    """A paper, and everything that is numbered in it."""

    number: str
    cited: str
    numbered: str
    rows: tuple[NumberedRow, ...]


AGREE = "tests/classics/test_agree.py::test_agrees_with_the_core"
RULES = "tests/operators/test_identities.py::test_every_rule_holds"
LETTERS = "tests/operators/test_letters.py"
PAPERS = "tests/classics/test_papers.py"
LINEARIZED = "tests/derivatives/test_paper.py::test_algorithm"
CLOSED = "tests/operators/test_closed.py"
RATES = "tests/operators/test_rates.py"
PARTS = "tests/operators/test_partition.py"

JAIN = Paper(
    "Jain 1991",
    "A. Jain, *Unified formulation of dynamics for serial rigid multibody systems*, 1991",
    "eq. 1-60, lemma 3.1-3.2, lemma 6.1-6.5, table 1, figure 1",
    (
        NumberedRow("eq. 1-4", "spatial velocities and forces moved between points: φ(l)", "tests/spatial/test_transforms.py::test_action_is_that_of_the_matrix", ("spatial.transforms:Transform",)),
        NumberedRow("eq. 5-9", "spatial inertia, momentum and the equation of motion of a body", "tests/spatial/test_transforms.py::test_rigid_inertia", ("spatial.inertia:RigidInertia",)),
        NumberedRow("eq. 10-16", "the Newton–Euler recursions link by link, and their velocity terms a and b", f"{LETTERS}::test_velocity_terms"),
        NumberedRow("eq. 17", "recursive Newton–Euler inverse dynamics", AGREE),
        NumberedRow("eq. 18-21", "stacked operators: H, E_φ, φ; 𝓜 = HφMφ*H*", f"{LETTERS}::test_mass_matrix"),
        NumberedRow("eq. 22-23", "O(n³): the mass matrix column by column, or half of it, and Cholesky's method", AGREE),
        NumberedRow("eq. 24-28", "composite bodies: R, and the mass matrix from it", f"{PAPERS}::test_composite_bodies_make_the_diagonal_of_the_mass_matrix"),
        NumberedRow("eq. 29, lemma 3.2", "inverse dynamics by composite bodies", "tests/operators/test_identities.py::test_inverse_dynamics_by_composite_bodies"),
        NumberedRow("lemma 3.1", "φMφ* = R + φ~R + Rφ~*", RULES),
        NumberedRow("eq. 30", "conjugate gradients, plain and preconditioned (misprints mended)", f"{PAPERS}::test_conjugate_gradients_as_printed_do_not_converge"),
        NumberedRow("eq. 31-42", "articulated bodies: P, D, G, τ̄, ψ and their properties", f"{LETTERS}::test_definitions_of_articulated_operators"),
        NumberedRow("eq. 43-46", "the articulated-body sweeps", AGREE),
        NumberedRow("eq. 47-49", "Armstrong's coefficients are parts of P (a misprint mended)", f"{PAPERS}::test_armstrong_has_the_parts_of_the_articulated_inertia"),
        NumberedRow("eq. 50-52", "Bae and Haug's form", f"{PAPERS}::test_bae_haug_with_the_true_forces"),
        NumberedRow("table 1", "the letters of five derivations of one O(n) algorithm", AGREE, ("classics.vereshchagin:forward_dynamics", "classics.featherstone:forward_dynamics_link_coordinates")),
        NumberedRow("eq. 53-54", "the articulated operators as a whole", f"{LETTERS}::test_definitions_of_articulated_operators"),
        NumberedRow("lemma 6.1", "ψ⁻¹ = φ⁻¹ + KH", RULES),
        NumberedRow("lemma 6.2", "the innovations factors of 𝓜", f"{PAPERS}::test_innovations_factor_the_mass_matrix"),
        NumberedRow("lemma 6.3", "[I + HφK]⁻¹ = I − HψK", RULES),
        NumberedRow("lemma 6.4, eq. 55", "𝓜⁻¹ = [I − HψK]* D⁻¹ [I − HψK]", "tests/operators/test_rewrite.py::test_the_inverse_of_the_mass_matrix", ("operators.rewrite:inverse",), exact="the same expression"),
        NumberedRow("lemma 6.5, eq. 56-59", "forward dynamics with velocity terms, and the identities behind it", "tests/operators/test_identities.py::test_forward_dynamics_with_velocity_terms", ("algorithms.forward_dynamics:forward_dynamics",)),
        NumberedRow("eq. 60", "the same as sweeps", "tests/identities/test_dynamics.py::test_forward_of_inverse_is_identity"),
        NumberedRow("figure 1", "links and joints", why_not="a drawing"),
    ),
)  # fmt: skip

JAIN_RODRIGUEZ = Paper(
    "Jain 1993",
    "A. Jain and G. Rodriguez, *Linearization of manipulator dynamics using spatial operators*, 1993",
    "eq. 1.1-1.6, eq. 2.1-2.20, eq. 3.1-3.8, eq. 4.1-4.26, eq. A.1-A.24, lemma 3.1-3.2, lemma 4.1-4.9, algorithm 1-6",
    (
        NumberedRow("eq. 1.1-1.4", "the linearised inverse and forward models, defined", "tests/derivatives/test_linearized.py::test_against_differences", ("model.linearization:Linearization.linearize_inverse", "model.linearization:Linearization.linearize_forward")),
        NumberedRow("eq. 1.5-1.6", "the operators S and Q", f"{RATES}::test_S_and_Q", ("classics.linearized:MHat",)),
        NumberedRow("eq. 2.1-2.20", "the dynamics about one inertially fixed point", LINEARIZED, ("classics.linearized:referred",)),
        NumberedRow("eq. 3.1-3.3, lemma 3.1", "𝓜, A_D and B_D as operators", f"{RATES}::test_derivatives_as_operators"),
        NumberedRow("algorithm 1, eq. 3.4-3.5", "δT in O(n)", LINEARIZED),
        NumberedRow("eq. 3.6-3.7, lemma 3.2", "𝓜, A_D and B_D element by element", "tests/derivatives/test_linearized.py::test_against_differences"),
        NumberedRow("algorithm 2, eq. 3.8", "𝓜, A_D and B_D in O(n²)", LINEARIZED),
        NumberedRow("eq. 4.1-4.2, lemma 4.1", "A_C = 𝓜⁻¹A_D and B_C = 𝓜⁻¹B_D", "tests/derivatives/test_against_pinocchio.py::test_forward"),
        NumberedRow("algorithm 3", "δθ'' the conventional way", LINEARIZED),
        NumberedRow("algorithm 4", "𝓜⁻¹, A_C and B_C the conventional way", LINEARIZED),
        NumberedRow("eq. 4.3-4.5", "articulated bodies about the fixed point", LINEARIZED, ("classics.linearized:articulated",)),
        NumberedRow("eq. 4.6, lemma 4.2", "the innovations factors of 𝓜", RULES),
        NumberedRow("eq. 4.7, lemma 4.3", "the inverse of the factor", RULES),
        NumberedRow("eq. 4.8, lemma 4.4, eq. 4.10", "𝓜⁻¹, and forward dynamics with it", "tests/operators/test_rewrite.py::test_the_inverse_of_the_mass_matrix", ("operators.rewrite:inverse",), exact="the same expression"),
        NumberedRow("eq. 4.9, lemma 4.5", "HφMφ* by articulated bodies", RULES),
        NumberedRow("eq. 4.11-4.15, lemma 4.6-4.7", "A_C and B_C without 𝓜, and δθ''; P̂, Ĝ and their identities", f"{RATES}::test_proofs_hold_step_by_step", ("classics.linearized:delta_acceleration",)),
        NumberedRow("algorithm 5, eq. 4.16-4.18", "δθ'' in O(n)", LINEARIZED, ("classics.linearized:articulated",)),
        NumberedRow("eq. 4.19-4.25, lemma 4.8-4.9", "𝓜⁻¹, A_C and B_C element by element; on trees with Ω whole", f"{RATES}::test_proofs_hold_step_by_step", ("classics.linearized:forward_matrices",)),
        NumberedRow("algorithm 6, eq. 4.26", "𝓜⁻¹, A_C and B_C in O(n²)", LINEARIZED),
        NumberedRow("eq. A.1-A.5", "lemma A.1: sums over the links split into diagonal and triangular parts", f"{RATES}::test_proofs_hold_step_by_step"),
        NumberedRow("eq. A.6-A.10", "lemma A.2: how H*X, HX, MX and MV change with the angles", f"{RATES}::test_sensitivities_of_lemma_A_2", ("operators.linearized_operators:LinearizedOperators.S", "operators.linearized_operators:LinearizedOperators.Q")),
        NumberedRow("eq. A.11-A.24", "proofs of the lemmas, step by step (a misprint mended)", f"{RATES}::test_proofs_hold_step_by_step"),
    ),
)  # fmt: skip

SAHA = Paper(
    "Saha 1999",
    "S. K. Saha, *Dynamics of serial multibody systems using the decoupled natural orthogonal complement matrices*, 1999",
    "eq. 1-55, table 1-3, figure 1-9, appendix A, appendix B",
    (
        NumberedRow("eq. 1-5", "the Newton–Euler equations of bodies without joints", "tests/classics/test_papers.py::test_convective_matrix_is_n_m_n_dot", ("classics.noc:as_matrix",)),
        NumberedRow("eq. 6-20", "the natural orthogonal complement, and the equations of motion with it", f"{PAPERS}::test_decoupled_complement"),
        NumberedRow("eq. 21-24", "the generalised inertia from the decoupled complement", f"{PAPERS}::test_decoupled_complement"),
        NumberedRow("eq. 25-29", "the convective matrix C, element by element", f"{PAPERS}::test_convective_matrix"),
        NumberedRow("eq. 30-32", "generalised forces, and RIDIM", "tests/papers/test_arms.py::test_stanford_arm"),
        NumberedRow("eq. 33-37", "forward dynamics in O(n), RFDSIM", AGREE),
        NumberedRow("eq. 38-39", "the cycloidal motion of section 6", "tests/papers/test_demo.py::test_cycloidal_motion_is_consistent", ("papers.arm_figures:cycloidal",)),
        NumberedRow("eq. 40-55, appendix B", "𝓜 = UDU* by reverse Gaussian elimination", f"{PAPERS}::test_reverse_gaussian_elimination"),
        NumberedRow("appendix A", "Denavit and Hartenberg's frames", "tests/mechanism/test_dh.py::test_frames"),
        NumberedRow("table 1", "operation counts of inverse dynamics", "tests/classics/test_counts.py::test_rows_of_table_1", ("functions.counting:count",), exact="whole numbers"),
        NumberedRow("table 2", "operation counts of forward dynamics", "tests/classics/test_counts.py::test_rows_of_table_2", ("functions.counting:count",), exact="whole numbers"),
        NumberedRow("table 3", "the Stanford arm's parameters", "tests/papers/test_demo.py::test_stanford_arm_is_that_of_the_table", exact="the printed digits"),
        NumberedRow("figure 5", "torques of the planar arm", "tests/papers/test_arms.py::test_planar_arm", ("papers.arm_figures:forces",)),
        NumberedRow("figure 6", "free fall of the planar arm", "tests/papers/test_arms.py::test_what_the_paper_says_of_figure_6", ("papers.arm_figures:free_fall",), exact="what the text says of it"),
        NumberedRow("figure 8", "joint forces of the Stanford arm", "tests/papers/test_arms.py::test_stanford_arm", ("papers.arm_figures:forces",)),
        NumberedRow("figure 9", "free fall of the Stanford arm", "tests/papers/test_arms.py::test_what_the_paper_says_of_figure_9", ("papers.arm_figures:free_fall",)),
        NumberedRow("figure 1-4, figure 7", "bodies, joints and the two arms", why_not="drawings; the arms are in `linkwise.samples`"),
    ),
)  # fmt: skip

FEATHERSTONE_ORIN = Paper(
    "Featherstone 2000",
    "R. Featherstone and D. Orin, *Robot dynamics: equations and algorithms*, 2000",
    "eq. 1-29",
    (
        NumberedRow("eq. 1-8", "recursive Newton–Euler algorithm", AGREE),
        NumberedRow("eq. 9-10", "composite-rigid-body algorithm", f"{PAPERS}::test_composite_bodies_make_the_diagonal_of_the_mass_matrix"),
        NumberedRow("eq. 11-14", "articulated-body algorithm (a misprint mended)", f"{PAPERS}::test_featherstone_as_printed_is_wrong"),
        NumberedRow("eq. 19", "active joints in loops: τ_a along the freedoms of closures", "tests/closures/test_active_closures.py::test_the_motion_does_not_know_where_the_loop_is_cut"),
        NumberedRow("eq. 15-18, eq. 20", "closed loops: the whole system solved at once", "tests/closures/test_functions.py::test_solvers_by_name_agree", ("algorithms.closure_solvers:FullSystem", "algorithms.equations:Equations")),
        NumberedRow("eq. 21", "closed loops: multipliers first", "tests/closures/test_functions.py::test_solvers_by_name_agree", ("algorithms.factors:Multipliers",)),
        NumberedRow("eq. 22", "closed loops: the null space", "tests/closures/test_functions.py::test_solvers_by_name_agree"),
        NumberedRow("eq. 23-26, eq. 29", "motion and force bases of the whole system", f"{PAPERS}::test_bases_of_motion_and_force", ("classics.global_bases:motion_basis", "classics.global_bases:force_basis")),
        NumberedRow("eq. 27", "a sparse system with a perfect elimination order", f"{PAPERS}::test_perfect_elimination_order", exact="which blocks are zero"),
        NumberedRow("eq. 28", "the constraint-force algorithm, on chains, trees and loops", "tests/classics/test_loops.py::test_random_trees_with_closures"),
    ),
)  # fmt: skip

RODRIGUEZ_JAIN_KREUTZ = Paper(
    "Rodriguez 1989",
    "G. Rodriguez, A. Jain and K. Kreutz, *Spatial operator algebra framework for multibody system dynamics*, 1989",
    "eq. 2.1-2.17, eq. 3.1-3.13, eq. 4.1-4.3, eq. A.1-A.6, lemma 1-5, step A-F, figure 1",
    (
        NumberedRow("eq. 2.1-2.5", "serial chains: recursions, operators, 𝓜 and 𝓒", f"{LETTERS}::test_mass_matrix", ("operators.letters:TreeOperators.mass_matrix", "operators.letters:TreeOperators.C")),
        NumberedRow("eq. 2.6-2.12", "trees", "tests/identities/test_dynamics.py::test_forward_of_inverse_is_identity", ("operators.letters:TreeOperators.phi", "algorithms.inverse_dynamics:inverse_dynamics")),
        NumberedRow("eq. 2.13-2.14", "points of closure, and their Jacobian J = B*φ*H*", f"{LETTERS}::test_jacobian_of_points"),
        NumberedRow("eq. 2.15-2.17", "primary and secondary, A_P, A_S, Λ_P, Λ_S, constraints AJβ = U, the equations of a closed system", f"{PARTS}::test_the_parts_make_up_the_whole", ("operators.partition:partition", "operators.state:Operators.A")),
        NumberedRow("eq. 3.1-3.2", "articulated bodies on trees", f"{LETTERS}::test_definitions_of_articulated_operators", ("operators.letters:TreeOperators.P", "operators.letters:TreeOperators.D")),
        NumberedRow("eq. 3.3-3.4, lemma 1", "the innovations factors of 𝓜", RULES),
        NumberedRow("eq. 3.5, lemma 2", "the inverse of the factor", RULES),
        NumberedRow("eq. 3.6, lemma 3", "𝓜⁻¹", "tests/operators/test_rewrite.py::test_the_inverse_of_the_mass_matrix", ("operators.rewrite:inverse",), exact="the same expression"),
        NumberedRow("eq. 3.7, step A", "free accelerations in O(n)", f"{CLOSED}::test_the_steps_of_the_paper", ("algorithms.forward_dynamics:forward_dynamics",)),
        NumberedRow("eq. 3.8-3.9, lemma 4, step B", "accelerations of the points of closure", f"{CLOSED}::test_the_steps_of_the_paper", ("operators.state:Operators.J",)),
        NumberedRow("eq. 3.10, step C", "Λ = B*ΩB in O(n)", f"{CLOSED}::test_admittance_at_the_points_of_closure", ("algorithms.forward_dynamics:operational_admittance",)),
        NumberedRow("eq. 3.11, step D", "the closure forces, and the alternative for a small secondary", f"{PARTS}::test_steps_of_two_columns", ("operators.partition:step_D", "operators.partition:alternative_step_D", "algorithms.constrained:Constrained", "algorithms.factors:Multipliers")),
        NumberedRow("eq. 3.12, step E-F", "what the closure forces add", f"{CLOSED}::test_the_steps_of_the_paper", ("algorithms.constrained:Constrained",)),
        NumberedRow("eq. 3.13", "closed forward dynamics in one expression (a misprint mended)", f"{CLOSED}::test_closed_forward_dynamics"),
        NumberedRow("eq. 4.1-4.3", "flexible links: nodes, modes, and the factored mass matrix", "tests/flexible/test_operators.py::test_every_rule_on_random_trees", ("spatial.flexible:FlexibleMotion", "mechanism.flexible_link:FlexibleLink")),
        NumberedRow("eq. A.1-A.2", "P, D, G, … and forward dynamics, branch by branch", "tests/identities/test_dynamics.py::test_forward_of_inverse_is_identity", ("algorithms.articulated:articulate", "algorithms.articulated:solve")),
        NumberedRow("eq. A.3-A.5, lemma 5", "Υ, and the blocks of Ω (misprints mended)", "tests/operators/test_identities.py::test_blocks_of_omega"),
        NumberedRow("eq. A.6", "the correction by closure forces (a misprint mended)", f"{CLOSED}::test_the_steps_of_the_paper", ("algorithms.constrained:Constrained",)),
        NumberedRow("figure 1", "how links and branches are numbered", why_not="a drawing; links are numbered from the base here"),
    ),
)  # fmt: skip

PAPERS_IN_ORDER = (JAIN, JAIN_RODRIGUEZ, SAHA, FEATHERSTONE_ORIN, RODRIGUEZ_JAIN_KREUTZ)
