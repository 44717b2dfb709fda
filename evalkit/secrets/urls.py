"""URLs as they may be shown."""

from __future__ import annotations

from urllib.parse import urlsplit

from evalkit.secrets.cleaning import clean_text


def clean_url(url: str) -> str:
    """A URL without user, password and what looks like a secret in its query."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return clean_text(parts.geturl())


def credentials_of(url: str) -> tuple[str, ...]:
    """What in a URL must be kept secret: user and password as they stand, and apart."""
    user = urlsplit(url).netloc.rpartition("@")[0]
    return tuple(part for part in (user, *user.split(":", 1)[1:]) if part)
