import pytest

from linkwise.cli import main

ROBOT = """
<robot name="two links">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="40"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0 0 -1"/>
    <axis xyz="0 1 0"/></joint>
</robot>
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.urdf").write_text(ROBOT)


@pytest.fixture
def run(capsys):
    """Call the program: its status, what it printed, what it said in errors."""

    def call(line):
        status = main(line.split())
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def ok(run):
    """Call the program and expect success: what it printed."""

    def call(line):
        status, out, err = run(line)
        assert status == 0, err
        return out

    return call
