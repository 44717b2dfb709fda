"""Sessions that hold nothing: known by the fields under which runs lie, which are there and empty."""

from __future__ import annotations

from typing import Any, NamedTuple


class Empty(NamedTuple):
    """Formats whose runs lie under a field, and fields of which one stands beside it, if any are named."""

    formats: str
    field: str
    beside: frozenset[str] = frozenset()


#: The most particular first. Formats that their readers know without a turn are not among them.
_EMPTY = (
    Empty("google-adk", "events", frozenset(("app_name", "appName", "user_id", "userId"))),
    Empty("google-adk", "past_events", frozenset(("app_name", "appName", "user_id", "userId"))),
    Empty("opencode", "messages", frozenset(("info",))),
    Empty("autogen", "messages", frozenset(("stop_reason",))),
    Empty("bedrock-converse", "messages", frozenset(("modelId", "inferenceConfig"))),
    Empty("anthropic-messages", "messages", frozenset(("max_tokens", "system"))),
    Empty("openai-chat, ai-sdk-ui, langchain or pydantic-ai", "messages"),
    Empty("openhands", "history", frozenset(("instance", "instance_id", "test_result"))),
    Empty("browser-use, multi-agent or swe-agent", "history"),
    Empty("gemini-api", "contents"),
    Empty("claude-code", "loglines"),
    Empty("hermes", "conversations"),
    Empty("langfuse", "observations"),
    Empty("langsmith", "post", frozenset(("patch",))),
    Empty("http-cassette", "interactions"),
    Empty("http-cassette", "http_interactions"),
    Empty("openai-responses", "items"),
    Empty("openai-responses", "output", frozenset(("object",))),
)


def empty_of(formats: str, what: str) -> str:
    """Why an empty session is no run: its format, and what it does not hold."""
    return f"looks like {formats}, and is empty: {what}"


def emptiness(value: Any) -> str:
    """Why a value of no format is an empty session of one; empty where it is none."""
    if not isinstance(value, dict):
        return ""
    for empty in _EMPTY:
        if value.get(empty.field) == [] and (not empty.beside or empty.beside & value.keys()):
            return empty_of(empty.formats, f"its `{empty.field}` holds nothing")
    if "task_images" in value or value.keys() == {"system_prompt"}:
        return empty_of("smolagents", "holds no step of the model")
    entries = value.get("log")
    if isinstance(entries, dict) and entries.get("entries") == []:
        return empty_of("http-cassette", "its `entries` holds nothing")
    return ""
