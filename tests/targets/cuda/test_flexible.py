"""Functions of flexible mechanisms as a GPU would run them: by emulation here, on the device where there is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from linkwise.targets.cuda import tile_layout
from linkwise.targets.cuda.source import batch_kernel
from linkwise.targets.cuda.target import TARGET
from tests.targets.cuda.emulation import LANES, Emulated, needs_compiler
from tests.targets.cuda.models import flexible_arm, random_state

COUNT = 9  # not a multiple of the lanes
FUNCTIONS = {"inverse_dynamics": 3, "forward_dynamics": 3, "mass_matrix": 1, "kinetic_energy": 2, "poses": 1}


@needs_compiler
@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [*((name, np.float64, 1e-11) for name in FUNCTIONS), ("forward_dynamics", np.float32, 2e-3)],
)
def test_emulated(name: str, dtype: type, tolerance: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_layout, "LANES", (LANES,))
    model = flexible_arm()
    arrays = [np.ascontiguousarray(x, dtype) for x in random_state(model, COUNT)[: FUNCTIONS[name]]]
    program = model.function(name).program
    got = np.full((COUNT, program.outputs[0].size), np.nan, dtype)
    kernel = batch_kernel(program, np.dtype(dtype).itemsize * 8)
    Emulated(kernel, len(arrays) + 1, dtype, tmp_path)([*arrays, got], COUNT)
    expected = np.reshape(getattr(model, name)(*(x.astype(float) for x in arrays)), got.shape)
    assert np.abs(got - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.gpu
@pytest.mark.skipif(not TARGET.available(), reason="no CUDA device, or no CuPy")
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 2e-3)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_on_the_device(name: str, dtype: type, tolerance: float) -> None:
    import cupy as cp

    model = flexible_arm()
    arrays = [x.astype(dtype) for x in random_state(model, 1000)[: FUNCTIONS[name]]]
    got = cp.asnumpy(getattr(model, name)(*(cp.asarray(x) for x in arrays)))
    expected = getattr(model, name)(*(x.astype(float) for x in arrays))
    assert got.dtype == dtype
    assert np.abs(got - expected).max() <= tolerance * np.abs(expected).max()
