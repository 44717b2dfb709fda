"""The rules by which evalkit's own code is broken: what stands at a place of a module's tree instead.

Nothing is broken in annotations, decorators, defaults and docstrings, in assertions and in the words of an
error: they are read by people, or read once when a module is loaded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

#: A comparison and its neighbours: off by one, and the other way round.
_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_REACHED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
}
_OTHER_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_READ_BY_PEOPLE = (ast.Assert, ast.Raise, ast.JoinedStr)


@dataclass(frozen=True)
class Change:
    """One place of a tree and what is to stand there: ``parent.where[place]``, or ``parent.where`` itself."""

    scope: str
    line: int
    rule: str
    before: str
    after: str
    parent: ast.AST = field(repr=False, compare=False)
    where: str = field(repr=False, compare=False)
    place: int | None = field(repr=False, compare=False)
    instead: ast.AST | list[ast.stmt] = field(repr=False, compare=False)

    def make(self) -> None:
        """Change the tree that it was found in."""
        if self.place is None:
            setattr(self.parent, self.where, self.instead)
        else:
            listed = getattr(self.parent, self.where)
            several = self.instead if isinstance(self.instead, list) else [self.instead]
            listed[self.place : self.place + 1] = several


def changes(tree: ast.Module) -> Iterator[Change]:
    """Every change of every rule within the functions of a module, and of its whole numbers with a name."""
    loaded = _called_when_loaded(tree)
    for place, statement in enumerate(tree.body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int(number))) if (
                type(number) is int
            ):
                for other in (number + 1, number - 1):
                    made = deepcopy(statement)
                    made.value = ast.copy_location(ast.Constant(other), statement.value)
                    yield _change(name, "named number", tree, "body", place, statement, made)
            case ast.FunctionDef(name=name) if name not in loaded:
                yield from _within(statement, name)
            case ast.ClassDef(name=name):
                for inner in statement.body:
                    if isinstance(inner, ast.FunctionDef):
                        yield from _within(inner, f"{name}.{inner.name}")


def _called_when_loaded(tree: ast.Module) -> set[str]:
    """Functions that are called while their module is loaded: to change them later changes nothing."""
    statements = [each for each in tree.body if not isinstance(each, ast.FunctionDef)]
    found = set()
    for statement in statements:
        inner = statement.body if isinstance(statement, ast.ClassDef) else [statement]
        for each in inner:
            if not isinstance(each, ast.FunctionDef):
                found |= {node.func.id for node in ast.walk(each) if _is_call(node)}  # type: ignore[attr-defined]
    return found


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _change(
    scope: str,
    rule: str,
    parent: ast.AST,
    where: str,
    place: int | None,
    before: ast.AST,
    instead: ast.AST | list[ast.stmt],
) -> Change:
    several = instead if isinstance(instead, list) else [instead]
    after = "; ".join(ast.unparse(ast.fix_missing_locations(each)) for each in several)
    line: int = before.lineno  # type: ignore[attr-defined]
    shown = (" ".join(text.split())[:90] for text in (ast.unparse(before), after))
    return Change(scope, line, rule, *shown, parent, where, place, instead)


def _within(function: ast.FunctionDef, scope: str) -> Iterator[Change]:
    body = function.body
    told = ast.get_docstring(function, clean=False) is not None
    for place, statement in enumerate(body):
        if not (told and place == 0):
            yield from _of(statement, function, "body", place, scope)


def _of(node: ast.AST, parent: ast.AST, where: str, place: int | None, scope: str) -> Iterator[Change]:
    """The changes of a node and of all within it."""
    if isinstance(node, _READ_BY_PEOPLE):
        return
    found = _statement(node) if isinstance(node, ast.stmt) else _expression(node)
    for rule, instead in found:
        yield _change(scope, rule, parent, where, place, node, instead)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        if _are_types(node, name):
            continue
        if isinstance(value, ast.AST):
            yield from _of(value, node, name, None, scope)
        elif isinstance(value, list):
            for at, inner in enumerate(value):
                if isinstance(inner, ast.AST):
                    yield from _of(inner, node, name, at, scope)
    if isinstance(node, ast.comprehension):
        for at, condition in enumerate(node.ifs):
            true = ast.copy_location(ast.Constant(True), condition)
            yield _change(scope, "condition dropped", node, "ifs", at, condition, true)


def _are_types(node: ast.AST, name: str) -> bool:
    """Whether a field has the types that a thing is asked for: another operator there only raises."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and (node.func.id == "isinstance" and name == "args")
    )


def _like(node: ast.AST, made: ast.AST) -> ast.AST:
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _statement(node: ast.stmt) -> Iterator[tuple[str, ast.AST | list[ast.stmt]]]:
    nothing = [ast.copy_location(ast.Pass(), node)]
    match node:
        case (
            ast.Expr(value=ast.Call()) | ast.Continue() | ast.Break() | ast.Delete() | ast.Return(value=None)
        ):
            yield "statement dropped", list(nothing)
        case ast.Assign(targets=targets) if not any(
            isinstance(each, ast.Name | ast.Tuple) for each in targets
        ):
            yield "statement dropped", list(nothing)
        case ast.AugAssign(op=op):
            yield "statement dropped", list(nothing)
            if type(op) in _REACHED:
                made = deepcopy(node)
                made.op = _REACHED[type(op)]()
                yield "operator", made
        case ast.If(test=test, body=body, orelse=other):
            yield "branch dropped", deepcopy(other) or list(nothing)
            yield "branch always", deepcopy(body)
            if not isinstance(test, ast.Compare | ast.UnaryOp):
                made_if = deepcopy(node)
                made_if.test = ast.UnaryOp(ast.Not(), made_if.test)
                yield "negated", _like(node, made_if)
        case ast.While(test=test) if not isinstance(test, ast.Constant):
            yield "loop dropped", list(nothing)
        case ast.Return(value=value) if value is not None:
            made_return = deepcopy(node)
            if isinstance(value, ast.Compare | ast.BoolOp):
                made_return.value = ast.UnaryOp(ast.Not(), deepcopy(value))
                yield "negated", _like(node, made_return)
            elif not (isinstance(value, ast.Constant) and value.value is None):
                made_return.value = ast.Constant(None)
                yield "return of nothing", _like(node, made_return)


def _expression(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                for other in _COMPARED[type(op)]:
                    made = deepcopy(node)
                    made.ops[place] = other()
                    yield "comparison", made
        case ast.BoolOp(op=op, values=values):
            made_bool = deepcopy(node)
            made_bool.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and/or", made_bool
            for place in range(len(values)):
                rest = [deepcopy(each) for at, each in enumerate(values) if at != place]
                yield "operand dropped", rest[0] if len(rest) == 1 else _like(node, ast.BoolOp(op, rest))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not dropped", deepcopy(operand)
        case ast.Constant(value=bool(value)):
            yield "constant", _like(node, ast.Constant(not value))
        case ast.Constant(value=int(number)):
            yield "constant", _like(node, ast.Constant(number + 1))
            yield "constant", _like(node, ast.Constant(number - 1))
        case ast.Constant(value=float(number)):
            yield "constant", _like(node, ast.Constant(number + 1.0))
        case ast.BinOp(op=op) if type(op) in _REACHED:
            made_op = deepcopy(node)
            made_op.op = _REACHED[type(op)]()
            yield "operator", made_op
        case ast.Call(func=ast.Name(id=name), args=given) if name in _OTHER_CALLS:
            made_call = deepcopy(node)
            made_call.func = _like(node.func, ast.Name(_OTHER_CALLS[name], ast.Load()))
            yield f"{name} for {_OTHER_CALLS[name]}", made_call
            if name in ("min", "max") and len(given) > 1 and not node.keywords:
                for each in given:
                    yield f"an argument of {name} alone", deepcopy(each)
        case ast.IfExp(body=body, orelse=other):
            yield "branch always", deepcopy(body)
            yield "branch dropped", deepcopy(other)
