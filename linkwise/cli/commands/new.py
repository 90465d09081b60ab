"""``linkwise new``: a first script, to run and to change."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from linkwise.cli.arguments import BUILT_IN
from linkwise.errors import InputError

_BUILT = '''\
# Two links on hinges. A shape gives a body its mass and inertia, its looks, and its outline for contact.
link = lw.shapes.capsule(0.04, ends=((0, 0, 0), (0, 0, -0.5)), mass=1.5)
hinge = lw.Revolute(axis=(0, 1, 0))
b = lw.ModelBuilder("{name}")
b.add_body("upper", joint=hinge, joint_name="shoulder", placement=lw.transform(xyz=(0, 0, 1.2)), shape=link)
end = lw.transform(xyz=(0, 0, -0.5))
b.add_body("lower", parent="upper", joint=hinge, joint_name="elbow", placement=end, shape=link)
b.add_frame("tip", "lower", end)
b.add_configuration("start", {{"shoulder": 1.0, "elbow": 0.5}})
model = b.build()
place = "tip"'''

_LOADED = """\
model = {source}
place = model.bodies[-1].name"""

_SCRIPT = '''\
"""A first script with linkwise: python {file}"""

import numpy as np

import linkwise as lw

{model}
print(model)

# Joint forces that hold it up, and where a body is.
q = model.start
print("to hold it up:", np.round(model.gravity_force(q), 3))
print(place, "is at", np.round(model.pose(q, place)[:3, 3], 3))

# One second of motion from rest, under a control that damps the joints.
motion = lw.simulate(model, duration=1.0, control=lambda t, q, v, p: -0.2 * v)
print(motion)
print(place, "ends at", np.round(motion.pose(place)[-1, :3, 3], 3))

# Next, with the extra for drawing (pip install "linkwise[viz]"):
# motion.plot(["q", "v"]).savefig("motion.png")
# motion.save_html("motion.html")  # a film, in one file
# lw.view(model).wait()  # sliders, handles, a live simulation
'''


def script(target: Path, model: str | None = None) -> str:
    """The text of a script that will be at a path, about a model that it builds, or about a built-in one or a file."""
    if model is None:
        made = _BUILT.format(name="".join(c if c.isalnum() else "_" for c in target.stem))
    else:
        made = _LOADED.format(source=f"lw.samples.{model}()" if model in BUILT_IN else f"lw.load({model!r})")
    return _SCRIPT.format(file=target.name, model=made)


def run(options: Namespace) -> None:
    """Write the script; nothing is overwritten."""
    target = Path(options.file)
    if target.suffix != ".py":
        raise InputError("this is not the name of a script", got=str(target), do=f"linkwise new {target.name}.py")
    if options.model is not None and options.model not in BUILT_IN and not Path(options.model).exists():
        raise InputError(
            "there is no such model", got=repr(options.model), allowed=f"a file, or one of {', '.join(BUILT_IN)}"
        )
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(script(target, options.model))
    except FileExistsError:
        raise InputError("this file is there already", got=str(target), do="choose another name") from None
    print(f"{target}: run it with `python {target}`")
