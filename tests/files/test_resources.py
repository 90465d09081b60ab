"""The files that a model file names are found in the folders it may use, and nowhere else."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.files import mesh_file
from tests.files.recording import robot_files

ROBOT = """<robot name="r"><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="{}"/></geometry></visual></link></robot>"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a package, another beside it, a folder that is none, and a secret above."""
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH", "LINKWISE_MODEL_PATH"):
        monkeypatch.delenv(variable, raising=False)
    for name in ("arm/urdf", "arm/meshes", "hand/meshes", "plain/meshes", "elsewhere/tool/meshes"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "arm/package.xml").write_text("<package><name>my_arm</name></package>")
    (tmp_path / "hand/package.xml").write_text("<package><name>hand</name></package>")
    for name in ("arm/urdf", "arm/meshes", "hand/meshes", "plain/meshes", "elsewhere/tool/meshes"):
        (tmp_path / name / "m.stl").write_text("solid")
    (tmp_path / "s.stl").write_text("solid")
    return tmp_path


def found(folder: Path, mesh: str, **options: object) -> Path:
    path = folder / "r.urdf"
    path.write_text(ROBOT.format(mesh))
    return _mesh_of(lw.load(path, floating=True, **options))  # type: ignore[arg-type]


def _mesh_of(model: lw.Model) -> Path:
    return mesh_file(model.bodies[0].visuals[0])


@pytest.mark.parametrize(
    ("mesh", "where"),
    [
        ("m.stl", "arm/urdf"),
        ("file://m.stl", "arm/urdf"),
        ("../meshes/m.stl", "arm/meshes"),
        ("meshes/m.stl", "arm/meshes"),
        ("package://arm/meshes/m.stl", "arm/meshes"),
        ("package:///arm/meshes/m.stl", "arm/meshes"),
        ("package://my_arm/meshes/m.stl", "arm/meshes"),
        ("package://hand/meshes/m.stl", "hand/meshes"),
        ("model://hand/meshes/m.stl", "hand/meshes"),
    ],
)
def test_found_in_the_package_and_beside_it(tree: Path, mesh: str, where: str) -> None:
    assert found(tree / "arm/urdf", mesh) == tree / where / "m.stl"


def test_absolute_paths_inside_are_found(tree: Path) -> None:
    assert found(tree / "arm/urdf", f"{tree}/arm/meshes/m.stl") == tree / "arm/meshes/m.stl"
    assert found(tree / "arm/urdf", f"file://{tree}/arm/meshes/m.stl") == tree / "arm/meshes/m.stl"


@pytest.mark.parametrize(
    "mesh", ["../../s.stl", "package://arm/../s.stl", "package://hand/../s.stl", "{}/s.stl", "file://{}/s.stl"]
)
def test_nothing_outside_is_found(tree: Path, mesh: str) -> None:
    with pytest.raises(lw.errors.ModelFileError, match="leads out of the folders"):
        found(tree / "arm/urdf", mesh.format(tree))


def test_a_folder_that_is_no_package_is_not_reached(tree: Path) -> None:
    with pytest.raises(lw.errors.ModelFileError, match="was not found") as caught:
        found(tree / "arm/urdf", "package://plain/meshes/m.stl")
    assert "r.urdf" in str(caught.value) and str(tree / "arm") in str(caught.value)
    with pytest.raises(lw.errors.ModelFileError, match="leads out"):
        found(tree / "plain/meshes", "../../s.stl")
    (tree / "plain/x").mkdir()
    with pytest.raises(lw.errors.ModelFileError, match="was not found"):
        found(tree / "plain/x", "package://plain/meshes/m.stl")
    assert (
        found(tree / "plain/x", "package://plain/meshes/m.stl", search=[tree / "plain"]) == tree / "plain/meshes/m.stl"
    )
    assert found(tree / "plain/x", "../meshes/m.stl", search=[tree / "plain"]) == tree / "plain/meshes/m.stl"


def test_links_lead_nowhere_else(tree: Path) -> None:
    (tree / "arm/urdf/link.stl").symlink_to(tree / "s.stl")
    with pytest.raises(lw.errors.ModelFileError, match="leads out"):
        found(tree / "arm/urdf", "link.stl")


@pytest.mark.parametrize(
    ("variable", "entry"),
    [
        ("ROS_PACKAGE_PATH", "elsewhere"),
        ("GZ_SIM_RESOURCE_PATH", "elsewhere"),
        ("LINKWISE_MODEL_PATH", "elsewhere"),
        ("ROS_PACKAGE_PATH", "elsewhere/tool"),
    ],
)
def test_variables_of_the_environment(tree: Path, variable: str, entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, f"/nowhere:{tree / entry}")
    assert found(tree / "plain", "package://tool/meshes/m.stl") == tree / "elsewhere/tool/meshes/m.stl"


def test_the_prefix_of_ament_has_its_packages_in_share(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "install/share").mkdir(parents=True)
    (tree / "elsewhere/tool").rename(tree / "install/share/tool")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tree / "install"))
    assert found(tree / "plain", "package://tool/meshes/m.stl") == tree / "install/share/tool/meshes/m.stl"


def test_texts_programs_and_copies(tree: Path) -> None:
    model = lw.loads(ROBOT.format("package://tool/meshes/m.stl"), floating=True, search=[tree / "elsewhere"])
    assert _mesh_of(model) == tree / "elsewhere/tool/meshes/m.stl"
    assert _mesh_of(pickle.loads(pickle.dumps(model))) == tree / "elsewhere/tool/meshes/m.stl"
    with pytest.raises(lw.errors.ModelFileError, match="not found"):
        _mesh_of(lw.loads(ROBOT.format("m.stl"), floating=True))
    own = lw.Geometry("mesh", (), str(tree / "s.stl"), (1, 1, 1), ((1, 0, 0, 0),), "a")
    assert mesh_file(own) == tree / "s.stl"
    with pytest.raises(lw.InputError, match="no file"):
        mesh_file(lw.Geometry("box", (1, 1, 1), None, (1, 1, 1), ((1, 0, 0, 0),), "a"))


@pytest.mark.parametrize("mesh", ["http://x.org/m.stl", "https://x.org/m.stl", "ftp://x/m.stl"])
def test_nothing_is_fetched(tree: Path, mesh: str) -> None:
    with pytest.raises(lw.errors.ModelFileError, match="nothing is fetched"):
        found(tree / "arm/urdf", mesh)


@pytest.mark.parametrize("name", ["panda.urdf", "talos_full_v2.urdf", "cassie_v2.sdf"])
@pytest.mark.skipif(not robot_files(), reason="needs example-robot-data")
@pytest.mark.filterwarnings("ignore::linkwise.errors.ModelWarning")
def test_every_mesh_of_some_robots_is_there(name: str) -> None:
    model = lw.load(next(file for file in robot_files(Path(name).suffix) if file.name == name))
    shapes = [shape for body in model.bodies for shape in body.visuals if shape.mesh]
    assert shapes and all(mesh_file(shape).is_file() for shape in shapes)
