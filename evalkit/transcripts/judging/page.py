"""``index.html`` of a judgement: all runs in one file, to filter, to open at their decision, and to label.

What it shows of a run's words is cut short and without secrets and personal details. The data stand in the
page as JSON, one run a line; rows are drawn as they come into view, so that ten thousand stay usable.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from evalkit.core.turns import Call, Text
from evalkit.transcripts.judging.judge import UNKNOWN
from evalkit.transcripts.judging.outcome import Outcome
from evalkit.transcripts.privacy import Replacer
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.replay import Moment, Replay

#: Runs that the page holds; more are in ``episodes.csv``.
MOST = 20_000
#: Characters that are shown of a turn's words, of a call or an answer, and turns before the decision.
_WORDS, _PART, _BEFORE = 700, 160, 3
_MARK = "/*DATA*/"


class Page:
    """A page being written: runs as they come, the rest when it is closed."""

    def __init__(self, folder: Path) -> None:
        template = (files("evalkit.transcripts.judging") / "page.html").read_text(encoding="utf-8")
        self._head, _, self._tail = template.partition(_MARK)
        self._file: IO[str] = (folder / "index.html").open("w", encoding="utf-8", newline="\n")
        self._file.write(self._head)
        self._begun = False
        self.runs = self.left_out = 0

    def takes(self) -> bool:
        """Whether there is room for one more run, which is promised to it."""
        if self.runs >= MOST:
            self.left_out += 1
            return False
        self.runs += 1
        return True

    def add(self, run: str) -> None:
        """Write one run, as :func:`told_run` tells it."""
        self._file.write(("," if self._begun else "") + run + "\n")
        self._begun = True

    def close(self, answer: Iterable[str]) -> None:
        """Write the rest: the answer in sentences."""
        said = json.dumps(list(answer), ensure_ascii=False).replace("<", "\\u003c")
        self._file.write(self._tail.replace("/*ANSWER*/", said).replace("/*LEFT*/", str(self.left_out)))
        self._file.close()


def told_run(recording: Recording, replay: Replay, rows: list[Outcome]) -> str:
    """One run as the page holds it: JSON, nothing of which can end the element that it stands in."""
    text = json.dumps(_run(recording, replay, rows), ensure_ascii=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return text.encode("utf-8", "replace").decode()


def _run(recording: Recording, replay: Replay, rows: list[Outcome]) -> dict[str, Any]:
    recorded, *others = rows
    replace = Replacer.of(recording)
    last = len(replay.moments)
    at = next((turn for turn in range(last, 0, -1) if replay.moments[turn - 1].decision), last)
    return {
        "id": recorded.recording,
        "format": recording.format,
        "ending": recorded.ending,
        "native": recorded.native[:60],
        "label": recorded.label,
        "claim": recorded.claim,
        "turns": last,
        "at": at,
        "task": _short(replace(recording.prompt), 300),
        "stops": {
            row.strategy: [row.ending, row.turn, row.parted, _verdict(row, at), row.reason[:80]]
            for row in others
            if row.ending != UNKNOWN
        },
        "scene": [
            _turn(replay.moments[turn - 1], turn, replace)
            for turn in range(max(1, at - _BEFORE), min(at + 1, last) + 1)
        ],
    }


def _verdict(row: Outcome, at: int) -> str:
    """What a strategy decided at the decision: ``+`` done, ``-`` not, ``?`` a policy came first."""
    marks = {mark[:-1]: mark[-1] for mark in row.decided.split()}
    return marks.get(str(at), "")


def _turn(moment: Moment, number: int, replace: Replacer) -> dict[str, Any]:
    step = moment.step
    return {
        "n": number,
        "text": _short(
            replace("\n".join(block.text for block in step.turn.content if isinstance(block, Text))), _WORDS
        ),
        "claim": moment.turn.claim,
        "calls": [
            [block.tool, _short(replace(block.arguments), _PART)]
            for block in step.turn.content
            if isinstance(block, Call)
        ][:6],
        "results": [[_short(replace(result.text), _PART), result.error] for result in step.results][:6],
        "said": None if step.said is None else [step.by, _short(replace(step.said), 300)],
    }


def _short(text: str, most: int) -> str:
    text = text.strip()
    return text if len(text) <= most else f"{text[: most * 2 // 3]} … {text[-(most // 3) :]}"
