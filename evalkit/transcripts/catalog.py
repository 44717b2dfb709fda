"""The formats that are read: what each is, how it is known; and the readers of sessions and of spans."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from evalkit.transcripts.formats import (
    claude_code,
    cline,
    codex,
    command_line,
    cursor,
    gemini,
    openai_agents,
    openhands,
    otel,
    pi,
    qwen,
    traces,
)
from evalkit.transcripts.formats.spans import Span
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.source import Source


class Format(NamedTuple):
    """A format: what it is, and the fields by which it is known."""

    what: str
    known_by: str


#: All formats by name.
FORMATS: dict[str, Format] = {
    "openai-chat": Format(
        "OpenAI Chat message lists, alone or in records with labels",
        "messages with `role` and `content` or `tool_calls`",
    ),
    "anthropic-messages": Format(
        "Anthropic message lists, likewise",
        "blocks of type `tool_use`, `tool_result`, `thinking`; `stop_reason`",
    ),
    "openai-responses": Format(
        "OpenAI Responses items and response objects", "items with `type` and `call_id`; `object: response`"
    ),
    "bedrock-converse": Format(
        "Bedrock Converse messages", "blocks without `type`: `text`, `toolUse`, `toolResult`"
    ),
    "gemini-api": Format(
        "Gemini contents, recorded answers",
        "`contents` of `role` and `parts`; `method` and `response` a line",
    ),
    "ai-sdk-ui": Format(
        "Vercel AI SDK UI messages, versions 4 to 6",
        "`role` and `parts` of type `tool-…`, `step-start`; `toolInvocations`",
    ),
    "tau-bench": Format("tau-bench results", "`traj` and `reward`"),
    "tau2": Format("tau2-bench results", "`simulations`, or `messages` and `termination_reason`"),
    "inspect": Format("Inspect logs (.eval, .json)", "an archive with `header.json`; `eval` and `samples`"),
    "swe-agent": Format(
        "SWE-agent .traj, demonstrations with `history` alone",
        "`trajectory` and `info`; `history` with `agent` or `message_type`",
    ),
    "mini-swe-agent": Format(
        "mini-swe-agent .traj.json", "`trajectory_format`; `messages` and `info.exit_status`"
    ),
    "openhands": Format(
        "OpenHands events (version 1), trajectories (version 0), evaluation output",
        "`kind: ActionEvent` …; `action` or `observation` with `source`; `history` of them",
    ),
    "atif": Format(
        "Harbor ATIF trajectories, Terminus 2 in words included", "`schema_version: ATIF…` and `steps`"
    ),
    "claude-code": Format(
        "Claude Code sessions, streams, web exports; child agents as children",
        "`type`, `sessionId` and `message`; `loglines`",
    ),
    "codex-rollout": Format(
        "OpenAI Codex CLI rollouts", "`type` and `payload`: `session_meta`, `response_item`, `event_msg`"
    ),
    "gemini-cli": Format("Gemini CLI sessions (JSON, JSONL)", "`sessionId` and `projectHash`"),
    "qwen-code": Format("Qwen Code sessions", "`uuid`, `sessionId` and `message.parts`"),
    "cursor": Format("Cursor agent transcripts", "`role` and `message.content`, no `type`"),
    "opencode": Format("opencode exports", "`info` and `messages` of `info.role` and `parts`"),
    "copilot-cli": Format("GitHub Copilot CLI events", "`type: user.message` …, `data`, `parentId`"),
    "droid": Format(
        "Factory Droid sessions and stream-json",
        "`session_start`; `toolCallId` lines; `completion` with `finalText`",
    ),
    "kimi-cli": Format(
        "Kimi CLI wire files", "`turn.prompt`, `context.append_loop_event`; `protocol_version`"
    ),
    "grok-cli": Format(
        "Grok CLI chat histories", "`type` system to tool_result with `content`; `tool_call_id`"
    ),
    "pi": Format(
        "pi, oh-my-pi and OpenClaw sessions",
        "`session` with `version`; `message` with `parentId` and `message.role`",
    ),
    "openclaw": Format("OpenClaw telemetry", "`agent.start` … `agent.end` with `messages`"),
    "antigravity": Format("Antigravity CLI steps", "`step_index`, `source` and `type`"),
    "cline": Format("Cline and Roo ui_messages.json", "`ts` and `type` say or ask"),
    "aider": Format("aider chat histories (Markdown)", "`# aider chat started at`"),
    "openai-agents": Format("OpenAI Agents SDK traces", "`object: trace` and `trace.span`"),
    "openai-agents-state": Format("OpenAI Agents SDK run states", "`$schemaVersion` and `generated_items`"),
    "google-adk": Format(
        "Google ADK sessions (eval sets are refused: references)",
        "`events` with `author` and `content.parts`",
    ),
    "autogen": Format(
        "AutoGen messages, task results, saved team states",
        "`source` and `type: TextMessage` …; `agent_states`",
    ),
    "pydantic-ai": Format("pydantic-ai message histories", "`kind` and `parts` with `part_kind`"),
    "langchain": Format(
        "LangChain and LangGraph messages", "`type` human, ai, tool with `content`; `lc` constructors"
    ),
    "browser-use": Format("browser-use histories", "`history` of `model_output` and `result`"),
    "smolagents": Format("smolagents steps", "`model_output` with `observations` or `step_number`"),
    "trae-agent": Format("trae-agent trajectories", "`agent_steps` and `llm_interactions`"),
    "strands": Format("Strands sessions, a message a line", "`message` and `message_id`"),
    "hermes": Format("Hermes and other ShareGPT lists", "`conversations` of `from` and `value`"),
    "otel-genai": Format(
        "OpenTelemetry GenAI spans, AI SDK spans among them",
        "OTLP JSON; `gen_ai.…` or `ai.operationId` attributes",
    ),
    "openinference": Format(
        "OpenInference spans (Phoenix)", "`span_kind` or `openinference.span.kind`, `context.trace_id`"
    ),
    "langsmith": Format(
        "LangSmith runs and batches", "`run_type` with `dotted_order` or `trace_id`; `post` and `patch`"
    ),
    "langfuse": Format(
        "Langfuse traces and observations", "`observations` with `type` and `startTime`; `traceId`"
    ),
    "weave": Format("Weave calls", "`op_name`, `trace_id` and `inputs`"),
    "http-cassette": Format(
        "recorded HTTP: vcrpy, ruby-vcr, go-vcr, nock, HAR (YAML, JSON)",
        "`interactions` or `http_interactions` of `request` and `response`",
    ),
    "multi-agent": Format("plain multi-agent histories (who-and-when)", "`history` and `question`"),
}

#: What always works, for those whose format is none of these.
ALWAYS = (
    'one run a line as {"messages": [{"role": …, "content": …}, …], "complete": true | false} always works'
)


class Session(Protocol):
    """Takes the lines of a session; gives the runs in it."""

    def add(self, line: Any) -> None:
        """Take one line."""

    def recordings(self, source: Source) -> Iterator[Recording]:
        """The runs, when all lines were taken."""


#: Formats of one event a line: how a line is known, and who takes them. The most particular come first.
SESSIONS: tuple[tuple[Callable[[Any], bool], Callable[[], Session]], ...] = (
    (codex.is_codex, codex.Codex),
    (qwen.is_qwen, qwen.Qwen),
    (claude_code.is_claude_code, claude_code.Session),
    (gemini.is_recorded_answer, gemini.RecordedAnswers),
    (gemini.is_session, gemini.GeminiCli),
    (openhands.is_event, openhands.OpenHands),
    (openhands.is_trajectory_event, openhands.Trajectory),
    (command_line.is_copilot, command_line.Copilot),
    (command_line.is_kimi, command_line.Kimi),
    (command_line.is_antigravity, command_line.Antigravity),
    (pi.is_openclaw_event, pi.OpenClaw),
    (pi.is_pi, pi.Pi),
    (command_line.is_droid, command_line.Droid),
    (cline.is_cline, cline.Cline),
    (cursor.is_cursor, cursor.Cursor),
    (command_line.is_grok, command_line.Grok),
)


class Spans(NamedTuple):
    """A format of spans: its name, how a value is known, its spans, and what waits for the end."""

    format: str
    fits: Callable[[Any], bool]
    spans_of: Callable[[dict[str, Any]], Iterator[Span]]
    rest: Callable[[], Iterator[Span]] | None = None


def spans_format(values: list[Any]) -> Spans | None:
    """The format of spans that values are of."""
    langsmith = traces.LangSmith()
    for candidate in (
        Spans("otel-genai", otel.is_otlp, otel.spans_of),
        Spans("openai-agents", openai_agents.is_agents_object, openai_agents.spans_of),
        Spans("langsmith", traces.is_langsmith, langsmith.spans, langsmith.rest),
        Spans("langfuse", traces.is_langfuse, traces.langfuse_spans),
        Spans("weave", traces.is_weave, traces.weave_spans),
        Spans("openinference", traces.is_openinference, traces.openinference_spans),
        Spans("otel-genai", otel.is_bare_span, otel.bare_spans),
    ):
        if any(map(candidate.fits, values)):
            return candidate
    return None


def session_format(values: list[Any]) -> Callable[[], Session] | None:
    """The reader of sessions that most lines fit; at a tie the more particular one."""
    best: Callable[[], Session] | None = None
    most = 0
    for fits, taker in SESSIONS:
        count = sum(map(fits, values))
        if count > most:
            best, most = taker, count
    return best


_WORD = re.compile(r"`([^`]+)`")


def nearest(value: Any) -> str:
    """The format that shares most fields with a value, with how it is known; empty where none does."""
    seen = _fields(value, 3)
    best, most = "", 1
    for name, format in FORMATS.items():
        told = {
            word.strip(" …") for words in _WORD.findall(format.known_by) for word in re.split(r"[:.]", words)
        }
        count = len(told & seen)
        if count > most:
            best, most = name, count
    return f"nearest is {best}, known by {FORMATS[best].known_by}" if best else ""


def _fields(value: Any, depth: int) -> set[str]:
    if isinstance(value, dict):
        found = set(map(str, value)) | {str(value.get(key)) for key in ("type", "kind") if value.get(key)}
        for inner in list(value.values())[:20] if depth else ():
            found |= _fields(inner, depth - 1)
        return found
    if isinstance(value, list) and depth:
        return {field for inner in value[:3] for field in _fields(inner, depth - 1)}
    return set()


def is_decisive(value: Any) -> bool:
    """Whether a value alone says what a sequence is of."""
    return spans_format([value]) is not None
