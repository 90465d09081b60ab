"""Programs as text a person can read: one line a value."""

from __future__ import annotations

from linkwise.tracing.block import Block


def to_text(program: Block) -> str:
    """The program, one assignment a line."""
    lines = [f"program {program.name}({', '.join(f'{a.name}{list(a.shape)}' for a in program.inputs)})"]
    for number, (op, *arguments) in enumerate(program.nodes):
        if op == "const":
            text = repr(arguments[0])
        elif op == "input":
            text = f"{program.inputs[arguments[0]].name}[{arguments[1]}]"
        else:
            text = f"{op} {', '.join(f'%{a}' for a in arguments)}"
        lines.append(f"  %{number} = {text}")
    for spec, result in zip(program.outputs, program.results, strict=True):
        lines.append(f"  {spec.name}{list(spec.shape)} = {', '.join(f'%{n}' for n in result)}")
    return "\n".join(lines)
