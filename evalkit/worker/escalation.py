"""What a person is given when a task cannot go on: what was tried, what is left, why, and how to resume."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec

from evalkit.core.turns import parse_arguments
from evalkit.worker.store.protocol import Store
from evalkit.worker.task_records import Effect, Evidence, Exchange, Record

SCHEMA = "evalkit.escalation/1"
#: Calls shown in full; the rest is in the record.
LAST_CALLS = 20
_SHOWN = 300


class Escalation(msgspec.Struct, frozen=True):
    """A task handed to a person; ``schema`` is the version of this shape."""

    schema: str
    task: str
    type: str
    prompt: str
    done_when: str
    ending: str
    native: str
    why: str
    open_items: list[str]
    done_items: list[str]
    skipped_items: list[str]
    in_doubt: list[dict[str, Any]]
    attempted: list[dict[str, Any]]
    turns: int
    continuations: int
    attempts: int
    tokens: int
    last_stop: str | None
    last_words: str
    evidence: list[dict[str, Any]]
    has_checks: bool
    transcript: str
    resume: list[str]
    at: str


def escalation_of(store: Store, record: Record) -> Escalation:
    """The artifact of a task as its record stands."""
    transcript = store.transcript(record.seq)
    effects = store.effects(record.seq)
    ending = record.ending
    doubtful = [effect for effect in effects if effect.status != "confirmed"]
    return Escalation(
        schema=SCHEMA,
        task=record.id,
        type=record.order.type,
        prompt=record.order.prompt,
        done_when=record.order.done_when,
        ending=ending.kind if ending is not None else "",
        native=ending.native if ending is not None else "",
        why=_why(record),
        open_items=_open(record),
        done_items=[line.item for line in record.checklist if line.done],
        skipped_items=[line.item for line in record.checklist if line.skipped and not line.done],
        in_doubt=[_call(effect) for effect in doubtful],
        attempted=[_call(effect) for effect in effects if effect.status == "confirmed"][-LAST_CALLS:],
        turns=record.turns,
        continuations=record.continuations,
        attempts=record.attempts,
        tokens=record.input_tokens + record.output_tokens,
        last_stop=record.last_stop,
        last_words=_shorter(_last_words(transcript)),
        evidence=[_piece(piece) for piece in store.evidence(record.seq)],
        has_checks=bool(record.order.checks),
        transcript=record.order.settings.get("transcript")
        or f"evalkit task show {record.id} --transcript --store {store.url}",
        resume=_resume(record, doubtful, store.url),
        at=_time(record.closed or record.updated),
    )


def _why(record: Record) -> str:
    ending = record.ending
    if ending is None:
        return ""
    return ending.report.reason or ending.native or ending.kind


def _open(record: Record) -> list[str]:
    """What the ending's report leaves open, else the checklist's open lines."""
    reported = record.ending.report.outstanding if record.ending is not None else None
    return list(record.open_items() if reported is None else reported)


def _resume(record: Record, doubtful: list[Effect], url: str) -> list[str]:
    store = f"--store {url}"
    steps = [
        f"evalkit task evidence {record.id} --settle {effect.step} --as done|not-done {store}"
        for effect in doubtful
        if effect.care == "uncertain"
    ]
    if "resume" in record.order.settings:
        return [*steps, str(record.order.settings["resume"])]
    return [
        *steps,
        f'evalkit task retry {record.id} --answer "what the model should know" {store}',
        f"evalkit task complete {record.id} --evidence-file FILE --idempotency-key {record.id}:final {store}",
    ]


def _call(effect: Effect) -> dict[str, Any]:
    result, arguments = effect.result, parse_arguments(effect.arguments)
    return {
        "step": effect.step,
        "tool": effect.tool,
        "arguments": effect.arguments if arguments is None else arguments,
        "status": effect.status,
        "key": effect.key,
        "result": None if result is None else _shorter(result.text),
        "error": None if result is None else result.error,
    }


def _piece(piece: Evidence) -> dict[str, Any]:
    return {"name": piece.name, "by": piece.by, "content": piece.content, "at": _time(piece.at)}


def _last_words(transcript: list[Exchange]) -> str:
    return next((exchange.turn.text for exchange in reversed(transcript) if exchange.turn.text), "")


def _shorter(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def markdown_of(escalation: Escalation) -> str:
    """The artifact for reading."""
    checks = "" if escalation.has_checks else " (it has no acceptance check: only a reader can judge it)"
    lines = [
        f"# {escalation.task}: {escalation.ending}",
        "",
        f"**Why it stopped.** {escalation.why} (`{escalation.native}`)",
        "",
        f"**Task** ({escalation.type}). {_quoted(escalation.prompt)}",
        f"Done when: {_quoted(escalation.done_when) or 'not stated'}{checks}",
        "",
        f"Turns {escalation.turns}, continuations {escalation.continuations}, attempts {escalation.attempts},"
        f" tokens {escalation.tokens}; the last turn stopped with `{escalation.last_stop}`. {escalation.at}",
        "",
        *_listed("Left open", escalation.open_items),
        *_listed("Done", escalation.done_items),
        *_listed("Skipped", escalation.skipped_items),
        *_calls("In doubt: begun, and nobody can say whether they happened", escalation.in_doubt),
        *_calls(f"What was done (the last {LAST_CALLS} calls)", escalation.attempted),
        *_listed(
            "Evidence",
            [
                f"{piece['name']} ({piece['by']}): {json.dumps(piece['content'])}"
                for piece in escalation.evidence
            ],
        ),
        "## The model's last words",
        "",
        *[f"> {line}" for line in (escalation.last_words or "(none)").splitlines()],
        "",
        "## How to go on",
        "",
        f"The transcript: `{escalation.transcript}`",
        "",
        *[f"- `{command}`" for command in escalation.resume],
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return " ".join(text.split())


def _listed(title: str, entries: list[str]) -> list[str]:
    return [f"## {title}", "", *[f"- {entry}" for entry in entries], ""] if entries else []


def _calls(title: str, calls: list[dict[str, Any]]) -> list[str]:
    said = []
    for call in calls:
        outcome = call["result"] if call["status"] == "confirmed" else call["status"]
        mark = "failed: " if call["error"] else ""
        said.append(f"step {call['step']}: `{call['tool']} {json.dumps(call['arguments'])}`: {mark}{outcome}")
    return _listed(title, said)


def hand_over(store: Store, id: str, home: Path) -> Path:
    """Write a task's artifact, JSON and Markdown, whole or not at all, and note where it is."""
    escalation = escalation_of(store, store.get(id))
    folder = home / "escalations"
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / f"{id}.json", json.dumps(msgspec.to_builtins(escalation), indent=2) + "\n")
    path = folder / f"{id}.md"
    _write(path, markdown_of(escalation))
    store.handed_over(id, str(path))
    return path


def _write(path: Path, text: str) -> None:
    """Replace a file; a reader sees the old or the new one, never a part."""
    temp = path.with_name(f".{path.name}.{os.getpid()}")
    temp.write_text(text, encoding="utf-8", errors="replace")
    os.replace(temp, path)
