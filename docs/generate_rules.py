"""Write guide/operator_rules.md: `python docs/generate_rules.py`."""

from __future__ import annotations

from pathlib import Path

from linkwise.operators import rules

PAGE = Path(__file__).parent / "guide" / "operator_rules.md"

HEAD = """# Operator rules

The identities that the library knows, from `lw.operators.rules()`; this page is generated
(`python docs/generate_rules.py`). Each holds for every state, and for the adjoints of its two sides. [](operators.md)
shows them at work, [](../notation.md) explains the letters, [](../theory/papers.md) the numbers of the papers. (+ J_r)
stands for rotor inertias, where the mechanism has any.

`expr.rewrite("name")` puts the right side in place of the left one wherever it is found, and
`expr.rewrite("name", reverse=True)` the left in place of the right.
"""
USES = {
    "simplify": "Used by `simplify()`: they take away sweeps or factors.",
    "inverse": "Used by `.inv()`.",
    "derive": "Applied by name only: they change the form.",
}


def page() -> str:
    """The page's text."""
    lines = [HEAD]
    for use, title in USES.items():
        lines += [f"## {title}", "", "| name | identity | paper | where |", "|---|---|---|---|"]
        for rule in rules(use):
            statement = rule.statement.replace("*", "\\*").replace("~", "\\~").replace("|", "\\|")
            lines.append(f"| `{rule.name}` | {statement} | {rule.source} | {rule.needs or ''} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
