"""Plain histories of several agents, as in the who-and-when collection: group chats and orchestrated teams.

In a group chat (AutoGen) every speaker's message is a turn; a code block that the terminal answers is a call.
In an orchestrated team (Magentic-One) the orchestrator's turns are the run's: what it tells an agent is a
call, what the agent reports is the answer.
"""

from __future__ import annotations

import re
from typing import Any

from evalkit.core.tasks import KEYWORD, occurs_whole
from evalkit.core.turns import Block, Call, Text, Thinking, make_turn
from evalkit.transcripts.formats.messages import arguments_of
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.recording import Conversation, Ended, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import mapped, text_in

_TERMINAL = "Computer_terminal"
_CODE = re.compile(r"```(?:python|py|sh|bash|shell)\s*\n(.*?)```", re.DOTALL)
_TO = re.compile(r"\(-> (?P<agent>[^)]+)\)")
_ANSWER = re.compile(r"^FINAL ANSWER:.*$", re.MULTILINE)


def is_multi_agent(record: dict[str, Any]) -> bool:
    """A history whose messages name their speakers, with the question it is about."""
    history = record.get("history")
    return (
        isinstance(history, list)
        and "question" in record
        and all(isinstance(message, dict) and "content" in message for message in history)
    )


def multi_agent(record: dict[str, Any], source: Source) -> Recording:
    """One history."""
    history = record["history"]
    conversation = Conversation()
    prompts = record.get("system_prompt")
    if isinstance(prompts, dict):
        for prompt in prompts.values():
            conversation.system(text_in(prompt))
    if any(str(message.get("role")).startswith("Orchestrator") for message in history):
        ended = _team(conversation, history)
    else:
        ended = _chat(conversation, history)
    label = label_of(record, ("is_correct", "is_corrected"))
    conversation.task = str(record.get("question_ID") or record["question"])
    return conversation.recording(source.id(), source.file, "multi-agent", ended, label)


def _chat(conversation: Conversation, history: list[dict[str, Any]]) -> tuple[Ended, str]:
    last = ""
    for place, message in enumerate(history):
        text, name = text_in(message.get("content")), str(message.get("name") or message.get("role"))
        if place == 0:
            conversation.user(text)
            continue
        if name == _TERMINAL:
            _terminal(conversation, text)
            last = ""
            continue
        code = _CODE.search(text)
        answered = place + 1 >= len(history) or history[place + 1].get("name") == _TERMINAL
        blocks: list[Block] = [Text(text)]
        if code is not None and answered and not occurs_whole(KEYWORD, text):
            blocks.append(Call(f"code-{place}", _TERMINAL, arguments_of({"code": code[1]})))
        conversation.turn(make_turn(tuple(blocks), "tool_use" if len(blocks) > 1 else "end_turn"), name)
        last = text
    if occurs_whole(KEYWORD, last):
        return "done", KEYWORD
    return "unknown", "no end signal"


def _terminal(conversation: Conversation, text: str) -> None:
    step = conversation.last
    if step is not None and step.turn.calls and not step.results:
        failed = re.match(r"\s*exitcode:\s*[1-9-]", text) is not None
        conversation.result(step.turn.calls[0].id, text, failed)
    else:
        conversation.user(text, "harness" if step is not None else "user")


def _team(conversation: Conversation, history: list[dict[str, Any]]) -> tuple[Ended, str]:
    thoughts: list[Block] = []
    pending: Call | None = None
    ended: tuple[Ended, str] | None = None
    for place, message in enumerate(history):
        role, text = str(message.get("role")), text_in(message.get("content"))
        to = _TO.search(role)
        if role in ("human", "user"):
            conversation.user(text)
        elif to is not None:
            pending = Call(f"to-{place}", to["agent"], arguments_of({"instruction": text}))
        elif "termination" in role:
            ended = _team_end(text, thoughts)
        elif role.startswith("Orchestrator"):
            thoughts.append(Thinking(text))
        else:
            call = pending or Call(f"to-{place}", role, "{}")
            conversation.turn(make_turn((*thoughts, call), "tool_use"), "Orchestrator")
            conversation.result(call.id, text, "Error processing publish message" in text)
            thoughts, pending = [], None
    last = text_in(mapped(history[-1] if history else {}).get("content"))
    if ended is None:
        ended = ("error", "exception") if "Traceback (most recent call last)" in last else None
    answer = _ANSWER.search(last)
    if pending is not None:
        conversation.turn(make_turn((*thoughts, pending), "tool_use"), "Orchestrator")
    elif thoughts and ended is not None and ended[1] in ("request satisfied", "replan limit"):
        said = Text(answer[0] if answer is not None else "")
        conversation.turn(make_turn((*thoughts, said), "end_turn"), "Orchestrator")
    elif thoughts:
        conversation.turn(make_turn(tuple(thoughts), "end_turn"), "Orchestrator")
    return ended or ("unknown", "no end signal")


def _team_end(text: str, thoughts: list[Block]) -> tuple[Ended, str]:
    thought = thoughts[-1].text if thoughts and isinstance(thoughts[-1], Thinking) else ""
    if text.startswith("Max"):
        return "limit", text.split(" reached")[0].lower()
    if "Replan counter exceeded" in thought:
        return "limit", "replan limit"
    if "Request satisfied" in thought:
        return "done", "request satisfied"
    return "unknown", text.splitlines()[0][:80] if text.strip() else "no end signal"
