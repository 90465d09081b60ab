"""Expressions of xacro files: Python's values for what is allowed, a refusal by name for all else; nothing is run."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.files.xacro_expressions import Allowance, evaluate
from linkwise.files.xacro_functions import Namespace, builtin_names

HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
PROPERTIES = {"n": 3, "x": 0.25, "name": "arm", "rows": [1, [2.5, "a"]], "d": {"k": {"z": 4}, "items": 5}, "none": None}
NAMES = Namespace({**builtin_names(), **PROPERTIES})
PYTHON = {**vars(math), **PROPERTIES, "math": math}


def value(text: str) -> object:
    return evaluate(text, NAMES, Allowance())


@pytest.mark.parametrize(
    "text",
    [
        "1", "-1.5e-3", "0x10", "'a' \"b\"", "True", "None", "[]", "()", "{}", "{'a': 1, 2: [3]}", "(1, 'b')",
        "1 + 2 * 3 - 4 / 5 // 1 % 7 ** 2", "-2 ** 2", "2 ** -1", "2 ** 0.5", "+n", "~n", "5 & 3 | 8 ^ 1",
        "1 ** 10 ** 9",
        "n < 4 <= 4 != 5", "1 < 0 < 1 / 0", "'r' in name", "2 not in rows", "none is None", "n == 3.0", "name > 'a'",
        "n and 0 or 'x'", "not n", "0 and 1 / 0", "1 or 1 / 0", "x if n > 2 else 1 / 0", "rows[1][0]", "rows[-1]",
        "name[1:]", "rows[::-1]", "name[::2]", "d['k']['z']", "name + '_' + str(n)", "name * 2", "[0] * 3",
        "rows + [1]",
        "sin(pi / 2)", "math.sqrt(2)", "radians(90)", "degrees(1)", "atan2(1, 2)", "hypot(3, 4)", "floor(2.5)", "tau",
        "factorial(10)", "comb(10, 3)", "math.prod([2, 3.5])", "math.lcm(4, 6)", "isnan(nan)", "fsum([.1] * 10)",
        "len(rows)", "int('12')", "int(2.9)", "float('1e3')", "str([1, 'a'])", "bool('')", "min(3, 1, 2)",
        "max([1, 5])",
        "abs(-2)", "round(2.567, 2)", "round(2.5)", "sum([1, 2.5])", "sum([1], 2)", "list(range(3))", "list('ab')",
        "tuple([1])", "sorted([3, 1])", "list(range(4, 0, -2))", "dict(a=1, b=[2])", "list(map(float, '1 2'.split()))",
        "list(zip([1, 2], 'ab'))", "list(enumerate('ab'))", "any([0, 1])", "all([])", "divmod(7, 2)",
        "name.upper()", "'a-b'.replace('-', '_')", "','.join(['a', 'b'])", "' a '.strip()", "name.startswith('a')",
        "d.get('k')", "list(d.keys())", "list(d.items())", "rows.index(1)", "name.find('m')",
    ],
)  # fmt: skip
def test_values_are_those_of_python(text: str) -> None:
    expected = eval(text, dict(PYTHON))  # our own texts, above
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_dots_look_up_entries() -> None:
    assert value("d.k.z") == 4
    assert value("d.items") == 5
    assert value("python.len(rows)") == 2
    assert value("{'a': 1}.a") == 1


CHAINS = [
    "().__class__", "().__class__.__bases__[0].__subclasses__()", "(1).real", "''.__len__()", "name.__class__",
    "d.__class__", "d.__init__", "math.__dict__", "math.__loader__", "python.__class__", "len.__self__", "sin.__name__",
    "rows.append(1)", "rows.__setitem__(0, 1)", "d.update(a=1)", "d.pop('k')", "name.format(1)", "name.encode()",
    "'{0.__class__}'.format(n)", "'{0.__class__}'.format_map(d)", "'%s' % n", "f'{n}'", "f'{n.__class__}'", "b'a'",
    "1j",
    "...", "{1, 2}", "[c for c in [1]]", "[c.__class__ for c in [1]]", "{c: 1 for c in 'a'}", "list(c for c in 'a')",
    "lambda: 1", "(lambda: 1)()", "(lambda: 1).__globals__", "(y := 1)", "[*rows]", "len(*rows)", "{**d}",
    "dict(**d)", "max(rows, key=len)", "eval('1')", "exec('1')", "open('/etc/passwd')", "__import__('os')", "compile",
    "globals()", "locals()", "vars(d)", "type(n)", "getattr(n, 'real')", "setattr(d, 'a', 1)", "hasattr(n, 'a')",
    "dir()",
    "input()", "print(1)", "object", "super()", "property", "memoryview", "bytes(5)", "bytearray(5)", "set()",
    "iter([])",
    "python.vars(d)", "python.type(n)", "python.hash(n)", "python.getattr(n, 'real')", "python.isinstance(n, int)",
    "python.slice(1)", "python.complex(1)", "python.filter(None, [1])", "math", "len", "python", "str(len)", "[sin]",
    "map(map, [1])", "map(rows, [1])", "map('a', [1])", "map()", "n()", "name()", "rows[0]()", "sin(1)()", "d.k()",
    "1 << 10", "1 @ 2", "math.foo", "nothing", "n.k", "await n", "(yield)", "_", "__builtins__", "__name__", "os",
    "sys",
    "sys.modules", "'a'.join.__self__", "str.join(',', ['a'])", "int.from_bytes(b'a')", "float.fromhex('1')",
    "dict.fromkeys",
]  # fmt: skip
COSTLY = [
    "9 ** 9 ** 9", "10 ** 10 ** 10", "2 ** 2 ** 20", "(2 ** 4000) ** 2000", "math.factorial(10 ** 6)",
    "comb(10 ** 6, 5)",
    "perm(10 ** 5)", "'a' * 10 ** 9", "10 ** 9 * 'a'", "[0] * 10 ** 9", "[[0] * 1000] * 1000", "(0,) * 10 ** 8",
    "range(10 ** 12)", "list(range(0, 10 ** 30, 1))", "round(5, -10 ** 9)", "round(1.5, 10 ** 9)",
    "('a' * 50000).replace('a', 'b' * 50000)", "('a' * 50000).join(list('a' * 1000))", "math.prod([10 ** 300] * 1000)",
    "'9' * 99999 + '9' * 99999", "str([['a' * 99] * 900] * 9)", "0x" + "f" * 3000, "9" * 3999, "(" * 100 + ")" * 100,
    "-" * 3000 + "1", "not " * 900 + "1", "1" + "+1" * 1500, "[" * 60 + "]" * 60, "(" * 5000, "1 if " * 500, "a" * 5000,
    "int('f' * 99999, 16)", "int('1' * 9999)", "math.lcm(" + ",".join(f"10 ** {k} + 1" for k in range(200)) + ")",
    "sum([[1]] * 3, [])", "(-8) ** (1 / 3)", "''.join([1])", "1 / 0", "math.sqrt(-1)", "1e308 * 10 ** 400", "rows[9]",
    "d['z']", "int('x')", "'\x00'\x00", "exp(1e9)", "1 +", "import os", "a = 1", "1; 2", "rows[1, 2]", "rows['a']",
    "[] < 1",
]  # fmt: skip


@pytest.mark.parametrize("text", [*CHAINS, *COSTLY])
def test_all_else_is_refused(text: str) -> None:
    with pytest.raises(lw.errors.ModelFileError) as caught:
        value(text)
    assert caught.value.what and caught.value.got is not None and caught.value.allowed is not None


def test_a_refusal_has_the_name() -> None:
    for text, name in {
        "d.__class__": "'__class__'",
        "[c for c in [1]]": "comprehension",
        "name.format(1)": "'format'",
        "lambda: 1": "lambda",
        "f'{n}'": "f-string",
        "(y := 1)": "assignment",
        "getattr(n, 'real')": "'getattr'",
        "1 << 2": "LShift",
    }.items():
        with pytest.raises(lw.errors.ModelFileError, match=name):
            value(text)


def test_values_cannot_grow_by_sharing() -> None:
    """Lists of the same list twice are small in memory and endless to write out or compare."""
    with pytest.raises(lw.errors.ModelFileError, match="too large"):
        grown: object = [1]
        for _ in range(64):
            grown = evaluate("[a, a]", Namespace({"a": grown}), Allowance())


def test_steps_are_counted() -> None:
    allowance = Allowance()
    with pytest.raises(lw.errors.ModelFileError, match="too many steps"):
        for _ in range(10**4):
            evaluate("sorted(list(range(20000)))", NAMES, allowance)


ATTACKS = [
    # Through what functions are made of, by texts that no check of names sees.
    "python.vars(python.type(python.vars(python.type(xacro.load_yaml))['__globals__']))['__get__']"
    "(python.vars(python.type(xacro.load_yaml))['__globals__'], xacro.load_yaml)['os'].popen('touch CANARY').read()",
    "python.vars(python.type(xacro.load_yaml)).get('__globals__')",
    "xacro.load_yaml.__globals__['os'].system('touch CANARY')",
    "().__class__.__base__.__subclasses__()[0].__init__.__globals__['os'].system('touch CANARY')",
    "[c for c in ().__class__.__base__.__subclasses__()][0]('touch CANARY')",
    "__import__('os').system('touch CANARY')",
    "python.type('X', (), dict(a=1))",
    "'{0.__globals__[os].environ}'.format(xacro.load_yaml)",
]


@pytest.mark.parametrize("expression", ATTACKS)
@pytest.mark.parametrize(
    "body",
    [
        '<link name="${%s}"/>',
        '<link name="$(eval %s)"/>',
        '<xacro:property name="p" value="${%s}"/><link name="${p}"/>',
        '<xacro:if value="${%s}"><link name="a"/></xacro:if>',
        '<xacro:macro name="m" params="a:=${%s}"><link name="${a}"/></xacro:macro><xacro:m/>',
        '<xacro:include filename="${%s}"/>',
        '<link name="a"/><xacro:property name="y" value="${xacro.load_yaml(\'evil.yaml\')}"/><link name="${y}"/>',
    ],
)
def test_no_command_runs(tmp_path: Path, body: str, expression: str) -> None:
    canary = tmp_path / "canary"
    text = expression.replace("CANARY", str(canary))
    (tmp_path / "evil.yaml").write_text(f"a: !degrees {text}\nb: !!python/object/apply:os.system ['touch {canary}']\n")
    path = tmp_path / "r.xacro"
    body = body.replace("%s", text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;"))
    path.write_text(f"{HEAD}{body}</robot>")
    with pytest.raises(lw.errors.ModelFileError):
        lw.load(path, arguments={})
    assert not canary.exists()
