"""Pictures on shapes, of MJCF and COLLADA files: where they lie, what they are drawn as, and what is not opened."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelFileError, ModelWarning
from linkwise.viz import textures
from linkwise.viz.looks import looks_of
from linkwise.viz.meshes import read_mesh
from linkwise.viz.textures import TexturedMesh, read_picture
from tests.viz.test_meshes import DAE

pytest.importorskip("trimesh")
pytest.importorskip("collada")
pillow = pytest.importorskip("PIL.Image")

RED, YELLOW, BLUE, GREEN = (220, 40, 30), (240, 200, 40), (40, 90, 220), (40, 180, 80)
QUAD = "v -1 -1 0\nv 1 -1 0\nv 1 1 0\nv -1 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nf 1/1 2/2 3/3\nf 1/1 3/3 4/4\n"
MJCF = """<mujoco><compiler {folder}/>
<default><default class="by default"><material texture="four"/></default></default>
<asset><material name="twice" texture="four" texrepeat="2 3"/><material name="sky" texture="sky"/>
 <texture name="sky" type="cube" builtin="flat" rgb1="1 0 0" width="8" height="8"/>
 <texture type="2d" file="{file}"/>
 <material name="red half" class="by default" rgba="1 0.5 0.5 1"/>
 <material name="in metres" texture="four" texuniform="true"/>
 <mesh name="quad" file="quad.obj" inertia="shell"/></asset>
<worldbody>
 <body name="box"><freejoint/><geom type="box" size=".2 .4 .1" material="twice"/></body>
 <body name="quad"><freejoint/><geom type="mesh" mesh="quad" material="red half"/></body>
 <body name="metres"><freejoint/><geom type="box" size=".5 .25 .1" material="in metres"/></body>
 <body name="plain"><freejoint/><geom type="box" size=".2 .2 .1" material="sky"/></body>
</worldbody></mujoco>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pixels = np.zeros((32, 32, 3), np.uint8)
    pixels[:16, :16], pixels[:16, 16:], pixels[16:, :16], pixels[16:, 16:] = RED, YELLOW, BLUE, GREEN
    (tmp_path / "pictures").mkdir()
    pillow.fromarray(pixels).save(tmp_path / "pictures" / "four.png")
    (tmp_path / "quad.obj").write_text(QUAD)
    return tmp_path


def scene(folder: Path, file: str = "four.png") -> lw.Model:
    (folder / "scene.xml").write_text(MJCF.format(folder='texturedir="pictures"', file=file))
    return lw.load(folder / "scene.xml")


def seen_at(solid, vertex):
    """The colour of the picture at a vertex, drawn in a little towards the middle, and repeated."""
    image = np.asarray(solid.texture.image)
    u, v = (0.98 * (solid.texture.uv[vertex] - 0.5) + 0.5) % 1.0
    return tuple(int(x) for x in image[int((1.0 - v) * image.shape[0]), int(u * image.shape[1])])


def test_mjcf_pictures_lie_where_mujoco_has_them(folder):
    """Of MuJoCo's renderer: u = x/2 and v = -y/2, in half sizes times texrepeat, the first row of the picture at v = 0;
    in metres where texuniform is set; by a mesh's own coordinates alone where it has some."""
    model = scene(folder)
    looks = looks_of(model)
    (box,), (quad,), (metres,), (plain,) = looks.bodies
    np.testing.assert_allclose(box.texture.uv, 0.5 + box.vertices[:, :2] / (0.4, 0.8) * (2, 3), atol=1e-12)
    np.testing.assert_allclose(metres.texture.uv, 0.5 + 0.5 * metres.vertices[:, :2], atol=1e-12)
    np.testing.assert_allclose(quad.texture.uv, 0.5 + 0.5 * quad.vertices[:, :2], atol=1e-6)
    assert plain.texture is None  # painted by MuJoCo's compiler
    upper_left = int(np.argmin(quad.vertices[:, 0] - quad.vertices[:, 1]))
    assert seen_at(quad, upper_left) == (RED[0], RED[1] // 2, RED[2] // 2)  # tinted
    assert box.colour == tuple(np.round(np.mean([RED, YELLOW, BLUE, GREEN], axis=0)))


def test_pictures_are_saved_with_a_model_and_travel_to_pages(folder, tmp_path_factory):
    model = scene(folder)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    model.save(elsewhere / "scene.lw.json")
    again = lw.load(elsewhere / "scene.lw.json", search=[folder])
    own = [shape.texture for body in again.bodies for shape in body.visuals]
    assert [texture and texture.repeat for texture in own] == [(2.0, 3.0), (1.0, 1.0), (1.0, 1.0), None]
    (box,), *_ = looks_of(again).bodies
    assert box.texture.image.size == (32, 32)
    sent = []
    node = SimpleNamespace(color=box.colour, opacity=None, visible=True)
    TexturedMesh(SimpleNamespace(add_mesh_trimesh=lambda name, mesh: sent.append(mesh) or node), "box", box, node)
    np.testing.assert_array_equal(np.asarray(sent[0].visual.material.baseColorTexture), np.asarray(box.texture.image))
    np.testing.assert_allclose(sent[0].visual.uv, box.texture.uv)


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("gone.png", "was not found"),
        ("../../four.png", "leads out of the folders"),
        ("four.bmp", "cannot be read"),
        ("half.png", "cannot be read"),
    ],
)
def test_pictures_that_cannot_be_had_are_left_out_and_said(folder, file, what):
    """The model loads, one warning says it, the shape keeps its colour."""
    source = folder / "pictures" / "four.png"
    (folder.parent / "four.png").write_bytes(source.read_bytes())
    pillow.open(source).save(folder / "pictures" / "four.bmp")
    (folder / "pictures" / "half.png").write_bytes(source.read_bytes()[:60])
    stem = Path(file).stem
    text = MJCF.format(folder='texturedir="pictures"', file=file).replace('"four"', f'"{stem}"')
    (folder / "scene.xml").write_text(text)
    with pytest.warns(ModelWarning, match=f"a picture on .* is left out: (?s:.*){what}") as caught:
        looks = looks_of(lw.load(folder / "scene.xml"))
    assert len(caught) == 1
    assert all(solid.texture is None for solids in looks.bodies for solid in solids)
    assert len(looks.missing) == 1


def test_a_small_file_with_a_huge_picture_is_not_unpacked(folder, monkeypatch):
    monkeypatch.setattr(textures, "MOST_PIXELS", 100)
    with pytest.raises(ModelFileError, match=r"four\.png: this picture is too large"):
        read_picture(folder / "pictures" / "four.png")


PAPERED = (
    '<triangles material="mat" count="2"><input semantic="VERTEX" source="#v" offset="0"/>'
    '<input semantic="TEXCOORD" source="#t" offset="1" set="0"/><p>0 0 1 1 2 2 0 0 2 2 3 3</p></triangles>'
)
COORDINATES = """<source id="t"><float_array id="ta" count="8">0 0 1 0 1 1 0 1</float_array>
 <technique_common><accessor source="#ta" count="4" stride="2"><param name="S" type="float"/>
 <param name="T" type="float"/></accessor></technique_common></source><vertices"""
SAMPLER = """<newparam sid="f-s"><surface type="2D"><init_from>f</init_from></surface></newparam>
 <newparam sid="f-p"><sampler2D><source>f-s</source></sampler2D></newparam><technique"""


def papered_dae(path: str) -> bytes:
    text = DAE.format(primitive=PAPERED).replace("<vertices", COORDINATES, 1).replace("<technique", SAMPLER, 1)
    text = text.replace("<color>1 0.5 0 1</color>", '<texture texture="f-p" texcoord="uv"/>')
    library = f'<library_images><image id="f"><init_from>{path}</init_from></image></library_images><library_effects'
    return text.replace("<library_effects", library, 1).encode()


def test_collada_pictures(folder):
    (folder / "square.dae").write_bytes(papered_dae("pictures/four.png"))
    (solid,) = read_mesh(folder / "square.dae")
    # The node turns it by 90°, with the second axis twice as long: corners 0, 1, 2, 3 of the picture anticlockwise.
    corners = {(0, 0): BLUE, (0, 1): GREEN, (-2, 1): YELLOW, (-2, 0): RED}
    assert len(solid.vertices) == 4
    for k, (x, y, _) in enumerate(np.round(solid.vertices).astype(int)):
        assert seen_at(solid, k) == corners[x, y]


@pytest.mark.parametrize("path", ["../four.png", "/etc/hostname", "file:///etc/hostname", "pictures/gone.png"])
def test_collada_pictures_elsewhere_are_not_opened(folder, path):
    (folder.parent / "four.png").write_bytes((folder / "pictures" / "four.png").read_bytes())
    (folder / "square.dae").write_bytes(papered_dae(path))
    (solid,) = read_mesh(folder / "square.dae")
    assert solid.texture is None and solid.colour is None and len(solid.faces) == 2
