"""Models as Functional Mock-up Units, FMI 3.0: for model exchange and for co-simulation, with directional derivatives.

The unit's equations are one compiled function of states, inputs and parameters, and its derivative along a direction,
both as C; what the interface asks for around them is one C file of its own, ``fmi_runtime.c``. A C compiler is needed
where the binary is made, and nowhere else.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib import resources
from os import PathLike
from pathlib import Path
from platform import machine
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import output_path
from linkwise.control.rates import Outputs, input_names, state_names, state_rates
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.functions.function_derivatives import componentwise
from linkwise.model.model import Model, checked_model
from linkwise.model.state_space import checked_dt
from linkwise.targets.c.lines import constants, function_name, identifier, literals
from linkwise.targets.c.source import c_source
from linkwise.trace.block import Block
from linkwise.trace.program import Program

_UNITS: dict[str, dict[str, int]] = {
    "1": {},
    "rad": {"rad": 1},
    "m": {"m": 1},
    "N.m": {"kg": 1, "m": 2, "s": -2},
    "N": {"kg": 1, "m": 1, "s": -2},
    "s": {"s": 1},
    "kg": {"kg": 1},
    "kg.m2": {"kg": 1, "m": 2},
}
"""Units by their names in files, as powers of SI's."""

_PARAMETERS: dict[str, tuple[str, str]] = {
    "mass": ("kg", ""),
    "com": ("m", "x y z"),
    "inertia": ("kg.m2", "xx yy zz xy xz yz"),
    "xyz": ("m", "x y z"),
    "rpy": ("rad", "roll pitch yaw"),
    "stiffness": ("1", ""),
    "loss": ("1", ""),
    "gravity": ("m/s2", "x y z"),
}
"""Units of run-time parameters, and names of their numbers where they have several."""


def to_fmu(
    model: Model,
    path: str | PathLike[str],
    *,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    actuated: Sequence[str] | None = None,
    outputs: Outputs | None = None,
    step: float = 1e-3,
    compiler: str | None = "cc",
) -> Path:
    """Write a Functional Mock-up Unit (FMI 3.0) of a model, for model exchange and co-simulation; its path.

    States are ``q.<name>`` and ``v.<name>``, inputs ``tau.<joint>``, parameters ``p.<name>`` (the model's run-time
    parameters, those of several numbers as ``p.<name>.x``, …), all with units. What acts in ``simulate`` by itself acts
    here: springs, dampers, friction. Directional and adjoint derivatives are exact. The unit carries its sources; where
    a C compiler is found, also the binary for this machine. Without one an importer must build it from the sources, as
    FMI allows.

    Args:
        model: the mechanism, without closures.
        path: ``.fmu``.
        q0: start (nq); the model's own start if not given.
        v0: start (nv); at rest if not given; without q0, as ``model.start`` has it.
        actuated: names of the joints that are inputs, as for :meth:`linkwise.Model.state_space`.
        outputs: ``outputs(model, q, v, tau)`` returns numbers by name: further outputs, traced.
        step: the longest step of co-simulation, s: classical Runge-Kutta.
        compiler: name of the C compiler; None for sources alone.
    """
    target = output_path(path)
    if target.suffix != ".fmu":
        raise InputError("a Functional Mock-up Unit has another ending", got=repr(target.name), allowed=".fmu")
    checked_model(model)
    unit = _UnitContents(
        model, _start(model, q0, v0), model.statics.actuation_matrix(actuated), outputs, checked_dt(step)
    )
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for name, text in unit.files().items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text, encoding="utf-8")
        _build(home, unit.identifier, compiler)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(home.rglob("*")):
                if file.is_file():
                    archive.write(file, file.relative_to(home).as_posix())
    return target


def _start(model: Model, q0: ArrayLike | None, v0: ArrayLike | None) -> Array:
    q = np.asarray(model.start if q0 is None else q0, float)
    at_rest = np.zeros(model.nv) if q0 is not None else model._start_velocity
    v = at_rest if v0 is None else np.asarray(v0, float)
    if q.shape != (model.nq,) or v.shape != (model.nv,):
        raise InputError(
            "the start has the wrong shape", got=f"q0 {q.shape}, v0 {v.shape}", allowed=f"({model.nq},), ({model.nv},)"
        )
    if not (np.isfinite(q).all() and np.isfinite(v).all()):
        raise InputError("the start is not finite", got=f"q0 {q.tolist()}, v0 {v.tolist()}", allowed="finite numbers")
    return np.concatenate([q, v])


def _build(home: Path, name: str, compiler: str | None) -> None:
    """The binary for this machine, if there is a compiler."""
    found = shutil.which(compiler) if compiler else None
    if found is None:
        return
    kind = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine().lower(), machine().lower())
    system, ending = {"win32": ("windows", ".dll"), "darwin": ("darwin", ".dylib")}.get(sys.platform, ("linux", ".so"))
    binary = home / "binaries" / f"{kind}-{system}" / f"{name}{ending}"
    binary.parent.mkdir(parents=True)
    command = [found, "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-o", str(binary)]
    done = subprocess.run(
        [*command, str(home / "sources" / f"{name}.c"), "-lm"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise InputError("the C compiler refused the unit's sources", got=done.stderr[-500:])


@dataclass(frozen=True)
class _Variable:
    """A variable of a unit, all of them numbers."""

    name: str
    causality: str
    variability: str
    unit: str
    start: float | None = None
    derivative: int | None = None
    initial: str | None = None


class _UnitContents:
    """The contents of a unit."""

    def __init__(
        self,
        model: Model,
        start: Array,
        motors: Array,
        outputs: Outputs | None,
        step: float,
    ) -> None:
        self.model, self.start, self.motors, self.step = model, start, motors, step
        self.identifier = identifier(model.name)
        self.parameters = np.asarray(model.parameters.nominal, float)
        self.rates, self.output_names = state_rates(model, motors, outputs)
        self.slopes = componentwise(self.rates).jvp()
        names = [each.name for each in self.variables()]
        for name in self.output_names:
            if not name or names.count(name) > 1:
                raise InputError(
                    "an output needs a name of its own",
                    got=repr(name),
                    allowed="none of the states, inputs, parameters",
                )

    # C.
    def source(self) -> str:
        """The unit's C, but for its runtime."""
        sizes = {"NX": len(self.start), "NQ": self.model.nq, "NU": self.motors.shape[1]}
        sizes |= {"NP": len(self.parameters), "NY": len(self.output_names)}
        lines = [f"/* {self.identifier}: generated by linkwise; do not edit. */"]
        lines += [f'#define MODEL_TOKEN "{self.token}"', *(f"#define {name} {size}" for name, size in sizes.items())]
        lines.append(f"#define STEP {literals([self.step], 64)[0]}")
        for name, values in (("START_X", self.start), ("START_U", [0.0] * (sizes["NU"] + 1))):
            lines += constants("double", name, literals(values, 64))
        lines += constants("double", "START_P", literals([*self.parameters, 0.0], 64))
        lines += constants("int", "QUATERNIONS", [*map(str, self._quaternions()), "-1"])
        lines += self._called("rates", self.rates.program, ("x", "u", "p"), ("dx", "y"))
        lines += self._called("slopes", self.slopes.program, ("x", "u", "p", "d_x", "d_u", "d_p"), ("d_dx", "d_y"))
        return "\n".join([*lines, "", resources.files("linkwise.control").joinpath("fmi_runtime.c").read_text("utf-8")])

    def _called(self, name: str, program: Block | Program, inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
        """A function of all arrays around one of those that are not empty."""
        own = function_name(program)
        text = c_source(program).replace(f"void {own}(", f"static void {own}_numbers(")
        there = [each.name for each in program.inputs]
        results = {each.name for each in program.outputs}
        passed = [each for each in inputs if each in there]
        passed += [each for each in outputs if each.removeprefix("d_" if name == "slopes" else "") in results]
        taken = [f"const double *{each}" for each in inputs] + [f"double *{each}" for each in outputs]
        lines = [text, f"static void {name}({', '.join(taken)})", "{"]
        if isinstance(program, Program):
            lines.append(f"    {own}_workspace workspace;")
            passed.append("&workspace")
        lines += [f"    (void){each};" for each in (*inputs, *outputs) if each not in passed]
        return [*lines, f"    {own}_numbers({', '.join(passed)});", "}"]

    def _quaternions(self) -> Iterator[int]:
        for joint in self.model.joints:
            if joint.q_slice.stop - joint.q_slice.start in (4, 7) and joint.nv in (3, 6):
                yield joint.q_slice.start

    # The description.
    def variables(self) -> list[_Variable]:
        """All variables; the value reference of each is its place."""
        model = self.model
        of_v = self._freedom_units()
        of_q = self._coordinate_units(of_v)
        names = state_names(model)
        units = of_q + [f"{unit}/s" for unit in of_v]
        rates = [f"{unit}/s" for unit in of_q] + [f"{unit}/s2" for unit in of_v]
        found = [_Variable("time", "independent", "continuous", "s")]
        for name, unit, start in zip(names, units, self.start, strict=True):
            found.append(_Variable(name, "output", "continuous", unit, float(start), initial="exact"))
        for k, (name, unit) in enumerate(zip(names, rates, strict=True)):
            found.append(_Variable(f"der({name})", "local", "continuous", unit, derivative=1 + k, initial="calculated"))
        for name, column in zip(input_names(model, self.motors), self.motors.T, strict=True):
            force = {"rad": "N.m", "m": "N"}.get(of_v[int(np.flatnonzero(column)[0])], "1")
            found.append(_Variable(name, "input", "continuous", force, 0.0))
        for (name, unit), value in zip(self._parameter_names(of_v), self.parameters, strict=True):
            found.append(_Variable(f"p.{name}", "parameter", "tunable", unit, float(value), initial="exact"))
        found += [_Variable(name, "output", "continuous", "", initial="calculated") for name in self.output_names]
        return found

    def _parameter_names(self, of_v: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Name and unit of each number of p."""
        for parameter in self.model.parameters:
            body, _, what = parameter.name.rpartition(".")
            if what == "armature":
                freedoms = range(*self.model.joints[self.model.bodies[body].index].v_slice.indices(self.model.nv))
                several = len(freedoms) > 1
                for k in freedoms:
                    own = f".{self.model.freedom_names[k]}" if several else ""
                    yield parameter.name + own, {"rad": "kg.m2", "m": "kg"}.get(of_v[k], "1")
            else:
                unit, numbers = _PARAMETERS[what]
                yield from ((f"{parameter.name}{number and '.'}{number}", unit) for number in numbers.split() or [""])

    def _freedom_units(self) -> list[str]:
        """Unit of each freedom: rad or m, as its axis turns or not; 1 of a mode."""
        model, found = self.model, ["1"] * self.model.nv
        for joint in model.joints:
            J = model.jacobian(model.neutral(), model.bodies[joint.index].name)
            rigid = joint.type.nv
            for k in range(joint.v_slice.stop - rigid, joint.v_slice.stop):
                found[k] = "rad" if np.abs(J[:3, k]).max() > 1e-12 else "m"
        return found

    def _coordinate_units(self, of_v: Sequence[str]) -> list[str]:
        found: list[str] = []
        for joint in self.model.joints:
            size = joint.q_slice.stop - joint.q_slice.start
            if size == joint.nv:
                found += of_v[joint.v_slice]
            else:
                found += ["1"] * 4 + ["m"] * (size - 4) if size in (4, 7) else ["1"] * size
        return found

    def description(self) -> str:
        """``modelDescription.xml``."""
        variables = self.variables()
        root = ET.Element(
            "fmiModelDescription",
            fmiVersion="3.0",
            modelName=self.model.name,
            instantiationToken=self.token,
            generationTool="linkwise",
            variableNamingConvention="flat",
        )
        can = {"canGetAndSetFMUState": "true", "canSerializeFMUState": "true"}
        can |= {"providesDirectionalDerivatives": "true", "providesAdjointDerivatives": "true"}
        ET.SubElement(root, "ModelExchange", {"modelIdentifier": self.identifier, **can})
        stepping = {"canHandleVariableCommunicationStepSize": "true", "fixedInternalStepSize": repr(self.step)}
        ET.SubElement(root, "CoSimulation", {"modelIdentifier": self.identifier, **stepping, **can})
        units = ET.SubElement(root, "UnitDefinitions")
        for name in dict.fromkeys(each.unit for each in variables if each.unit):
            powers = {power: str(n) for power, n in _powers(name).items()}
            ET.SubElement(ET.SubElement(units, "Unit", name=name), "BaseUnit", powers)
        ET.SubElement(root, "DefaultExperiment", startTime="0.0", stopTime="1.0", stepSize=repr(self.step))
        listed = ET.SubElement(root, "ModelVariables")
        for k, each in enumerate(variables):
            given = {"name": each.name, "valueReference": str(k), "causality": each.causality}
            given |= {"variability": each.variability}
            given |= {"initial": each.initial} if each.initial else {}
            given |= {"unit": each.unit} if each.unit else {}
            given |= {"start": repr(each.start)} if each.start is not None else {}
            given |= {"derivative": str(each.derivative)} if each.derivative is not None else {}
            ET.SubElement(listed, "Float64", given)
        structure = ET.SubElement(root, "ModelStructure")
        for kind, chosen in (
            ("Output", [k for k, each in enumerate(variables) if each.causality == "output"]),
            ("ContinuousStateDerivative", [k for k, each in enumerate(variables) if each.derivative is not None]),
            ("InitialUnknown", [k for k, each in enumerate(variables) if each.initial == "calculated"]),
        ):
            for k in chosen:
                ET.SubElement(structure, kind, valueReference=str(k))
        ET.indent(root)
        return _XML + ET.tostring(root, encoding="unicode") + "\n"

    @property
    def token(self) -> str:
        """Name of just this model: by what it computes and where it starts."""
        numbers = (self.rates.program.fingerprint, self.start.tobytes().hex(), self.parameters.tobytes().hex())
        told = "\n".join((self.model.name, repr(self.step), *numbers))
        return "{" + hashlib.sha256(told.encode()).hexdigest()[:32] + "}"

    def files(self) -> dict[str, str]:
        """All files but the binary."""
        build = ET.Element("fmiBuildDescription", fmiVersion="3.0")
        configuration = ET.SubElement(build, "BuildConfiguration", modelIdentifier=self.identifier)
        sources = ET.SubElement(configuration, "SourceFileSet", language="C99")
        ET.SubElement(sources, "SourceFile", name=f"{self.identifier}.c")
        ET.indent(build)
        return {
            "modelDescription.xml": self.description(),
            f"sources/{self.identifier}.c": self.source(),
            "sources/buildDescription.xml": _XML + ET.tostring(build, encoding="unicode") + "\n",
        }


_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def _powers(name: str) -> dict[str, int]:
    """Powers of SI's units; those of rates follow from what they are rates of."""
    if name in _UNITS:
        return _UNITS[name]
    base, _, per = name.partition("/")
    return {**_UNITS[base], "s": -2 if per == "s2" else -1}
