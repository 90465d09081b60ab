"""``python bare.py example.py module …``: runs a program as if these modules were not installed. :func:`without` names
those of all distributions but linkwise and the ones that its extras bring.

Films are drawn with three pictures. The last line that is printed is JSON: the numbers among the program's names.
"""

import json
import runpy
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def allowed(extras: set[str]) -> set[str]:
    """Distributions that an install with extras brings, by their names in lower case."""
    found: set[str] = set()
    waiting = [("linkwise", extra) for extra in (*extras, "")]
    done = set()
    while waiting:
        name, extra = waiting.pop()
        name = name.lower().replace("_", "-")
        if (name, extra) in done:
            continue
        done.add((name, extra))
        found.add(name)
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for each in map(Requirement, requires):
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                waiting += [(each.name, inner) for inner in (*each.extras, "")]
    return found


@cache
def owners_of_modules() -> dict[str, list[str]]:
    """The distributions that each module is of, by its first name: a look at the files of all."""
    return dict(metadata.packages_distributions())


def without(extras: set[str]) -> set[str]:
    """First names of modules that an install with extras does not bring."""
    present = allowed(extras)
    return {
        module
        for module, owners in owners_of_modules().items()
        if not any(owner.lower().replace("_", "-") in present for owner in owners)
    } - {"linkwise", "tests", "docs", "bench", "examples"}


class Hidden:
    """Finder that says of some modules that they are not there."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> None:
    example, hidden = sys.argv[1], set(sys.argv[2:])
    for module in [name for name in sys.modules if name.partition(".")[0] in hidden]:
        del sys.modules[module]
    sys.meta_path.insert(0, Hidden(hidden))
    sys.path.insert(0, str(ROOT))

    import linkwise.viz.video as video

    drawn = video.save_video

    def three_pictures(trajectory, path, **options):
        seconds = float(trajectory.t[-1] - trajectory.t[0]) / options.get("speed", 1.0)
        return drawn(trajectory, path, **{**options, "fps": 2.0 / seconds})

    video.save_video = three_pictures
    names = runpy.run_path(example, run_name="__main__")
    numbers = {
        k: float(x) for k, x in names.items() if isinstance(x, int | float | np.number) and not k.startswith("_")
    }
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
