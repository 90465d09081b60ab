"""Shooting beside crocoddyl's FDDP: the same problems, the same answers, in one process and in turn.

    python -m bench.shooting

The wheel of crocoddyl 3.2.1 is built with Pinocchio 4.0.0 and reads other memory beside 4.1, although it lets itself be
installed there: wrong accelerations, then a segmentation fault. It takes an environment of its own:

    uv venv build/fddp && uv pip install --python build/fddp crocoddyl==3.2.1 pin==4.0.0 --editable .
    build/fddp/bin/python -m bench.shooting

A hand reaches a point with the Panda, and with both arms of Talos, its feet held to the world (32 freedoms). Costs are
those of crocoddyl's examples for arms: of the state, of the torques beyond those that hold the start, of the hand's
place. Both start at rest with the forces that hold the start, on one thread. Times are the best of many, whole
solutions; the costs must agree.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import linkwise as lw
from bench.robots import ROBOTS, Robot

STEPS, DT = 100, 0.01
ROUNDS = 7


HALF_SITTING = {
    "leg_left_3_joint": -0.41,
    "leg_left_4_joint": 0.86,
    "leg_left_5_joint": -0.45,
    "leg_right_3_joint": -0.41,
    "leg_right_4_joint": 0.86,
    "leg_right_5_joint": -0.45,
    "arm_left_1_joint": 0.26,
    "arm_left_2_joint": 0.17,
    "arm_left_4_joint": -0.53,
    "arm_right_1_joint": -0.26,
    "arm_right_2_joint": -0.17,
    "arm_right_4_joint": -0.53,
}


def cases() -> list[tuple[str, Robot, str, Any, dict[str, float]]]:
    """Title, robot, the hand's frame, its goal, the start."""
    bent = dict(zip((f"panda_joint{k}" for k in range(1, 8)), (0.0, -0.5, 0.0, -2.0, 0.0, 1.8, 0.8), strict=True))
    return [
        ("Panda", ROBOTS["panda"], "panda_hand", np.array([0.4, 0.3, 0.4]), bent),
        ("Talos", ROBOTS["talos"], "gripper_left_base_link", np.array([0.32, 0.43, 0.07]), HALF_SITTING),
    ]


def ours(model: lw.Model, hand: str, goal: Any, q0: Any) -> Any:
    """The problem of linkwise."""
    state, effort, place = np.sqrt(1e-1), np.sqrt(1e-3), np.sqrt(1.0)
    root = np.sqrt(DT)
    hold = model.gravity_force(q0)

    def residuals(model: lw.Model, q: Any, v: Any) -> Any:
        at = model.pose(q, hand)[:3, 3]
        return np.concatenate([state * (q - q0), state * v]), at - goal

    def running(model: lw.Model, q: Any, v: Any, u: Any) -> Any:
        posture, reach = residuals(model, q, v)
        return root * np.concatenate([posture, effort * (u - hold), place * reach])

    def terminal(model: lw.Model, q: Any, v: Any) -> Any:
        posture, reach = residuals(model, q, v)
        return np.concatenate([posture, np.sqrt(1e3) * reach])

    return lw.control.Shooting(model, STEPS, DT, running=running, terminal=terminal)


def theirs(robot: Robot, hand: str, goal: Any, posture: dict[str, float]) -> Any:
    """The problem of crocoddyl, and its start."""
    import crocoddyl
    import pinocchio as pin

    whole = pin.buildModelFromUrdf(str(robot.path))
    model = pin.buildReducedModel(whole, [whole.getJointId(name) for name in robot.locked], pin.neutral(whole))
    state = crocoddyl.StateMultibody(model)
    motors = crocoddyl.ActuationModelFull(state)
    n, frame = model.nv, model.getFrameId(hand)
    q0 = np.array([posture.get(name, 0.0) for name in model.names[1:]])  # its joints have another order
    x0 = np.concatenate([q0, np.zeros(n)])
    hold = pin.rnea(model, model.createData(), q0, np.zeros(n), np.zeros(n))
    costs = [crocoddyl.CostModelSum(state), crocoddyl.CostModelSum(state)]
    reach = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelFrameTranslation(state, frame, goal))
    posture = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelState(state, x0))
    effort = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, hold))
    for cost, of_reach in zip(costs, (1.0, 1e3), strict=True):
        cost.addCost("reach", reach, of_reach)
        cost.addCost("posture", posture, 1e-1)
    costs[0].addCost("effort", effort, 1e-3)
    free = [crocoddyl.DifferentialActionModelFreeFwdDynamics(state, motors, cost) for cost in costs]
    running, terminal = (
        crocoddyl.IntegratedActionModelEuler(each, dt) for each, dt in zip(free, (DT, 0.0), strict=True)
    )
    check_accelerations(model, free[0], x0)
    problem = crocoddyl.ShootingProblem(x0, [running] * STEPS, terminal)
    problem.nthreads = 1
    return crocoddyl.SolverFDDP(problem), [x0] * (STEPS + 1), [hold] * STEPS


def check_accelerations(model: Any, dynamics: Any, x: Any) -> None:
    """Leave unless crocoddyl, at a state without forces, finds the accelerations that Pinocchio itself finds."""
    import crocoddyl
    import pinocchio as pin

    none = np.zeros(model.nv)
    data = dynamics.createData()
    dynamics.calc(data, x, none)
    if not np.allclose(data.xout, pin.aba(model, model.createData(), x[: model.nq], none, none)):
        sys.exit(
            "error: crocoddyl's accelerations are not those of the Pinocchio beside it: it was built with another\n"
            f"  got:     crocoddyl {crocoddyl.__version__} beside Pinocchio {pin.__version__}\n"
            "  do:      an environment of its own, as the head of bench/shooting.py says"
        )


def main() -> None:
    """Measure and print."""
    for title, robot, hand, goal, posture in cases():
        model = lw.load(robot.path, locked=robot.locked).with_joint_constants(damping=0.0, friction=0.0)
        q0 = np.array([posture.get(name, 0.0) for name in model.joints.names])
        begin = time.perf_counter()
        problem = ours(model, hand, goal, q0)
        plan = problem.solve(q0)
        ready = time.perf_counter() - begin
        solver, xs, us = theirs(robot, hand, goal, posture)
        best, other = np.inf, np.inf
        for _ in range(ROUNDS):
            begin = time.process_time()
            plan = problem.solve(q0)
            best = min(best, time.process_time() - begin)
            begin = time.process_time()
            solver.solve(xs, us, 200, False)
            other = min(other, time.process_time() - begin)
        print(f"{title}: {model.nv} freedoms, {STEPS} steps")
        print(f"  linkwise   {1e3 * best:8.2f} ms  {plan.iterations:3d} iterations  cost {plan.cost:.9f}")
        print(f"             {ready:8.2f} s before the first, from the model to the plan")
        print(f"  crocoddyl  {1e3 * other:8.2f} ms  {solver.iter:3d} iterations  cost {solver.cost:.9f}")
        print(f"  ratio      {other / best:8.2f}, of one iteration {other / solver.iter / best * plan.iterations:.2f}")


if __name__ == "__main__":
    main()
