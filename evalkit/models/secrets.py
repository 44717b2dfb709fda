"""What may be kept of an exchange. All that is not on these lists is left out before anything is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

#: Headers that say what an exchange is, and nothing of who made it.
REQUEST_HEADERS = frozenset(("content-type", "anthropic-version", "anthropic-beta", "openai-beta"))
RESPONSE_HEADERS = frozenset(("content-type", "retry-after"))

REDACTED = "REDACTED"

#: Fields that name a key, a person, an organisation or a request, wherever they stand in a body.
_FIELDS = frozenset(
    [
        "api_key",
        "api-key",
        "apikey",
        "x-api-key",
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "password",
        "secret",
        "access_token",
        "refresh_token",
        "client_secret",
        "user_id",
        "user",
        "safety_identifier",
        "organization",
        "organisation",
        "organization_id",
        "organisation_id",
        "org_id",
        "account",
        "account_id",
        "account_uuid",
        "workspace_id",
        "project_id",
        "request_id",
        "request-id",
        "x-request-id",
        "session_id",
        "device_id",
    ]
)
#: Values that look like a key, wherever they stand in a text.
_VALUES = re.compile(
    r"(?:\b(?:sk|pk|rk|key|ghp|gho|xox[abp]|AKIA)[-_][A-Za-z0-9_\-]{12,}|\bAKIA[0-9A-Z]{16}\b"
    r"|\bBearer\s+[A-Za-z0-9._\-]{8,}|\beyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]*"
    r"|\b(?:org|req|acct|user)[-_][A-Za-z0-9]{12,})"
)
#: What a compact JSON text has where such a field or value may be in it. Nearly no body has any, and looking
#: for them is much faster than walking through it.
_MAYBE_FIELDS = tuple(f'"{name}":' for name in sorted(_FIELDS))
_MAYBE_VALUES = (
    *("AKIA", "Bearer", "eyJ"),
    *(
        name + mark
        for name in (
            "sk",
            "pk",
            "rk",
            "key",
            "ghp",
            "gho",
            "xoxa",
            "xoxb",
            "xoxp",
            "org",
            "req",
            "acct",
            "user",
        )
        for mark in "-_"
    ),
)
#: Most of them begin everyday words too, as in "task-list"; a key goes on for longer.
_MAYBE_A_KEY = re.compile(r"[-_][A-Za-z0-9_\-]{12}|AKIA|Bearer|eyJ")
#: The prefix under which the scripted server keeps an episode.
_EPISODE = re.compile(r"^/e/[^/]+")


def clean_url(url: str) -> str:
    """The path alone: no host, no token, no query."""
    return _EPISODE.sub("", urlsplit(url).path) or "/"


def clean_headers(headers: Mapping[str, Any], allowed: frozenset[str]) -> dict[str, Any]:
    """The allowed headers, in order of their names."""
    kept = {name.lower(): value for name, value in headers.items() if name.lower() in allowed}
    return dict(sorted(kept.items()))


def clean_text(text: str, known: tuple[str, ...] = ()) -> str:
    """A text without what looks like a key, and without ``known`` secrets."""
    for secret in known:
        if secret:
            text = text.replace(secret, REDACTED)
    return _VALUES.sub(REDACTED, text)


def clean_value(value: Any, known: tuple[str, ...] = ()) -> Any:
    """A JSON value without secrets, fields and texts."""
    if isinstance(value, dict):
        return {
            key: REDACTED
            if key.lower() in _FIELDS and isinstance(inner, str | int)
            else clean_value(inner, known)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [clean_value(inner, known) for inner in value]
    return clean_text(value, known) if isinstance(value, str) else value


def clean_body(body: bytes | str | None, known: tuple[str, ...] = (), *, canonical: bool = False) -> str:
    """A body without secrets: JSON, server-sent events, or text. ``canonical`` sorts the keys of JSON."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body or ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "".join(_clean_line(line, known) for line in text.splitlines(keepends=True))
    plain = _dumps(value, canonical=canonical)
    if _is_clean(plain, known):
        return plain if canonical else text
    cleaned = clean_value(value, known)
    return text if not canonical and cleaned == value else _dumps(cleaned, canonical=canonical)


def _dumps(value: Any, *, canonical: bool = False) -> str:
    return json.dumps(value, sort_keys=canonical, ensure_ascii=False, separators=(",", ":"))


def _is_clean(plain: str, known: tuple[str, ...]) -> bool:
    """Whether a compact JSON text surely holds nothing to clean."""
    lower = plain.lower()
    if any(field in lower for field in _MAYBE_FIELDS):
        return False
    if any(start in plain for start in _MAYBE_VALUES) and _MAYBE_A_KEY.search(plain):
        return False
    return not any(secret and _dumps(secret)[1:-1] in plain for secret in known)


def _clean_line(line: str, known: tuple[str, ...]) -> str:
    """One line of a stream: the data of an event is JSON of its own."""
    if line.startswith("data:"):
        end = line[len(line.rstrip("\r\n")) :]
        try:
            value = json.loads(line[5:])
        except (ValueError, RecursionError):
            return clean_text(line, known)
        if _is_clean(_dumps(value), known):
            return line
        cleaned = clean_value(value, known)
        return line if cleaned == value else f"data: {_dumps(cleaned)}{end}"
    return clean_text(line, known)
