"""Meshes from files: against what was written, and against Assimp (through Pinocchio) on robots' files."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelFileError
from linkwise.viz import textures
from linkwise.viz.meshes import placeholder, read_collada, read_mesh
from linkwise.viz.solids import joined
from tests.files.recording import robot_files

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("collada")

DAE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
 <asset><unit name="centimeter" meter="0.01"/><up_axis>Y_UP</up_axis></asset>
 <library_effects><effect id="e"><profile_COMMON><technique sid="c"><phong>
   <diffuse><color>1 0.5 0 1</color></diffuse></phong></technique></profile_COMMON></effect></library_effects>
 <library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
 <library_geometries><geometry id="g"><mesh>
   <source id="p"><float_array id="pa" count="12">0 0 0 100 0 0 100 100 0 0 100 0</float_array>
    <technique_common><accessor source="#pa" count="4" stride="3"><param name="X" type="float"/>
    <param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
   <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
   {primitive}
 </mesh></geometry></library_geometries>
 <library_visual_scenes><visual_scene id="s"><node id="n">
   <translate>0 0 200</translate><rotate>0 0 1 90</rotate><scale>1 2 1</scale>
   <instance_geometry url="#g"><bind_material><technique_common>
     <instance_material symbol="mat" target="#m"/></technique_common></bind_material></instance_geometry>
 </node></visual_scene></library_visual_scenes>
 <scene><instance_visual_scene url="#s"/></scene>
</COLLADA>"""
PRIMITIVES = {
    "triangles": '<triangles material="mat" count="2"><input semantic="VERTEX" source="#v" offset="0"/>'
    '<input semantic="NORMAL" source="#p" offset="1"/><p>0 0 1 0 2 0 0 0 2 0 3 0</p></triangles>',
    "polylist": '<polylist material="mat" count="1"><input semantic="VERTEX" source="#v" offset="0"/>'
    "<vcount>4</vcount><p>0 1 2 3</p></polylist>",
    "polygons": '<polygons material="mat" count="1"><input semantic="VERTEX" source="#v" offset="0"/>'
    "<p>0 1 2 3</p></polygons>",
}


@pytest.mark.parametrize("kind", PRIMITIVES)
def test_collada(kind):
    (solid,) = read_collada(DAE.format(primitive=PRIMITIVES[kind]).encode(), "square.dae")
    assert solid.colour == (255, 128, 0)
    corners = np.unique(np.round(solid.vertices, 6), axis=0)  # pycollada reads in single precision
    np.testing.assert_allclose(corners, [[-2, 0, 2], [-2, 1, 2], [0, 0, 2], [0, 1, 2]], atol=1e-12)
    a, b, c = (solid.vertices[solid.faces[:, k]] for k in range(3))
    np.testing.assert_allclose(np.cross(b - a, c - a).sum(0) / 2, [0, 0, 2], atol=1e-6)


def test_collada_that_refers_to_itself_ends():
    loop = DAE.format(primitive="").replace(
        "<translate>", '<instance_node url="#n"/><instance_node url="#n"/><translate>'
    )
    assert read_collada(loop.encode(), "loop.dae") == []


def test_collada_instances_do_not_multiply(monkeypatch):
    """Twenty nodes, each twice the one before: a million, of which no one draws anything."""
    nodes = '<node id="n0"/>' + "".join(
        f'<node id="n{k + 1}"><instance_node url="#n{k}"/><instance_node url="#n{k}"/></node>' for k in range(20)
    )
    content = DAE.format(primitive=PRIMITIVES["polylist"])
    content = content.replace("<library_visual", f"<library_nodes>{nodes}</library_nodes><library_visual", 1)
    once = content.replace("<translate>", '<instance_node url="#n5"/><translate>')
    assert len(read_collada(once.encode(), "a.dae")[0].faces) == 2
    with pytest.raises(ModelFileError, match=r"a\.dae: this mesh has too many nodes"):
        read_collada(content.replace("<translate>", '<instance_node url="#n20"/><translate>').encode(), "a.dae")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<color>1 0.5 0 1</color>", '<texture texture="nowhere-sampler" texcoord="uv"/>'),
        ("<color>1 0.5 0 1</color>", ""),
        ("<diffuse><color>1 0.5 0 1</color></diffuse>", ""),
        ('target="#m"', 'target="#nothing"'),
        ('url="#e"', 'url="#nothing"'),
    ],
)
def test_collada_without_its_materials_is_still_drawn(old, new):
    content = DAE.format(primitive=PRIMITIVES["polylist"])
    assert old in content
    (solid,) = read_collada(content.replace(old, new).encode(), "a.dae")
    assert solid.colour is None
    assert len(solid.faces) == 2


def test_collada_with_entities_is_refused():
    content = '<!DOCTYPE COLLADA [<!ENTITY a SYSTEM "file:///etc/hostname">]>\n' + DAE.format(primitive="")[22:]
    with pytest.raises(ModelFileError, match=r"a\.dae:1: "):
        read_collada(content.encode(), "a.dae")


@pytest.mark.parametrize("suffix", ["stl", "obj", "glb", "ply", "off"])
def test_what_trimesh_writes_is_read(tmp_path, suffix):
    made = trimesh.creation.box(extents=(1.0, 2.0, 3.0))
    path = tmp_path / f"box.{suffix}"
    made.export(path)
    (solid,) = read_mesh(path)
    np.testing.assert_allclose(np.ptp(solid.vertices, axis=0), [1.0, 2.0, 3.0], atol=1e-6)
    assert len(solid.faces) == 12


def test_files_outside_the_meshs_folder_are_not_read(tmp_path):
    (tmp_path / "secret.mtl").write_text("newmtl m\nKd 1 0 0\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "near.mtl").write_text("newmtl m\nKd 0 1 0\n")
    body = "v 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl m\nf 1 2 3\n"
    for name, library in (("far.obj", "../secret.mtl"), ("good.obj", "near.mtl")):
        (tmp_path / "in" / name).write_text(f"mtllib {library}\n{body}")
    assert read_mesh(tmp_path / "in" / "far.obj")[0].colour != (255, 0, 0)
    assert read_mesh(tmp_path / "in" / "good.obj")[0].colour == (0, 255, 0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.stl", b"solid nothing\nendsolid"),
        ("a.stl", bytes(84) + b"\xff" * 10),
        ("a.dae", b"<COLLADA"),
        ("a.dae", b"<COLLADA/>"),
        ("a.glb", b"glTF" + bytes(40)),
        ("a.step", b"ISO-10303-21;"),
        ("a.obj", b"v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"),
    ],
)
def test_bad_files_are_errors_that_name_the_file(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=name):
        read_mesh(path)


def test_the_placeholder_is_closed():
    made = placeholder(0.1)
    assert trimesh.Trimesh(made.vertices, made.faces).is_watertight


@pytest.mark.parametrize("robot", ["panda.urdf", "ur5_robot.urdf", "kinova.urdf", "hyq_no_sensors.urdf"])
def test_robots_look_as_assimp_reads_them(robot):
    """The boxes around all meshes of a robot, as Pinocchio has them through coal and Assimp."""
    pin = pytest.importorskip("pinocchio")
    from linkwise.files.resources import mesh_file

    path = next(file for file in robot_files(".urdf") if file.name == robot)
    share = next(folder for folder in path.parents if folder.name == "share")
    reference = pin.buildModelFromUrdf(str(path))
    shapes = pin.buildGeomFromUrdf(reference, str(path), pin.GeometryType.VISUAL, [str(share)])
    theirs = {}
    for shape in shapes.geometryObjects:
        if shape.meshPath:
            shape.geometry.computeLocalAABB()
            aabb = shape.geometry.aabb_local
            theirs[shape.meshPath] = np.array([aabb.min_, aabb.max_])
    model = lw.load(path)
    compared = 0
    for body in model.bodies:
        for geometry in body.visuals:
            if geometry.kind == "mesh":
                solids = read_mesh(mesh_file(geometry))
                points = np.concatenate([solid.vertices for solid in solids]) * geometry.scale
                expected = theirs[str(mesh_file(geometry))]
                np.testing.assert_allclose([points.min(0), points.max(0)], expected, atol=1e-6)
                compared += 1
    assert compared >= 5


def test_a_texture_gives_its_mean_colour(tmp_path, monkeypatch):
    """As the documentation says; one of too many pixels is not even unpacked."""
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[:, :8], pixels[:, 8:] = (200, 0, 0), (100, 60, 0)
    image.fromarray(pixels).save(tmp_path / "paint.png")
    (tmp_path / "paint.mtl").write_text("newmtl m\nKd 1 1 1\nmap_Kd paint.png\n")
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\n"
    (tmp_path / "a.obj").write_text(f"mtllib paint.mtl\n{corners}usemtl m\nf 1/1 2/2 3/3\n")
    (solid,) = read_mesh(tmp_path / "a.obj")
    assert solid.colour == (150, 30, 0) and solid.texture.image.size == (16, 16)
    np.testing.assert_allclose(solid.texture.uv, solid.vertices[:, :2])  # as written above
    turned = solid.placed(np.diag([2.0, 2.0, 2.0, 1.0]))
    (both,) = joined([solid, turned])
    assert both.texture.image is solid.texture.image and len(both.texture.uv) == len(both.vertices) == 6
    assert len(joined([solid, replace(solid, texture=None)])) == 2
    monkeypatch.setattr(textures, "MOST_PIXELS", 100)
    (bare,) = read_mesh(tmp_path / "a.obj")
    assert bare.colour != (150, 30, 0) and bare.texture is None
