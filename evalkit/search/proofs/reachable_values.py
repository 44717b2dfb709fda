"""What functions of one's own hold and can ask, looked through before a proof rests on them.

An answer that hangs on more than what is given comes from something that was held (a counter, an iterator, an
object behind a weak reference) or asked (a clock, chance, a file). What is not known to be neither is named,
whatever it is: a list of what is bad would never be complete.
"""

from __future__ import annotations

import builtins
import datetime
import decimal
import dis
import enum
import fractions
import functools
import itertools
import re
import sys
import types
import typing
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterable
from typing import Any

import msgspec

#: So many values are looked through: what is held beyond that nobody would see change.
MOST = 2_000
#: Modules whose functions answer the same whenever they are asked the same, and hold nothing.
_PURE = frozenset(
    (
        *("re", "json", "math", "operator", "itertools", "functools", "string", "collections"),
        *("collections.abc", "typing", "dataclasses", "enum", "statistics", "fractions", "textwrap"),
        *("unicodedata", "bisect", "heapq", "abc", "numbers", "__future__", "_operator", "_functools"),
        *("_bisect", "_heapq", "_collections", "_json", "_abc", "json.decoder", "json.encoder"),
    )
)
#: Built-in functions of which the same holds; what is not here asks or changes something out of sight.
_PURE_BUILTINS = frozenset(
    (
        *(
            "abs",
            "all",
            "any",
            "ascii",
            "bin",
            "bool",
            "bytes",
            "bytearray",
            "callable",
            "chr",
            "classmethod",
        ),
        *("complex", "dict", "divmod", "enumerate", "filter", "float", "format", "frozenset", "getattr"),
        *("hasattr", "hex", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max", "min"),
        *("next", "object", "oct", "ord", "pow", "print", "property", "range", "repr", "reversed", "round"),
        *("set", "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "zip", "Ellipsis"),
        *("NotImplemented", "__debug__", "__name__", "__build_class__"),
        *(
            name
            for name, value in vars(builtins).items()
            if isinstance(value, type) and issubclass(value, Exception)
        ),
    )
)
#: Names with two underscores that lead nowhere else.
_HARMLESS = frozenset(
    f"__{name}__"
    for name in (
        *("init", "call", "name", "doc", "post_init", "len", "contains", "and", "or", "invert", "eq", "ne"),
        *("lt", "le", "gt", "ge", "getitem", "iter", "bool", "repr", "str", "add", "main", "qualname"),
        *("annotations", "module", "static_attributes", "firstlineno", "slots", "match_args"),
    )
)
#: Attributes of frames, generators and caches, which lead to what is kept elsewhere.
_LEADS_ON = frozenset(
    (
        *("f_back", "f_globals", "f_locals", "f_builtins", "gi_frame", "cr_frame", "tb_frame", "tb_next"),
        *("cache_info", "cache_clear", "cache_parameters", "cell_contents"),
    )
)
#: Functions that tell a truth value from a number.
_TELLS = frozenset(("str", "repr", "format", "ascii", "isinstance", "json"))
_DUNDER = re.compile(r"__\w+__")
#: What stands in every class, or in those that ``dataclass``, ``abc`` or ``typing`` made.
_TOLD = frozenset(
    (
        *("__module__", "__doc__", "__qualname__", "__annotations__", "__dict__", "__weakref__"),
        *("__firstlineno__", "__static_attributes__", "__annotations_cache__", "__annotate_func__"),
        *("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__abstractmethods__"),
        *("__orig_bases__", "__parameters__", "__type_params__", "_abc_impl", "_is_protocol"),
    )
)
#: Instructions that look a name up, not as an attribute.
_LOADS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
_PLAIN = (bool, int, float, complex, str, bytes, range, slice, types.NoneType, types.EllipsisType)
#: The kind of ``Optional[int]`` and its like, which has no name of its own.
_GENERIC: Any = type(typing.Union[int, str])  # noqa: UP007
_FIXED = (
    *(
        re.Pattern,
        enum.Enum,
        decimal.Decimal,
        fractions.Fraction,
        datetime.timedelta,
        types.NotImplementedType,
    ),
    *(types.GenericAlias, types.UnionType, typing.TypeVar, type(typing.Any), _GENERIC),
)
_LISTED = (list, tuple, set, frozenset, deque, bytearray)
_MAPPED = (dict, Counter, OrderedDict, defaultdict, types.MappingProxyType)
#: Iterators that say in their text where they stand.
_TELLING = (itertools.count, itertools.repeat)
_CACHED = type(functools.lru_cache(lambda: None))
_BUILT_IN = (
    types.BuiltinFunctionType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)
#: What stands in a class and is looked through by its functions.
_IN_A_CLASS = (property, staticmethod, classmethod, functools.cached_property)
_SLOTS = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    type(vars(namedtuple("_", "field"))["field"]),
)


class Held:
    """All that some callables and values of one's own hold and can ask.

    ``why`` names what cannot be trusted to stay as it is, empty where nothing is. ``numbers`` are the whole
    numbers that are held against something; ``tells`` says that a function may tell True from 1.
    """

    def __init__(self, said: str, values: Iterable[Any]) -> None:
        self._said = said
        self.why = ""
        self.numbers: set[int] = set()
        self.tells = False
        self._roots = list(values)
        self._functions: list[types.FunctionType] = []
        self._classes: list[type] = []
        self._compared = ""
        self._seen: set[int] = set()
        #: Keeps what was seen alive, so that no two things share a place.
        self._alive: list[Any] = []
        left = list(self._roots)
        while left and not self.why:
            value = left.pop()
            if isinstance(value, _PLAIN):
                self._number(value)
            elif id(value) not in self._seen:
                self._seen.add(id(value))
                self._alive.append(value)
                left += self._within(value)
                if len(self._alive) > MOST:
                    self.why = f"{said} holds more than can be looked through"
        if not self._compared:
            self.numbers.clear()
        elif any(sign in self._compared for sign in "<>"):
            # What is more than a number has to be seen, and not the number alone.
            self.numbers = {number + 1 for number in self.numbers}

    def text(self) -> str:
        """What is held as it is now, to be compared with what it was."""
        now = [*self._roots]
        for function in self._functions:
            now += _kept_by(function)
        for kind in self._classes:
            now += [part for part in vars(kind).values() if not isinstance(part, types.FunctionType)]
        return text_of(now, set())

    def _asks(self, what: str) -> list[Any]:
        self.why = f"{self._said} asks {what}, whose answers hang on more than what is given"
        return []

    def _holds(self, value: Any) -> list[Any]:
        self.why = f"{self._said} holds {type(value).__name__}, which cannot be looked through"
        return []

    def _number(self, value: Any) -> None:
        if type(value) is int:
            self.numbers.add(value)

    def _within(self, value: Any) -> list[Any]:
        """What a value holds, to be looked at in turn."""
        match value:
            case types.FunctionType():
                return self._of_function(value)
            case types.MethodType():
                return [value.__func__, value.__self__]
            case functools.partial():
                return [value.func, *value.args, *value.keywords.values()]
            case types.ModuleType():
                return self._of_module(value)
            case type():
                return self._of_class(value)
        if isinstance(value, _CACHED):
            return [value.__wrapped__]
        if isinstance(value, _BUILT_IN):
            return self._of_built_in(value)
        if isinstance(value, _IN_A_CLASS):
            inner = [getattr(value, name, None) for name in ("fget", "fset", "func", "__func__")]
            return [each for each in inner if each is not None]
        if isinstance(value, (*_FIXED, *_SLOTS, *_TELLING)) and _is_fixed(value):
            return []
        if isinstance(value, (*_LISTED, *_MAPPED)) and type(value).__module__ in ("builtins", "collections"):
            fixed = isinstance(value, tuple | frozenset) and all(isinstance(each, _PLAIN) for each in value)
            return list(value)[:MOST] if fixed else _parts(value)
        return self._of_instance(value)

    def _of_instance(self, value: Any) -> list[Any]:
        kind = type(value)
        foreign = [each for each in kind.__mro__ if not _is_own(each) and not _is_trusted(each)]
        if _is_trusted(kind):
            return [each for each in attributes(value) if not isinstance(each, _PLAIN)]
        if any(each not in (object, msgspec.Struct, *_LISTED, *_MAPPED, *_PLAIN) for each in foreign):
            return self._asks(kind.__name__) if hasattr(value, "__next__") else self._holds(value)
        inner = _parts(value) if isinstance(value, (*_LISTED, *_MAPPED)) else []
        return [kind, *inner, *attributes(value)]

    def _of_class(self, kind: type) -> list[Any]:
        if _is_trusted(kind):
            self._classes.append(kind)
            return []
        if kind in (*_PLAIN, *_LISTED, *_MAPPED, *_FIXED) or kind.__module__ in _PURE:
            return []
        if not _is_own(kind):
            pure = kind.__module__ == "builtins" and kind.__name__ in _PURE_BUILTINS
            return [] if pure else self._asks(kind.__name__)
        inner = [type(kind)] if _is_own(type(kind)) else []
        for each in kind.__mro__:
            if _is_own(each):
                inner += [part for name, part in vars(each).items() if not _is_made(name, part)]
                self._classes.append(each)
        return inner

    def _of_built_in(self, value: Any) -> list[Any]:
        """A function in C: what it belongs to says whether it holds anything."""
        owner = getattr(value, "__self__", None)
        if isinstance(owner, types.ModuleType) or owner is None or isinstance(owner, type):
            kind = owner if isinstance(owner, type) else getattr(value, "__objclass__", None)
            module = getattr(kind, "__module__", None) or getattr(value, "__module__", None) or ""
            name = value.__name__ if kind is None else kind.__name__
            pure = module in _PURE or (module == "builtins" and name in _PURE_BUILTINS)
            return [] if pure else self._asks(value.__name__)
        if isinstance(owner, (*_PLAIN, tuple, frozenset, re.Pattern)):
            return []
        return self._asks(f"{type(owner).__name__}.{value.__name__}")

    def _of_module(self, module: types.ModuleType) -> list[Any]:
        """A module by itself; what functions name of one's own is looked at where they name it."""
        name = module.__name__
        if name in _PURE or _is_ours(name) or _is_own_module(name):
            return []
        return self._asks(name)

    def _of_function(self, function: types.FunctionType) -> list[Any]:
        known = function.__globals__
        module = known.get("__name__", "")
        if module in _PURE or _is_ours(module):
            return []
        if not _is_own_module(module):
            return self._asks(f"{module}.{function.__name__}")
        names, loaded, numbers, leads_on = _read(function.__code__)
        if leads_on:
            return self._asks(leads_on)
        self.numbers |= numbers
        self._compared += _compared(function.__code__)
        self.tells = self.tells or bool(loaded & _TELLS) or _is_asked(function.__code__)
        found: list[Any] = []
        for name in sorted(loaded):
            if name in known:
                found.append(known[name])
            elif name in sys.modules and name not in vars(builtins):
                found.append(sys.modules[name])
            elif name not in _PURE_BUILTINS:
                return self._asks(name)
        found += _in_modules(found, names | {"__getattr__"})
        found += [
            *_cells(function),
            *(function.__defaults__ or ()),
            *(function.__kwdefaults__ or {}).values(),
        ]
        found += vars(function).values()
        self._functions.append(function)
        return found


def _is_ours(module: str) -> bool:
    """Whether a module is evalkit's own, whose conditions, folds and values hold nothing of a run."""
    return module.startswith(("evalkit.core.", "evalkit.strategies."))


def _is_own_module(module: str) -> bool:
    """Whether a module is neither the standard library's nor a program's that is compiled."""
    if module.partition(".")[0] in sys.stdlib_module_names and module != "__main__":
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is None or str(file).endswith(".py")


def _is_own(kind: type) -> bool:
    """Whether a class is written in Python, and neither evalkit's nor the standard library's."""
    return bool(kind.__flags__ & _HEAP) and _is_own_module(kind.__module__) and not _is_trusted(kind)


#: The flag of classes that were made at run time, as those written in Python are.
_HEAP = 1 << 9


def _is_trusted(kind: type) -> bool:
    return _is_ours(kind.__module__) or kind in (typing.Generic, typing.Protocol)


def _is_made(name: str, part: Any) -> bool:
    """Whether a part of a class was written by ``dataclass`` and the like, or is there for people."""
    code = getattr(part, "__code__", None)
    written = code is not None and code.co_filename == "<string>"
    return name in _TOLD or (written and _DUNDER.fullmatch(name) is not None)


def _read(code: types.CodeType) -> tuple[set[str], set[str], set[int], str]:
    """The names of a code and those that are no attributes, its whole numbers, and what leads elsewhere."""
    names = set(code.co_names)
    loaded = {
        str(each.argval).partition(".")[0] for each in dis.get_instructions(code) if each.opname in _LOADS
    }
    loaded = {name.split(" ")[0] for name in loaded}
    words = {each for each in code.co_consts if isinstance(each, str)}
    numbers = {each for each in code.co_consts if type(each) is int}
    numbers |= {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_SMALL_INT"}
    asked = {each for text in names | words for each in _DUNDER.findall(text)} - _HARMLESS
    leads_on = min(asked - loaded | names & _LEADS_ON, default="")
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = _read(constant)
            names |= inner[0]
            loaded |= inner[1]
            numbers |= inner[2]
            leads_on = leads_on or inner[3]
    return names, loaded, numbers, leads_on


def _compared(code: types.CodeType) -> str:
    """How a code compares: its signs; one that does not exclude equality is an equals sign."""
    signs = [str(each.argval) for each in dis.get_instructions(code) if each.opname == "COMPARE_OP"]
    own = "".join(["=" if "=" in sign else sign for sign in signs])
    return own + "".join([_compared(each) for each in code.co_consts if isinstance(each, types.CodeType)])


def _in_modules(values: list[Any], names: Iterable[str], *, trusted: bool = False) -> list[Any]:
    """What stands under some names in modules among values, of one's own or in all, and in theirs."""
    found: list[Any] = []
    seen: set[int] = set()
    left = [value for value in values if isinstance(value, types.ModuleType)]
    while left:
        module = left.pop()
        own = _is_own_module(module.__name__) and not _is_ours(module.__name__)
        if id(module) not in seen and (own or trusted):
            inner = [vars(module)[name] for name in sorted(set(names) & vars(module).keys())]
            found += inner
            left += [value for value in inner if isinstance(value, types.ModuleType)]
        seen.add(id(module))
    return found


def _is_asked(code: types.CodeType) -> bool:
    """Whether a code asks if something is the very value True or False."""
    steps = list(dis.get_instructions(code))
    pairs = itertools.pairwise(steps)
    own = any(then.opname == "IS_OP" and type(first.argval) is bool for first, then in pairs)
    return own or any(_is_asked(each) for each in code.co_consts if isinstance(each, types.CodeType))


def _cells(function: types.FunctionType) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    return found


def _parts(value: Any) -> list[Any]:
    """What a list or a mapping holds, with one more than is looked through at most."""
    parts = [part for pair in value.items() for part in pair] if isinstance(value, _MAPPED) else list(value)
    return parts if len(parts) <= MOST else [object() for _ in range(MOST + 1)]


def attributes(value: Any) -> list[Any]:
    """What an object keeps in attributes."""
    kept = [*vars(value).values()] if hasattr(value, "__dict__") else []
    if isinstance(value, msgspec.Struct):
        return [*kept, *[getattr(value, name) for name in value.__struct_fields__]]
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else tuple(slots)
        kept += [getattr(value, name, None) for name in names if name not in ("__dict__", "__weakref__")]
    return kept


def _is_fixed(value: Any) -> bool:
    """Whether a value of a kind that does not change holds nothing that does."""
    return not isinstance(value, enum.Enum) or isinstance(value.value, _PLAIN)


# What is held now


def _kept_by(function: types.FunctionType) -> list[Any]:
    """All that a function could keep between calls: in modules, closure, defaults and attributes."""
    known = function.__globals__
    names = _names(function.__code__)
    kept = [known[name] for name in names if name in known]
    kept += _in_modules(kept, names, trusted=True)
    kept += [*_cells(function), *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return [*kept, *vars(function).values()]


@functools.lru_cache(maxsize=1024)
def _names(code: types.CodeType) -> frozenset[str]:
    return frozenset(_read(code)[0])


def text_of(value: Any, above: set[int]) -> str:
    """A value with all that it holds, as text; functions, classes and modules are told apart, not told."""
    if isinstance(value, (*_PLAIN, *_TELLING, bytearray)):
        return repr(value)
    if isinstance(value, types.FunctionType | types.ModuleType | type) or id(value) in above:
        return str(id(value))
    above = above | {id(value)}
    if isinstance(value, _MAPPED):
        inner = [part for pair in list(value.items()) for part in pair]
    elif isinstance(value, _LISTED):
        inner = list(value)
    elif isinstance(value, functools.partial):
        inner = [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, types.MethodType):
        inner = [value.__self__]
    else:
        inner = []
    return f"{id(type(value))}({', '.join([text_of(each, above) for each in (*inner, *attributes(value))])})"


def text_of_memory(memory: Any) -> str:
    """A memory as text, for 1 as for True; empty where it may be equal to one that is not the same."""
    if type(memory) is tuple:
        inner = [text_of_memory(each) for each in memory]
        return f"({', '.join(inner)})" if all(inner) else ""
    if type(memory) is frozenset:
        inner = sorted(text_of_memory(each) for each in memory)
        return f"{{{', '.join(inner)}}}" if all(inner) else ""
    if type(memory) is bool:
        return repr(int(memory))
    return repr(memory) if type(memory) in _PLAIN else ""
