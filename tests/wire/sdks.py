"""The real SDKs, over a transport that answers from memory, or against a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import anthropic
import httpx2
import openai

from evalkit.core.turns import Turn
from evalkit.wire.answers import Answer, Outgoing, encode_json, render
from evalkit.wire.codecs import CODECS, decode_stream
from evalkit.wire.dialects import Dialect
from evalkit.wire.replies import DONE

_answer: list[httpx2.Response] = []


def _transport() -> httpx2.MockTransport:
    return httpx2.MockTransport(lambda request: _answer[0])


@lru_cache(maxsize=1)
def _anthropic() -> anthropic.Anthropic:
    client = httpx2.Client(transport=_transport())
    return anthropic.Anthropic(api_key="none", base_url="http://mock", max_retries=0, http_client=client)


@lru_cache(maxsize=1)
def _openai() -> openai.OpenAI:
    client = httpx2.Client(transport=_transport())
    return openai.OpenAI(api_key="none", base_url="http://mock/v1", max_retries=0, http_client=client)


def parsed(dialect: Dialect, out: Outgoing, *, streamed: bool) -> Any:
    """What the SDK makes of a turn: its object, or the list of its stream's events."""
    if streamed:
        parts = render(CODECS[dialect].events(out)) + ([DONE] if dialect == "chat" else [])
        headers = {"content-type": "text/event-stream"}
        _answer[:] = [httpx2.Response(200, headers=headers, content=b"".join(parts))]
    else:
        headers = {"content-type": "application/json"}
        _answer[:] = [httpx2.Response(200, headers=headers, content=encode_json(CODECS[dialect].body(out)))]
    said: Any = [{"role": "user", "content": "go"}]
    if dialect == "anthropic":
        call: Callable[..., Any] = _anthropic().messages.create
        answer = call(model="m", max_tokens=10, messages=said, stream=streamed)
    elif dialect == "responses":
        answer = _openai().responses.create(model="m", input="go", stream=streamed)
    else:
        answer = _openai().chat.completions.create(model="m", messages=said, stream=streamed)
    return list(answer) if streamed else answer


def through(dialect: Dialect, turn: Turn, *, streamed: bool) -> Answer:
    """A turn, written, parsed by the real SDK, and read back."""
    answer = parsed(dialect, Outgoing(turn, f"{CODECS[dialect].answer}_1", input_tokens=7), streamed=streamed)
    if streamed:
        return decode_stream(dialect, _plain(answer))
    return CODECS[dialect].decode(answer.to_dict(mode="json", warnings=False))


def _plain(events: list[Any]) -> Iterator[dict[str, Any]]:
    for event in events:
        yield event.to_dict(mode="json", warnings=False)
