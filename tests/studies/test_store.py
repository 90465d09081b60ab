"""Stores: what is killed resumes, what is damaged is never read, and a full disk is said."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.stats as st

import linkwise as lw
from linkwise import samples
from tests.studies import studies

pytest.importorskip("zarr")


def arguments(members=40, **more):
    inputs = {"q0": st.norm(0.5, 0.1), "load": st.norm(0.0, 1.0)}
    return {"model": samples.planar_arm(), "inputs": inputs, "members": members, "seed": 3, "duration": 0.05,
            "method": "rk4", "dt": 1e-2, "batch": 8, "keep": ["final", {"speed": studies.speed}],
            "reduce": {"q": "q"}, **more}  # fmt: skip


@pytest.fixture(scope="module")
def reference():
    return lw.ensemble(**arguments())


@pytest.fixture
def folder(tmp_path):
    lw.ensemble(**arguments(), store=tmp_path / "study")
    return tmp_path / "study"


def test_what_is_stored_is_what_was_computed(folder, reference):
    results = lw.studies.open(folder)
    assert studies.same_bits(results, reference)
    assert results.moments("q").mean.tobytes() == reference.moments("q").mean.tobytes()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["versions"]["linkwise"] == lw.__version__
    assert manifest["seed"] == "3"
    assert manifest["model"]["hash"] == reference.manifest["model"]["hash"]
    assert manifest["machine"]
    assert {"duration", "method", "dt"} <= set(manifest["settings"])
    assert lw.studies.open(folder, reference.study).check(17)
    with pytest.raises(lw.LinkwiseError, match="needs the study"):
        results.replay(3)


def test_xarray_and_parquet(folder, reference, tmp_path):
    pytest.importorskip("xarray")
    data = lw.studies.open(folder).to_xarray()
    assert data["q_final"].dims[0] == "member"
    assert np.array_equal(data["q_final"].values, reference["q_final"])
    assert np.array_equal(reference.to_xarray()["speed"].values, reference["speed"])
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(reference.to_parquet(tmp_path / "table.parquet"))
    assert table.num_rows == 40
    assert np.array_equal(table["q_final[1]"].to_numpy(), reference["q_final"][:, 1])


def test_a_store_is_never_overwritten(folder):
    with pytest.raises(lw.InputError, match="nothing is overwritten"):
        lw.ensemble(**arguments(), store=folder)
    for change, what in (({"duration": 0.06}, "study"), ({"members": 41}, "members"), ({"seed": 4}, "study")):
        with pytest.raises(lw.studies.StoreError, match=f"another study: the {what} differs"):
            lw.ensemble(**(arguments() | change), store=folder, resume=True)
    heavier = samples.planar_arm().with_gravity((0, 0, -9.8))
    with pytest.raises(lw.studies.StoreError, match="the model differs"):
        lw.ensemble(**(arguments() | {"model": heavier}), store=folder, resume=True)


def test_a_resumed_run_repeats_nothing(tmp_path, reference):
    def stop(fraction):
        if fraction > 0.5:
            raise StopIteration

    with pytest.raises(StopIteration):
        lw.ensemble(**arguments(), store=tmp_path / "s", progress=stop)
    before = lw.studies.open(tmp_path / "s")
    assert not before.is_complete
    assert before.counts["not run"] == 16
    with pytest.raises(lw.studies.StoreError, match="has not been run"):
        before["speed"]
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "s/records").iterdir()}
    after = lw.ensemble(**arguments(), store=tmp_path / "s", resume=True)
    assert studies.same_bits(after, reference)
    assert all((tmp_path / "s/records" / name).stat().st_mtime_ns == when for name, when in kept.items())


def test_a_run_that_is_killed_resumes(tmp_path):
    """SIGKILL in the middle of writing; blocks are as small as they get, so that it hits some."""
    code = (
        "import sys, linkwise as lw; sys.path.insert(0, sys.argv[1]); from tests.studies.test_store import arguments; "
        "lw.ensemble(**arguments(members=1600), store=sys.argv[2])"
    )
    root = str(Path(__file__).parents[2])
    store = tmp_path / "s"
    process = subprocess.Popen([sys.executable, "-c", code, root, str(store)], cwd=root)
    while not (store / "records").exists() or len(list((store / "records").glob("*.json"))) < 20:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = lw.studies.open(store).store.finished()
    assert 20 <= len(finished) < 200
    assert lw.studies.open(store).store.damaged() == {}  # what counts as done is whole
    after = lw.ensemble(**arguments(members=1600), store=store, resume=True)
    assert studies.same_bits(after, lw.ensemble(**arguments(members=1600)))


# Interrupts, and what is missing.
INTERRUPTED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import linkwise as lw
from tests.studies.test_store import arguments

def press(done):
    if done > 0.3:
        os.kill(os.getpid(), signal.SIGINT)

lw.ensemble(**arguments(members=400), store=sys.argv[2] if len(sys.argv) > 2 else None, progress=press)
"""


def interrupted(*words):
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", INTERRUPTED, root, *words], cwd=root, capture_output=True, text=True, check=False
    )


def last_word(ended):
    """The one line, behind warnings that numcodecs has where google_crc32c is missing."""
    *before, line = ended.stderr.strip().splitlines()
    assert not before or "numcodecs" in before[0], ended.stderr
    assert "Traceback" not in ended.stderr
    return line


def test_ctrl_c_ends_in_one_line_that_says_how_to_go_on(tmp_path):
    store = tmp_path / "s"
    ended = interrupted(str(store))
    assert ended.returncode != 0
    line = last_word(ended)
    done = 8 * len(lw.studies.open(store).store.finished())
    assert 120 < done < 400
    assert line.startswith(f"interrupted after {done} of 400 members; they are safe in {str(store)!r}; to go on")
    assert "seed=3, resume=True" in line
    after = lw.ensemble(**arguments(members=400), store=store, resume=True)
    assert studies.same_bits(after, lw.ensemble(**arguments(members=400)))


def test_ctrl_c_without_a_store_says_that_nothing_is_kept():
    line = last_word(interrupted())
    assert line.endswith("of 400 members; nothing is kept without a store")


def test_an_interrupt_can_be_caught_as_any(tmp_path, monkeypatch):
    def press(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("linkwise.studies.running.drive", press)
    with pytest.raises(KeyboardInterrupt, match="interrupted after 0 of 40 members") as found:
        lw.ensemble(**arguments(), store=tmp_path / "s")
    assert found.value.folder == tmp_path / "s"


def test_a_missing_extra_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(lw.errors.MissingExtraError, match="zarr") as found:
        lw.ensemble(**arguments(), store=tmp_path / "s")
    assert not (tmp_path / "s").exists()
    assert str(found.value).splitlines()[0].endswith('pip install "linkwise[ensemble]"')
    monkeypatch.undo()
    assert lw.ensemble(**arguments(), store=tmp_path / "s").members == 40


def test_a_store_whose_making_was_broken_off_is_made_anew(tmp_path):
    (tmp_path / "s" / "records").mkdir(parents=True)
    (tmp_path / "s" / "data.zarr").mkdir()
    assert lw.ensemble(**arguments(), store=tmp_path / "s").members == 40
    (tmp_path / "other" / "records").mkdir(parents=True)
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(lw.InputError, match="not empty"):
        lw.ensemble(**arguments(), store=tmp_path / "other")
    assert (tmp_path / "other" / "notes.txt").exists()


# Damage.
def chunk_of(folder, name, number):
    found = [path for path in (folder / "data.zarr" / name).rglob("*") if path.is_file() and path.name != "zarr.json"]
    return sorted(found, key=lambda path: [int(x) for x in path.relative_to(folder / "data.zarr" / name).parts[1:]])[
        number
    ]


def flip(path, at=-1):
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


DAMAGE = {
    "a bit": lambda f: flip(chunk_of(f, "speed", 2)),
    "a chunk that is cut short": lambda f: os.truncate(chunk_of(f, "speed", 2), 17),
    "a chunk that is gone": lambda f: chunk_of(f, "speed", 2).unlink(),
    "another block's chunk": lambda f: chunk_of(f, "speed", 2).write_bytes(chunk_of(f, "speed", 1).read_bytes()),
    "a bit of the record": lambda f: flip(f / "records/00000002.json", 40),
    "an empty record": lambda f: (f / "records/00000002.json").write_bytes(b""),
    "another block's record": lambda f: (f / "records/00000002.json").write_bytes(
        (f / "records/00000001.json").read_bytes()
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_nothing_damaged_is_read(folder, reference, what):
    DAMAGE[what](folder)
    results = lw.studies.open(folder)
    with pytest.raises(lw.studies.StoreError, match="block 2") as caught:
        results["speed"]
    assert caught.value.blocks == (2,)
    assert np.array_equal(results.read("speed", 0, 16), reference["speed"][:16])  # the others are good
    assert list(results.store.damaged()) == [2]
    pytest.importorskip("xarray")
    with pytest.raises(lw.studies.StoreError, match="damaged"):
        results.to_xarray()
    with pytest.warns(lw.studies.StoreWarning, match="block 2 is run again"):
        mended = lw.ensemble(**arguments(), store=folder, resume=True)
    assert studies.same_bits(mended, reference)


def test_a_damaged_manifest_is_said(folder):
    path = folder / "manifest.json"
    content = path.read_text()
    path.write_text(content.replace('"members": 40', '"members": 32'))
    with pytest.raises(lw.studies.StoreError, match="checksum is wrong"):
        lw.studies.open(folder)
    path.write_text(content[:100])
    with pytest.raises(lw.studies.StoreError, match="manifest cannot be read"):
        lw.studies.open(folder)
    path.unlink()
    with pytest.raises(lw.InputError, match="not the store of an ensemble"):
        lw.studies.open(folder)


def test_data_of_another_format_is_refused(folder):
    """Format 2 of zarr can ask for codecs that unpickle, and so run what is in the file."""
    import shutil

    import zarr

    shutil.rmtree(folder / "data.zarr")
    group = zarr.create_group(folder / "data.zarr", zarr_format=2)
    group.create_array("speed", shape=(40,), chunks=(8,), dtype="f8")
    with pytest.raises(lw.studies.StoreError, match="cannot be opened"):
        lw.studies.open(folder)


# A full disk.
@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte; needs the right to mount."""
    place = tmp_path / "disk"
    place.mkdir()
    options = ["-t", "tmpfs", "-o", "size=1m,nr_inodes=2000"]
    if sys.platform != "linux" or subprocess.run(["mount", *options, "tmpfs", place], capture_output=True).returncode:
        pytest.skip("a file system of its own cannot be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_said_and_nothing_is_lost(small_disk):
    big = arguments(members=400, batch=20, keep=["final", "q", "v"], output_times=np.linspace(0.0, 0.05, 51))
    with pytest.raises(lw.studies.StoreError, match=r"could not be written: the disk is full[\s\S]*blocks are safe"):
        lw.ensemble(**big, store=small_disk / "s")
    partial = lw.studies.open(small_disk / "s")
    done = partial.store.finished()
    assert 0 < len(done) < 20
    assert partial.store.damaged() == {}
    subprocess.run(["mount", "-o", "remount,size=8m,nr_inodes=8000", small_disk], check=True)
    after = lw.ensemble(**big, store=small_disk / "s", resume=True)
    assert studies.same_bits(after, lw.ensemble(**big))


def test_a_limit_on_files_is_said(tmp_path):
    """Where nothing can be mounted: the system refuses to let a file grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    usual = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
    try:
        with pytest.raises(lw.studies.StoreError, match="the disk is full"):
            lw.ensemble(**arguments(members=400, batch=200), store=tmp_path / "s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, usual)
    assert lw.studies.open(tmp_path / "s").store.finished() == []
