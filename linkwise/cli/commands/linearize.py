"""``linkwise linearize``: a linear model about a state."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from linkwise.cli.arguments import configuration, load_model, per_freedom, v_names
from linkwise.cli.motion_files import check_suffix
from linkwise.cli.printing import matrix, print_json


def run(options: Namespace) -> None:
    """Print or write the matrices, and the eigenvalues of the linear system."""
    check_suffix(options.output, (".npz",), "--output")
    model = load_model(options)
    q, v = configuration(model, options.q, "--q"), per_freedom(model, options.v, "--v")
    about: dict[str, Any] = {"q": q, "v": v}
    if options.inverse:
        lin = model.linearize_inverse(q, v, np.zeros(model.nv))
        parts = {"dq": "∂τ/∂q", "dv": "∂τ/∂v", "dvdot": "∂τ/∂v̇ (the mass matrix)"}
        found: dict[str, Any] = {name: np.asarray(getattr(lin, name)) for name in parts}
    else:
        held = model.bias_force(q, v) - model.passive_force(q, v)
        tau = held if options.tau == "hold" else per_freedom(model, options.tau, "--tau")
        about["tau"] = tau
        lin = model.linearize_forward(q, v, tau)
        parts = {"dq": "∂v̇/∂q", "dv": "∂v̇/∂v", "dtau": "∂v̇/∂τ (the inverse mass matrix)"}
        found = {name: np.asarray(getattr(lin, name)) for name in parts}
        found["A"], found["B"] = model.state_space(q, v, tau)
    if options.output is not None:
        np.savez(options.output, **about, **found)
    eigenvalues = _eigenvalues(found["A"]) if "A" in found else None
    if options.json:
        facts = {"joints": v_names(model), **about, **found}
        if eigenvalues is not None:
            facts["eigenvalues"] = [[x.real, x.imag] for x in eigenvalues]
        print_json(facts)
        return
    print(f"{model.name}: joints {', '.join(v_names(model))}")
    for name, meaning in parts.items():
        print(f"\n{meaning}\n{matrix(found[name])}")
    if eigenvalues is not None:
        print("\neigenvalues of the system [q; v], 1/s")
        print(
            "\n".join(f"  {x.real: .4g}" + (f" ± {x.imag:.4g}i" if x.imag else "") for x in eigenvalues if x.imag >= 0)
        )


def _eigenvalues(A: Any) -> list[complex]:
    values = np.linalg.eigvals(A) if len(A) else np.empty(0, complex)
    values = np.where(np.abs(values.imag) < 1e-9 * np.abs(values).max(initial=1.0), values.real, values)
    return sorted((complex(x) for x in values), key=lambda x: (-x.real, x.imag))
