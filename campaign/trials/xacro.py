"""Hostile xacro files from a grammar: one of our errors or plain data; nothing is run, read or written elsewhere."""

from __future__ import annotations

import dataclasses
import itertools
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from campaign.shrink import shrink
from campaign.trial import Log, Trial, said

_LARGEST = 20.0
"""Seconds of processor time that a file may take on a busy machine."""
_SECRET = "LINKWISE_CAMPAIGN_SECRET"
_VALUE = "never to be seen"
_HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'

_NAMES = (
    "n", "x", "name", "rows", "d", "none", "pi", "math", "python", "xacro", "len", "str", "int", "float", "list",
    "dict", "map", "range", "max", "sum", "sorted", "round", "abs", "type", "vars", "getattr", "setattr", "hasattr",
    "dir", "eval", "exec", "compile", "open", "input", "print", "object", "super", "globals", "locals", "__import__",
    "__builtins__", "breakpoint", "help", "memoryview", "bytes", "os", "sys", "subprocess", "builtins", "self",
    "load_yaml", "env", "optenv", "find", "arg", "dirname", "true",
)  # fmt: skip
_ATTRIBUTES = (
    "__class__", "__base__", "__bases__", "__mro__", "__subclasses__", "__globals__", "__builtins__", "__dict__",
    "__init__", "__get__", "__getattribute__", "__self__", "__func__", "__code__", "__closure__", "__module__",
    "__reduce__", "__reduce_ex__", "__doc__", "__loader__", "__spec__", "__call__", "gi_frame", "cr_frame", "f_back",
    "f_globals", "f_builtins", "tb_frame", "co_consts", "func_globals", "mro", "format", "format_map", "join",
    "split", "replace", "encode", "decode", "lower", "upper", "strip", "startswith", "zfill", "ljust", "center",
    "expandtabs", "translate", "real", "imag", "numerator", "to_bytes", "from_bytes", "fromhex", "append", "extend",
    "pop", "update", "get", "keys", "values", "items", "index", "count", "load_yaml", "vars", "type", "popen",
    "system", "k", "z", "sin", "sqrt", "factorial", "prod", "abs_filename", "arg", "tokenize", "warning", "fatal",
    "message",
)  # fmt: skip
_TEXTS = (
    "a", "", "__globals__", "__class__", "os", "{0.__class__}", "{0.__init__.__globals__[os]}", "%s", "%999999999d",
    "{:>9999999}", "touch CANARY", "import os; os.system('touch CANARY')", "/etc/passwd", "../secret.yaml",
    "../../../../etc/passwd", "~", "r.xacro", "evil.yaml", "HOME", _SECRET, "\\x00", "\\ud800", "\\N{BULLET}", "0x10",
    "1_0", "nan", "9" * 50, "a b c",
)  # fmt: skip
_NUMBERS = (
    "0", "1", "-1", "3", "0.5", "1e308", "1e-320", "10**9", "2**60", "9**9**9", "10**400", "1e999", "0x7f", "1j",
    "True",
)  # fmt: skip
_OPERATORS = (
    "+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "@", "==", "<", "in", "not in", "is", "and", "or",
)  # fmt: skip


_FILES = ("../secret.yaml", "/etc/*", "../*", "**/*", "r.xacro", "/proc/self/environ", "evil.yaml")
_EVIL = """<xacro:property name="y" value="${xacro.load_yaml('evil.yaml')}"/>"""


def expression(rng: np.random.Generator, depth: int = 0) -> str:
    """An expression of Python's grammar, with a taste for what leads out."""

    def some(options: Sequence[str]) -> str:
        return options[rng.integers(len(options))]

    def inner() -> str:
        return expression(rng, depth + 1)

    if depth > 5 or rng.random() < 0.25:
        quoted = some(_TEXTS).replace("'", "\\'")
        return some([some(_NUMBERS), some(_NAMES), f"'{quoted}'", "[]", "{}", "()"])
    makers: tuple[Callable[[], str], ...] = (
        lambda: f"{inner()}.{some(_ATTRIBUTES)}",
        lambda: f"{inner()}.{some(_ATTRIBUTES)}({inner()})",
        lambda: f"{some(_NAMES)}({inner()})",
        lambda: f"{some(_NAMES)}({inner()}, {inner()})",
        lambda: f"{some(_NAMES)}.{some(_ATTRIBUTES)}({inner()})",
        lambda: f"python.{some(_NAMES)}({inner()})",
        lambda: f"{inner()}({inner()})",
        lambda: f"{inner()}[{inner()}]",
        lambda: f"{inner()}[{inner()}:{inner()}]",
        lambda: f"({inner()} {some(_OPERATORS)} {inner()})",
        lambda: f"({inner()} if {inner()} else {inner()})",
        lambda: f"[{inner()}, {inner()}]",
        lambda: f"{{{inner()}: {inner()}}}",
        lambda: f"[{inner()} for n in {inner()}]",
        lambda: f"list({inner()} for n in {inner()} if {inner()})",
        lambda: f"(lambda n: {inner()})({inner()})",
        lambda: f"(w := {inner()})",
        lambda: f'f"{{{inner()}}}"',
        lambda: f"'{{0.{some(_ATTRIBUTES)}}}'.format({inner()})",
        lambda: f"'%s' % ({inner()},)",
        lambda: f"{some(_NAMES)}(*{inner()}, **{inner()})",
        lambda: f"map({some(_NAMES)}, {inner()})",
        lambda: f"{some(['-', '+', '~', 'not '])}{inner()}",
        lambda: f"xacro.load_yaml({inner()})",
        lambda: f"'a' * {some(_NUMBERS)}",
        lambda: f"[{inner()}] * {some(_NUMBERS)}",
        lambda: f"range({some(_NUMBERS)})",
        lambda: f"math.{some(['factorial', 'comb', 'perm', 'prod', 'exp', 'lcm'])}({inner()})",
        lambda: "(" * int(rng.integers(300)) + inner(),
        lambda: some(["-", "not ", "[", "~"]) * int(rng.integers(2000)) + "1",
    )
    return makers[rng.integers(len(makers))]()


def document(rng: np.random.Generator, depth: int = 0) -> str:
    """Elements of a xacro file around hostile expressions."""

    def some(options: Sequence[str]) -> str:
        return options[rng.integers(len(options))]

    def text() -> str:
        found = expression(rng)
        form = some(
            ["${%s}", "$(eval %s)", "a${%s}b", "$(find %s)", "$(env %s)", "$(optenv %s x)", "$(arg %s)", "$${%s}", "%s"]
        )
        return _escaped(form.replace("%s", found))

    def inner() -> str:
        return document(rng, depth + 1) if depth < 4 else "<a/>"

    k = int(rng.integers(4))
    makers: tuple[Callable[[], str], ...] = (
        lambda: f'<link name="{text()}"/>',
        lambda: f"<t>{text()}</t>",
        lambda: f'<xacro:property name="p{k}" value="{text()}"/><link name="${{p{k}}}"/>',
        lambda: f'<xacro:property name="p{k}" value="${{[p{(k + 1) % 4}, p{(k + 1) % 4}]}}"/>{inner()}',
        lambda: f'<xacro:property name="p{k}" value="${{p{k} + p{k}}}" lazy_eval="false"/>{inner()}',
        lambda: f'<xacro:property name="{text()}" value="1" scope="{some(["global", "parent"])}"/>',
        lambda: f'<xacro:arg name="{some(_NAMES)}" default="{text()}"/>{inner()}',
        lambda: f'<xacro:if value="{text()}">{inner()}</xacro:if>',
        lambda: f'<xacro:unless value="{text()}">{inner()}</xacro:unless>',
        lambda: f'<xacro:macro name="m{k}" params="a:={text()} *b c:=^|{text()}">{inner()}'
        f'<xacro:insert_block name="b"/></xacro:macro><xacro:m{k}><b>{text()}</b></xacro:m{k}>',
        lambda: f'<xacro:macro name="m{k}">{inner()}<xacro:m{(k + 1) % 4}/><xacro:m{k}/></xacro:macro><xacro:m{k}/>',
        lambda: "".join(
            f'<xacro:macro name="l{i}">{f"<xacro:l{i - 1}/>" * 9 if i else inner()}</xacro:macro>' for i in range(9)
        ) + f"<xacro:l{int(rng.integers(9))}/>",
        lambda: f'<xacro:call macro="{text()}"/>',
        lambda: f'<xacro:element xacro:name="{text()}">{inner()}</xacro:element>',
        lambda: f'<a><xacro:attribute name="{text()}" value="{text()}"/></a>',
        lambda: f'<xacro:include filename="{text()}"/>',
        lambda: f'<xacro:include filename="{some(_FILES)}"'
        f' optional="{some(["true", "false"])}" ns="{some(_NAMES)}"/>',
        lambda: f'{_EVIL}<link name="${{y.{some(_ATTRIBUTES)}}}"/>',
        lambda: inner() + inner(),
    )  # fmt: skip
    return makers[rng.integers(len(makers))]()


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


_RUNNING = (
    "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.putenv", "os.remove", "subprocess", "socket", "ctypes",
)  # fmt: skip


class _Watch:
    """Python's audit events while a file is loaded: what opens, runs or compiles anything is noted."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.seen: list[str] = []
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event == "open":
            path, mode = arguments[0], arguments[1]
            inside = isinstance(path, str) and Path(path).resolve().is_relative_to(self.folder)
            if not inside or (mode is not None and mode not in ("r", "rb")):
                self.seen.append(f"open {path} {mode}")
        elif event == "exec" and sys._getframe(1).f_code.co_filename == dataclasses.__file__:
            return  # methods of our own dataclasses, which are written at their first use
        elif event in ("exec", "import", "code.__new__") or event.startswith(
            (
                "os.system",
                "os.exec",
                "os.fork",
                "os.posix_spawn",
                "os.putenv",
                "os.remove",
                "subprocess",
                "socket",
                "ctypes",
            )
        ):
            self.seen.append(f"{event} {arguments!r:.200}")


_WATCH: list[_Watch] = []


def check(text: str, hidden: str, folder: Path) -> None:
    """Load a file: data or one of our errors, soon, and nothing else happens."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    canary = home / "canary"
    path = home / "r.xacro"
    (folder / "secret.yaml").write_text(f"secret: {_VALUE}\n", encoding="utf-8")
    (home / "evil.yaml").write_text(hidden.replace("CANARY", str(canary)), encoding="utf-8", errors="replace")
    path.write_text(f"{_HEAD}{text}</robot>".replace("CANARY", str(canary)), encoding="utf-8", errors="replace")
    if not _WATCH:
        _warm(home)
        _WATCH.append(_Watch())
    os.environ[_SECRET] = _VALUE
    watch, start = _WATCH[0], time.process_time()
    watch.seen, watch.folder = [], home.resolve()
    said_so = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = lw.load(path, arguments={"n": 1, "name": "arm"})
        said_so = repr(model) + " ".join(body.name for body in model.bodies)
    except lw.LinkwiseError as refusal:
        said_so = str(refusal)
        assert said_so.strip(), "an error without a message"
        if isinstance(refusal, lw.errors.ModelFileError):
            assert refusal.file, "a refusal without the file"
    finally:
        watch.folder = None
    assert not watch.seen, f"while loading: {watch.seen[:3]}"
    assert not canary.exists(), "a command was run"
    assert _VALUE not in said_so, "a secret came out"
    assert time.process_time() - start < _LARGEST, "it took too long"


def _warm(home: Path) -> None:
    """Import what a load imports, so that the watch hears of files alone."""
    path = home / "warm.xacro"
    (home / "warm.yaml").write_text("a: 1\n", encoding="utf-8")
    yaml = "<link name=\"${xacro.load_yaml('warm.yaml')}\"/>"
    for body in ('<link name="${lambda: 1}"/>', '<link name="a"/>', "<xacro:include filename='none'/>", yaml, "<link"):
        path.write_text(f"{_HEAD}{body}</robot>", encoding="utf-8")
        try:
            lw.load(path, arguments={})
        except lw.LinkwiseError:
            continue


class Xacro(Trial):
    """Files that try to get out."""

    name, unit, target, chunk = "xacro", "hostile xacro files from a grammar", 10**6, 10**4
    share, patience = 1.0, 120.0

    def _draw(self, seed: int, number: int) -> tuple[str, str]:
        rng = np.random.Generator(np.random.PCG64([seed, number]))
        tag = ("!degrees", "!!python/object/apply:os.system", "!!python/name:os.system", "&a")[rng.integers(4)]
        return document(rng), f"k: 1\nz: {tag} {expression(rng)}\n"

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Load and load."""
        failed = 0
        with tempfile.TemporaryDirectory() as folder:
            for number in log.numbers(numbers):
                try:
                    check(*self._draw(seed, number), Path(folder))
                except Exception as error:
                    log.fail(number, said(error))
                    failed += 1
                    if failed >= 5:
                        return

    def shrunk(self, seed: int, number: int, seconds: float) -> str:
        """The shortest file that fails in the same way."""
        text, hidden = self._draw(seed, number)

        def simpler(whole: str) -> Iterator[str]:
            for size in itertools.takewhile(bool, (len(whole) >> k for k in range(1, 30))):
                for start in range(0, len(whole), size):
                    yield whole[:start] + whole[start + size :]

        with tempfile.TemporaryDirectory() as folder:
            small, failure = shrink(text, simpler, lambda whole: check(whole, hidden, Path(folder)), seconds)
        return (
            f"def test_xacro(tmp_path: Path) -> None:\n"
            f'    """{failure.splitlines()[0][:100] if failure else "does not fail alone"}"""\n'
            f"    from campaign.trials.xacro import check\n\n"
            f"    check({small!r}, {hidden!r}, tmp_path)\n"
        )
