"""Flexible arms beside the same arms with rigid links, and beside Exudyn: ``python -m bench.flexible``.

Three tubes of 1 m with four modes each. "plain": hinges about z, y, y at the tubes' ends; "housed": the same with motor
housings at the roots and hinges beside the tubes, as arms have them; "skew": hinges about axes in no special direction,
and beside them an arm of rigid links with as many freedoms.
Times are of batches on one core. Exudyn (where it is installed) simulates a planar arm of the same tubes, built from
absolute nodal coordinates; both fall for one second at several accuracies, and times for equal errors are compared.
Both are given what suits them: Exudyn the fastest of its solvers here and one to eight elements a link; linkwise modes
with and without residual vectors for what hangs on the tips.
"""

from __future__ import annotations

import os

# Before NumPy is loaded: its BLAS must not start threads that disturb what is measured.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import linkwise as lw
from bench import report
from bench.timing import Call, best_ns

BATCH = 4096
EA, EI, GJ, MU = 4e6, 300.0, 230.0, 0.155
PAYLOAD = 1.0
FALL = 1.0
"""Seconds of the comparison with Exudyn."""
LOOKS = np.linspace(0.0, FALL, 11)
"""When both look where the payload is: at one instant alone, errors may cancel."""
DEMANDED = (5e-5, 1e-5, 3e-6, 1e-6)
"""Accuracies that are compared, m."""
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
KINDS = ("plain", "housed", "skew")
PLANES = {"rigid": None, "modes in two planes": (2, 2), "in one plane": (0, 4)}
Array = Any


def tube(
    modes: tuple[int, int],
    axial: int = 0,
    elements: int = 8,
    damping: float = 0.01,
    residuals: tuple[str, ...] = (),
) -> lw.FlexibleBody:
    """One link."""
    return lw.FlexibleBody.beam(
        1.0, EA, (EI, EI), GJ, MU, elements=elements, modes=modes, axial_modes=axial, torsion_modes=0, damping=damping,
        residuals=residuals,
    )  # fmt: skip


def arm(kind: str, modes: tuple[int, int] | None) -> lw.Model:
    """An arm of three links; with rigid ones where ``modes`` is None."""
    axes = [(0.9, -0.3, -0.3), (-0.3, 0.9, -0.1), (0.6, -0.2, 0.7)] if kind == "skew" else [Z, Y, Y]
    offset = (0.0, 0.08, 0.05) if kind == "housed" else (0.0, 0.0, 0.0)
    inertia = np.array([[4e-3, 3e-4, 1e-4], [3e-4, 5e-3, 2e-4], [1e-4, 2e-4, 3e-3]])
    b = lw.ModelBuilder(f"{kind} arm")
    body = tube(modes or (1, 1))
    for k, axis in enumerate(axes):
        parent = f"link{k - 1}" if k else "world"
        at: dict[str, Any] = {"placement": lw.transform(xyz=offset)} if k else {}
        if modes is None:
            if k:
                at["placement"] = lw.transform(xyz=(1.0 + offset[0], *offset[1:]))
            at |= {"mass": body.mass, "com": body.com, "inertia": body.inertia}
        else:
            at |= {"flexible": body, **({"at": "tip"} if k else {})}
        b.add_body(f"link{k}", parent=parent, joint=lw.Revolute(axis=axis), armature=0.05 / (k + 1), **at)
        if kind == "housed":
            b.add_body(f"motor{k}", parent=f"link{k}", mass=1.5, com=(0.02, -0.03, 0.01), inertia=inertia)
    end = {"placement": lw.transform(xyz=(1.0, 0.0, 0.0))} if modes is None else {"at": "tip"}
    b.add_body("payload", parent="link2", mass=PAYLOAD, **end)
    return b.build()


def rigid_of_as_many_freedoms() -> lw.Model:
    """An arm of rigid links with as many freedoms as the flexible ones have: 15 hinges in no special direction."""
    rng = np.random.default_rng(0)
    b = lw.ModelBuilder("15 hinges")
    for k in range(15):
        place = lw.transform(xyz=rng.uniform(0.1, 0.3, size=3), rpy=rng.uniform(-1.0, 1.0, size=3))
        J = np.diag(rng.uniform(0.02, 0.03, size=3))
        joint = lw.Revolute(axis=rng.normal(size=3))
        b.add_body(
            f"link{k}", f"link{k - 1}" if k else "world", joint, place, mass=0.2, com=(0.05, 0.02, 0.1), inertia=J
        )
    return b.build()


def states(model: lw.Model, count: int) -> tuple[Array, Array, Array]:
    """Random states and joint forces."""
    rng = np.random.default_rng(0)
    q = np.stack([model.random_configuration(rng) for _ in range(64)])[np.arange(count) % 64]
    return q, rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))


def beside_rigid(rounds: int) -> list[dict[str, Any]]:
    """Counts and times of each arm, and how they compare with the rigid one's."""
    found = []
    for kind in KINDS:
        models = {name: arm(kind, modes) for name, modes in PLANES.items()}
        if kind == "skew":
            models["rigid, 15 hinges"] = rigid_of_as_many_freedoms()
        for function in ("inverse_dynamics", "forward_dynamics"):
            calls = []
            for model in models.values():
                getattr(model, function)(*states(model, 2))
                out = np.empty((BATCH, model.nv))
                calls.append(Call(getattr(model, function), states(model, BATCH), {"out": out, "threads": 1}, BATCH))
            times = best_ns(calls, rounds=rounds)
            for (name, model), ns in zip(models.items(), times, strict=True):
                counts = model.function(function).counts
                row = {"arm": kind, "function": function, "links": name, "counts": str(counts)}
                found.append({**row, "ns": ns, "ratio": ns / times[0]})
    return found


# ---------------------------------------------------------------------------------------------------------- a peer


def planar_arm(modes: int, axial: int, residual: bool = False) -> lw.Model:
    """Hinges about z and gravity along -y; no rotors, no damping."""
    b = lw.ModelBuilder("planar arm", gravity=(0.0, -9.81, 0.0))
    body = tube((modes, 0), axial, elements=16, damping=0.0, residuals=("tip",) if residual else ())
    for k in range(3):
        on = {"parent": f"link{k - 1}", "at": "tip"} if k else {}
        b.add_body(f"link{k}", joint=lw.Revolute(axis=Z), flexible=body, **on)
    b.add_body("payload", parent="link2", at="tip", mass=PAYLOAD)
    return b.build()


def our_fall(model: lw.Model, arms: int = 1, **how: Any) -> tuple[Array, float]:
    """Where the payload is in the fall (looks, 2), and the seconds that one arm of so many took."""
    q0 = np.tile(model.neutral(), (arms, 1)) if arms > 1 else model.neutral()
    seconds = []
    for _ in range(4):  # the first compiles
        start = time.process_time()
        run = lw.simulate(model, q0, duration=FALL, output_times=LOOKS, **how)
        seconds.append((time.process_time() - start) / arms)
    return model.pose(run.q.reshape(-1, len(LOOKS), model.nq)[0], "payload")[:, :2, 3], min(seconds[1:])


def largest_step(model: lw.Model) -> float:
    """What the fastest mode of the arm at rest allows RK4: 2.8 over its frequency, with some reserve."""
    rest = np.zeros(model.nv)
    squares = -np.linalg.eigvals(model.linearize_forward(model.neutral(), rest, rest).dq).real
    return float(2.5 / np.sqrt(squares.max()))


def exudyn_fall(elements: int, steps: int) -> tuple[Array, float]:
    """The same with Exudyn's planar cables (absolute nodal coordinates) and its generalized-α method."""
    import exudyn as exu
    from exudyn.beams import GenerateStraightLineANCFCable2D
    from exudyn.itemInterface import (
        Cable2D,
        LoadForceVector,
        MarkerNodePosition,
        MassPoint2D,
        NodePoint2D,
        NodePointGround,
        ObjectJointRevolute2D,
        SensorNode,
    )

    system = exu.SystemContainer().AddSystem()
    last = system.AddMarker(MarkerNodePosition(nodeNumber=system.AddNode(NodePointGround())))
    cable = Cable2D(
        physicsMassPerLength=MU, physicsBendingStiffness=EI, physicsAxialStiffness=EA, useReducedOrderIntegration=1
    )
    for k in range(3):
        made = GenerateStraightLineANCFCable2D(
            system,
            [float(k), 0, 0],
            [k + 1.0, 0, 0],
            elements,
            cable,
            massProportionalLoad=[0, -9.81, 0],
            fixedConstraintsNode0=[0] * 4,
            fixedConstraintsNode1=[0] * 4,
        )
        first, end = (system.AddMarker(MarkerNodePosition(nodeNumber=made[0][i])) for i in (0, -1))
        system.AddObject(ObjectJointRevolute2D(markerNumbers=[last, first]))
        last, tip = end, made[0][-1]
    node = system.AddNode(NodePoint2D(referenceCoordinates=[3.0, 0.0]))
    system.AddObject(MassPoint2D(physicsMass=PAYLOAD, nodeNumber=node))
    mass = system.AddMarker(MarkerNodePosition(nodeNumber=node))
    system.AddObject(ObjectJointRevolute2D(markerNumbers=[last, mass]))
    system.AddLoad(LoadForceVector(markerNumber=mass, loadVector=[0, -9.81 * PAYLOAD, 0]))
    place = exu.OutputVariableType.Position
    sensor = system.AddSensor(SensorNode(nodeNumber=tip, outputVariableType=place, storeInternal=True))
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.endTime = FALL
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.9
    settings.timeIntegration.newton.useModifiedNewton = True
    settings.timeIntegration.verboseMode = 0
    few = elements < 4  # where dense matrices are faster
    settings.linearSolverType = exu.LinearSolverType.EigenDense if few else exu.LinearSolverType.EigenSparse
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = float(LOOKS[1])
    start = time.process_time()
    if not system.SolveDynamic(settings):
        raise RuntimeError("Exudyn did not reach the end")
    seconds = time.process_time() - start
    looked = np.array(system.GetSensorStoredData(sensor))
    if not np.allclose(looked[:, 0], LOOKS, atol=1e-9):
        raise RuntimeError(f"Exudyn looked at {looked[:, 0]}")
    return looked[:, 1:3], seconds


def beside_exudyn() -> list[dict[str, Any]] | None:
    """Both falls at several accuracies; None where Exudyn is not installed."""
    try:
        import exudyn  # noqa: F401
    except ImportError:
        return None
    truth, _ = exudyn_fall(8, 16_000)
    rows: list[dict[str, Any]] = []
    for modes, axial, residual in ((2, 0, False), (2, 1, False), (4, 1, False), (1, 0, True), (2, 0, True)):
        model = planar_arm(modes, axial, residual)
        name = f"linkwise, {modes} bending, {axial} axial modes" + ", residual vectors" * residual
        rk4 = {"method": "rk4", "dt": largest_step(model)}
        ways: list[tuple[int, dict[str, Any]]] = [(1, rk4), (512, rk4)]
        ways += [(1, {"method": "generalized_alpha", "dt": FALL / n}) for n in (500, 1000, 2000, 4000)]
        if modes == 4:
            ways.append((1, {"method": "rodas4", "rtol": 1e-4}))
        for arms, how in ways:
            places, seconds = our_fall(model, arms, **how)
            step = f"{FALL / how['dt']:.0f} steps" if "dt" in how else f"rtol {how['rtol']:g}"
            what = f"{name}, {how['method']}, {step}" + f", {arms} at once" * (arms > 1)
            row = {"run": what, "error": _apart(places, truth), "seconds": seconds}
            rows.append({**row, "kind": f"{name}, {how['method']}", "steps": FALL / how.get("dt", FALL)})
    tried = ((1, 500), (1, 1000), (1, 2000), (2, 500), (2, 1000), (2, 2000), (2, 4000), (4, 4000), (8, 4000))
    for elements, steps in tried:
        results = [exudyn_fall(elements, steps) for _ in range(3)]
        what = f"Exudyn, {elements} elements a link, {steps} steps"
        row = {"run": what, "error": _apart(results[0][0], truth), "seconds": min(r[1] for r in results)}
        rows.append({**row, "kind": f"Exudyn, {elements} elements", "steps": float(steps)})
    return rows


def for_equal_errors(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The fastest run of one arm on either side that is as good as demanded, and how they compare.

    It must not be so by chance: the same with more steps is as good, too.
    """
    found: list[tuple[Any, ...]] = []
    for error in DEMANDED:
        good = []
        for row in rows:
            finer = [r for r in rows if r["kind"] == row["kind"] and r["steps"] >= row["steps"]]
            if "at once" not in row["run"] and max(r["error"] for r in finer) <= error:
                good.append(row)
        sides = ([row for row in good if row["run"].startswith(name)] for name in ("linkwise", "Exudyn"))
        ours, theirs = (min(side, key=lambda row: float(row["seconds"]), default=None) for side in sides)
        if ours and theirs:
            ratio = theirs["seconds"] / ours["seconds"]
            found.append((error, ours["run"], ours["seconds"], theirs["run"], theirs["seconds"], ratio))
    return found


def _apart(a: Array, b: Array) -> float:
    """The largest distance at any look."""
    return float(np.linalg.norm(a - b, axis=-1).max())


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="turns of each call")
    parser.add_argument("--only", choices=["rigid", "exudyn"], help="one of the two comparisons")
    parser.add_argument("--json", action="store_true", help="write the results to bench/results")
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {}
    if options.only != "exudyn":
        found = results["arms"] = beside_rigid(options.rounds)
        print(
            report.table(
                ("arm", "function", "links", "operations", "ns a state", "times rigid"),
                [list(r.values()) for r in found],
            )
        )
    if options.only != "rigid":
        rows = results["exudyn"] = beside_exudyn()
        if rows is None:
            print("\nExudyn is not installed (pip install exudyn): no comparison with it.")
        else:
            shown = [(r["run"], r["error"], r.get("seconds")) for r in rows]
            print(f"\nA planar arm falls for {FALL:g} s; the error is the payload's largest distance")
            print("from Exudyn's finest run at ten instants, m")
            print(report.table(("run", "error", "seconds"), shown))
            head = ("no worse than", "fastest of linkwise", "seconds", "fastest of Exudyn", "seconds", "ratio")
            print("\n" + report.table(head, for_equal_errors(rows)))
    if options.json:
        print(report.write("flexible", results))


if __name__ == "__main__":
    main()
