"""Breaks one promise in this process, and in every Python that it starts: see tests/promises/__main__.py."""

from __future__ import annotations

import os
import sys
from importlib import util
from importlib.abc import MetaPathFinder


class _Breaking(MetaPathFinder):
    """Replaces an attribute as soon as its module is there, before anyone can have imported it from it."""

    def __init__(self, module: str, attribute: str, broken: str) -> None:
        self.module = module
        self.attribute = attribute
        self.broken = broken

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != self.module:
            return None
        sys.meta_path.remove(self)
        spec = util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):  # type: ignore[no-untyped-def]
            run(module)
            self.replace(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def replace(self, module: object) -> None:
        *way, last = self.attribute.split(".")
        owner = module
        for part in way:
            owner = getattr(owner, part)
        kept = vars(owner)[last]
        original = kept.__func__ if isinstance(kept, classmethod | staticmethod) else kept
        if isinstance(kept, property):
            original = kept.fget
        names = {**vars(module), "original": original}
        broken = eval(self.broken, names)
        if isinstance(kept, classmethod | staticmethod | property):
            broken = type(kept)(broken)
        setattr(owner, last, broken)


if os.environ.get("EVALKIT_BROKEN"):
    _target, _, _broken = os.environ["EVALKIT_BROKEN"].partition(" = ")
    _module, _, _attribute = _target.partition(":")
    sys.meta_path.insert(0, _Breaking(_module, _attribute, _broken))
