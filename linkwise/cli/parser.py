"""Parser of the command line: one function per command, in the order of the help. Imports nothing heavy."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from inspect import cleandoc

_EPILOG = """\
examples:
  linkwise new arm.py                            a first script, to run and to change
  linkwise models                                the models that come with the library
  linkwise info panda.urdf                       what is in a file
  linkwise simulate panda.urdf --duration 2 --plot fall.png
  linkwise view panda.urdf                       see it, move it, let it go
  linkwise emit panda.urdf forward_dynamics --target c -o panda_c
  linkwise demo                                  the five papers, computed: one page for the browser

A model is a file, or the name of a built-in one: `linkwise models` lists them.
`linkwise COMMAND --help` has examples for each command."""


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)


_Arguments = Callable[[argparse.ArgumentParser], None]
_COMMANDS: list[tuple[_Arguments, str, bool, bool]] = []
"""Commands in the order of the help: what adds their arguments, and the arguments of :func:`_command`."""


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    from linkwise import __version__

    parser = argparse.ArgumentParser(
        "linkwise",
        description="Dynamics of robots, spacecraft and mechanisms, compiled for each model.",
        epilog=_EPILOG,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"linkwise {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for add_arguments, module, model, json in _COMMANDS:
        summary, _, examples = cleandoc(add_arguments.__doc__ or "").partition("\n\n")
        command = commands.add_parser(
            add_arguments.__name__.removeprefix("_"),
            help=summary[:1].lower() + summary[1:].removesuffix("."),
            description=summary,
            formatter_class=_Help,
            epilog="examples:\n" + "\n".join(f"  linkwise {line}" for line in examples.splitlines()),
        )
        command.set_defaults(module=module)
        if model:
            _model(command)
        add_arguments(command)
        if json:
            command.add_argument("--json", action="store_true", help="print JSON, for scripts")
    return parser


def _command(module: str, *, model: bool = True, json: bool = False) -> Callable[[_Arguments], None]:
    """Decorator of a command ``_name``, which ``run_name`` of a module of :mod:`linkwise.cli.commands` runs.

    The first line of its docstring is the summary, the others are examples.

    Args:
        module: where it is run.
        model: whether its first argument is a model, with options for how that is read.
        json: whether its results can be had as JSON.
    """
    return lambda add_arguments: _COMMANDS.append((add_arguments, module, model, json))


def _model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a model file, or the name of a built-in model (`linkwise models`)")
    group = parser.add_argument_group("how the model is read")
    group.add_argument("--floating", action="store_true", help="free the root link (six more freedoms)")
    group.add_argument(
        "--lock", action="append", default=[], metavar="JOINT[=VALUE]",
        help="hold a joint still, at zero or at a value in rad or m; may be repeated",
    )  # fmt: skip
    group.add_argument("--gravity", metavar="X,Y,Z", help="acceleration of gravity in m/s² (default 0,0,-9.81)")
    group.add_argument(
        "--ground", nargs="?", const=0.0, type=float, metavar="Z",
        help="a level floor for its bodies to touch, at a height in m (0), beside what the file has",
    )  # fmt: skip
    group.add_argument("--no-mimic", action="store_true", help="give joints that mimic others their own coordinate")
    group.add_argument("--loops", metavar="FILE", help="a side file with the loops of the model (YAML or JSON)")
    group.add_argument(
        "--search", action="append", default=[], metavar="FOLDER",
        help="where the files are that the model names as package://, model:// or paths; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--arg", action="append", default=[], metavar="NAME:=VALUE",
        help="run a xacro file with this argument ('' for none); it is a program, and is not run without",
    )  # fmt: skip
    group.add_argument(
        "--env", action="append", default=[], metavar="NAME",
        help="a variable of the environment that a xacro file may read; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--allow-unphysical", action="store_true", help="keep inertias that no body can have, with a warning"
    )


_STATE = "numbers (0,1.57,0), joints (elbow=1.57), `neutral`, `random:SEED`, or a name that the model has"


def _results(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("results (CSV to standard output if nothing else is asked for)")
    group.add_argument("-o", "--output", metavar="FILE", help="write them to a .csv or .npz file")
    group.add_argument("--plot", metavar="FILE", help="draw them: .png, .svg or .pdf")
    group.add_argument("--html", metavar="FILE", help="write the motion as one file that plays in any browser")
    group.add_argument("--view", action="store_true", help="play the motion in the browser until Ctrl-C")
    group.add_argument("--json", action="store_true", help="print them as JSON, for scripts")


@_command("files", model=False)
def _new(parser: argparse.ArgumentParser) -> None:
    """Write a first script, to run and to change.

    new arm.py
    new walk.py --model quadruped
    new panda.py --model panda.urdf
    """
    parser.add_argument("file", help="the script to write; nothing is overwritten")
    parser.add_argument("--model", metavar="MODEL-OR-NAME", help="a model file or a built-in model that it is about")


@_command("files", model=False, json=True)
def _models(parser: argparse.ArgumentParser) -> None:
    """List the models that come with the library.

    models
    models --json
    """


@_command("info", json=True)
def _info(parser: argparse.ArgumentParser) -> None:
    """Show a model: its tree, freedoms, masses, limits and loops.

    info panda.urdf
    info cassie.sdf
    info --floating --json g1.urdf
    info panda.urdf --lock panda_finger_joint1 --lock panda_finger_joint2=0.04
    """


@_command("motions")
def _inverse(parser: argparse.ArgumentParser) -> None:
    """Joint forces that a motion takes (inverse dynamics, RIDIM).

    inverse planar_arm --to 3.14159,3.14159,3.14159 --duration 10 --plot torques.png
    inverse panda.urdf --motion recorded.csv -o forces.csv
    inverse panda.urdf --from neutral --to panda_joint2=0.5,panda_joint4=-1.5 --json
    """
    motion = parser.add_argument_group("the motion: a file, or a cycloidal one between two configurations")
    motion.add_argument(
        "--motion", metavar="FILE",
        help="CSV or npz with t, q and perhaps v and vdot; without those, a spline through q gives them",
    )  # fmt: skip
    motion.add_argument("--to", metavar="Q", help=f"where the cycloidal motion ends: {_STATE}")
    motion.add_argument("--from", dest="start", default="neutral", metavar="Q", help="where it starts (neutral)")
    motion.add_argument("--duration", type=float, default=10.0, metavar="S", help="its length in s (10)")
    motion.add_argument("--samples", type=int, default=201, metavar="N", help="instants to compute (201)")
    _results(parser)


@_command("motions")
def _simulate(parser: argparse.ArgumentParser) -> None:
    """Motion under given joint forces (forward dynamics, RFDSIM).

    simulate stanford_arm --q0 0,1.5708,0,0,0,0 --duration 3.5 --plot fall.png
    simulate panda.urdf --tau forces.csv -o motion.csv
    simulate panda.urdf --q0 random:1 --hold --duration 5 -o motion.npz
    simulate panda.urdf --method rk4 --dt 0.001 --json
    simulate panda.urdf --duration 2 --html fall.html
    """
    start = parser.add_argument_group("the start")
    start.add_argument("--q0", metavar="Q", help=f"configuration: {_STATE}; if not given, the model's own start")
    start.add_argument("--v0", metavar="V", help="velocity: one number for all, numbers, or joints (that of the start)")
    force = parser.add_argument_group("what acts besides gravity").add_mutually_exclusive_group()
    force.add_argument(
        "--tau",
        metavar="FORCES",
        help="joint forces: numbers, joints, or a CSV or npz file of t and tau (a column for each joint)",
    )
    parser.add_argument(
        "--tau-kind", default="linear", choices=["linear", "held", "cubic"],
        help="--tau between the instants of a file: straight lines, each value until the next, or a spline (linear)",
    )  # fmt: skip
    force.add_argument(
        "--hold",
        action="store_true",
        help="PD control of joints around the start, gravity compensated; a base stays free",
    )
    force.add_argument(
        "--u", metavar="CONTROLS", help="controls of the model's actuators: one number for all, numbers, or servo=0.5"
    )
    how = parser.add_argument_group("how it is integrated")
    how.add_argument("--duration", type=float, default=10.0, metavar="S", help="s to simulate (10)")
    how.add_argument("--method", help="integrator (dop853; moreau for files with a floor); a wrong name lists them all")
    how.add_argument("--dt", type=float, metavar="S", help="step of a fixed-step method")
    how.add_argument("--rtol", type=float, default=1e-9, help="relative tolerance of an adaptive method (1e-9)")
    how.add_argument(
        "--limits", choices=["spring", "stop", "ignore"], default="spring",
        help="what joint limits do: push back, end the simulation, nothing (spring)",
    )  # fmt: skip
    how.add_argument("--samples", type=int, default=501, metavar="N", help="instants to keep (501)")
    _results(parser)


@_command("functions", json=True)
def _linearize(parser: argparse.ArgumentParser) -> None:
    """Linear model about a state: d(v̇) = A_q dq + A_v dv + B dτ.

    linearize planar_arm --q 0.5,0,0
    linearize panda.urdf --q neutral -o panda_linear.npz
    linearize panda.urdf --inverse --json
    """
    parser.add_argument("--q", default="neutral", metavar="Q", help=f"configuration: {_STATE}")
    parser.add_argument("--v", default="0", metavar="V", help="velocity (0)")
    parser.add_argument(
        "--tau", default="hold", metavar="FORCES", help="joint forces, or `hold`: those that v̇ = 0 takes"
    )
    parser.add_argument("--inverse", action="store_true", help="of inverse dynamics about v̇ = 0: dτ = … instead")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the matrices to an .npz file")


@_command("functions", model=False, json=True)
def _counts(parser: argparse.ArgumentParser) -> None:
    """Operations that the functions of a model, or the classical algorithms, take.

    counts panda.urdf
    counts panda.urdf forward_dynamics mass_matrix --json
    counts --chain 6                               the papers' table, for a general chain of six links
    counts --chain 12 articulated_body linkwise_forward --frames regrouped
    """
    parser.add_argument(
        "names", nargs="*", metavar="MODEL-OR-NAME", help="a model, then functions; with --chain, algorithms"
    )
    parser.add_argument("--chain", type=int, metavar="N", help="count the classical algorithms on a chain of N links")
    parser.add_argument("--frames", default="dh", help="link frames of the chain: general, dh or regrouped (dh)")
    parser.add_argument("--body", metavar="NAME", help="for functions of a body: which (the last one)")
    parser.add_argument("--floating", action="store_true", help="free the root link of the model")
    parser.add_argument("--lock", action="append", default=[], metavar="JOINT[=VALUE]", help="hold a joint still")


@_command("functions", json=True)
def _bench(parser: argparse.ArgumentParser) -> None:
    """Time that a model's functions take on this machine.

    bench panda.urdf
    bench panda.urdf forward_dynamics linearize_forward --batch 65536 --threads 2
    bench stanford_arm --json
    """
    parser.add_argument("functions", nargs="*", help="which (inverse_dynamics, forward_dynamics, mass_matrix)")
    parser.add_argument("--batch", type=int, default=8192, metavar="N", help="states in a batch (8192)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads for a batch (1)")
    parser.add_argument(
        "--rounds", type=int, default=20, metavar="N", help="repetitions, of which the best counts (20)"
    )
    parser.add_argument("--body", metavar="NAME", help="for functions of a body: which (the last one)")


@_command("functions")
def _emit(parser: argparse.ArgumentParser) -> None:
    """Source code of a model's function, for a target.

    emit panda.urdf forward_dynamics --target c -o panda_c
    emit panda.urdf inverse_dynamics --target program | head
    emit panda.urdf jacobian --body panda_hand --target cuda --dtype float32
    """
    from linkwise.targets import targets

    parser.add_argument("function", help="a method of the model: forward_dynamics, inverse_dynamics, mass_matrix, …")
    known = ", ".join(f"{name} ({target.summary})" for name, target in targets().items())
    parser.add_argument("--target", default="c", help=f"{known}; c if not given")
    parser.add_argument("--dtype", default="float64", choices=["float64", "float32"], help="precision (float64)")
    parser.add_argument("--body", metavar="NAME", help="for functions of a body: which (the last one)")
    parser.add_argument("-o", "--output", metavar="FOLDER", help="write files there; without it, print the source")


@_command("files", json=True)
def _check(parser: argparse.ArgumentParser) -> None:
    """Everything that is wrong with a model file, or looks so, at once.

    check panda.urdf
    check panda.urdf --search meshes --json
    """


@_command("files", json=True)
def _diff(parser: argparse.ArgumentParser) -> None:
    """Do two files describe the same mechanism? up to names and frames.

    diff panda.urdf panda.lw.json
    diff old.urdf new.urdf --tolerance 1e-9 --json
    """
    parser.add_argument("other", help="the file to compare with")
    parser.add_argument("--states", type=int, default=20, metavar="N", help="random states to compare at (20)")
    parser.add_argument(
        "--tolerance", type=float, default=1e-6, metavar="X", help="relative differences that do not count (1e-6)"
    )


@_command("files", json=True)
def _convert(parser: argparse.ArgumentParser) -> None:
    """Write a model in another format, and say what that cannot hold.

    convert panda.urdf panda.lw.json               everything, to the last bit
    convert panda.urdf panda.xml --floating        MJCF
    convert cassie.sdf cassie.urdf
    """
    parser.add_argument("output", metavar="FILE", help="where to: a name that ends in .lw.json, .urdf, or .xml (MJCF)")


@_command("motions", model=False)
def _plot(parser: argparse.ArgumentParser) -> None:
    """Draw a motion that was saved.

    plot motion.npz -o motion.png
    plot forces.csv --what tau -o forces.svg
    plot motion.npz --joints elbow,wrist
    """
    parser.add_argument("file", help="what `simulate -o` or `inverse -o` wrote: .npz or .csv")
    parser.add_argument(
        "--what", metavar="NAMES", help="of q, v, vdot, tau, energy: which, with commas (all there are)"
    )
    parser.add_argument("--joints", metavar="NAMES", help="joints to draw, with commas (all)")
    parser.add_argument("-o", "--output", metavar="FILE", help=".png, .svg or .pdf; without it, a window opens")


@_command("pages")
def _view(parser: argparse.ArgumentParser) -> None:
    """Show a model, or motions of it, in the browser.

    view panda.urdf
    view panda.urdf --q random:1 --port 8090
    view panda.urdf motion.npz
    view panda.urdf motion.npz --html motion.html
    view panda.urdf motion.npz --follow panda_link7
    """
    parser.add_argument(
        "motions", nargs="*", metavar="MOTION", help="what `simulate -o` wrote: .npz or .csv; several beside each other"
    )
    parser.add_argument("--q", default=None, metavar="Q", help=f"configuration to start with: {_STATE}")
    parser.add_argument(
        "--follow", metavar="BODY", help='what the camera follows: a body, "mass centre" (floating bases), or "nothing"'
    )
    parser.add_argument("--port", type=int, metavar="N", help="where to begin to look for a free port (8080)")
    parser.add_argument("--no-open", action="store_true", help="do not open the browser; the address is printed")
    parser.add_argument("--html", metavar="FILE", help="write one file that plays anywhere, and serve nothing")
    parser.add_argument("--video", metavar="FILE", help="write a video of a motion (.mp4, .gif), and serve nothing")


@_command("ensemble", model=False)
def _ensemble(parser: argparse.ArgumentParser) -> None:
    """Many runs of a model from a study file: Monte Carlo and sweeps.

    ensemble run study.toml
    ensemble run study.toml --members 100000 --client tcp://127.0.0.1:8786
    ensemble status study.toml
    ensemble resume study.toml
    ensemble report study.toml -o study.html
    ensemble replay study.toml --member 47 -o member.npz
    """
    parser.add_argument("action", choices=["run", "status", "resume", "report", "replay"])
    parser.add_argument("study", help="a study file (TOML); see the guide on ensembles")
    parser.add_argument("--members", type=int, metavar="N", help="how many, instead of the study's own number")
    parser.add_argument("--model", metavar="FILE", help="the model, instead of the study's own")
    parser.add_argument("--store", metavar="FOLDER", help="where results are, instead of the study's own place")
    parser.add_argument(
        "--code", metavar="FILE", help="Python to run: may define control, events, keep (functions by name), failure"
    )
    where = parser.add_argument_group("where it runs").add_mutually_exclusive_group()
    where.add_argument("--client", metavar="ADDRESS", help="the scheduler of a Dask cluster")
    where.add_argument("--workers", type=int, metavar="N", help="processes of this machine")
    where.add_argument("--threads", type=int, metavar="N", help="threads of this process (as many as processors)")
    results = parser.add_argument_group("report and replay")
    results.add_argument("-o", "--output", metavar="FILE", help="the page, or the motion (.npz or .csv)")
    results.add_argument("--worst", metavar="OUTCOME", help="which outcome makes a member the worst (the first)")
    results.add_argument("--smallest", action="store_true", help="small values are the worst")
    results.add_argument("--member", type=int, metavar="NUMBER", help="which one to run again")
    results.add_argument("--samples", type=int, default=501, metavar="N", help="instants of its motion to keep (501)")


@_command("pages", model=False)
def _demo(parser: argparse.ArgumentParser) -> None:
    """The five papers computed, with a robot that moves: one page for the browser.

    demo
    demo -o report.html --open
    """
    parser.add_argument(
        "-o", "--output", default="linkwise_demo.html", metavar="FILE", help="the report (linkwise_demo.html)"
    )
    parser.add_argument("--open", action="store_true", help="open it in the browser")


@_command("machine", model=False, json=True)
def _doctor(parser: argparse.ArgumentParser) -> None:
    """Say what this machine can do, and why not more.

    doctor
    doctor --json
    """


@_command("machine", model=False)
def _completion(parser: argparse.ArgumentParser) -> None:
    """Print a script that completes commands and options in your shell.

    completion bash > ~/.local/share/bash-completion/completions/linkwise
    completion zsh > "${fpath[1]}/_linkwise"
    completion fish > ~/.config/fish/completions/linkwise.fish
    """
    parser.add_argument("shell", choices=["bash", "zsh", "fish"])
