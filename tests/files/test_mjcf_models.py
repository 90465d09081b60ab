"""Every MJCF file in the packages that ship some, beside MuJoCo. Packages that are not installed are passed over.

``pip install gymnasium`` brings fourteen of them. The others (``pip install --no-deps dm_control gymnasium-robotics``)
drag much along that is not needed here.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from tests.files.mujoco_of_mjcf import Beside, errors, model_files, mujoco

FILES = model_files()
QUICK = [f"gymnasium/envs/mujoco/assets/{name}.xml" for name in ("hopper", "reacher", "ant")]


def check(file: Path, folder: Path) -> None:
    """What MuJoCo reads we read, to rounding; what it refuses we refuse, with the file and line."""
    try:
        mujoco.MjSpec.from_file(str(file)).compile()
        readable = True
    except ValueError:
        readable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.errors.ModelWarning)
        if not readable:
            with pytest.raises(lw.errors.ModelFileError, match=r"\.xml:\d+: "):
                lw.load(file, search=[folder])
            return
        model = lw.load(file, search=[folder])
    assert model.configurations["initial"].shape == (model.nq,)
    if model.nv == 0:
        return
    found = errors(Beside.of_file(model, file), np.random.default_rng(0))
    assert max(found[:4]) < 1e-9, found
    assert found.driven < 1e-8, found


@pytest.mark.parametrize("name", [name for name in QUICK if name in FILES])
def test_some(name: str) -> None:
    check(*FILES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FILES if name not in QUICK])
def test_all(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its log where it is
    check(*FILES[name])
