"""``report.md`` of a judgement: what was recorded, what strategies would have decided, what is unknown."""

from __future__ import annotations

from typing import Any

from evalkit.core.escaping import for_markdown
from evalkit.core.names import counted
from evalkit.transcripts.judging.answer import HEADS, caption, sentences, table
from evalkit.transcripts.judging.outcome import RECORDED

_MEANINGS = (
    ("false done", "ended `done` while the task was not complete; base: stops whose truth is known"),
    (
        "premature stop",
        "ended before the turn at which the task became complete; base: stops of which that is known "
        "(a label with `complete_at`, or a stop at which it was complete)",
    ),
    (
        "cut short",
        "ended although the recorded run went on to do more that may have changed the world. An observation, "
        "not a fault: whether the task was complete by then is not known",
    ),
    (
        "over-continuation",
        "went on for more than 3 turns after a decision at which the task was complete, or had been complete "
        "for more than 12 turns without a decision; base: stops of which that is known. Without "
        "`complete_at` only the bad cases can be known, so the rate is then no estimate",
    ),
    ("unclosed", "the task was complete and the ending is not `done`; base: stops known to be complete"),
    ("beyond", "would have gone on after the recorded end; what would have come is not known"),
    (
        "decisions",
        "its verdicts at the ends of turn whose truth is known: right to end, wrong to end, right to go on, "
        "wrong to go on (tp, fp, tn, fn)",
    ),
    ("saved", "recorded turns and tokens after a `done` stop at which the task was complete"),
)


def report_markdown(summary: dict[str, Any]) -> str:
    """The whole report."""
    run = summary["run"]
    recorded = next((row for row in summary["rows"] if row["strategy"] == RECORDED), None)
    others = [row for row in summary["rows"] if row["strategy"] != RECORDED]
    judged = [row for row in others if row["judged"]]
    parts = [
        "# Which of these runs stopped too early or said done when it was not, and what would have caught it?"
    ]
    parts += [_answer(summary), _read(run)]
    if recorded is not None:
        parts += ["## The recorded ends", _recorded(recorded)]
    if judged:
        parts += ["## Strategies", _table(judged), _decisions(judged)]
    unjudged = [row for row in others if row["unknown"]]
    if unjudged:
        parts += ["## What cannot be said", _unknown(unjudged)]
    if summary["agreement"]:
        parts += ["## Agreement", _agreement(summary["agreement"])]
    if summary["parted"]["count"]:
        parts += ["## Where strategies part", _parted(summary["parted"])]
    parts += ["## What the words mean", "\n".join(f"- **{name}**: {text}." for name, text in _MEANINGS)]
    parts += ["## How this was judged", _how(run)]
    if summary["notes"] or summary["problems"]:
        lines = [*summary["notes"], *summary["problems"]]
        parts += ["## Not read, and notes", "\n".join(f"- {line}" for line in lines)]
    return "\n\n".join(parts) + "\n"


def _answer(summary: dict[str, Any]) -> str:
    answer = summary["answer"]
    why = {row["strategy"]: "; ".join(row["why_unknown"]) for row in summary["rows"] if row["why_unknown"]}
    text = "\n\n".join(sentences(answer, why, summary.get("claimed")))
    rows = table(answer)
    if not rows or not answer["labelled"]:
        return text
    return f"{text}\n\n{_lines(list(HEADS), rows)}\n\n{caption(answer)}"


def _read(run: dict[str, Any]) -> str:
    formats = ", ".join(f"{count} {name}" for name, count in run["formats"].items()) or "none"
    labels = run["labels"]
    return (
        f"{counted(run['recordings'], 'recording')} from {counted(run['files'], 'file')} ({formats}); "
        f"{counted(run['problems'], 'problem')}. Labels: {labels['complete']} complete, "
        f"{labels['incomplete']} incomplete, {labels['unknown']} without."
    )


def rate(cell: dict[str, Any]) -> str:
    """``3 of 12 (25 %)``; ``n/a`` for an empty base; the percentage from a base of 20 on."""
    if not cell["base"]:
        return "n/a"
    text = f"{cell['count']} of {cell['base']}"
    return f"{text} ({100 * cell['rate']:.0f} %)" if cell["base"] >= 20 else text


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(map(for_markdown, cells)) + " |"


def _lines(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([_line(head), _line(["---"] * len(head)), *map(_line, rows)])


def _recorded(row: dict[str, Any]) -> str:
    endings = ", ".join(f"{count} {name}" for name, count in row["endings"].items())
    outcomes = [[name, str(count)] for name, count in row["outcomes"].items()]
    excess = row["excess_turns"]
    text = (
        f"How the harness ended: {endings}. False done: {rate(row['false_done'])}; unclosed: "
        f"{rate(row['unclosed'])}; over-continuation: {rate(row['over_continuation'])}. Turns known to be "
        f"wasted after completion: {excess['sum']} in {counted(excess['base'], 'run')} (a lower bound)."
    )
    return text + "\n\n" + _lines(["outcome", "recordings"], outcomes)


def _table(rows: list[dict[str, Any]]) -> str:
    head = ["strategy", "judged", "before the end", "at the end", "beyond", "false done", "premature stop"]
    head += ["cut short", "over-continuation", "unclosed", "saved turns", "saved tokens"]
    lines = []
    for row in rows:
        stops, saved, tokens = row["stops"], row["saved_turns"], row["saved_tokens"]
        lines.append(
            [
                row["strategy"],
                str(row["judged"]),
                str(stops["before"]),
                str(stops["at_end"]),
                str(stops["beyond"]),
                rate(row["false_done"]),
                rate(row["premature_stop"]),
                rate(row["cut_short"]),
                rate(row["over_continuation"]),
                rate(row["unclosed"]),
                f"{saved['sum']} in {saved['base']}" if saved["base"] else "n/a",
                f"{tokens['sum']:,}" if tokens["base"] else "n/a",
            ]
        )
    return _lines(head, lines)


def _decisions(rows: list[dict[str, Any]]) -> str:
    head = ["strategy", "right to end", "wrong to end", "right to go on", "wrong to go on"]
    head.append("stops that rest on other requests")
    lines = [
        [
            row["strategy"],
            *(str(row["decisions"][name]) for name in ("tp", "fp", "tn", "fn")),
            str(row["differs"]),
        ]
        for row in rows
    ]
    return "Verdicts at the ends of turn whose truth is known:\n\n" + _lines(head, lines)


def _unknown(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        for why, count in row["why_unknown"].items():
            lines.append(f"- `{row['strategy']}`, {counted(count, 'recording')}: {why}.")
    return "\n".join(lines)


def _agreement(pairs: list[dict[str, Any]]) -> str:
    lines = [
        [
            pair["one"],
            pair["other"],
            rate({"count": pair["same"], "base": pair["both"], "rate": pair["same"] / pair["both"]}),
        ]
        for pair in pairs
    ]
    return "Same ending at the same turn, of the recordings on which both were judged:\n\n" + _lines(
        ["one", "other", "same"], lines
    )


def _parted(parted: dict[str, Any]) -> str:
    names = list(dict.fromkeys(name for row in parted["recordings"] for name in row["stops"]))
    folder = _common_folder([row["recording"] for row in parted["recordings"]])
    lines = [
        [
            row["recording"].removeprefix(folder),
            row["label"],
            str(row["turns"]),
            *(row["stops"].get(name, "–") for name in names),
        ]
        for row in parted["recordings"]
    ]
    more = parted["count"] - len(lines)
    text = f"{counted(parted['count'], 'recording')} on which judged strategies give different ends:\n\n"
    text += _lines(["recording", "label", "turns", *names], lines)
    return text + (f"\n\nand {more} more: see episodes.csv." if more > 0 else "")


def _common_folder(recordings: list[str]) -> str:
    """The folders that all recordings share, so that the table need not repeat them."""
    folders = [recording.partition("#")[0].split("/")[:-1] for recording in recordings]
    shared = []
    for names in zip(*folders, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "".join(f"{name}/" for name in shared)


def _how(run: dict[str, Any]) -> str:
    reader = (
        "Claims are read by evalkit's rules (`evalkit transcripts claims` measures them on turns that you "
        "label)."
        if run["claims"] == "rules"
        else "Claims were read by a reader of your own."
    )
    return (
        "The reference loop was asked at each recorded turn. A decision is conditional on the recorded "
        "conversation before it; a row is exact up to the turn at which its strategy would have parted from "
        "the recording (a nudge instead of the user's next message). After an ending a message of the user's "
        "goes on with the conversation, as in `evalkit run`. Labels hold at "
        "the recorded end; labels of the world's state also at earlier turns after which no call may have "
        "changed it. " + reader + " All figures follow from `episodes.csv`."
    )
