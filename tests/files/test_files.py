from __future__ import annotations

import os
from pathlib import Path

import pytest

from linkwise.errors import InputError, LinkwiseError, ModelFileError
from linkwise.files import load, loads
from linkwise.files.resources import LARGEST_FILE, read_bytes


def refusal(path: str | Path) -> str:
    with pytest.raises(LinkwiseError) as caught:
        load(path)
    return str(caught.value)


def test_a_missing_file_gets_the_near_names(tmp_path: Path) -> None:
    (tmp_path / "panda.urdf").write_text("<robot/>")
    message = refusal(tmp_path / "pnada.urdf")
    assert "there is no such file" in message
    assert f"did you mean {str(tmp_path / 'panda.urdf')!r}?" in message
    assert "panda.urdf" in refusal(tmp_path / "something_else.urdf")
    assert "there is no folder" in refusal(tmp_path / "nowhere" / "x.urdf")


def test_a_missing_file_in_an_empty_folder(tmp_path: Path) -> None:
    assert "holds no model file" in refusal(tmp_path / "x.urdf")


def test_a_folder_gets_the_models_in_it(tmp_path: Path) -> None:
    assert "give the path of a file" in refusal(tmp_path)
    (tmp_path / "panda.urdf").write_text("<robot/>")
    message = refusal(tmp_path)
    assert "this is a folder" in message
    assert "panda.urdf" in message


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "a.urdf"
    path.write_text("<robot/>")
    path.chmod(0)
    assert "no permission" in refusal(path)


def test_permission_refused_by_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert "no permission" in refusal(tmp_path / "a.urdf")


@pytest.mark.parametrize("content", [b"", b"  \n\t "])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.urdf"
    path.write_bytes(content)
    assert "the file is empty" in refusal(path)
    with pytest.raises(ModelFileError, match="the text is empty"):
        loads(content)


def test_a_huge_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.urdf"
    with path.open("wb") as stream:
        stream.truncate(LARGEST_FILE + 1)
    assert "too large to be a model" in refusal(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_an_endless_file() -> None:
    assert "too large to be a model" in refusal("/dev/zero")


def test_a_path_too_long_for_the_system() -> None:
    assert "cannot read this file" in refusal("x" * 10_000)


@pytest.mark.parametrize("path", [3, None, b"a.urdf", 1.5])
def test_what_is_not_a_path(path: object) -> None:
    with pytest.raises(InputError, match="must be a string or a path"):
        read_bytes(path, suffixes=())  # type: ignore[arg-type]


def test_odd_paths() -> None:
    assert "use linkwise.loads(text)" in refusal("<robot name='x'/>")
    assert "null character" in refusal("a\0b")


def test_text_that_is_a_path() -> None:
    with pytest.raises(ModelFileError, match=r"use linkwise\.load"):
        loads("panda.urdf")
    with pytest.raises(InputError, match="must be a string or bytes"):
        loads(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.xml", b"<mujocoinclude/>", "a part of a model"),
        ("a.mjcf", b"<mujoco><frog/></mujoco>", "unrecognized element"),
        ("a.sdf", b"<sdf version='1.9'/>", "one model or one world"),
        ("a.urdf", b"<sdf version='1.9'/>", "one model or one world"),
        ("a.usda", b"#usda 1.0", "not supported yet: USD"),
        ("a.xml", b"<html/>", "its root element is unknown"),
        ("a.xacro", b"<robot><xacro:include/></robot>", "this is a xacro file"),
        ("a.urdf", b"\x89PNG", "not well-formed XML"),
    ],
)
def test_other_formats(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert words in refusal(path)


@pytest.mark.parametrize("snap", [-1e-3, 1.0, float("nan")])
def test_angle_snap_has_a_range(snap: float) -> None:
    with pytest.raises(InputError, match="angle_snap is out of range"):
        loads("<robot/>", angle_snap=snap)
