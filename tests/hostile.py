"""Documents as nobody would write them: values too large, too deep, of the wrong kind, or no text."""

from __future__ import annotations

import copy
from typing import Any

import yaml
from hypothesis import strategies as st

ODD_TEXTS = (
    "",
    " ",
    "../../escaped",
    "/etc/passwd",
    "a\nb",
    "\u202e reversed \u2066",
    "e\u0301" * 50,
    "\U0001f4a3",
    "\ufeff",
    "\u2028",
    "{keyword}",
    "%s{0}{x}$HOME`id`",
    "<script>alert(1)</script>",
    "'; drop table episode; --",
    "x" * 5_000,
    "TERMINATE",
    "no",
    "null",
    "done/complete",
)
ODD_NUMBERS = (0, -1, 1, 2**31, 2**63 - 1, 10**18, 10**12, 0.5, -0.0, 1e-300, 1e18)
#: Written as they stand, because no YAML writer makes them.
RAW = (
    "10000000000000000000000000000000",
    "1e999",
    "-.inf",
    ".nan",
    "0x" + "f" * 40,
    "1" * 5_000,
    '"\\0"',
    '"\\x1b[31m"',
    '"\\ud800"',
    '"\\uFFFE"',
    "!!python/object:os.system x",
    "!!binary aGk=",
    "[" * 80 + "]" * 80,
    "{a: " * 80 + "1" + "}" * 80,
    "2026-11-30",
    "1:30",
    "yes",
    "~",
)
_MARK = "raw-text-number-"


def values() -> st.SearchStrategy[Any]:
    """A value that does not belong where it stands."""
    small = st.one_of(
        st.sampled_from(ODD_TEXTS),
        st.sampled_from(ODD_NUMBERS),
        st.booleans(),
        st.none(),
        st.text(max_size=12),
        st.sampled_from([f"{_MARK}{number}" for number in range(len(RAW))]),
    )
    return st.one_of(
        small,
        st.lists(small, max_size=3),
        st.dictionaries(st.text(max_size=6), small, max_size=2),
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places within a document."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            found += places(inner, (*path, number))
    return found


@st.composite
def mutated(draw: st.DrawFn, documents: st.SearchStrategy[Any]) -> str:
    """A sound document with one to three places spoilt, as YAML text."""
    document = copy.deepcopy(draw(documents))
    for _ in range(draw(st.integers(1, 3))):
        options = places(document)
        if not options:
            break
        *way, last = draw(st.sampled_from(options))
        at = document
        for part in way:
            at = at[part]
        action = draw(st.sampled_from(["value", "value", "value", "drop", "key", "repeat"]))
        if action == "drop":
            del at[last]
        elif action == "key" and isinstance(at, dict):
            at[draw(st.text(max_size=8) | st.sampled_from(["with", "until", "stop", "do", "p"]))] = at.pop(
                last
            )
        elif action == "repeat" and isinstance(at, list):
            at.extend([at[last]] * draw(st.sampled_from([1, 30])))
        else:
            at[last] = draw(values())
    return written(document)


def written(document: Any) -> str:
    """YAML text of a document, aliases written out, with what no writer makes put in."""

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    text = yaml.dump(document, Dumper=Plain, sort_keys=False, allow_unicode=True, width=10**9)
    for number in reversed(range(len(RAW))):
        text = text.replace(f"{_MARK}{number}", RAW[number])
    return text
