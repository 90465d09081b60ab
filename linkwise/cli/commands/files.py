"""Commands about the files of models: ``new``, ``models``, ``check``, ``diff``, ``convert``."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from linkwise.cli.arguments import BUILT_IN, load_model, load_options
from linkwise.cli.printing import number, print_json, table
from linkwise.errors import InputError
from linkwise.files.check import check_file
from linkwise.files.compare import compare

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


def first_script(target: Path, model: str | None = None) -> str:
    """The text of a script that will be at a path, about a model that it builds, or about a built-in one or a file."""
    if model is None:
        made = _BUILT.format(name="".join(c if c.isalnum() else "_" for c in target.stem))
    else:
        made = _LOADED.format(source=f"lw.samples.{model}()" if model in BUILT_IN else f"lw.load({model!r})")
    return _SCRIPT.format(file=target.name, model=made)


def run_new(options: Namespace) -> None:
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
            file.write(first_script(target, options.model))
    except FileExistsError:
        raise InputError("this file is there already", got=str(target), do="choose another name") from None
    print(f"{target}: run it with `python {target}`")


def run_models(options: Namespace) -> None:
    """Print a line for each: its name, its freedoms, its mass, and what it is."""
    from linkwise import samples

    found = []
    for name in BUILT_IN:
        make = getattr(samples, name)
        model = make()
        about = (make.__doc__ or "").partition("\n\n")[0].replace("\n", " ").rstrip(".")
        found.append({"name": name, "nv": model.nv, "mass": model.mass, "about": " ".join(about.split())})
    if options.json:
        print_json(found)
        return
    rows = [
        (each["name"], str(each["nv"]), number(each["mass"], 3), _short(each["about"].partition(";")[0]))
        for each in found
    ]
    print(table(("name", "nv", "kg", "what it is"), rows))
    print("\nlinkwise view NAME shows one; in Python it is lw.samples.NAME()")


def _short(text: str) -> str:
    return text if len(text) <= 84 else text[:83].rsplit(" ", 1)[0] + " …"


def run_check(options: Namespace) -> int:
    """Print what is wrong; the status is 1 where there are errors."""
    problems = check_file(options.model, **load_options(options))
    errors = sum(problem.severity == "error" for problem in problems)
    if options.json:
        print_json({"file": options.model, "problems": [asdict(problem) for problem in problems]})
        return int(errors > 0)
    for problem in problems:
        place = options.model if problem.line is None else f"{options.model}:{problem.line}"
        print(f"{place}: {problem.severity}: {problem.what}" + (f" ({problem.do})" if problem.do else ""))
    print(f"{errors} errors, {len(problems) - errors} warnings" if problems else f"{options.model}: nothing found")
    return int(errors > 0)


def run_diff(options: Namespace) -> int:
    """Print what differs; the status is 1 where something does."""
    if options.states < 1 or not options.tolerance > 0.0:
        raise InputError("--states and --tolerance must be positive", got=f"{options.states}, {options.tolerance}")
    a = load_model(options)
    # What is said about reading is about both; a file that is finished takes none of it.
    finished = str(options.other).endswith(".lw.json")
    other = {"model": options.other} | (
        {"floating": False, "lock": [], "loops": None, "no_mimic": False} if finished else {}
    )
    b = load_model(Namespace(**{**vars(options), **other}))
    found = compare(a, b, states=options.states, tolerance=options.tolerance)
    if options.json:
        print_json(
            {"same": found.same, "differences": found.differences, "renamed": found.renamed, "largest": found.largest}
        )
        return int(not found.same)
    for each in found.differences:
        print(each)
    if found.renamed:
        pairs = [f"{old} is {new}" for old, new in found.renamed.items()]
        print(f"joints with other names: {', '.join(pairs[:10])}{', …' if len(pairs) > 10 else ''}")
    if found.same:
        print(
            "the same mechanism"
            + (f"; equations of motion within {found.largest:.1g}" if found.largest is not None else "")
        )
    return int(not found.same)


def run_convert(options: Namespace) -> None:
    """Write the file, and print what is not in it."""
    output = str(options.output)
    if not output.lower().endswith((".lw.json", ".urdf", ".xml", ".mjcf")):
        raise InputError("the format of the output is not known", got=output, allowed=".lw.json, .urdf, .xml or .mjcf")
    model = load_model(options)
    lost = model.save(output)
    if options.json:
        print_json({"output": output, "lost": lost})
        return
    print(f"{output}: {len(model.bodies)} moving bodies, nv = {model.nv}")
    for each in lost:
        print(f"  not as it was: {each}")
