"""OpenAI Codex CLI rollouts: ``response_item`` lines are the conversation, ``event_msg`` lines the screen.

One session may hold several tasks: they are one run, in which the user went on. A turn is what stands between
two answers, user messages or token counts.
"""

from __future__ import annotations

from typing import Any

from evalkit.core.turns import Call, make_turn
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.lines import Lines
from evalkit.transcripts.formats.messages import tokens_in, tokens_out
from evalkit.transcripts.formats.responses import OUTPUTS, input_text
from evalkit.wire.answers import mapped, text_in
from evalkit.wire.openai_responses.answers import read_items

_TYPES = frozenset(("session_meta", "turn_context", "response_item", "event_msg", "compacted"))
#: Beginnings of user messages that the tool writes itself.
_OWN = (
    *("<environment_context>", "<user_instructions>", "<INSTRUCTIONS>", "# AGENTS.md instructions"),
    *(
        "<permissions instructions>",
        "<turn_aborted>",
        "<skill>",
        "<user_shell_command>",
        "<subagent_notification>",
    ),
    *("<collaboration_mode>", "Another language model started to solve this problem"),
)


def is_codex(line: Any) -> bool:
    """A rollout's line: a type of its own with a ``payload`` object, and a time stamp."""
    return (
        isinstance(line, dict)
        and isinstance(line.get("payload"), dict)
        and line.get("type") in _TYPES
        and ("timestamp" in line or line["type"] in ("session_meta", "response_item"))
    )


class Codex(Lines):
    """Takes the lines of a rollout."""

    format = "codex-rollout"

    def __init__(self) -> None:
        super().__init__()
        self._spoken: list[dict[str, Any]] = []
        self._usage: dict[str, Any] = {}

    def add(self, line: Any) -> None:
        kind, payload = line.get("type"), mapped(line.get("payload"))
        if kind == "response_item":
            self._item(payload)
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "turn_context":
            self.conversation.model = str(payload.get("model") or self.conversation.model)
        elif kind == "session_meta":
            given = payload.get("base_instructions") or payload.get("instructions")
            self.conversation.system(text_in(given))
        elif kind == "compacted":
            self._close()
        else:
            self.conversation.skip(f"a line of type {kind!r} that nobody knows")

    def _item(self, item: dict[str, Any]) -> None:
        kind, role = item.get("type"), item.get("role")
        if kind == "message" and role == "assistant":
            if self._spoken and self._spoken[-1].get("type") == "message":
                self._close()
            self._take({**item, "content": item.get("content") or []})
        elif kind == "message" and role in ("developer", "system"):
            self._close()
            self.conversation.system(text_in(item.get("content")))
        elif kind == "message":
            self._close()
            self._user(text_in(item.get("content")))
        elif kind in OUTPUTS:
            self._close()
            self._output(item)
        elif kind == "reasoning" or (isinstance(kind, str) and kind.endswith("_call")):
            if kind == "reasoning" and self._spoken and self._spoken[-1].get("type") != "reasoning":
                self._close()
            self._take(item)

    def _take(self, item: dict[str, Any]) -> None:
        self.ended = None
        self._spoken.append(item)

    def _user(self, text: str) -> None:
        if text.lstrip().startswith("<turn_aborted>"):
            self.ended = "unknown", "turn aborted"
            return
        if text.lstrip().startswith(_OWN):
            if self.conversation.last is None:
                self.conversation.system(text)
            else:
                self.conversation.user(text, "harness")
            return
        self.ended = None
        self.conversation.user(text)

    def _output(self, item: dict[str, Any]) -> None:
        raw = item.get("output")
        text, flag = input_text(raw)
        self.conversation.result(
            str(item.get("call_id") or item.get("id")), text, looks_failed(text) if flag is None else flag
        )

    def _event(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "token_count":
            info = mapped(event.get("info"))
            self._usage = mapped(info.get("last_token_usage")) or self._usage
            self._close()
        elif kind in ("task_complete", "turn_complete"):
            self._close()
            self.ended = "done", str(kind)
        elif kind == "turn_aborted":
            self._close()
            self.ended = "unknown", f"turn aborted ({event.get('reason') or 'no reason'})"
        elif kind in ("error", "stream_error"):
            self._close()
            self.ended = "error", str(event.get("message") or "error")[:80]
        elif kind in ("task_started", "user_message"):
            self._close()

    def _close(self) -> None:
        if not self._spoken:
            return
        blocks, refused = read_items(self._spoken)
        called = any(isinstance(block, Call) for block in blocks)
        usage = self._usage
        if blocks:
            self.conversation.turn(
                make_turn(blocks, "refusal" if refused else "tool_use" if called else "end_turn"),
                input_tokens=tokens_in(usage) if usage else None,
                output_tokens=tokens_out(usage) if usage else None,
            )
        self._spoken, self._usage = [], {}

    def finish(self) -> None:
        self._close()
