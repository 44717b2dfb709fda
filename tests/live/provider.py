"""A provider on loopback: it answers by what the conversation holds, and so forgets nothing at a kill."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any

from evalkit.models.portal import Portal

#: An answer in place of the model's: status, headers, body.
Instead = tuple[int, dict[str, str], bytes]


class Provider:
    """Speaks Messages and Chat Completions, streamed or not, below any path.

    The model does one item of ``items`` a turn and then says that all is done; with ``early`` items left it
    says so once too. ``delay`` is in seconds. ``instead`` may answer a request otherwise; it gets its number
    and body. ``answered`` counts whole answers by the first part of the path, ``tokens`` what they used,
    ``most`` how many requests were under way at once, ``began`` and ``ended`` when the first and last were.
    """

    def __init__(
        self,
        *,
        items: tuple[str, ...] = ("users", "orders", "invoices"),
        early: int = 0,
        delay: float = 0.0,
        instead: Callable[[int, dict[str, Any]], Instead | None] = lambda number, body: None,
        said: str = "All items have been done.",
        usage: bool = True,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.items = items
        self.early = early
        self.delay = delay
        self.instead = instead
        self.said = said
        self.usage = usage
        self.headers = headers or {}
        self.answered: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.asked = 0
        self.most = 0
        self.began = self.ended = 0.0
        self.bodies: list[dict[str, Any]] = []
        self.keep_bodies = False
        self._under_way = 0
        self._portal = Portal()
        self.port = 0

    def __enter__(self) -> Provider:
        self._portal.__enter__()

        async def begin() -> int:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
            port: int = server.sockets[0].getsockname()[1]
            return port

        self.port = self._portal.wait(begin())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._portal.__exit__(kind, error, trace)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
        body = json.loads(await reader.readexactly(int(fields.get("content-length", "0"))) or b"{}")
        path = first.split(" ")[1]
        self.asked += 1
        number = self.asked
        if self.keep_bodies:
            self.bodies.append(body)
        self.began = self.began or time.monotonic()
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        try:
            await asyncio.sleep(self.delay)
            status, headers, content = self.instead(number, body) or self._answer(path, body)
        finally:
            self._under_way -= 1
        said = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(
            f"HTTP/1.1 {status} X\r\n{said}content-length: {len(content)}\r\n\r\n".encode() + content
        )
        await writer.drain()
        self.ended = time.monotonic()
        if status < 400:
            self.answered[path.split("/")[1]] += 1
            self.tokens[path.split("/")[1]] += self._used(body) + 20
        return True

    @staticmethod
    def _used(body: dict[str, Any]) -> int:
        return len(json.dumps(body)) // 4

    def _answer(self, path: str, body: dict[str, Any]) -> Instead:
        text = json.dumps(body)
        done = [
            item for item in self.items if f'"item": "{item}"' in text or f'\\"item\\":\\"{item}\\"' in text
        ]
        left = [item for item in self.items if item not in done]
        reports = sum(1 for message in body["messages"] if _is_report(message, self.said))
        if left and not (len(left) <= self.early and not reports):
            turn: dict[str, Any] = {"tool": "do_item", "input": {"item": left[0]}, "id": f"call_{len(done)}"}
        else:
            turn = {"say": self.said}
        chat = path.endswith("/chat/completions")
        made = self._chat(turn, body) if chat else self._message(turn, body)
        kind = "text/event-stream" if body.get("stream") else "application/json"
        if not body.get("stream"):
            content = json.dumps(made).encode()
        else:
            content = (_chat_stream if chat else _message_stream)(made)
        return 200, {"content-type": kind, **self.headers}, content

    def _message(self, turn: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "text", "text": turn.get("say", "")}
        if "tool" in turn:
            block = {"type": "tool_use", "id": turn["id"], "name": turn["tool"], "input": turn["input"]}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [block],
            "stop_reason": "tool_use" if "tool" in turn else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": self._used(body), "output_tokens": 20} if self.usage else {},
        }

    def _chat(self, turn: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": turn.get("say")}
        if "tool" in turn:
            function = {"name": turn["tool"], "arguments": json.dumps(turn["input"], separators=(",", ":"))}
            message["tool_calls"] = [{"id": turn["id"], "type": "function", "function": function}]
        used = self._used(body)
        made = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [
                {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool" in turn else "stop"}
            ],
        }
        if self.usage:
            made["usage"] = {"prompt_tokens": used, "completion_tokens": 20, "total_tokens": used + 20}
        return made


def _is_report(message: dict[str, Any], said: str) -> bool:
    return message["role"] == "assistant" and said in json.dumps(message)


def _message_stream(made: dict[str, Any]) -> bytes:
    (block,) = made["content"]
    begun = {**made, "content": [], "stop_reason": None}
    if block["type"] == "text":
        opened = {**block, "text": ""}
        pieces = [block["text"][at : at + 5] for at in range(0, len(block["text"]), 5)]
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    else:
        opened = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    events = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": opened},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": made["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": 20},
        },
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def _chat_stream(made: dict[str, Any]) -> bytes:
    (choice,) = made["choices"]
    frame = {key: made[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    message = choice["message"]
    text = message["content"] or ""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + 5]} for at in range(0, len(text), 5)]
    deltas += [{"tool_calls": [{"index": 0, **call}]} for call in message.get("tool_calls", ())]
    chunks = [{**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    if "usage" in made:
        chunks.append({**frame, "choices": [], "usage": made["usage"]})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in (*chunks,)).encode() + b"data: [DONE]\n\n"
