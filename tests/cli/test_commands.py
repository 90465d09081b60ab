"""Each command does what its help says, and agrees with the library."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.cli.arguments import BUILT_IN
from linkwise.sim.trajectory import Trajectory


def test_info_shows_tree_joints_and_limits(ok):
    out = ok("info robot.urdf")
    assert "two links: 2 moving bodies, nq = 2, nv = 2, 3 kg" in out
    assert out.index("└─ upper  1 kg  (shoulder: revolute)") < out.index("   └─ lower  2 kg  (elbow: revolute)")
    assert "shoulder  revolute  0  0     -2      2      3      40" in out


def test_info_as_json(ok):
    facts = json.loads(ok("info robot.urdf --json --floating --gravity 0,0,-1"))
    assert (facts["nq"], facts["nv"], facts["gravity"]) == (9, 8, [0.0, 0.0, -1.0])
    assert facts["joints"][1]["limits"][0] == {"lower": -2.0, "upper": 2.0, "velocity": 3.0, "effort": 40.0}
    assert facts["joints"][2]["limits"] == []


def test_info_tells_of_oddities(ok, tmp_path):
    text = (tmp_path / "robot.urdf").read_text()
    (tmp_path / "odd.urdf").write_text(text.replace('lower="-2" upper="2"', 'lower="0" upper="0"').replace("40", "0"))
    assert "effort limit of zero" in ok("info odd.urdf")


def test_locked_joints(ok):
    assert json.loads(ok("info robot.urdf --lock elbow=0.5 --json"))["nv"] == 1


def test_inverse_along_a_cycloid(ok):
    lines = ok("inverse planar_arm --to 3.14159265358979,3.14159265358979,3.14159265358979 --samples 3").splitlines()
    assert lines[0].startswith("t,q:joint1,q:joint2,q:joint3,v:joint1")
    table = np.array([[float(x) for x in line.split(",")] for line in lines[1:]])
    columns = lines[0].split(",")
    assert table[1, columns.index("q:joint1")] == pytest.approx(np.pi / 2)
    assert table[0, columns.index("tau:joint1")] == pytest.approx(4.5 * 0.2 * 9.81 * 0.5)


def test_inverse_of_a_file_undoes_simulate(ok):
    ok("simulate robot.urdf --q0 0.3,-0.2 --duration 0.5 --samples 101 -o fall.npz")
    ok("inverse robot.urdf --motion fall.npz -o forces.csv")
    assert np.abs(Trajectory.load("forces.csv").tau).max() < 1e-9


def test_inverse_of_positions_only(ok, tmp_path):
    t = np.linspace(0, 1, 200)
    rows = "\n".join(f"{x},{0.1 * np.cos(3 * x)},{np.sin(2 * x)}" for x in t)
    (tmp_path / "motion.csv").write_text("t,q:elbow,q:shoulder\n" + rows)
    found = json.loads(ok("inverse robot.urdf --motion motion.csv --json"))
    model = lw.load("robot.urdf")
    i = 100
    q = np.array([np.sin(2 * t[i]), 0.1 * np.cos(3 * t[i])])
    v = np.array([2 * np.cos(2 * t[i]), -0.3 * np.sin(3 * t[i])])
    vdot = np.array([-4 * np.sin(2 * t[i]), -0.9 * np.cos(3 * t[i])])
    assert np.allclose(found["tau"][i], model.inverse_dynamics(q, v, vdot), atol=1e-5)


def test_simulate_conserves_energy(ok):
    found = json.loads(ok("simulate planar_arm --q0 -1,0.5,0 --duration 1 --samples 11 --json"))
    assert found["method"] == "dop853"
    assert found["status"] == "done"
    assert len(found["t"]) == 11
    assert np.ptp(found["energy"]) < 1e-7


def test_simulate_under_forces_of_a_file(ok):
    ok("inverse planar_arm --from 0,0,0 --to 0.5,0.2,0.1 --duration 1 --samples 101 -o forces.npz")
    found = json.loads(
        ok("simulate planar_arm --tau forces.npz --tau-kind cubic --dt 0.02 --duration 1 --samples 2 --json")
    )
    assert np.allclose(found["q"][-1], [0.5, 0.2, 0.1], atol=1e-5)
    linear = json.loads(ok("simulate planar_arm --tau forces.npz --dt 0.02 --duration 1 --samples 2 --json"))
    assert np.allclose(linear["q"][-1], [0.5, 0.2, 0.1], atol=5e-3)  # straight lines through forces that bend


def test_simulate_holds(ok):
    found = json.loads(ok("simulate robot.urdf --q0 shoulder=0.4 --hold --duration 1 --samples 2 --json"))
    assert np.allclose(found["q"][-1], [0.4, 0.0], atol=1e-9)


LEG = """<robot name="leg"><link name="trunk"><inertial><mass value="3"/>
<inertia ixx=".03" iyy=".03" izz=".03" ixy="0" ixz="0" iyz="0"/></inertial></link>{}</robot>"""
PART = """<link name="{1}"><inertial><origin xyz="0 0 -.1"/><mass value=".5"/>
<inertia ixx=".002" iyy=".002" izz=".001" ixy="0" ixz="0" iyz="0"/></inertial>{3}</link>
<joint name="{2}" type="continuous"><parent link="{0}"/><child link="{1}"/><origin xyz="0 0 {4}"/>
<axis xyz="0 1 0"/></joint>"""
SOLE = '<collision><origin xyz="0 0 -.05"/><geometry><box size=".2 .2 .02"/></geometry></collision>'


def test_simulate_holds_the_joints_of_what_is_free_to_fall(ok, tmp_path):
    """On the floor it stands on its bent leg; in the air the mass centre falls as that of any body."""
    parts = (
        ("trunk", "thigh", "hip", "", 0),
        ("thigh", "shank", "knee", "", -0.2),
        ("shank", "foot", "ankle", SOLE, -0.2),
    )
    (tmp_path / "leg.urdf").write_text(LEG.format("".join(PART.format(*part) for part in parts)))
    start, height = [0.2, -0.4, 0.2], 0.4 * np.cos(0.2) + 0.06
    command = "simulate leg.urdf --floating --q0 hip=0.2,knee=-0.4,ankle=0.2 --hold --json --samples 2 --duration"
    stands = json.loads(ok(f"{command} 3 --ground {-height}"))
    assert np.abs(np.array(stands["q"][-1][7:]) - start).max() < 0.02
    assert np.abs(stands["v"][-1]).max() < 1e-6
    assert np.array_equal(np.array(stands["tau"])[:, :6], np.zeros((2, 6)))
    falls = json.loads(ok(f"{command} 0.5"))
    com = lw.load("leg.urdf", floating=True).center_of_mass(np.array(falls["q"]))
    assert np.allclose(com[1] - com[0], [0.0, 0.0, -0.5 * 9.81 * 0.5**2], atol=1e-6)
    assert np.abs(np.array(falls["q"][-1][7:]) - start).max() < 0.02


def test_simulate_holds_the_joints_of_a_planar_walker(ok, tmp_path):
    """Its slides and the hinge between the world and the trunk are no joints that a motor holds."""
    text = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 1">
    <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
    <joint name="turn" axis="0 1 0"/><geom type="box" size=".1 .1 .1" mass="2"/>
    <body pos="0 0 -.1"><joint name="hip" axis="0 1 0"/>
    <geom type="box" size=".02 .02 .1" pos="0 0 -.1" mass=".3"/></body></body></worldbody></mujoco>"""
    (tmp_path / "walker.xml").write_text(text)
    found = json.loads(ok("simulate walker.xml --hold --duration 0.1 --samples 2 --json"))
    assert found["q"][-1][1] == pytest.approx(-0.5 * 9.81 * 0.1**2, rel=1e-6)
    assert found["q"][-1][3] == pytest.approx(0.0, abs=1e-9)


def test_simulate_under_constant_forces(ok):
    found = json.loads(ok("simulate robot.urdf --gravity 0,0,0 --tau elbow=1 --duration 0.1 --samples 2 --json"))
    model = lw.load("robot.urdf")
    assert np.allclose(found["vdot"][0], model.mass_matrix_inverse([0.0, 0.0])[:, 1])


def test_plots(ok, tmp_path):
    ok("simulate planar_arm --duration 0.2 --samples 5 -o m.csv --plot m.svg")
    ok("plot m.csv -o a.png")
    ok("plot m.csv --what q,energy --joints joint2 -o b.svg")
    assert (tmp_path / "m.svg").read_text().startswith("<?xml")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "b.svg").exists()


def test_linearize(ok):
    facts = json.loads(ok("linearize robot.urdf --q 0.1,0.2 --v 0.3 --json"))
    model = lw.load("robot.urdf")
    q, v = np.array([0.1, 0.2]), np.full(2, 0.3)
    lin = model.linearize_forward(q, v, model.bias_force(q, v))
    assert np.allclose(facts["dq"], lin.dq)
    assert np.allclose(np.array(facts["A"])[2:, 2:], lin.dv)
    assert len(facts["eigenvalues"]) == 4
    inverse = json.loads(ok("linearize robot.urdf --q 0.1,0.2 --inverse --json"))
    assert np.allclose(inverse["dvdot"], model.mass_matrix(q))
    assert "∂v̇/∂q" in ok("linearize robot.urdf -o linear.npz")
    assert np.load("linear.npz")["B"].shape == (4, 2)


def test_linearize_a_ball_joint(ok, tmp_path):
    """A displacement of a ball is given in its own, turning axes: A has a block -ad(v)."""
    b = lw.ModelBuilder("ball")
    b.add_body("a", joint=lw.Free(), mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.diag([1.0, 2.0, 2.5]))
    link = '<link name="a"><inertial><origin xyz="0.1 0.2 0.3"/><mass value="1"/>'
    link += '<inertia ixx="1" iyy="2" izz="2.5" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    (tmp_path / "ball.urdf").write_text(f'<robot name="ball">{link}</robot>')
    facts = json.loads(ok("linearize ball.urdf --floating --v 0.3,-0.5,0.7,0.1,0.2,0.4 --json"))
    model, v = b.build(), np.array([0.3, -0.5, 0.7, 0.1, 0.2, 0.4])
    q = model.neutral()
    A, B = model.state_space(q, v, model.bias_force(q, v))
    assert np.allclose(facts["A"], A, atol=1e-12)
    assert np.allclose(facts["B"], B, atol=1e-12)
    assert np.abs(np.array(facts["A"])[:6, :6]).max() > 0.6


def test_counts(ok):
    facts = json.loads(ok("counts robot.urdf inverse_dynamics jacobian --json"))
    counts = lw.load("robot.urdf").function("inverse_dynamics").counts
    assert facts["inverse_dynamics"]["M"] == counts.M
    assert "articulated_body" in ok("counts --chain 2 articulated_body linkwise_forward")


def test_bench(ok):
    facts = json.loads(ok("bench robot.urdf inverse_dynamics pose --batch 64 --rounds 1 --json"))
    assert set(facts["functions"]) == {"inverse_dynamics", "pose"}
    assert all(x["batch_ns_per_state"] > 0 for x in facts["functions"].values())


def test_emit(ok, tmp_path):
    assert ok("emit robot.urdf gravity_force --target program").startswith("program gravity_force(q[2])")
    ok("emit robot.urdf pose --body lower --target llvm -o code")
    assert "define" in (tmp_path / "code" / "pose.ll").read_text()


@pytest.mark.parametrize(("target", "sign"), [("c", "#include <math.h>"), ("cuda", "__global__"), ("llvm", "define")])
def test_emit_prints_every_target(ok, target, sign):
    assert sign in ok(f"emit robot.urdf gravity_force --target {target} --dtype float32")


def test_emitted_c_is_right(ok, tmp_path):
    ok("emit robot.urdf forward_dynamics --target c -o code")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    files = ["code/forward_dynamics.c", "code/forward_dynamics_test.c"]
    subprocess.run([compiler, "-o", "check", *files, "-lm"], check=True)
    subprocess.run([str(tmp_path / "check")], check=True)


SDF = """<sdf version="1.9"><model name="bars">
<link name="a"><inertial><mass>1</mass></inertial></link>
<link name="b"><pose>0 0 1 0 0 0</pose><inertial><mass>1</mass></inertial></link>
<link name="c"><pose>1 0 0 0 0 0</pose><inertial><mass>1</mass></inertial></link>
<joint name="i" type="revolute"><parent>world</parent><child>a</child><axis><xyz>0 1 0</xyz></axis></joint>
<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 1 0</xyz></axis></joint>
<joint name="k" type="revolute"><pose>0 0 1 0 0 0</pose><parent>b</parent><child>c</child><axis><xyz>0 1 0</xyz></axis>
</joint>
<joint name="l" type="revolute"><parent>world</parent><child>c</child><axis><xyz>0 1 0</xyz></axis></joint>
<joint name="g" type="gearbox"><parent>a</parent><child>b</child><gearbox_ratio>0.5</gearbox_ratio>
<gearbox_reference_body>a</gearbox_reference_body><axis><xyz>0 1 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>
</model></sdf>"""


def test_info_shows_loops_and_couplings(ok, tmp_path):
    (tmp_path / "bars.sdf").write_text(SDF)
    out = ok("info bars.sdf")
    assert "loop  type      from   to  equations" in out
    assert "l     revolute  world  c           5  x, y, z, tilt" in out
    assert "coupling  type      between" in out
    assert "g         coupling  1 j = 0" in out
    facts = json.loads(ok("info bars.sdf --json"))
    assert facts["loops"][0]["bodies"] == ["world", "c"]
    assert facts["couplings"] == [{"name": "g", "type": "coupling", "joints": ["j"], "equations": ["coupling"]}]


def test_info_reads_a_side_file(ok, run, tmp_path):
    (tmp_path / "robot.yaml").write_text("closed_loop: [['lower', 'world']]\ntype: ['3d']\n")
    assert "lower-world  spherical  lower  world" in ok("info robot.urdf --loops robot.yaml")
    assert "loop" not in ok("info robot.urdf")
    status, _, err = run("info planar_arm --loops robot.yaml")
    assert (status, "built-in models cannot be changed" in err) == (2, True)


def test_included_models_are_found_by_the_path(ok, run, tmp_path):
    (tmp_path / "models" / "bars").mkdir(parents=True)
    (tmp_path / "models" / "bars" / "model.sdf").write_text(SDF)
    (tmp_path / "w.sdf").write_text(
        '<sdf version="1.9"><world name="w"><include><uri>model://bars</uri></include></world></sdf>'
    )
    assert json.loads(ok("info w.sdf --search models --json"))["nv"] == 3
    status, _, err = run("info w.sdf")
    assert status != 0
    assert "was not found" in err


def test_simulate_closes_the_loops_first(ok, tmp_path):
    (tmp_path / "bars.sdf").write_text(SDF.replace(SDF[SDF.index('<joint name="g"') : SDF.index("</model>")], ""))
    found = json.loads(ok("simulate bars.sdf --q0 i=0.3 --duration 0.2 --samples 3 --json"))
    model = lw.load("bars.sdf")
    for q in found["q"]:
        assert abs(model.closure_error(np.array(q))).max() < 1e-9


MJCF = """
<mujoco model="bars">
  <worldbody>
    <body name="crank"><joint name="motor" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.2"/>
      <body name="rod" pos="0 0 0.2"><joint name="pin" axis="0 1 0"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.5 0 0"/></body></body>
    <body name="rocker" pos="0.5 0 0"><joint name="pivot" axis="0 1 0"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.2"/></body>
  </worldbody>
  <equality><connect name="close" body1="rod" body2="rocker" anchor="0.5 0 0"/></equality>
  <actuator><position name="servo" joint="motor" kp="5" kv="0.1"/></actuator>
  <sensor><jointpos name="angle" joint="motor"/></sensor>
  <keyframe><key name="up" qpos="0 0 0"/><key name="open" qpos="0.3 0 0"/></keyframe>
</mujoco>
"""


def test_mjcf_shows_all_that_it_has_and_moves(ok, tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "bars.xml").write_text(MJCF)
    out = ok("info bars.xml")
    assert "close  spherical  rod   rocker" in out
    assert "servo     motor  5 u - 5 l - 0.1 l'" in out
    assert "angle   joint_position  motor" in out
    assert "open           0.3 0 0" in out
    facts = json.loads(ok("info bars.xml --json"))
    assert facts["configurations"]["open"] == [0.3, 0.0, 0.0]
    assert facts["actuators"][0]["bias"] == [0.0, -5.0, -0.1]
    ok("simulate bars.xml --q0 open --u servo=0.5 --duration 0.1 -o out.npz")
    motion = Trajectory.load(tmp_path / "out.npz")
    assert motion.q[0, 0] == pytest.approx(motion.q[0, 2], abs=1e-9)  # closed, a parallelogram
    assert 0.05 < motion.q[0, 0] < 0.3
    assert motion.tau[0, 0] == pytest.approx(5 * (0.5 - motion.q[0, 0]))


@pytest.mark.parametrize("u", ["1", "1,", "sevro=1", "servo=x"])
def test_controls_that_do_not_fit(run, tmp_path, u):
    pytest.importorskip("mujoco")
    (tmp_path / "bars.xml").write_text(MJCF)
    status, _, err = run(f"simulate bars.xml --u {u} --duration 0.01")
    assert (status == 0) == (u == "1"), err


# The first minutes.
@pytest.mark.parametrize("words", ["", " --model seven_joint_arm"])
def test_a_first_script_runs(ok, words):
    assert "python arm.py" in ok(f"new arm.py{words}")
    done = subprocess.run([sys.executable, "arm.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "to hold it up" in done.stdout and "ends at" in done.stdout


def test_a_first_script_overwrites_nothing(run, tmp_path):
    (tmp_path / "mine.py").write_text("precious")
    status, _, err = run("new mine.py")
    assert status == 2 and "there already" in err
    assert (tmp_path / "mine.py").read_text() == "precious"
    assert run("new arm.txt")[0] == 2
    status, _, err = run("new arm.py --model nothing")
    assert status == 2 and "humanoid" in err
    assert not (tmp_path / "arm.py").exists()


def test_models_are_listed_and_found_by_name(ok):
    assert set(BUILT_IN) == set(samples.__all__) - {"squeezer_forces"}
    out = ok("models")
    assert all(f"\n{name} " in out for name in BUILT_IN)
    found = {each["name"]: each for each in json.loads(ok("models --json"))}
    assert found["humanoid"]["nv"] == 35 and found["quadruped"]["mass"] == pytest.approx(15.4)
    assert "front_left_knee" in ok("info quadruped")


BLOCK = """<robot name="block"><link name="block"><inertial><mass value="1"/>
<inertia ixx="0.004" iyy="0.004" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link></robot>"""


def test_a_block_falls_on_the_ground_that_an_option_adds(ok, tmp_path):
    (tmp_path / "block.urdf").write_text(BLOCK)
    out = ok("simulate block.urdf --floating --ground -0.5 --duration 1 --samples 3 -o fall.npz")
    assert "contact: 4 points press at most" in out
    assert lw.Trajectory.load("fall.npz").q[-1, 6] == pytest.approx(-0.4, abs=1e-9)
    assert "contact: 1 shapes on bodies, no ground: --ground gives one" in ok("info block.urdf --floating")


FLOOR = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1"/>
  <body name="ball" pos="0 0 .1"><freejoint/><geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>"""


def test_functions_of_models_that_touch(ok, run, tmp_path):
    """On the floor of a file as it is, or one that an option adds; without any they are refused by name."""
    (tmp_path / "ball.xml").write_text(FLOOR)
    assert "distances(" in ok("emit ball.xml distances --target c")
    assert "distances" in ok("counts ball.xml distances")
    (tmp_path / "air.xml").write_text(FLOOR.replace('<geom name="floor" type="plane" size="1 1 .1"/>', ""))
    assert "distances(" in ok("emit air.xml distances --ground --target c")
    status, _, err = run("emit air.xml distances --target c")
    assert status == 2 and "distances is for models whose bodies touch" in err
