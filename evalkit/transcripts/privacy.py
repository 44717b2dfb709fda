"""Personal details out of a recording's words: what has a form of its own, and what stands in a field for it.

Replaced are secrets (:mod:`evalkit.secrets`), e-mail addresses, telephone and card numbers, long tokens, IP
addresses, home folders; and, wherever they occur, the values of fields whose names say that they hold a
person's name, user name, address or date of birth. A name that is in no such field is not found: read the
result before you share it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from evalkit.secrets.cleaning import secrets_in
from evalkit.transcripts.documents import Broken, decode
from evalkit.transcripts.recording import Recording

_KINDS = {
    "NAME": "name first_name last_name full_name firstname lastname fullname middle_name customer_name "
    "passenger_name author contact surname given_name",
    "USER": "user_id userid username user_name login customer_id account_id",
    "ADDRESS": "address address1 address2 street zip zip_code postcode",
    "PERSONAL": "dob date_of_birth birthday birthdate ssn passport email phone phone_number mobile password "
    "token secret api_key apikey access_token last_four",
}
#: What the values of a field are, by the field's name.
_FIELDS = {field: kind for kind, fields in _KINDS.items() for field in fields.split()}
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("EMAIL", re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")),
    ("CARD", re.compile(r"\b\d(?:[ -]?\d){12,18}\b")),
    ("PHONE", re.compile(r"(?<![\w.-])(?:\+\d{1,3}[ .-]?)?\(?\d{2,4}\)?[ .-]\d{3,4}[ .-]\d{3,4}(?![\w-])")),
    ("PHONE", re.compile(r"(?<![\w.])\+\d{1,3}(?:[ .-]?\d{2,}){2,}\b")),
    ("IP", re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")),
    ("TOKEN", re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])[\w+]{32,}={0,2}")),
    ("USER", re.compile(r"(?<=/home/)[^/\s\"']+|(?<=/Users/)[^/\s\"']+|(?<=\\Users\\)[^\\\s\"']+")),
)
_PLACEHOLDER = re.compile(r"\[[A-Z]+-\d+\]")
_SAID = re.compile(
    r"\b(?:[Mm]y name is|[Ii] am called|[Tt]his is) ((?:[A-Z][\w'’-]+)(?: [A-Z][\w'’-]+){0,2})"
)
#: Values that are no person's, whatever field they stand in.
_COMMON = frozenset(("true", "false", "none", "null", "unknown", "user", "admin", "root", "test", "main"))
#: Values that are kept for replacing; more are no help.
_MOST = 2_000


class Replacer:
    """Replaces personal details; equal ones by equal placeholders, such as ``[NAME-1]``."""

    def __init__(self, values: Iterable[tuple[str, str]] = ()) -> None:
        self._given: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._known: dict[str, str] = {}
        for kind, value in values:
            if len(self._known) < _MOST and _personal(value):
                self._known.setdefault(value, kind)
        words = sorted(self._known, key=len, reverse=True)
        joined = "|".join(map(re.escape, words))
        self._words = re.compile(rf"(?<!\w)(?:{joined})(?!\w)") if words else None

    @classmethod
    def of(cls, recording: Recording) -> Replacer:
        """One that knows the values of personal fields in a recording's calls and tool answers."""
        return cls(_values(recording))

    def __call__(self, text: str) -> str:
        """The text with secrets and personal details replaced."""
        text = self._without_secrets(text)
        for kind, form in _FORMS:
            text = form.sub(partial(self._replace, kind), text)
        return text if self._words is None else self._words.sub(partial(self._replace, ""), text)

    def _without_secrets(self, text: str) -> str:
        """The text with what the rules of :mod:`evalkit.secrets` find replaced, one placeholder each."""
        parts = []
        at = 0
        for start, end in secrets_in(text):
            if not _PLACEHOLDER.fullmatch(text[start:end].strip("\"' ")):
                parts += [text[at:start], self._placeholder("SECRET", text[start:end])]
                at = end
        return "".join((*parts, text[at:])) if parts else text

    def _replace(self, kind: str, found: re.Match[str]) -> str:
        if kind == "CARD" and not _is_card(found[0]):
            return found[0]
        return self._placeholder(kind or self._known[found[0]], found[0])

    def _placeholder(self, kind: str, value: str) -> str:
        if value not in self._given:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._given[value] = f"[{kind}-{self._counts[kind]}]"
        return self._given[value]


def _is_card(text: str) -> bool:
    """Whether a number's check digit is a payment card's (Luhn, ISO/IEC 7812-1)."""
    digits = [int(character) for character in text if character.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _personal(value: str) -> bool:
    return len(value) >= 2 and value.lower() not in _COMMON and not value.isspace()


def _values(recording: Recording) -> Iterable[tuple[str, str]]:
    for step in recording.steps:
        for call in step.turn.calls:
            yield from _of_json(call.arguments)
        for result in step.results:
            yield from _of_json(result.text)
        if step.said:
            yield from (("NAME", found[1]) for found in _SAID.finditer(step.said))
    yield from (("NAME", found[1]) for found in _SAID.finditer(recording.prompt))


def _of_json(text: str) -> Iterable[tuple[str, str]]:
    if not text.lstrip().startswith(("{", "[")):
        return
    try:
        value = decode(text.encode("utf-8", "surrogatepass"))
    except Broken:
        return
    yield from _in(value, "")


def _in(value: Any, kind: str) -> Iterable[tuple[str, str]]:
    """The personal values in a JSON value; what a personal field holds is personal as a whole."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _in(inner, _FIELDS.get(str(key).lower(), kind))
    elif isinstance(value, list):
        for inner in value:
            yield from _in(inner, kind)
    elif kind and isinstance(value, str) and len(value) <= 200:
        yield kind, value
