"""How a run went, in one line: what each turn held, and what the harness made of it."""

from __future__ import annotations

from collections.abc import Iterable

from evalkit.core.decisions import Action, End, Reissue, Reject, Resend, RunTools, Send, Verdict
from evalkit.core.requests import Result
from evalkit.core.turns import Call, ServerCall, Text, Thinking, Turn

_REISSUED = {
    "retry": "asks again",
    "poll": "polls",
    "limit": "raises the limit",
    "model": "asks another model",
    "shorten": "shortens",
}
#: Turns in the line at its beginning and at its end; those between are counted.
_FIRST, _LAST = 24, 8


class Told:
    """A watcher that keeps a word for each answer; ``line`` is the run."""

    def __init__(self) -> None:
        self._steps: list[str] = []

    def __call__(
        self, turn: Turn, action: Action, verdict: Verdict | None, results: tuple[Result, ...]
    ) -> None:
        if not isinstance(action, RunTools):
            made = _made_of(action)
            self._steps.append(f"{content_of(turn)} [{made}]" if made else content_of(turn))

    def line(self, ending: str, native: str, truth: str, turns: int) -> str:
        """The turns in order, equal ones in a row counted, then ending and truth."""
        steps = list(_counted(self._steps))
        if len(steps) > _FIRST + _LAST:
            left_out = len(steps) - _FIRST - _LAST
            steps = [*steps[:_FIRST], f"({left_out} more)", *steps[-_LAST:]]
        word = "turn" if turns == 1 else "turns"
        return f"{', '.join(steps)} -> {ending}/{truth} after {turns} {word} ({native})"


def content_of(turn: Turn) -> str:
    """A turn in a few words."""
    if turn.kind == "failed":
        return f"fault {turn.native or turn.stop}"
    if turn.kind == "in_progress":
        return "in progress"
    calls = [block.tool for block in turn.content if isinstance(block, Call)]
    parts = [f"{name} x{count}" if count > 1 else name for name, count in _runs(calls)]
    if turn.claim != "none":
        parts.append(f"claims {turn.claim}")
    elif any(isinstance(block, Text) and block.text.strip() for block in turn.content):
        parts.append("says")
    elif not calls:
        parts += [f"runs {block.name}" for block in turn.content if isinstance(block, ServerCall)]
        if any(isinstance(block, Thinking) for block in turn.content):
            parts.append("thinks")
    said = " + ".join(parts) or "empty"
    return said if turn.kind == "content" else f"{turn.kind.replace('_', ' ')} ({said})"


def _made_of(action: Action) -> str:
    match action:
        case Reissue():
            return _REISSUED[action.why]
        case Resend():
            return "resends"
        case Reject():
            return "rejects"
        case Send(text) if text is not None:
            return "nudges"
        case End():
            return ""
    return ""


def _counted(steps: Iterable[str]) -> Iterable[str]:
    for step, count in _runs(steps):
        yield f"{step} ({count} turns)" if count > 1 else step


def _runs(words: Iterable[str]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for word in words:
        if found and found[-1][0] == word:
            found[-1] = (word, found[-1][1] + 1)
        else:
            found.append((word, 1))
    return found
