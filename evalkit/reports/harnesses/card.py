"""Cards of harnesses as text, as JSON, and side by side."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from evalkit.core.escaping import for_markdown, for_terminal
from evalkit.scoring.harness_card import SILENT, Card, Line

WIDTH = 110
#: Narrower than this a card is not: what a line is about takes half of it.
_NARROWEST = 76
COMMAND = "evalkit harnesses card"
#: The columns of the table: section and line of a card, and what the column is called.
_COLUMNS = (
    ("caps", "turns, by default", "cap of turns by default"),
    ("caps", "turns, told", "a limit of turns that it is told"),
    ("caps", "calls, told", "of calls"),
    ("caps", "tokens, told", "of tokens"),
    ("caps", "usd, told", "of dollars"),
    ("a turn", "calls", "the calls of a turn"),
    ("a turn", "a failed request", "a failed request"),
    ("the last turn", "its calls at a cap", "calls of the last turn"),
    ("the last turn", "a call of a cut-off turn", "a call that was cut off"),
    ("done and a limit in one turn", "which wins", "done or the limit"),
    ("caps", "requests answered 529", "requests answered 529 until it ends"),
    (*SILENT, "stops after which it ends as done, the work open"),
)


def card_text(card: Card, columns: int = WIDTH) -> str:
    """A card for a terminal of so many columns, or for a file, section by section."""
    columns = min(max(columns, _NARROWEST), WIDTH)
    unseen = sum(bool(sight.why) for sight in card.sights.values())
    pins = f" · {', '.join(card.pins)}" if card.pins else ""
    streams = "streamed" if card.streamed else "whole answers"
    head = (
        f"{card.harness}: {card.summary}",
        f"{card.dialect}, {streams}{pins}",
        f"seen in {len(card.sights) - unseen} scenes with evalkit {card.evalkit}, scripted model; "
        f"{unseen} cannot be played with it",
    )
    lines = [*head]
    if columns < WIDTH:
        lines = [part for line in head for part in textwrap.wrap(line, columns, break_on_hyphens=False)]
    for section, found in groupby(card.lines, key=lambda line: line.section):
        lines += ["", section]
        shown = list(found)
        width = max(len(line.about) for line in shown) + 2
        for line in shown:
            lines += _wrapped(line, width, columns)
    return "\n".join(for_terminal(line) for line in lines) + "\n"


def _wrapped(line: Line, width: int, columns: int) -> list[str]:
    head = f"  {line.about:<{width}}"
    width = len(head)
    return textwrap.wrap(
        _line_text(line), columns, initial_indent=head, subsequent_indent=" " * width, break_on_hyphens=False
    )


def _line_text(line: Line) -> str:
    return line.says if line.seen else f"not seen: {line.says}"


def cards_json(cards: Sequence[Card]) -> str:
    """One card as an object, several as a list of them."""
    value = cards[0] if len(cards) == 1 else cards
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"


def write_cards(cards: Sequence[Card], folder: Path) -> None:
    """Write each card's text and a page that holds them side by side; rows of others stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for card in cards:
        (folder / _file(card)).write_text(card_text(card), encoding="utf-8")
    page = folder / "README.md"
    there = page.read_text(encoding="utf-8") if page.is_file() else ""
    page.write_text(cards_markdown(cards, there), encoding="utf-8")


def _file(card: Card) -> str:
    return f"{card.harness.replace(':', '-')}.txt"


def cards_markdown(cards: Sequence[Card], before: str = "") -> str:
    """The page: one row a harness. Of the page ``before`` it, rows of other harnesses stay."""
    head = "| harness | " + " | ".join(title for *_, title in _COLUMNS) + " |"
    rows = {line.split("]")[0]: line for line in before.splitlines() if line.startswith("| [")}
    for card in cards:
        cells = [_cell(card.line(section, about)) for section, about, _ in _COLUMNS]
        row = f"| [{card.harness}]({_file(card)}) | " + " | ".join(cells) + " |"
        rows[row.split("]")[0]] = row
    table = [head, "|" + " --- |" * (len(_COLUMNS) + 1), *(rows[name] for name in sorted(rows))]
    return "\n\n".join(
        (
            "# The cards: how harnesses count, end and give up",
            f"Measured with evalkit {cards[0].evalkit}, scripted model, never declared: each line is read "
            f"off requests and endings of small scenes. Made again with `{COMMAND} --out FOLDER`; one card "
            f"with `{COMMAND} NAME`, what each scene showed with `--json`. `·`: no scene showed it, and the "
            "card says why. A limit is told to the program in a variable: where it is not held, the program "
            "may hand none on to what it is built with.",
            "\n".join(table),
        )
    ) + "\n"  # fmt: skip


def _cell(line: Line) -> str:
    """The first words of a line: what was seen, without where; of silent ends their number."""
    if not line.seen:
        return "·"
    if (line.section, line.about) == SILENT:
        return str(len(line.scenes))
    return for_markdown(re.split("[:;,]", line.says)[0])
