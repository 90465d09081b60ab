"""Public names that are no more, and those in their place: one table for error messages and for the changelog.

Old names do not work; asking for one says the new one. ``python -m linkwise.renamed`` prints the changelog's table.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["BUILDER", "MODEL", "MODULE", "SOUGHT_ARGUMENTS", "SOUGHT_OF_MOTIONS", "missing", "table"]


def _in_group(group: str, names: str) -> dict[str, str]:
    return {name: f"{group}.{name}" for name in names.split()}


MODULE = {
    **_in_group(
        "math",
        "abs acos asin atan atan2 clip cos cosh exp log maximum minimum sign sin sinh sqrt tan tanh where",
    ),
    **_in_group("linalg", "cholesky solve"),
    **_in_group(
        "closures",
        "Closure Coupling Distance JointFunction PointOnCurve PointOnPlane PointOnSurface PolynomialCoupling "
        "Prescribed PrescribedFrame RateFunction Relation RelativePose Rolling",
    ),
    **_in_group("equipment", "Activation Actuator FrameTransmission JointTransmission PathTransmission Sensor Spring"),
    **_in_group(
        "errors",
        "ClosureError FrozenElementError IntegrationWarning MissingExtraError ModelFileError ModelWarning "
        "SlowControlWarning UnknownNameError",
    ),
    "ReactionWheel": "space.BalancedWheel",
    "Thruster": "space.Propulsion(model, lw.space.Thruster(...))",
    "Actuators": "Drives",
    "BodyForces": "simulate(..., f_ext=...)",
    "Sensors": "Instruments",
}
"""Names of ``lw``."""

MODEL = {
    **{name: f"limits.{name}" for name in ("lower", "upper")},
    **{f"{name}_limit": f"limits.{name}" for name in ("velocity", "effort")},
    **{name: f"joint_constants.{name}" for name in ("armature", "damping", "friction", "stiffness")},
    **{f"with_{name}": f"with_joint_constants({name}=...)" for name in ("armature", "damping", "friction")},
    **{f"with_{name}": f"with_equipment({name}=...)" for name in ("actuators", "sensors", "springs")},
    "with_constraint": "with_coupling(name, function)",
    "with_name": "renamed(name=...)",
    "without_closure": "without(name)",
    "to_mjcf": 'save("name.xml")',
    "to_urdf": 'save("name.urdf")',
    "body": "bodies[name]",
    "body_names": "bodies.names",
    "closure": "closures[name]",
    "joint": "joints[name]",
    "joint_names": "joints.names",
    "nominal_parameters": "parameters.nominal",
    "parameter_names": "parameters.names",
    "check_closures": "constraints.check",
    "closure_rate": "constraints.rate",
    "constraint_bias": "constraints.bias",
    "constraint_jacobian": "constraints.jacobian",
    "impulse": "constraints.impulse",
    "independent_mass_matrix": "constraints.mass_matrix",
    "project_configuration": "constraints.project_configuration",
    "project_velocity": "constraints.project_velocity",
    "centroidal_inertia": "centroidal.inertia",
    "centroidal_momentum": "centroidal.momentum",
    "centroidal_momentum_matrix": "centroidal.momentum_matrix",
    "operational_admittance": "operational.admittance",
    "operational_inertia": "operational.inertia",
    "actuation_matrix": "statics.actuation_matrix",
    "manipulability": "statics.manipulability",
    "static_equilibrium": "statics.equilibrium",
    "static_force": "statics.force",
    "support_margin": "statics.support_margin",
    "workspace": "statics.workspace",
    "chart": "configuration_rate",
    "closure_solver": "with_closure_solver(solver)",
    "closure_reference": "with_closure_solver(solver, at=...)",
    "independent": "freedom_names",
    "is_flexible": "bodies[name].flexible",
    "rolls": "with_sweeps(...)",
    "sweeps": "with_sweeps(...)",
}
"""Attributes of a model."""

BUILDER = {"add_constraint": "add_coupling(name, function)"}
"""Methods of a builder."""

SOUGHT = {
    **_in_group("control", "as_nlsys as_state_space crocoddyl_action emit_acados emit_casadi shoot to_fmu"),
    **_in_group("shapes", "box capsule cylinder mesh sphere"),
    "Contact": "Ground, lw.Material and model.with_contacts(lw.Ground())",
}
"""Names of ``lw`` that never were, but that people ask for."""

SOUGHT_OF_MOTIONS = {f"to_{kind}": f'save("name.{kind}")' for kind in ("csv", "glb", "mat", "mcap", "npz", "usd")}
"""Methods of a motion that never were, but that people ask for."""

_CONTACT = 'model.with_contacts(lw.Ground(), material=lw.Material(friction=0.8)), and method="moreau"'
SOUGHT_ARGUMENTS = dict.fromkeys(("contact", "contacts", "ground", "floor", "friction", "collisions"), _CONTACT)
"""Arguments of ``lw.simulate`` that never were, but that people give."""

_OTHERS = {"lw.ensemble.grid, lw.ensemble.Study, …": "lw.studies.grid, lw.studies.Study, …"}
"""Names that no attribute can be asked for."""


def missing(of: str, shown: str, name: str, renamed: dict[str, str]) -> AttributeError:
    """The error for a name that something does not have, with the new one where the name is an old one."""
    known = {**SOUGHT, **renamed} if shown == "lw" else renamed
    hint = f"; instead: {shown}.{known[name]}" if name in known else ""
    return AttributeError(f"{of} has no attribute {name!r}{hint}", name=name)


def table() -> str:
    """All old names and the new ones, as a table in Markdown; names that only went into a group share a row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for shown, names in (("lw", MODULE), ("model", MODEL), ("builder", BUILDER)):
        for old, new in names.items():
            group, _, last = new.rpartition(".")
            alike = last == old and bool(group)
            rows.setdefault((shown, f"{group}.…" if alike else new), []).append(old)
    lines = [
        f"| {_listed(shown, old)} | `{shown}.{new if len(old) > 1 else new.replace('…', old[0])}` |"
        for (shown, new), old in rows.items()
    ]
    lines += [f"| `{old}` | `{new}` |" for old, new in _OTHERS.items()]
    return "\n".join(["| old | new |", "|---|---|", *lines])


def _listed(shown: str, names: Iterable[str]) -> str:
    return ", ".join(f"`{shown}.{name}`" for name in names)


if __name__ == "__main__":
    print(table())
