"""Rewriting expressions by the rules: ``simplify``, ``inverse``, ``expand``, one rule by name, and the steps taken."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import product as every
from typing import TYPE_CHECKING

from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.operators.atoms import Diagonal
from linkwise.operators.expressions import Identity, Inverse, Product, Sum, Term, Transposed, product, total
from linkwise.operators.operator import Operator
from linkwise.operators.rules import RULES, Rule, named
from linkwise.spatial.scalar import Scalar

if TYPE_CHECKING:
    from linkwise.operators.state import Operators

_MOST_STEPS = 200


@dataclass(frozen=True)
class Step:
    """One replacement: ``before`` was found in the expression and became ``after``; ``whole`` came out."""

    reason: str
    statement: str
    before: Operator
    after: Operator
    whole: Operator

    def __str__(self) -> str:
        return f"{self.before.name} → {self.after.name}   [{self.reason}]"


@dataclass(frozen=True)
class Replacement:
    """A rule's two sides, one way round, for one state."""

    rule: Rule
    before: Operator
    after: Operator
    how: str = ""

    @property
    def reason(self) -> str:
        """The equation, and whether its adjoint or its other direction was used."""
        return f"{self.rule.source}{self.how}"


def simplify(expression: Operator) -> Operator:
    """The same operator with fewer sweeps and factors: rules of use ``simplify`` until none applies.

    The result keeps its ``derivation``; ``explain()`` prints it.
    """
    steps: list[Step] = []
    return _recorded(_simplified(expression, steps), expression, steps)


def inverse(expression: Operator) -> Operator:
    """The inverse by rule, in a form that runs as sweeps; unrewritten where no rule helps (then it cannot be applied).

    (HφMφ*H*)⁻¹ becomes (I − HψK)* D⁻¹ (I − HψK), and a product of square factors is inverted factor by factor.
    """
    if expression.rows != expression.cols:
        raise InputError(
            f"{expression.name} is not square and has no inverse", got=f"{expression.name} {expression.shape}"
        )
    steps: list[Step] = []
    return _recorded(_inverted(Inverse(expression), steps), Inverse(expression), steps)


def expand(expression: Operator) -> Operator:
    """Sums multiplied out, so that rules can reach across parentheses."""
    steps: list[Step] = []
    result = _expanded(expression)
    if result.key != expression.key:
        steps.append(_step(Replacement(_DISTRIBUTED, expression, result), result))
    return _recorded(result, expression, steps)


def rewrite(expression: Operator, rule: Rule | str, *, reverse: bool = False) -> Operator:
    """One rule, by name, applied wherever it fits, and the adjoint of the rule too; an error where it fits nowhere."""
    rule, ops = named(rule), expression.engine.owner
    if not rule.holds_for(ops):
        raise InputError(f"{rule.name} does not hold for this mechanism", got=rule.statement, allowed=rule.needs)
    steps: list[Step] = []
    result = _exhausted(expression, list(_directions(rule, ops, reverse)), steps, most=20)
    if not steps:
        raise InputError(
            f"the rule {rule.name} fits nowhere in {expression.name}", got=expression.name, allowed=rule.statement
        )
    return _recorded(result, expression, steps)


def explain(expression: Operator) -> str:
    """The steps that led to an expression, each with its equation; those of ``simplify`` where none are recorded."""
    shown = expression if expression.derivation else simplify(expression)
    if not shown.derivation:
        return f"{expression.name}\n  no rule applies"
    lines = [shown.derivation[0].whole.name if not shown.derivation[0].reason else ""]
    for step in shown.derivation:
        if not step.reason:
            continue
        lines.append(f"  = {step.whole.name}")
        lines.append(f"      {step.before.name} = {step.after.name}   [{step.reason}]")
    return "\n".join(lines)


# Simplifying.
def _simplified(expression: Operator, steps: list[Step]) -> Operator:
    ops = expression.engine.owner
    return _exhausted(expression, list(_replacements("simplify", ops)), steps)


def _exhausted(
    expression: Operator, replacements: Sequence[Replacement], steps: list[Step], most: int = _MOST_STEPS
) -> Operator:
    seen = {expression.key}
    for _ in range(most):
        tried = ((_replaced(expression, replacement), replacement) for replacement in replacements)
        found = next(((new, r) for new, r in tried if new is not None and new.key not in seen), None)
        if found is None:
            return expression
        expression, replacement = found
        seen.add(expression.key)
        steps.append(_step(replacement, expression))
    return expression


def _replacements(use: str, ops: Operators) -> Iterator[Replacement]:
    for rule in RULES.values():
        if rule.use == use and rule.holds_for(ops):
            yield from _directions(rule, ops, False)


def _directions(rule: Rule, ops: Operators, reverse: bool) -> Iterator[Replacement]:
    left, right = rule.sides(ops)
    how = ""
    if reverse:
        left, right, how = right, left, ", from right to left"
    yield Replacement(rule, left, right, how)
    if left.T.key != left.key:
        yield Replacement(rule, left.T, right.T, f"{how}, adjoint")


def _replaced(expression: Operator, r: Replacement) -> Operator | None:
    """The expression with the first occurrence of a rule's left side replaced; None where there is none."""
    if expression.key == r.before.key:
        return r.after
    if isinstance(expression, Product):
        word = _in_word(expression.factors, r)
        if word is not None:
            return product(*word)
    if isinstance(expression, Sum):
        terms = _in_terms(expression.terms, r)
        if terms is not None:
            return total(*terms)
    for i, part in enumerate(expression.parts):
        found = _replaced(part, r)
        if found is not None:
            return _with_part(expression, i, found)
    return None


def _with_part(expression: Operator, i: int, part: Operator) -> Operator:
    return expression.with_parts([*expression.parts[:i], part, *expression.parts[i + 1 :]])


def _in_word(factors: Sequence[Operator], r: Replacement) -> list[Operator] | None:
    """A run of factors equal to the rule's left side."""
    word = r.before.factors if isinstance(r.before, Product) else (r.before,)
    keys = [factor.key for factor in word]
    for i in range(len(factors) - len(word) + 1):
        if [factor.key for factor in factors[i : i + len(word)]] == keys:
            return [*factors[:i], r.after, *factors[i + len(word) :]]
    return None


def _in_terms(terms: Sequence[Term], r: Replacement) -> list[Term] | None:
    """Some terms that are, up to one common number, those of the rule's left side."""
    if not isinstance(r.before, Sum) or len(r.before.terms) > len(terms):
        return None
    by_key = {op.key: c for c, op in terms}
    if not all(op.key in by_key for _, op in r.before.terms):
        return None
    ratios = {_ratio(by_key[op.key], c) for c, op in r.before.terms}
    if len(ratios) != 1 or None in ratios:
        return None
    taken = {op.key for _, op in r.before.terms}
    return [*((c, op) for c, op in terms if op.key not in taken), (ratios.pop(), r.after)]


def _ratio(a: Scalar, b: Scalar) -> float | None:
    return a / b if isinstance(a, float) and isinstance(b, float) else None


# Inverting.
def _inverted(expression: Operator, steps: list[Step]) -> Operator:
    """Open one inverse after another until none is left or none can be opened."""
    for _ in range(_MOST_STEPS):
        opened = _opened_somewhere(expression)
        if opened is None:
            return expression
        expression, replacement = opened
        if replacement is not None:
            steps.append(_step(replacement, expression))
    return expression


def _opened_somewhere(expression: Operator) -> tuple[Operator, Replacement | None] | None:
    if isinstance(expression, Inverse):
        return _opened(expression.operator)
    for i, part in enumerate(expression.parts):
        found = _opened_somewhere(part)
        if found is not None:
            return _with_part(expression, i, found[0]), found[1]
    return None


def _opened(inner: Operator) -> tuple[Operator, Replacement | None] | None:
    """inner⁻¹ one step on, and the rule that was used (None for what is merely a matter of writing)."""
    if isinstance(inner, Identity):
        return inner, None
    if isinstance(inner, Inverse):
        return inner.operator, None
    if isinstance(inner, Sum) and len(inner.terms) == 1:
        coefficient, op = inner.terms[0]
        return total((1.0 / coefficient, Inverse(op))), None
    if isinstance(inner, Diagonal) and inner.is_symmetric:
        word = inner.word
        known = word.removesuffix("_inverse") if word.endswith("_inverse") else f"{word}_inverse"
        return Diagonal(inner.engine, known, inner.cols, inner.rows, True), None
    ops = inner.engine.owner
    for r in (*_replacements("inverse", ops), *_replacements("simplify", ops)):
        if r.before.key == Inverse(inner).key:
            return r.after, r
    for r in _replacements("inverse", ops):
        if r.before.key == inner.key:  # a factorisation
            return Inverse(r.after), r
    if isinstance(inner, Product) and all(factor.rows == factor.cols for factor in inner.factors):
        opened = product(*(Inverse(factor) for factor in reversed(inner.factors)))
        return opened, Replacement(_PRODUCT, Inverse(inner), opened)
    for r in _replacements("simplify", ops):
        found = _replaced(inner, r)
        if found is not None:
            return Inverse(found), r
    return None


_PRODUCT = Rule("product_inverse", "(AB)⁻¹ = B⁻¹A⁻¹", "(AB)⁻¹ = B⁻¹A⁻¹", "inverse")
_DISTRIBUTED = Rule("distributed", "A(B + C) = AB + AC", "A(B + C) = AB + AC", "derive")


# Multiplying out.
def _expanded(expression: Operator) -> Operator:
    if isinstance(expression, Transposed) and isinstance(expression.operator, Sum):
        return _expanded(total(*((c, op.T) for c, op in expression.operator.terms)))
    if isinstance(expression, Sum):
        return total(*((c, _expanded(op)) for c, op in expression.terms))
    if isinstance(expression, Product):
        choices = [_terms(_expanded(factor)) for factor in expression.factors]
        return total(*(_multiplied_out(choice) for choice in every(*choices)))
    return expression


def _terms(expression: Operator) -> Sequence[Term]:
    return expression.terms if isinstance(expression, Sum) else ((1.0, expression),)


def _multiplied_out(choice: Sequence[Term]) -> Term:
    number: Scalar = 1.0
    for coefficient, _ in choice:
        number = number * coefficient
    return number, product(*(op for _, op in choice))


# Keeping the steps.
def _step(r: Replacement, whole: Operator) -> Step:
    return Step(r.reason, r.rule.statement, r.before, r.after, whole)


def _recorded(result: Operator, start: Operator, steps: Sequence[Step]) -> Operator:
    """The result with its derivation; the start is a step without a reason."""
    if not steps:
        return result
    before = start.derivation or (Step("", "", start, start, start),)
    noted = copy.copy(result)
    noted.derivation = (*before, *steps)
    return noted
