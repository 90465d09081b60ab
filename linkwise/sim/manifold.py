"""Steps that end on the manifold of a closed mechanism: places first, then velocities.

The accelerations obey the closures; places and velocities follow from them by integration, and errors of that would
gather. So every step ends with two steps of Newton's method for places and one projection of the velocity,

    q ← q ⊕ (-𝓜⁻¹J_c*Λ⁺e),    v ← v - 𝓜⁻¹J_c*Λ⁺ė,

which change the state by no more than the step's own error: the order of a method stays what it is (Hairer and Wanner,
Solving ODEs II, VII.2). States that are looked at inside a step are put on the manifold the same way.

Two things make redundant constraints and singular configurations no special case. Rates are evaluated at the projection
of each stage (:meth:`linkwise.sim.motion.Motion.rates`): off the manifold, redundant constraints contradict each other,
and what they then ask for is not the motion. And errors are measured after their projection
(:meth:`~linkwise.sim.motion.Motion.tangent_error`): near a singular configuration those across the closures are large,
and an adaptive method that minds them never arrives.
"""

from __future__ import annotations

from dataclasses import replace

from linkwise.sim.work import Step, Work, program
from linkwise.tracing.program import Copy, Statement

_NEWTON = 2  # steps for places: from the error of a step, say 1e-4, to rounding


def on_manifold(work: Work, step: Step) -> Step:
    """The same step, projected at its end and wherever it is looked into."""
    m = work.motion
    sizes = {"t_end": 1, "y": m.ny, "p": m.np}
    closer = program("closer", lambda t, y, p: {"y_closer": m.closer(t[0], y, p)}, sizes)
    obeying = program("obeying", lambda t, y, p: {"y_closer": m.obeying(t[0], y, p)}, sizes)
    at_end = program("at_end", lambda t, h: {"t_end": t[0] + h[0]}, {"t": 1, "h": 1})
    inside = program("inside", lambda t, h, theta: {"t_end": t[0] + h[0] * theta[0]}, {"t": 1, "h": 1, "theta": 1})
    in_places = any(closure.type.equations for closure in m.model.closures)

    def projection(name: str) -> list[Statement]:
        """Of the state in a buffer, at the time t_end."""
        texts = [*([closer] * _NEWTON if in_places else []), obeying]
        names = [name, *(f"y_closer{i}" for i in range(1, len(texts) + 1))]
        calls: list[Statement] = []
        for text, before, after in zip(texts, names, names[1:], strict=False):
            calls += work.call(text, {"y": before, "y_closer": after})
        return [*calls, Copy(names[-1], name)]

    origin = program("origin", lambda y_new: {"z": m.chart_origin(y_new)}, {"y_new": m.ny})
    return replace(
        step,
        advance=(*step.advance, *work.call(at_end), *projection("y_new")),
        # The derivative at the end of the step is that of the projected state, not of the last stage.
        carry=(*work.call(origin), *work.rates("y_new", "z", "t_new", "k_next")) if step.judge else (),
        look=(*step.look, *work.call(inside), *projection("y_at")) if step.look else (),
    )
