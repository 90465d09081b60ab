"""Write the drawing of architecture.md anew: `python docs/generate_architecture.py`."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- house: begin -->", "<!-- house: end -->"

GROUPS = {
    "What people use": ("__main__", "cli", "control", "gym", "studies", "papers", "viz", "space", "files", "samples"),
    "The two together": ("sim", "model", "kinematics", "bridges", "functions"),
    "The program": ("targets", "trace"),
    "The mathematics": (
        "operators",
        "classics",
        "contact",
        "algorithms",
        "mechanism",
        "joints",
        "flexible",
        "math",
        "spatial",
    ),
    "Under everything": ("checks", "array_types", "dataclass", "errors", "memoized"),
}


def layers() -> list[list[str]]:
    """The rows of the first import contract, from above."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contract = tomllib.load(file)["tool"]["importlinter"]["contracts"][0]
    return [[name.strip("() ") for name in row.split("|")] for row in contract["layers"]]


def sentence(name: str) -> str:
    """The first sentence at the top of a folder or a file."""
    path = ROOT / "linkwise" / name
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    whole = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return " ".join(whole.split("\n\n")[0].split())


def upwards(name: str) -> set[str]:
    """The folders above that a folder imports from inside single functions, as the contract lists them."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        listed = tomllib.load(file)["tool"]["importlinter"]["contracts"][0]["ignore_imports"]
    pairs = [[side.split(".")[1] for side in each.split(" -> ")] for each in listed]
    return {there for here, there in pairs if here == name}


def imported(name: str) -> set[str]:
    """The folders that a folder imports from, but for type checkers."""
    path = ROOT / "linkwise" / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    found: set[str] = set()
    for file in files:
        for node in _running(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                parts = node.module.split(".")
                found |= {parts[1]} if parts[0] == "linkwise" and len(parts) > 1 else set()
                found |= {alias.name for alias in node.names} if node.module == "linkwise" else set()
    return {folder for row in layers() for folder in row} & found - {name} - upwards(name)


def _running(tree: ast.AST) -> list[ast.AST]:
    """All nodes outside of ``if TYPE_CHECKING``."""
    found: list[ast.AST] = []
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        found.append(node)
        todo.extend(ast.iter_child_nodes(node))
    return found


def house() -> str:
    """A table of the folders, highest first, with what each is for and what it stands on."""
    order = [name for row in layers() for name in row]
    lines = ["| | folder | what belongs there | stands on |", "|---|---|---|---|"]
    for group, members in GROUPS.items():
        for k, name in enumerate(sorted(members, key=order.index)):
            below = sorted(imported(name) - set(GROUPS["Under everything"]), key=order.index)
            title = f"**{group}**" if k == 0 else ""
            slash = "/" if (ROOT / "linkwise" / name).is_dir() else ".py"
            lines.append(f"| {title} | `{name}{slash}` | {sentence(name)} | {', '.join(below)} |")
    return "\n".join(lines)


def page() -> str:
    """The page with its drawing made anew."""
    text = PAGE.read_text(encoding="utf-8")
    return f"{text.split(BEGIN)[0]}{BEGIN}\n{house()}\n{END}{text.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
