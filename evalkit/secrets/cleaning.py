"""Texts and values without secrets."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from evalkit.secrets.rules import (
    ANCHORED,
    FIELD_ANCHORS,
    IDENTITIES,
    IDENTITY,
    REDACTED,
    RUN,
    RUNS,
    SHORTEST_RUN,
    Span,
    is_secret_field,
    mask,
)

#: All that is no part of a run, as a space.
_TABLE = bytes(byte if chr(byte) in RUN and byte < 128 else 32 for byte in range(256))
#: A run that may be something in base64.
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]{16,}={0,2}")
_WRAPPED = re.compile(r"(?:[A-Za-z0-9+/]{60,76}(?:\r?\n|\\r\\n|\\n|\s)\s*)+[A-Za-z0-9+/]+={0,2}")
_LINE_ENDS = re.compile(r"\\r|\\n|\s")
_PRINTABLE = re.compile(rb"[\x20-\x7e\r\n\t]{8,}")
#: Characters of a text that is remembered, at most.
_REMEMBERED = 4096
#: How often something may be packed in base64.
_DEEPEST = 3

#: What compact JSON has where any rule with anchors, or any field, may find something.
_ALL_ANCHORS = tuple(
    dict.fromkeys(anchor for rule in (*ANCHORED, IDENTITIES) if not rule.exact for anchor in rule.anchors)
)
_EXACT_ANCHORS = tuple(anchor for rule in ANCHORED if rule.exact for anchor in rule.anchors)

_kept: tuple[str, ...] = ()


def keep_secret(secret: str) -> None:
    """Never write this value from now on, whatever it looks like; for keys and passwords that a user gave."""
    global _kept
    if len(secret) >= 4 and secret not in _kept:
        _kept = (*_kept, secret)


def clean_text(text: str, known: tuple[str, ...] = (), *, identities: bool = False) -> str:
    """A text without what looks like a secret, and without ``known`` ones. What is clean comes back as it is.

    ``identities`` takes out the names of organisations, requests and users too.
    """
    spans = secrets_in(text, known, identities=identities)
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += text[at:start], mask(end - start)
        at = end
    return "".join((*parts, text[at:]))


def may_hold_secrets(text: str, known: tuple[str, ...] = ()) -> bool:
    """Whether there may be secrets in a JSON text. No is sure, and much faster than walking through it."""
    known = (*known, *_kept)
    if any(_places(text, secret) for secret in known):
        return True
    lower = text.lower()
    if any(anchor in lower for anchor in _ALL_ANCHORS) or any(name in lower for name in FIELD_ANCHORS):
        return True
    if any(anchor in text for anchor in _EXACT_ANCHORS):
        return True
    # What an escape ends with is no part of the run that begins there.
    runs = _runs(re.sub(r"\\[nrt]", " ", text) if "\\" in text else text)
    return any(_is_suspect(run) or _may_hide(run, known, _DEEPEST) for run in runs)


def secrets_in(text: str, known: tuple[str, ...] = (), *, identities: bool = False) -> tuple[Span, ...]:
    """Where secrets stand in a text, in order and apart."""
    # What a conversation says stands in each of its requests.
    found = _remembered if len(text) <= _REMEMBERED else _secrets_in
    return found(text, (*known, *_kept), identities)


def _secrets_in(text: str, known: tuple[str, ...], identities: bool) -> tuple[Span, ...]:
    spans = _spans(text, known, _DEEPEST)
    if identities and IDENTITIES.applies(text, text.lower()):
        spans += IDENTITIES.spans(text)
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return tuple((start, end) for start, end in merged if text[start:end] != mask(end - start))


_remembered = lru_cache(maxsize=4096)(_secrets_in)


def clean_value(value: Any, known: tuple[str, ...] = (), *, identities: bool = False) -> Any:
    """A JSON value without secrets: fields named so, and texts.

    ``identities`` takes out fields and texts that name organisations, requests and users too.
    """
    if isinstance(value, str):
        return clean_text(value, known, identities=identities)
    if isinstance(value, list):
        return [clean_value(inner, known, identities=identities) for inner in value]
    if not isinstance(value, Mapping):
        return value
    clean: dict[Any, Any] = {}
    for key, inner in value.items():
        name = key if isinstance(key, str) else str(key)
        if is_secret_field(name) or (identities and name.lower() in IDENTITY):
            clean[_clean_key(key, known)] = _hidden(inner, known)
        else:
            clean[_clean_key(key, known)] = clean_value(inner, known, identities=identities)
    named = clean.get("name", clean.get("key"))
    if isinstance(named, str) and isinstance(clean.get("value"), str) and is_secret_field(named):
        clean["value"] = _hidden(clean["value"], known)
    if isinstance(clean.get("logprobs"), dict | list):
        _hide_tokens(clean, value["logprobs"], known)
    return clean


def _clean_key(key: Any, known: tuple[str, ...]) -> Any:
    return clean_text(key, known) if isinstance(key, str) and len(key) >= SHORTEST_RUN else key


def _hidden(value: Any, known: tuple[str, ...]) -> Any:
    """The value of a field that holds a secret; an object there is a schema, or has names of its own."""
    if isinstance(value, str):
        return mask(len(value)) if value and value != mask(len(value)) else value
    if isinstance(value, list):
        return [_hidden(inner, known) for inner in value]
    if isinstance(value, bool) or value is None:
        return value
    return REDACTED if isinstance(value, int | float) else clean_value(value, known)


def _hide_tokens(clean: dict[Any, Any], logprobs: Any, known: tuple[str, ...]) -> None:
    """A text's tokens and their bytes spell it out: where it is not clean, they go."""
    found = logprobs.get("content") if isinstance(logprobs, Mapping) else logprobs
    if isinstance(found, list):
        spelt = "".join(str(part.get("token", "")) for part in found if isinstance(part, Mapping))
        if secrets_in(spelt, known):
            clean["logprobs"] = None


def _spans(text: str, known: tuple[str, ...], depth: int) -> list[Span]:
    """Where secrets stand; spans may overlap."""
    spans: list[Span] = []
    for secret in known:
        spans += _places(text, secret)
    runs = _runs(text)
    if any(map(_is_suspect, runs)):
        for rule in RUNS:
            spans += rule.spans(text)
    lower = text.lower()
    for rule in ANCHORED:
        if rule.applies(text, lower):
            spans += rule.spans(text)
    if depth and any(_may_hide(run, known, depth) for run in runs):
        spans += (found.span() for found in _BASE64.finditer(text) if _hides(found[0], known, depth))
    if depth and any(60 <= len(run) <= 76 for run in runs):
        for found in _WRAPPED.finditer(text):
            if _hides(_LINE_ENDS.sub("", found[0]), known, depth):
                spans.append(found.span())
    return spans


def _runs(text: str) -> list[bytes]:
    """The runs in a text that are long enough for a secret."""
    data = text.encode("utf-8", "surrogatepass").translate(_TABLE)
    return [run for run in data.split() if len(run) >= SHORTEST_RUN]


@lru_cache(maxsize=8192)
def _is_suspect(run: bytes) -> bool:
    """Whether a run has the form of a secret."""
    text = run.decode()
    return any(rule.pattern.search(text) for rule in RUNS)


@lru_cache(maxsize=8192)
def _may_hide(run: bytes, known: tuple[str, ...], depth: int) -> bool:
    return any(_hides(found[0], known, depth) for found in _BASE64.finditer(run.decode()))


@lru_cache(maxsize=8192)
def _hides(packed: str, known: tuple[str, ...], depth: int) -> bool:
    """Whether there is a secret in what was packed in base64, which may begin anywhere in the run."""
    bare = packed.rstrip("=").replace("-", "+").replace("_", "/")
    for start in range(4):
        part = bare[start:]
        part = part[: len(part) - 1] if len(part) % 4 == 1 else part
        try:
            data = base64.b64decode(part + "=" * (-len(part) % 4))
        except binascii.Error:
            continue
        for found in _PRINTABLE.finditer(data.replace(b"\0", b"")):
            if _spans(found[0].decode(), known, depth - 1):
                return True
    return False


def _places(text: str, secret: str) -> list[Span]:
    """Where a known secret stands, as it is or as JSON or a URL writes it."""
    places = []
    for written in _written(secret):
        at = text.find(written)
        while at >= 0:
            places.append((at, at + len(written)))
            at = text.find(written, at + 1)
    return places


@lru_cache(maxsize=256)
def _written(secret: str) -> tuple[str, ...]:
    escaped = json.dumps(secret)[1:-1]
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    return tuple(dict.fromkeys((secret, escaped, plain, quote(secret, safe=""), quote(secret))))
