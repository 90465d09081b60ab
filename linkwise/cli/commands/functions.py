"""Commands about the functions of a model: ``linearize``, ``counts``, ``bench``, ``emit``."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import numpy as np

from linkwise import targets
from linkwise.array_types import Array
from linkwise.checks import check_count
from linkwise.cli.arguments import chosen_function, configuration, load_model, per_freedom
from linkwise.cli.motion_files import check_suffix
from linkwise.cli.printing import matrix, number, print_json, table
from linkwise.errors import InputError
from linkwise.functions.function import CompiledFunction
from linkwise.model.model import Model
from linkwise.trace.readable import Counts


def run_linearize(options: Namespace) -> None:
    """Print or write the matrices, and the eigenvalues of the linear system."""
    check_suffix(options.output, (".npz",), "--output")
    model = load_model(options)
    q, v = configuration(model, options.q, "--q"), per_freedom(model, options.v, "--v")
    about: dict[str, Any] = {"q": q, "v": v}  # for `savez`, which has an argument that is no array
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
        facts: dict[str, object] = {"joints": model.freedom_names, **about, **found}
        if eigenvalues is not None:
            facts["eigenvalues"] = [[x.real, x.imag] for x in eigenvalues]
        print_json(facts)
        return
    print(f"{model.name}: joints {', '.join(model.freedom_names)}")
    for name, meaning in parts.items():
        print(f"\n{meaning}\n{matrix(found[name])}")
    if eigenvalues is not None:
        print("\neigenvalues of the system [q; v], 1/s")
        print(
            "\n".join(f"  {x.real: .4g}" + (f" ± {x.imag:.4g}i" if x.imag else "") for x in eigenvalues if x.imag >= 0)
        )


def _eigenvalues(A: Array) -> list[complex]:
    values = np.linalg.eigvals(A) if len(A) else np.empty(0, complex)
    values = np.where(np.abs(values.imag) < 1e-9 * np.abs(values).max(initial=1.0), values.real, values)
    return sorted((complex(x) for x in values), key=lambda x: (-x.real, x.imag))


_COUNTED = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse", "bias_force", "gravity_force",
    "coriolis_matrix", "poses", "jacobian",
)  # fmt: skip

MOST_LINKS = 200


def run_counts(options: Namespace) -> None:
    """Count and print."""
    found = _of_chain(options) if options.chain is not None else _of_model(options)
    if options.json:
        print_json({name: _count_facts(counts) for name, counts in found.items()})
        return
    rows = [
        [name, str(c.M), str(c.A), str(c.trig), ", ".join(f"{n} {op}" for op, n in sorted(c.other.items()))]
        for name, c in found.items()
    ]
    print(table(["function", "M", "A", "sin/cos", "other"], rows))
    print("M: multiplications and divisions, A: additions and subtractions")


def _of_model(options: Namespace) -> dict[str, Counts]:
    if not options.names:
        raise InputError("counts needs a model, or --chain N", do="see linkwise counts --help")
    options.model, *names = options.names
    model = load_model(options)
    return {name: chosen_function(model, name, options.body).counts for name in names or _COUNTED}


def _of_chain(options: Namespace) -> dict[str, Counts]:
    from linkwise.classics.registry import ALGORITHMS
    from linkwise.functions.counting import OWN, check_name, count

    for name in options.names:
        check_name(name)
    if options.chain > MOST_LINKS:
        raise InputError(
            "--chain is too long to count",
            got=str(options.chain),
            allowed=f"1 to {MOST_LINKS}",
            do="count two or three shorter chains: the counts are polynomials in the number of links",
        )
    names = options.names or [*OWN, *(name for name in ALGORITHMS if name != "armstrong")]
    return {name: count(name, options.chain, options.frames) for name in names}


def _count_facts(counts: Counts) -> dict[str, int]:
    return {"M": counts.M, "A": counts.A, "mul": counts.mul, "div": counts.div, "trig": counts.trig, **counts.other}


_MEASURED = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def run_bench(options: Namespace) -> None:
    """Measure and print: time to compile, one state called from Python, a batch."""
    for name in ("batch", "threads", "rounds"):
        check_count(**{f"--{name}": getattr(options, name)})
    model = load_model(options)
    names = options.functions or list(_MEASURED)
    found = {name: _measure(model, name, options) for name in names}
    if options.json:
        print_json(
            {
                "model": model.name,
                "nv": model.nv,
                "batch": options.batch,
                "threads": options.threads,
                "functions": found,
            }
        )
        return
    rows = [
        [name, *(number(x[key]) for key in ("compile_s", "one_state_ns", "batch_ns_per_state"))]
        for name, x in found.items()
    ]
    print(
        f"{model.name}, nv = {model.nv}; batch {options.batch}, {options.threads} thread{'s' * (options.threads > 1)}"
    )
    print(table(["function", "compile s", "one state ns", "batch ns/state"], rows))


def _measure(model: Model, name: str, options: Namespace) -> dict[str, float]:
    start = perf_counter_ns()
    function = chosen_function(model, name, options.body)
    states = [_inputs(model, function, batch) for batch in ((), (options.batch,))]
    function.general(*states[0])
    compiled = perf_counter_ns() - start
    one, many = states
    out = function.general(*many)
    return {
        "compile_s": compiled / 1e9,
        "one_state_ns": _best(lambda: function(*one), options.rounds),
        "batch_ns_per_state": _best(lambda: function.general(*many, out=out, threads=options.threads), options.rounds)
        / options.batch,
    }


def _inputs(model: Model, function: CompiledFunction, batch: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(0)
    arrays = []
    for name, shape in function.inputs:
        if name in ("q", "q0", "q1"):
            some = np.array([model.random_configuration(rng) for _ in range(min(64, math.prod(batch) or 1))])
            arrays.append(np.resize(some, (*batch, model.nq)) if batch else some[0])
        else:
            arrays.append(rng.uniform(-1.0, 1.0, (*batch, *shape)))
    return arrays


def _best(call: Callable[[], object], rounds: int) -> float:
    """Nanoseconds of the quickest round, each long enough to be measured."""
    for _ in range(3):  # what the first calls prepare is not measured
        call()
    repeat, best = 1, math.inf
    for _ in range(rounds):
        while True:
            start = perf_counter_ns()
            for _ in range(repeat):
                call()
            spent = perf_counter_ns() - start
            if spent > 1_000_000:
                break
            repeat *= 4
        best = min(best, spent / repeat)
    return best


def run_emit(options: Namespace) -> None:
    """Print the source, or write the target's files to a folder."""
    targets.target(options.target)  # a mistake here is told before the model is read
    function = chosen_function(load_model(options), options.function, options.body)
    if options.output is not None:
        print(*function.emit(options.output, options.target, options.dtype), sep="\n")
        return
    source = function.source(options.target, options.dtype)
    sys.stdout.write(source if source.endswith("\n") else source + "\n")
