"""The three dialects by name."""

from __future__ import annotations

from typing import Literal, TypeAlias

Dialect: TypeAlias = Literal["anthropic", "responses", "chat"]
#: The dialects by the names of the APIs.
TITLES: dict[Dialect, str] = {
    "anthropic": "Anthropic Messages",
    "responses": "OpenAI Responses",
    "chat": "Chat Completions",
}
DIALECTS: tuple[Dialect, ...] = ("anthropic", "responses", "chat")
