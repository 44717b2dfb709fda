"""Requests and answers of an API, logged one by one: LiteLLM, Helicone, OpenHands, recorded HTTP.

Each repeats the conversation before it, so the logs of a run are one run: the last request and its answer
(:mod:`evalkit.transcripts.joined_requests` puts them together).
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from evalkit.transcripts.formats.dialects import answer_in, plain
from evalkit.transcripts.formats.gemini import read_answer
from evalkit.transcripts.formats.messages import dialect_of, is_message, read_message, read_messages
from evalkit.transcripts.formats.responses import is_item, read_input, read_response
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.recording import Conversation, Ended, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import encode_json, listed, mapped, text_in


def is_request_log(record: Any) -> bool:
    """A request and its answer beside each other, whatever the two fields are called."""
    return _sides(record) is not None


_PAIRS = (
    ("request", "response"),
    ("request_body", "response_body"),
    ("requestBody", "responseBody"),
    ("request_json", "response_json"),
    ("kwargs", "response"),
)


def _sides(record: Any) -> tuple[dict[str, Any], Any] | None:
    if not isinstance(record, dict):
        return None
    if isinstance(plain(record.get("messages")), list) and record.get("response") is not None:
        return {**record, "messages": plain(record["messages"])}, plain(record["response"])
    for asked, answered in _PAIRS:
        request, response = plain(record.get(asked)), plain(record.get(answered))
        if isinstance(request, dict) and "body" in request and isinstance(plain(request["body"]), dict):
            request = plain(request["body"])
        if isinstance(response, dict) and "body" in response and isinstance(plain(response["body"]), dict):
            response = plain(response["body"])
        if isinstance(request, dict) and response is not None and _asks(request):
            return request, response
    return None


def _asks(request: dict[str, Any]) -> bool:
    return any(isinstance(request.get(key), list) for key in ("messages", "contents")) or (
        "input" in request and ("model" in request or isinstance(request["input"], list))
    )


def request_log(record: dict[str, Any], source: Source) -> Recording:
    """One exchange."""
    sides = _sides(record)
    assert sides is not None
    request, response = sides
    error = record.get("error") or record.get("exception")
    name = next((str(record[key]) for key in ("id", "instance_id", "task_id") if record.get(key)), "")
    read = exchange(request, response, source, name, error)
    label = label_of(record)
    return msgspec.structs.replace(read, label=label) if label.complete is not None else read


def exchange(
    request: dict[str, Any],
    response: Any,
    source: Source,
    name: str = "",
    error: Any = None,
    format: str = "",
) -> Recording:
    """A request and its answer as a recording that others of its run can follow."""
    conversation = Conversation()
    for tool in listed(request.get("tools")):
        given = mapped(tool)
        named = (
            given.get("name")
            or mapped(given.get("function")).get("name")
            or mapped(given.get("toolSpec")).get("name")
        )
        if isinstance(named, str):
            conversation.tools[named] = None
    system = (
        request.get("system")
        or request.get("instructions")
        or request.get("systemInstruction")
        or request.get("system_instruction")
    )
    if system:
        conversation.system(text_in(mapped(system).get("parts") or system))
    if "messages" in request or "contents" in request:
        messages = listed(request.get("messages")) or [
            {**mapped(content), "role": mapped(content).get("role") or "user"}
            for content in listed(request.get("contents"))
        ]
        read_messages(conversation, messages)
        digests = tuple(_digest(message) for message in messages if _is_said(message))
        found = dialect_of(messages)
    else:
        items = request.get("input")
        read_input(conversation, items)
        asked = [{"role": "user", "content": items}] if isinstance(items, str) else listed(items)
        digests = tuple(_digest(item) for item in asked if _is_said(item))
        found = "openai-responses"
    ended, told = _answered(conversation, response)
    if told:
        found = told
    if error and ended is None:
        ended = "error", text_in(mapped(error).get("message") or error)[:80] or "error"
    conversation.model = str(request.get("model") or mapped(response).get("model") or "")
    read = conversation.recording(source.id(name), source.file, format or found, ended)
    return msgspec.structs.replace(read, request=digests)


def _answered(conversation: Conversation, response: Any) -> tuple[tuple[Ended, str] | None, str]:
    """Add the answer: how the run ended where it is an error, and the dialect where it tells."""
    body = mapped(response)
    if body.get("type") == "error" or (
        body.get("error") and not body.get("output") and not body.get("choices")
    ):
        told = mapped(body.get("error"))
        return (
            "error",
            str(told.get("type") or told.get("code") or told.get("message") or body.get("error") or "error")[
                :80
            ],
        ), ""
    if listed(body.get("candidates")) or "promptFeedback" in body:
        read_answer(conversation, [body])
        return None, "gemini-api"
    if isinstance(body.get("output"), list) and (
        body.get("object") == "response" or any(map(is_item, body["output"]))
    ):
        read_response(conversation, body)
        return None, "openai-responses"
    if isinstance(body.get("content"), list) and body.get("type") == "message":
        read_message(conversation, {**body, "role": "assistant"})
        return None, "anthropic-messages"
    if isinstance(mapped(body.get("output")).get("message"), dict):
        read_message(
            conversation,
            {
                **body["output"]["message"],
                "finish_reason": body.get("stopReason"),
                "usage": body.get("usage"),
            },
        )
        return None, "bedrock-converse"
    answer = answer_in(response)
    if answer is None:
        return None, ""
    if mapped(body.get("usage")) and not answer.get("usage"):
        answer["usage"] = body["usage"]
    answer = {**answer, "role": "assistant"}
    if is_message(answer):
        read_message(conversation, answer)
    return None, ""


def _is_said(message: Any) -> bool:
    """Instructions differ between the agents of one run; what was said does not."""
    return mapped(message).get("role") not in ("system", "developer")


def _digest(message: Any) -> int:
    """A message by what it says: its role, words and calls, not its ids or caches."""
    given = mapped(message)
    calls = [
        mapped(mapped(raw).get("function")).get("name") or mapped(raw).get("name")
        for raw in listed(given.get("tool_calls"))
    ]
    said = [
        given.get("role"),
        given.get("type"),
        _said(given.get("content", given.get("parts", given.get("output")))),
        calls,
        given.get("arguments"),
    ]
    return int.from_bytes(hashlib.blake2b(encode_json(said), digest_size=8).digest(), "big")


def _said(content: Any) -> Any:
    if isinstance(content, list):
        return [_said(block) for block in content]
    if isinstance(content, dict):
        return {
            key: _said(value)
            for key, value in content.items()
            if key not in ("cache_control", "id", "annotations", "signature")
        }
    return content
