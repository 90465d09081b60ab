"""Control and co-simulation: the best controls over a horizon, and models inside the tools that others control with."""

from linkwise.control.acados import EmittedAcados, emit_acados
from linkwise.control.casadi import EmittedCasadi, emit_casadi
from linkwise.control.crocoddyl import crocoddyl_action
from linkwise.control.fmi import to_fmu
from linkwise.control.rates import as_nlsys, as_state_space
from linkwise.control.shooting import Plan, Shooting, shoot

__all__ = [
    "EmittedAcados",
    "EmittedCasadi",
    "Plan",
    "Shooting",
    "as_nlsys",
    "as_state_space",
    "crocoddyl_action",
    "emit_acados",
    "emit_casadi",
    "shoot",
    "to_fmu",
]
