"""Emitted C under the address and undefined-behaviour sanitizers of the C compiler, over random mechanisms."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from campaign.mechanisms import random_recipe
from campaign.surface import methods
from campaign.trial import Log, Trial, said
from linkwise.targets.c.target import emit_c

FLAGS = (
    "-std=c99",
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)


@cache
def _compiler() -> str | None:
    """A C compiler that can sanitize, or None."""
    for name in ("gcc", "clang", "cc"):
        path = shutil.which(name)
        if path is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder, "a.c"), Path(folder, "a")
            source.write_text("int main(void) { return 0; }\n")
            made = subprocess.run([path, *FLAGS, source, "-o", program], capture_output=True, check=False)
            if made.returncode == 0 and subprocess.run([program], check=False).returncode == 0:
                return path
    return None


def check(seed: int, number: int) -> str:
    """Emit a random function of a random mechanism, compile it with sanitizers, run its own test; what went wrong."""
    rng = np.random.default_rng([seed, number])
    recipe = random_recipe(rng, largest=3)
    model = recipe.build().with_sweeps("unrolled")
    method = methods()[str(rng.choice([name for name, m in methods().items() if m.is_in_catalogue]))]
    static = {"body": model.bodies[-1].name} if "body" in method.static else {}
    optional = [name for name in method.optional if rng.random() < 0.3]
    function = model.function(method.name, *optional, **static)
    bits = int(rng.choice([64, 64, 32]))
    with tempfile.TemporaryDirectory() as folder:
        source, _, test = emit_c(function, folder, bits=bits, states=3)
        program = Path(folder, "test")
        warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-function"]
        command = [str(_compiler()), *FLAGS, *warnings, str(source), str(test), "-lm", "-o", str(program)]
        made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        if made.returncode:
            return f"{method.name} of {recipe}: the compiler says\n{made.stderr[:1500]}"
        ran = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    said_so = "runtime error" in ran.stderr or "AddressSanitizer" in ran.stderr
    # Extreme masses and places without six freedoms leave few digits: there only the sanitizers are asked.
    inexact = bits == 32 or not recipe.is_ordinary or method.name == "operational_inertia"
    if said_so or (ran.returncode and not inexact):
        return f"{method.name} of {recipe}, {bits} bits: {ran.stdout[-300:]} {ran.stderr[:1500]}"
    return ""


class Sanitizers(Trial):
    """C under ASan and UBSan."""

    name, unit, target, chunk = "sanitizers", "emitted C functions under ASan and UBSan", 10**3, 50
    share, patience = 0.7, 300.0

    def unavailable(self) -> str | None:
        """Needs a compiler with sanitizers."""
        return None if _compiler() else "no C compiler with -fsanitize=address,undefined"

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Emit, compile, run."""
        for number in log.numbers(numbers):
            try:
                problem = check(seed, number)
            except Exception as error:
                problem = said(error)
            if problem:
                log.fail(number, problem)
