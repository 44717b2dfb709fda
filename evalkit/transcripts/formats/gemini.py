"""Gemini: contents of the API, sessions of Gemini CLI, and its recorded API answers."""

from __future__ import annotations

from typing import Any

from evalkit.core.turns import Block, Call, Text, Thinking, make_turn
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.lines import Lines
from evalkit.transcripts.formats.messages import read_messages, stop_of, tokens_in, tokens_out
from evalkit.transcripts.formats.parts import answer_text, arguments_of, failed_fields, part_of
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.recording import Conversation, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in


def is_contents(record: Any) -> bool:
    """A request of the API, alone or with its answer: ``contents`` of messages that have ``parts``."""
    if not isinstance(record, dict) or not isinstance(record.get("contents"), list):
        return False
    return any(isinstance(mapped(content).get("parts"), list) for content in record["contents"])


def contents(record: dict[str, Any], source: Source) -> Recording:
    """One conversation; ``candidates`` beside it, or in ``response``, are its last answer."""
    conversation = Conversation()
    given = record.get("systemInstruction") or record.get("system_instruction")
    if given:
        conversation.system(text_in(mapped(given).get("parts") or given))
    for tool in listed(record.get("tools")):
        for declared in listed(
            mapped(tool).get("functionDeclarations") or mapped(tool).get("function_declarations")
        ):
            conversation.tools[str(mapped(declared).get("name"))] = None
    read_messages(conversation, [_with_role(content) for content in record["contents"]])
    answer = mapped(record.get("response")) or record
    if listed(answer.get("candidates")):
        read_answer(conversation, [answer])
    conversation.model = str(record.get("model") or answer.get("modelVersion") or "")
    return conversation.recording(source.id(), source.file, "gemini-api", None, label_of(record))


def _with_role(content: Any) -> Any:
    given = mapped(content)
    return {**given, "role": given.get("role") or "user"} if given else content


def read_answer(conversation: Conversation, chunks: list[dict[str, Any]]) -> None:
    """Add an answer of the API: one object, or the chunks of a stream."""
    blocks: list[Block] = []
    label: Any = None
    usage: dict[str, Any] = {}
    for chunk in chunks:
        candidate = mapped(next(iter(listed(chunk.get("candidates"))), None))
        for raw in listed(mapped(candidate.get("content")).get("parts")):
            part = part_of(raw, len(blocks))
            same = type(part) is type(blocks[-1]) if blocks else False
            if same and isinstance(part, Text) and isinstance(blocks[-1], Text):
                blocks[-1] = Text(blocks[-1].text + part.text)
            elif same and isinstance(part, Thinking) and isinstance(blocks[-1], Thinking):
                blocks[-1] = Thinking(blocks[-1].text + part.text)
            elif part is not None and isinstance(part, Block):
                blocks.append(part)
        label = candidate.get("finishReason") or candidate.get("finish_reason") or label
        usage = mapped(chunk.get("usageMetadata") or chunk.get("usage_metadata")) or usage
    if mapped(chunks[-1].get("promptFeedback")).get("blockReason") and not blocks:
        label = mapped(chunks[-1]["promptFeedback"])["blockReason"]
        label = label if isinstance(label, str) and label.lower() in ("safety", "blocklist") else "SAFETY"
    stop, native = stop_of(label, any(isinstance(block, Call) for block in blocks))
    conversation.turn(
        make_turn(tuple(blocks), stop, native=native),
        input_tokens=tokens_in(usage) if usage else None,
        output_tokens=tokens_out(usage) if usage else None,
    )


# Gemini CLI


def is_session(value: Any) -> bool:
    """A session's document, or the header that its lines begin with."""
    return isinstance(value, dict) and "sessionId" in value and "projectHash" in value


def session(record: dict[str, Any], source: Source) -> Recording:
    """A session's document."""
    taken = GeminiCli()
    taken.add(record)
    (recording,) = taken.recordings(source)
    return recording


_KINDS = frozenset(("user", "gemini", "model", "info", "error", "warning"))


class GeminiCli(Lines):
    """Takes a session: its header, a message a line; the same id again replaces the message."""

    format = "gemini-cli"

    def __init__(self) -> None:
        super().__init__()
        self._messages: dict[str, dict[str, Any]] = {}

    def add(self, line: Any) -> None:
        if not isinstance(line, dict):
            self.conversation.skip(f"a {type(line).__name__} in place of a message")
        elif "$set" in line:
            for message in listed(mapped(line["$set"]).get("messages")):
                self.add(message)
        elif line.get("type") in _KINDS:
            self._messages[str(line.get("id") or f"#{len(self._messages)}")] = line
        elif is_session(line):
            for message in listed(line.get("messages")):
                self.add(message)
        elif "$rewindTo" not in line:
            self.conversation.skip(
                f"a line of no known type; its fields: {', '.join(list(map(str, line))[:6])}"
            )

    def finish(self) -> None:
        for message in self._messages.values():
            self._message(message)

    def _message(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        content = message.get("content")
        content = message.get("parts") if content is None else content
        if kind == "user":
            self.ended = None
            read_messages(self.conversation, [{"role": "user", "content": content}])
        elif kind in ("gemini", "model"):
            self.ended = None
            self._model(message, content)
        elif kind == "error":
            self.ended = "error", text_in(content)[:80] or "error"
        elif kind == "info" and "cancelled" in text_in(content).lower():
            self.ended = "unknown", "request cancelled"

    def _model(self, message: dict[str, Any], content: Any) -> None:
        blocks: list[Block] = [
            Thinking(
                " ".join(
                    filter(
                        None, (text_in(mapped(raw).get("subject")), text_in(mapped(raw).get("description")))
                    )
                )
            )
            for raw in listed(message.get("thoughts"))
        ]
        if text_in(content):
            blocks.append(Text(text_in(content)))
        calls = [mapped(raw) for raw in listed(message.get("toolCalls"))]
        for place, raw in enumerate(calls):
            blocks.append(
                Call(
                    str(raw.get("id") or f"call-{place}"), str(raw.get("name")), arguments_of(raw.get("args"))
                )
            )
        usage = mapped(message.get("tokens"))
        self.conversation.model = str(message.get("model") or self.conversation.model)
        self.conversation.turn(
            make_turn(tuple(blocks), "tool_use" if calls else "end_turn"),
            input_tokens=tokens_in(usage) if usage else None,
            output_tokens=tokens_out(usage) if usage else None,
        )
        for place, raw in enumerate(calls):
            status = raw.get("status")
            if status in ("validating", "scheduled", "awaiting_approval", "executing"):
                continue
            text, flag = _result(raw)
            failed = status in ("error", "cancelled") or (looks_failed(text) if flag is None else flag)
            self.conversation.result(str(raw.get("id") or f"call-{place}"), text, failed)


def _result(raw: dict[str, Any]) -> tuple[str, bool | None]:
    words = []
    flag = None
    for part in listed(raw.get("result")):
        response = mapped(mapped(mapped(part).get("functionResponse")).get("response"))
        flag = failed_fields(response) if response else flag
        words.append(answer_text(response) if response else text_in(part))
    return "\n".join(words) or text_in(raw.get("resultDisplay")), flag


# Recorded API answers (``*.responses``)


def is_recorded_answer(value: Any) -> bool:
    """A line of a file of recorded answers: the client's method, and what it gave."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("method"), str)
        and "response" in value
        and (value["method"].startswith(("generateContent", "countTokens", "embedContent")))
    )


class RecordedAnswers(Lines):
    """Takes recorded answers, one call a line. Prompts and tools' answers are not in them."""

    format = "gemini-api"

    def add(self, line: Any) -> None:
        if not is_recorded_answer(line):
            self.conversation.skip("a line that is no recorded answer")
        elif line["method"].startswith("generateContent"):
            given = line["response"]
            chunks = [mapped(chunk) for chunk in given] if isinstance(given, list) else [mapped(given)]
            if chunks:
                read_answer(self.conversation, chunks)


def contents_list(values: list[Any], source: Source) -> Recording:
    """A bare list of contents."""
    return contents({"contents": values}, source)
