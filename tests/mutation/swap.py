"""A changed module's functions, put into the place of those that run."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from functools import cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any


class Unchanged(Exception):
    """The change reaches no function that runs: it makes no mutant."""


def put_in(module: ModuleType, tree: ast.Module) -> None:
    """Have a module's functions do what a tree of it says. It cannot be taken back: for a forked child.

    A function is the same object as before, so whoever has imported it calls the changed one. Whole numbers
    with a name are changed in each module that has them. What was remembered of calls is forgotten.
    """
    made = dict(_functions(compile(ast.fix_missing_locations(tree), module.__file__ or "", "exec")))
    changed = _renumber(module, tree)
    for function in _live(module):
        place = (function.__code__.co_qualname, function.__code__.co_firstlineno)
        code = made.get(place)
        if code is not None and code != function.__code__:
            try:
                function.__code__ = code
            except ValueError as error:  # it closes over other names
                raise Unchanged(str(error)) from error
            changed += 1
    if not changed:
        raise Unchanged(module.__name__)
    _forget()


def _functions(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """The functions and methods of a module's code, by name and line; not those within functions."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from _functions(constant)


def _live(module: ModuleType) -> Iterator[FunctionType]:
    seen: set[int] = set()
    for value in list(vars(module).values()):
        held = vars(value).values() if isinstance(value, type) else [value]
        if getattr(value, "__module__", None) == module.__name__:
            for each in held:
                for function in _unwrapped(each):
                    if id(function) not in seen:
                        seen.add(id(function))
                        yield function


def _unwrapped(value: Any) -> Iterator[FunctionType]:
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, cached_property):
        value = value.func
    elif isinstance(value, staticmethod | classmethod):
        value = value.__func__
    while value is not None:
        if isinstance(value, FunctionType):
            yield value
        value = getattr(value, "__wrapped__", None)


def _renumber(module: ModuleType, tree: ast.Module) -> int:
    changed = 0
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int(number))):
                before = getattr(module, name)
                if before != number:
                    changed += 1
                    for other in list(sys.modules.values()):
                        if other.__name__.startswith("evalkit.") and vars(other).get(name) == before:
                            setattr(other, name, number)
    return changed


_CACHE = type(functools.lru_cache(lambda: None))


def _forget() -> None:
    for module in list(sys.modules.values()):
        if module.__name__.startswith("evalkit."):
            for value in vars(module).values():
                if type(value) is _CACHE:
                    value.cache_clear()
