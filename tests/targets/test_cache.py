"""Objects on disk: found again, never trusted when damaged, never shared with strangers."""

import contextlib
import multiprocessing
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from linkwise.targets import cache
from linkwise.targets.llvm import jit
from linkwise.targets.llvm.kernel import BatchKernel
from linkwise.trace.block import ArraySpec, Block
from tests.targets.programs import mixture


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "objects"
    monkeypatch.setenv("LINKWISE_CACHE_DIR", str(folder))
    return folder


def files(home):
    return sorted(home.glob("*.lwo"))


def _never(*_, **__):
    raise AssertionError("compiled although kept")


def test_kept_and_found(home, monkeypatch):
    assert cache.get("k", lambda: b"one") == b"one"
    assert cache.get("k", _never) == b"one"
    assert cache.get("other", lambda: b"two") == b"two"
    assert len(files(home)) == 2
    assert home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("tier", ["quick", "optimised"])
def test_kernel_is_not_compiled_twice(home, monkeypatch, tier):
    monkeypatch.setenv("LINKWISE_TIER", tier)
    BatchKernel.build(mixture())
    monkeypatch.setattr(jit, "compile_text", _never)
    monkeypatch.setattr(jit, "compile_quickly", _never)
    start = time.perf_counter()
    kernel = BatchKernel.build(mixture())
    assert time.perf_counter() - start < 0.1  # some two milliseconds; the limit allows for a busy machine
    y = [np.empty((1, a.size)) for a in kernel.program.outputs]
    kernel.evaluate([np.ones((1, a.size)) for a in kernel.program.inputs], y, 1)


def test_keys_differ(home):
    base = (("input", 0, 0), ("const", 1.0), ("add", 0, 1))
    for nodes in (base, (base[0], ("const", 2.0), base[2]), (*base[:2], ("mul", 0, 1))):
        for dtype in (np.float64, np.float32):
            program = Block("p", nodes, (ArraySpec("x", (1,)),), (ArraySpec("y", (1,)),), ((2,),))
            BatchKernel.build(program, dtype)
    assert len(files(home)) == 6


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:40],
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
        lambda data: b"X" + data[1:],
        lambda data: os.urandom(len(data)),
    ],
)
def test_damage_is_repaired(home, damage):
    BatchKernel.build(mixture())
    (file,) = files(home)
    good = file.read_bytes()
    file.write_bytes(damage(good))
    x = [np.ones((3, a.size)) for a in mixture().inputs]
    y = [np.empty((3, a.size)) for a in mixture().outputs]
    BatchKernel.build(mixture()).evaluate(x, y, 3)
    assert files(home)[0].read_bytes() == good


def test_renamed_file_does_not_pass(home):
    cache.store("a", b"code of a")
    files(home)[0].rename(home / (cache._digest("b") + ".lwo"))
    assert cache.load("b") is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs POSIX permissions")
def test_untrusted_folders(home, monkeypatch):
    cache.store("k", b"data")
    home.chmod(0o770)
    assert cache.load("k") is None
    home.chmod(0o702)
    assert cache.folder() is None
    home.chmod(0o700)
    assert cache.load("k") == b"data"
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert cache.folder() is None


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_link_is_not_followed(home, monkeypatch, tmp_path):
    cache.store("k", b"data")
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("LINKWISE_CACHE_DIR", str(tmp_path / "link"))
    assert cache.folder() is None


def test_switched_off(home, monkeypatch):
    monkeypatch.setenv("LINKWISE_CACHE", "0")
    assert cache.get("k", lambda: b"x") == b"x"
    assert not home.exists()


def test_unusable_folder_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LINKWISE_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert cache.get("k", lambda: b"x") == b"x"


def test_oldest_go_first(home, monkeypatch):
    monkeypatch.setattr(cache, "LIMIT_BYTES", 3500)
    for k in range(3):
        cache.store(f"k{k}", bytes(1000))
        os.utime(home / (cache._digest(f"k{k}") + ".lwo"), (k, k))
    cache.load("k0")  # now the youngest
    cache.store("k3", bytes(1000))
    assert [cache.load(f"k{k}") is not None for k in range(4)] == [True, False, True, True]


def test_a_folder_of_many_small_files_is_seldom_gone_through(home, monkeypatch):
    looks = []
    monkeypatch.setattr(cache, "LIMIT_BYTES", 64 * 1000)
    monkeypatch.setattr(cache, "_evict", looks.append)
    for k in range(400):
        cache.store(f"k{k}", bytes(100))
    assert 20 < len(looks) < 60  # one in ten, of files a tenth as long as what is stored between two looks


def _hammer(k):
    for i in range(50):
        key = f"k{i % 5}"
        if cache.get(key, lambda key=key: key.encode() * 5000) != key.encode() * 5000:
            return False
        if i % 7 == k % 7:
            path = cache.folder() / (cache._digest(key) + ".lwo")
            with contextlib.suppress(OSError):
                path.write_bytes(b"damaged")
    return True


def test_many_processes(home):
    context = multiprocessing.get_context("fork") if hasattr(os, "fork") else multiprocessing.get_context()
    with context.Pool(4) as pool:
        assert all(pool.map(_hammer, range(4)))


def test_llvm_is_imported_late():
    code = "import sys, linkwise.targets.llvm.kernel; sys.exit('llvmlite.binding' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
