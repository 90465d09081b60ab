"""The Python in the documentation runs as it stands, page by page; so do the `linkwise` commands."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from linkwise.cli import main
from linkwise.codegen import targets
from tests.formats.recording import robot_files

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)


def blocks(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def with_code(language):
    return [pytest.param(p, id=str(p.relative_to(DOCS))) for p in PAGES if blocks(p, language)]


@pytest.fixture(autouse=True)
def _in_a_folder_with_a_robot(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for name in ("panda.urdf", "cassie.sdf"):
        file = next(file for file in robot_files(Path(name).suffix) if file.name == name)
        shutil.copy(file, tmp_path / name)
    share = next(folder for folder in file.parents if folder.name == "example-robot-data").parent
    monkeypatch.setenv("LINKWISE_MODEL_PATH", str(share))  # where the meshes are that the files name
    yield
    targets._known.cache_clear()  # a page registers one of its own


NEEDS = {
    "ensembles.md": ("distributed", "zarr", "xarray", "cma"),
    "interop.md": ("torch", "jax"),
    "gpu.md": ("cupy", "torch"),
}  # what the developers' install does not bring


@pytest.mark.parametrize("page", with_code("python"))
def test_python(page):
    for module in NEEDS.get(page.name, ()):
        pytest.importorskip(module)
    if page.name == "gpu.md" and not targets.target("cuda").available():
        pytest.skip("there is no CUDA device")
    namespace = {"__name__": "page"}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", with_code("console"))
def test_commands(page, capsys, tmp_path):
    for text in blocks(page, "toml"):  # files begin with their name
        (tmp_path / text.splitlines()[0].removeprefix("# ")).write_text(text, encoding="utf-8")
    for block in blocks(page, "console"):
        for line in block.splitlines():
            if line.startswith("$ linkwise "):
                words = shlex.split(line.removeprefix("$ linkwise ").partition(" | ")[0])
                assert main(words) == 0, f"{line}\n{capsys.readouterr().err}"


def test_every_page_is_reached():
    reached = {"index"}
    for path in PAGES:
        for toc in re.findall(r"^```{toctree}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            names = [line for line in toc.splitlines() if line and not line.startswith(":")]
            reached |= {(path.parent / name).relative_to(DOCS).as_posix() for name in names}
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in PAGES} - {"operation_counts_why"}
    assert pages == reached
