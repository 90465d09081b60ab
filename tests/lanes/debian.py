"""Interpreters out of Debian's packages, each in a folder of its own: for this machine, or for another under QEMU.

Nothing is installed on the machine. ``apt-get``, with a folder of its own for all that it keeps, finds out which
packages a Python needs and downloads them; they are unpacked, and a script stands where the interpreter was, which
starts it with the libraries that came along. To uv and to programs that start ``sys.executable`` again, it is a Python
as any other.

Programs of another machine that are no Python, such as those that tests compile, start inside of ``with_programs``.
"""

from __future__ import annotations

import platform
import shlex
import shutil
import subprocess
from pathlib import Path

SUITES = {"3.13": "trixie", "3.14": "forky"}
"""The suite of Debian that has a Python."""

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's names of machines."""

BESIDE = ("libgomp1", "libstdc++6")
"""What wheels take to be on every machine, beside what a Python needs."""

LOADERS = {"x86_64": "lib64/ld-linux-x86-64.so.2", "aarch64": "lib/ld-linux-aarch64.so.1"}
"""Programs that load a program and its libraries."""

PROCESSORS = {"aarch64": "neoverse-n1"}
"""Processors that QEMU is. What it would take is one that signs pointers: Python runs 18 times as long there."""

NUMBERS = {"aarch64": 0xB7}
"""Numbers of machines in the head of a program."""

WITH_PROGRAMS = """
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf %s "$1" > /proc/sys/fs/binfmt_misc/register
shift
exec "$@"
"""
"""Says in a namespace of its own, where everybody may, who starts what the processor does not; then goes on there."""


class UnreachableError(Exception):
    """Why a Python cannot be had here."""


def interpreter(python: str, machine: str, home: Path) -> Path:
    """A Python such as 3.13 for a machine such as aarch64, in a folder of a home; made unless it is there."""
    if python not in SUITES:
        raise UnreachableError(f"neither uv nor Debian has a Python {python} here")
    if machine not in MACHINES:
        raise UnreachableError(f"no packages of Debian's are known for {machine}")
    folder = home / f"python{python}-{machine}"
    root = folder / "root"
    script = root / "usr" / "bin" / f"python{python}"
    program = script.with_name("program")
    start = _start(root, machine)
    if not program.exists():
        if root.exists():
            shutil.rmtree(root)
        for name in ("bin", "lib", "lib64"):
            (root / "usr" / name).mkdir(parents=True)
            (root / name).symlink_to(f"usr/{name}")
        for package in _packages(folder, MACHINES[machine], SUITES[python], f"python{python}", *BESIDE):
            _do("dpkg-deb", "-x", str(package), str(root))
        script.rename(program)
    script.write_text(f'#!/bin/sh\nexec {shlex.join(start)} "$0" {shlex.quote(str(program))} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script


def with_programs(machine: str) -> list[str]:
    """The words before a command in which, and in all that it starts, programs of another machine start as any other.

    QEMU is entered for them into a table of the kernel that only this command sees (Linux 6.7 or newer).
    """
    head = [*b"\x7fELF", 2, 1, 1, *(0,) * 9, 2, 0, NUMBERS[machine], 0]
    care = [*(0xFF,) * 7, 0, *(0xFF,) * 8, 0xFE, *(0xFF,) * 3]  # whoever's conventions; at a place of its own or at any
    magic, mask = ("".join(f"\\x{byte:02x}" for byte in each) for each in (head, care))
    entry = f":{machine}:M::{magic}:{mask}:{_qemu(machine)}:F"
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", WITH_PROGRAMS, "sh", entry]
    _do(*words, "true")
    return words


def _start(root: Path, machine: str) -> list[str]:
    """The words that start a program of another root; next is its zeroth word, by which Python finds its folder."""
    if machine == platform.machine():
        libraries = root / "usr" / "lib" / f"{machine}-linux-gnu"
        return [str(root / LOADERS[machine]), "--library-path", str(libraries), "--argv0"]
    # By names in the environment, so that programs that the program starts have them too.
    return ["env", f"QEMU_LD_PREFIX={root}", f"QEMU_CPU={PROCESSORS[machine]}", _qemu(machine), "-0"]


def _qemu(machine: str) -> str:
    found = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
    if found is None:
        raise UnreachableError(f"there is no qemu-{machine} (Debian: apt-get install qemu-user-static)")
    return found


def _packages(folder: Path, architecture: str, suite: str, *names: str) -> list[Path]:
    """Packages with all that they need, downloaded by an ``apt-get`` that keeps what it knows in a folder."""
    targets = _do("apt-get", "indextargets", "--format", "$(LABEL) $(SITE)").splitlines()
    site = next((line.split()[1] for line in targets if line.startswith("Debian ")), None)
    if site is None:
        raise UnreachableError("apt-get knows no archive of Debian's: apt-get update")
    kept = folder / "apt"
    archives = kept / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb {site} {suite} main\n", encoding="utf-8")
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
        "Dir::Cache": kept,
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": kept,
        "Dir::State::Status": "/dev/null",
    }
    apt = ("apt-get", "--quiet", "--yes", *(f"-o{name}={value}" for name, value in settings.items()))
    _do(*apt, "update")
    _do(*apt, "install", "--download-only", *names)
    return sorted(archives.glob("*.deb"))


def _do(*words: str) -> str:
    if not shutil.which(words[0]):
        raise UnreachableError(f"there is no {words[0]}")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnreachableError(f"{words[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return done.stdout
