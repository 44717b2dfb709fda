"""Cline and Roo: ``ui_messages.json``, what was said and asked in the editor."""

from __future__ import annotations

from typing import Any

from evalkit.core.turns import Block, Call, Text, Thinking, make_turn, parse_arguments
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.lines import Lines
from evalkit.wire.answers import encode_json, mapped

_WAITS = {
    "completion_result": ("done", "completion_result"),
    "followup": ("done", "asks a question"),
    "plan_mode_respond": ("done", "asks a question"),
    "api_req_failed": ("error", "api_req_failed"),
    "mistake_limit_reached": ("limit", "mistake_limit_reached"),
    "resume_task": ("unknown", "interrupted"),
    "resume_completed_task": ("done", "completion_result"),
}

#: What the editors say and ask besides, by Cline 3 and Roo 3: of their own doings, no part of a conversation.
_ASIDE = frozenset(
    (
        "act_mode_respond",
        "api_req_deleted",
        "api_req_finished",
        "api_req_rate_limit_wait",
        "api_req_retried",
        "api_req_retry_delayed",
        "auto_approval_max_req_reached",
        "browser_action_launch",
        "browser_session_status",
        "checkpoint_created",
        "checkpoint_saved",
        "clineignore_error",
        "codebase_search_result",
        "command_output",
        "command_permission_denied",
        "condense",
        "condense_context",
        "condense_context_error",
        "conditional_rules_applied",
        "context_compacted",
        "deleted_api_reqs",
        "error_retry",
        "followup",
        "generate_explanation",
        "hook_output_stream",
        "hook_status",
        "image",
        "info",
        "load_mcp_tools",
        "mcp_notification",
        "mcp_server_request_started",
        "new_task",
        "plan_mode_respond",
        "report_bug",
        "rooignore_error",
        "shell_integration_warning",
        "shell_integration_warning_with_suggestion",
        "sliding_window_truncation",
        "subtask_result",
        "summarize_task",
        "task_progress",
        "too_many_tools_warning",
        "user_edit_todos",
    )
)


def is_cline(line: Any) -> bool:
    """A message of the editor: a time, and something said or asked."""
    return (
        isinstance(line, dict)
        and "ts" in line
        and line.get("type") in ("say", "ask")
        and ("say" in line or "ask" in line)
    )


class Cline(Lines):
    """Takes the messages; ``api_req_started`` opens a response, what is said until the next belongs to it."""

    format = "cline"

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[Block] = []
        self._results: list[tuple[str, str]] = []
        self._open = False
        self._begun = False
        self._usage: dict[str, Any] = {}

    def add(self, line: Any) -> None:
        given = mapped(line)
        if not is_cline(given):
            self.conversation.skip(
                f"is no message of the editor; its fields: {', '.join(list(map(str, given))[:6])}"
            )
            return
        kind = str(given.get(str(given["type"])))
        text = str(given.get("text") or "")
        if given.get("partial") is True:
            return
        if given["type"] == "ask":
            self._asked(kind, text)
        elif kind in ("task", "user_feedback", "user_feedback_diff") or (kind == "text" and not self._begun):
            self._begun = True
            self._close()
            self.ended = None
            self.conversation.user(text)
        elif kind == "api_req_started":
            self._begin(text)
        elif kind == "reasoning":
            self._blocks.append(Thinking(text))
        elif kind == "text":
            self._blocks.append(Text(text))
        elif kind in ("tool", "command", "browser_action", "use_mcp_server", "task_progress"):
            self._call(kind, text)
        elif kind in ("command_output", "mcp_server_response", "browser_action_result"):
            self._answer(text)
        elif kind in ("error", "diff_error"):
            self._answer(f"Error: {text}")
        elif kind == "completion_result":
            if text:
                self._blocks.append(Text(text))
            self._call("attempt_completion", "{}")
            self.ended = "done", "completion_result"
        elif kind not in _ASIDE:
            self.conversation.skip(f"is said as {kind!r}, which nobody knows")

    def _begin(self, text: str) -> None:
        self._close()
        told = mapped(parse_arguments(text))
        if told.get("cancelReason"):
            self.ended = "unknown", f"cancelled ({told['cancelReason']})"
            return
        self._open, self._usage, self.ended = True, told, None

    def _asked(self, kind: str, text: str) -> None:
        if kind in ("tool", "command", "browser_action_launch", "use_mcp_server"):
            self._call(kind, text)
        elif kind == "command_output":
            self._answer(text)
        elif kind in _WAITS:
            if kind in ("followup", "plan_mode_respond") and text:
                told = mapped(parse_arguments(text))
                self._blocks.append(Text(str(told.get("question") or told.get("response") or text)))
            ending, native = _WAITS[kind]
            self.ended = ending, native  # type: ignore[assignment]
        elif kind not in _ASIDE:
            self.conversation.skip(f"is asked as {kind!r}, which nobody knows")

    def _call(self, kind: str, text: str) -> None:
        told = parse_arguments(text)
        name = str(mapped(told).get("tool") or kind)
        if kind == "task_progress":
            return
        arguments = text if told is not None else '{"text": ' + _quoted(text) + "}"
        self._blocks.append(Call(f"call-{len(self._blocks)}", name, arguments))

    def _answer(self, text: str) -> None:
        call = next((block for block in reversed(self._blocks) if isinstance(block, Call)), None)
        if call is not None:
            self._results.append((call.id, text))

    def _close(self) -> None:
        if self._blocks:
            called = any(isinstance(block, Call) for block in self._blocks)
            tokens = self._usage
            self.conversation.turn(
                make_turn(tuple(self._blocks), "tool_use" if called else "end_turn"),
                input_tokens=tokens["tokensIn"] if isinstance(tokens.get("tokensIn"), int) else None,
                output_tokens=tokens["tokensOut"] if isinstance(tokens.get("tokensOut"), int) else None,
            )
            for identity, text in self._results:
                self.conversation.result(identity, text, looks_failed(text))
        self._blocks, self._results, self._open, self._usage = [], [], False, {}

    def finish(self) -> None:
        self._close()


def _quoted(text: str) -> str:

    return encode_json(text).decode()
