"""``linkwise bench``: how fast a model's functions run here."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import numpy as np

from linkwise.cli.arguments import chosen_function, load_model
from linkwise.cli.printing import number, print_json, table
from linkwise.errors import InputError
from linkwise.model.model import Model

USUAL = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def run(options: Namespace) -> None:
    """Measure and print: time to compile, one state called from Python, a batch."""
    for name in ("batch", "threads", "rounds"):
        if getattr(options, name) < 1:
            raise InputError(f"--{name} is not a positive whole number", got=getattr(options, name))
    model = load_model(options)
    names = options.functions or list(USUAL)
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


def _inputs(model: Model, function: Any, batch: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    arrays = []
    for name, shape in function.inputs:
        if name in ("q", "q0", "q1"):
            some = np.array([model.random_configuration(rng) for _ in range(min(64, math.prod(batch) or 1))])
            arrays.append(np.resize(some, (*batch, model.nq)) if batch else some[0])
        else:
            arrays.append(rng.uniform(-1.0, 1.0, (*batch, *shape)))
    return arrays


def _best(call: Callable[[], Any], rounds: int) -> float:
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
