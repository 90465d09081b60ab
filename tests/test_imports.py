"""`import linkwise` stays light: optional packages are imported only where they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import linkwise

OPTIONAL = {
    *("casadi", "control", "cupy", "dask", "distributed", "jax", "matplotlib", "mujoco", "pyNastran", "sympy"),
    *(
        "cloudpickle",
        "cma",
        "collada",
        "erfa",
        "meshio",
        "ppigrf",
        "pymsis",
        "pyarrow",
        "pyyeti",
        "shtab",
        "skfem",
        "torch",
        "trimesh",
        "viser",
        "xarray",
        "zarr",
    ),
}
# Needed by every install, but only once something is compiled, integrated or read.
LATE = {"llvmlite", "scipy", "yaml"}

PACKAGE = Path(linkwise.__path__[0])


def test_importing_linkwise_pulls_in_nothing_heavy():
    code = "import sys, linkwise; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "linkwise" in loaded
    assert not (OPTIONAL | LATE) & set(loaded)


def test_names_are_where_type_checkers_find_them():
    """The imports for type checkers and the table from which names are imported when used say the same."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    read = {(f"{node.module}.{alias.name}", alias.asname or alias.name) for node in block.body for alias in node.names}
    found = {(f"{module}.{name}", name) for module, names in linkwise._MODULES.items() for name in names}
    assert read == found | {(module, name) for name, module in linkwise._GROUPS.items()}
    assert {*linkwise.__all__, "math"} == {name for _, name in read}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_optional_package_is_imported_at_module_level(path):
    found = set(_imported_at_module_level(ast.parse(path.read_text(encoding="utf-8")).body))
    assert not OPTIONAL & found, "import it inside the function, with linkwise.errors.require_extra"


def _imported_at_module_level(body):
    """The packages that a module imports as it is loaded: not inside functions, nor for type checkers only."""
    for node in body:
        match node:
            case ast.Import():
                yield from (alias.name.partition(".")[0] for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                yield from _imported_at_module_level(node.orelse)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pass
            case _:
                for field in ("body", "orelse", "finalbody", "handlers"):
                    yield from _imported_at_module_level(getattr(node, field, []))
