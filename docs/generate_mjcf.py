"""Write mjcf_models.md: `python docs/generate_mjcf.py`. Takes some minutes, and needs the packages with the files.

``pip install gymnasium`` and ``pip install --no-deps dm_control gymnasium-robotics``.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from importlib import metadata
from pathlib import Path

import numpy as np

import linkwise as lw

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.files.mujoco_of_mjcf import Beside, errors, model_files  # noqa: E402

HEAD = """# MJCF files read

Every MJCF file in the packages below, read by `lw.load` and by MuJoCo {mujoco}. For each, the largest difference over
three random states, relative to the largest number of its kind: mass matrix M, bias force h, inverse dynamics τ,
forward dynamics v̇, and v̇ again *driven*, with armature, damping, springs, tendons,
muscles, a fluid, compensation of gravity and actuators acting. Loops are open for
this, since MuJoCo's equalities are soft; contact, limits and dry friction, which are among its constraints too, are
off ([](guide/contact.md) has how bodies of such files touch). This page is generated (`python docs/generate_mjcf.py`).

Packages: {packages}.

"""


def main() -> None:
    """Write the page."""
    rows, refused, parts, still = [], [], 0, 0
    for name, (file, folder) in model_files().items():
        print(name, flush=True)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = lw.load(file, search=[folder])
        except lw.LinkwiseError as error:
            if "part of a model" in error.what:
                parts += 1
            else:
                refused.append(f"| `{name}` | {reason(error, folder)} |")
            continue
        if model.nv == 0:
            still += 1
            continue
        found = errors(Beside.of_file(model, file), np.random.default_rng(0))
        out = by_kinds([left for each in caught for left in getattr(each.message, "left_out", ())])
        sizes = (model.nv, len(model.actuators), len(model.sensors), len(model.closures))
        numbers = " | ".join([*map(str, sizes), *(f"{x:.0e}" if x else "0" for x in found)])
        rows.append(f"| `{name}` | {numbers} | {out} |")
    known = ("mujoco", "dm_control", "gymnasium", "gymnasium-robotics")
    packages = ", ".join(f"{each} {metadata.version(each)}" for each in known)
    page = HEAD.format(mujoco=metadata.version("mujoco"), packages=packages)
    page += f"{len(rows)} mechanisms:\n\n"
    page += "| file | nv | actuators | sensors | loops | M | h | τ | v̇ | driven | left out, as a warning says |\n"
    page += "|---|---|---|---|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n\n"
    page += f"{still} more files have nothing that moves (arenas, materials); {parts} are parts to be included.\n\n"
    page += "## Refused\n\nBy us and by MuJoCo:\n\n| file | why |\n|---|---|\n" + "\n".join(refused) + "\n"
    (HERE / "mjcf_models.md").write_text(page, encoding="utf-8")


def reason(error: lw.LinkwiseError, folder: Path) -> str:
    """In one line, without folders of this machine."""
    text = error.what.replace(f"{folder}/", "").replace("|", "/")
    got = str(error.got).split(", which is")[0] if error.got else ""
    return text + (f" ({got})" if got and str(folder) not in got else "")


def by_kinds(left_out: list[str]) -> str:
    """What a warning lists, by kinds: names would fill the page."""
    kinds: Counter[str] = Counter()
    for part in left_out:
        words = part.split("'")
        start = words[0].strip(" (:")
        if start in ("actuator", "equality"):
            start += f" ({words[2].strip(' (),')})" if len(words) > 2 else ""
        kinds[start.removesuffix(" of").replace("sensors of kind ", "")] += 1
    return ", ".join(kinds)


if __name__ == "__main__":
    main()
