"""Write guide/operator_rules.md: `python docs/generate_rules.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from docs.building.tex import tex
from linkwise.operators import rules

PAGE = Path(__file__).parent / "guide" / "operator_rules.md"

HEAD = """# Operator rules

The identities that the library knows, from `lw.operators.rules()`; this page is generated
(`python docs/generate_rules.py`). Each holds for every state, and for the adjoints of its two sides. [](operators.md)
shows them at work, [](../notation.md) explains the letters, [](../papers.md) the numbers of the papers.
$(+ J_r)$ stands for rotor inertias, where the mechanism has any.

`expr.rewrite("name")` puts the right side in place of the left one wherever it is found, and
`expr.rewrite("name", reverse=True)` the left in place of the right.

```python
from linkwise import samples

ops = samples.stanford_arm().operators([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
shorter = ((ops.I - ops.H @ ops.psi @ ops.K) @ ops.H @ ops.phi).rewrite("whitened_sweep")
print(shorter)
print(shorter.explain())
```
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
            lines.append(f"| `{rule.name}` | ${tex(rule.statement)}$ | {rule.source} | {rule.needs or ''} |")
        lines.append("")
    lines += ["## Proofs", "", "From the left side to the right one; a test holds every step.", ""]
    for rule in rules():
        if rule.proof:
            left, right = rule.statement.split("=")
            steps = " = ".join(tex(step.strip()) for step in (left, *rule.proof, right))
            lines.append(f"- `{rule.name}`: ${steps}$")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
