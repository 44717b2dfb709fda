"""Tasks as text."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from evalkit.worker.task_records import Effect, Evidence, Exchange, Record
from evalkit.worker.telemetry import SIGNALS, Signal, TypeStats

_WORDS = {
    "open_stops": "text-only stops with the condition open",
    "truncated_finals": "endings on a cut-off turn",
    "limits": "endings at a limit",
    "escalations": "endings that a person has to look at",
}


def record_json(record: Record) -> dict[str, Any]:
    """A record as JSON values."""
    return msgspec.to_builtins(record)  # type: ignore[no-any-return]


def record_line(record: Record) -> str:
    """A record in one line."""
    done = sum(line.done or line.skipped for line in record.checklist)
    items = f"{done}/{len(record.checklist)}" if record.checklist else "-"
    words = " ".join(record.order.prompt.split())
    head = f"{record.id}  {record.status}  {record.order.type}"
    return f"{head}  {items} items  {record.turns} turns  {words[:60]}"


def record_text(record: Record) -> str:
    """A record in full."""
    order = record.order
    checks = ", ".join(order.checks) or "none: closing rests on what the model and its tools say"
    lines = [
        f"task        {record.id} ({order.type})",
        f"status      {record.status}",
        f"prompt      {order.prompt}",
        f"done when   {order.done_when or 'not stated'}",
        f"checks      {checks}",
        f"closed by   {order.closure}",
        f"strategy    {order.strategy}, kit {order.kit}",
        f"turns       {record.turns}, {record.input_tokens + record.output_tokens} tokens",
        f"continued   {record.continuations} times; attempts {record.attempts}",
        f"last stop   {record.last_stop or '-'}",
        f"updated     {_time(record.updated)}",
    ]
    if record.lease is not None:
        lines.append(f"lease       {record.lease.worker} until {_time(record.lease.until)}")
    if record.ending is not None:
        lines.append(
            f"ending      {record.ending.kind} ({record.ending.native}): {record.ending.report.reason}"
        )
    if record.completion is not None:
        lines.append(f"completed   by {record.completion.by} under {record.completion.key}")
        lines.append(f"evidence    {json.dumps(record.completion.evidence)}")
    if record.artifact is not None:
        lines.append(f"artifact    {record.artifact}")
    for line in record.checklist:
        mark = "x" if line.done else "-" if line.skipped else " "
        lines.append(f"  [{mark}] {line.item}")
    return "\n".join(lines) + "\n"


def transcript_text(record: Record, exchanges: Sequence[Exchange], effects: Sequence[Effect]) -> str:
    """Turn by turn: what was asked, what the model said, what the calls gave."""
    by_turn: dict[int, list[Effect]] = {}
    for effect in effects:
        by_turn.setdefault(effect.turn, []).append(effect)
    lines = [f"user: {record.order.prompt}"]
    for exchange in exchanges:
        if exchange.request.text:
            lines.append(f"user: {exchange.request.text}")
        lines.append(f"turn {exchange.number} ({exchange.turn.stop}): {exchange.turn.text}".rstrip())
        for call in exchange.turn.calls:
            lines.append(f"  call {call.tool} {call.arguments}")
        lines.extend(f"  {_effect(effect)}" for effect in by_turn.get(exchange.number, ()))
    return "\n".join(lines) + "\n"


def _effect(effect: Effect) -> str:
    outcome: str = effect.status
    if effect.result is not None:
        outcome = f"{'error' if effect.result.error else 'ok'}: {effect.result.text}"
    key = f" key {effect.key}" if effect.care == "keyed" else ""
    return f"{effect.step} {effect.tool} {effect.arguments} [{effect.care}]{key} {outcome}"


def evidence_text(effects: Sequence[Effect], pieces: Sequence[Evidence]) -> str:
    """The calls on record and the pieces of evidence."""
    lines = [f"{len(effects)} calls"]
    lines.extend(f"  {_effect(effect)}" for effect in effects)
    lines.append(f"{len(pieces)} pieces of evidence")
    lines.extend(
        f"  {_time(piece.at)} {piece.name} ({piece.by}): {json.dumps(piece.content)}" for piece in pieces
    )
    return "\n".join(lines) + "\n"


def stats_text(found: Sequence[TypeStats], hours: float) -> str:
    """Telemetry by task type; a spike stands out."""
    if not found:
        return "no events yet\n"
    lines = []
    for one in found:
        lines.append(f"{one.type}")
        lines.append(f"  endings  {_counts(one.endings)}")
        lines.append(f"  stops    {_counts(one.stops)}")
        for name in SIGNALS:
            lines.append(f"  {_signal(_WORDS[name], getattr(one, name), hours)}")
    return "\n".join(lines) + "\n"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def _signal(words: str, signal: Signal, hours: float) -> str:
    spike = "SPIKE  " if signal.spike else ""
    now = f"{signal.count} of {signal.base} in the last {hours:g} h"
    return f"{spike}{words}: {now}, {signal.count_before} of {signal.base_before} before"


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
