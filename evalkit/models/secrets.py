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
_FIELDS = re.compile(
    r"(?i)^(api[-_]?key|x-api-key|authorization|proxy-authorization|cookie|set-cookie|password|secret|"
    r"access_token|refresh_token|client_secret|user_id|user|safety_identifier|organi[sz]ation(_id)?|org_id|"
    r"account(_id|_uuid)?|workspace_id|project_id|request[-_]id|x-request-id|session_id|device_id)$"
)
#: Values that look like a key, wherever they stand in a text.
_VALUES = re.compile(
    r"(?:\b(?:sk|pk|rk|key|ghp|gho|xox[abp]|AKIA)[-_][A-Za-z0-9_\-]{12,}|\bAKIA[0-9A-Z]{16}\b"
    r"|\bBearer\s+[A-Za-z0-9._\-]{8,}|\beyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]*"
    r"|\b(?:org|req|acct|user)[-_][A-Za-z0-9]{12,})"
)
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
            if _FIELDS.match(key) and isinstance(inner, str | int)
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
    cleaned = clean_value(value, known)
    if not canonical and cleaned == value:
        return text
    return json.dumps(cleaned, sort_keys=canonical, ensure_ascii=False, separators=(",", ":"))


def _clean_line(line: str, known: tuple[str, ...]) -> str:
    """One line of a stream: the data of an event is JSON of its own."""
    if line.startswith("data:"):
        end = line[len(line.rstrip("\r\n")) :]
        try:
            value = json.loads(line[5:])
        except (ValueError, RecursionError):
            return clean_text(line, known)
        cleaned = clean_value(value, known)
        if cleaned == value:
            return line
        return f"data: {json.dumps(cleaned, ensure_ascii=False, separators=(',', ':'))}{end}"
    return clean_text(line, known)
