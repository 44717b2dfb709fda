"""``report.md``: the comparison as text that a review can quote."""

from __future__ import annotations

from typing import Any

from evalkit.reports.figures import (
    RATE_MEANINGS,
    RATE_NAMES,
    label,
    macro,
    number,
    overall,
    p_value,
    percent,
    rate,
)

_LEVELS = {
    "full": "Full checks: a strategy may run the oracle's own checks. An upper bound.",
    "weak": "Weak checks: they see a part of the work.",
    "none": "No checks: nothing mechanical to ask.",
}


def report_markdown(summary: dict[str, Any]) -> str:
    """The whole report."""
    run = summary["run"]
    parts = [
        "# Does the harness know when its task is over?",
        f"Run `{run['id']}`, evalkit {run['evalkit']}: {run['scenarios']} scenarios, {run['episodes']} "
        f"episodes, {run['void']} void. Scripted model; a scenario without randomness runs once.",
        _table(
            summary,
            overall(summary),
            "All scenarios, best first. *k of n* scenarios and seeds: the "
            "library is written, not sampled, so these are counts and no estimates. Macro: mean over "
            "families.",
        ),
    ]
    for level, meaning in _LEVELS.items():
        rows = [row for row in summary["rows"] if row["family"] == "all" and row["checks"] == level]
        if rows:
            order = {label(row): place for place, row in enumerate(overall(summary))}
            rows.sort(key=lambda row: order[label(row)])
            parts += [f"## {meaning}", _table(summary, rows, "", with_macro=False)]
    if summary["pairs"]:
        parts += ["## Compared with the baseline", _pairs(summary["pairs"])]
    if summary["twins"]:
        parts += ["## Twins", _twins(summary["twins"])]
    if run["not_expressible"]:
        lines = [f"- `{name}`: {why}" for name, why in run["not_expressible"].items()]
        parts += ["## Not expressible here", "\n".join(lines)]
    meanings = "\n".join(f"- **{RATE_NAMES[name]}**: {RATE_MEANINGS[name]}." for name in RATE_NAMES)
    parts += ["## What the rates mean", meanings]
    parts.append(
        "Token counts are of evalkit's counter for scripted runs (UTF-8 bytes over 4, rounded up, the "
        "conversation so far counted at each turn)."
    )
    return "\n\n".join(parts) + "\n"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(
    summary: dict[str, Any], rows: list[dict[str, Any]], caption: str, *, with_macro: bool = True
) -> str:
    head = ["strategy", *RATE_NAMES.values(), "turns", "tokens"]
    if with_macro:
        head.insert(6, "correct, macro")
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows:
        cells = [label(row), *(rate(row[name]) for name in RATE_NAMES)]
        if with_macro:
            mean = macro(summary, row, "correct")
            cells.append("n/a" if mean is None else percent(mean))
        lines.append(_line([*cells, number(row["turns"]), number(row["tokens"])]))
    return (f"{caption}\n\n" if caption else "") + "\n".join(lines)


def _pairs(pairs: list[dict[str, Any]]) -> str:
    head = ["strategy", "against", "scenarios", "better", "worse", "difference", "p (sign-flip)", "p (Holm)"]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in pairs:
        lines.append(
            _line(
                [
                    label(row),
                    row["baseline"],
                    str(row["scenarios"]),
                    str(row["better"]),
                    str(row["worse"]),
                    f"{100 * row['difference']:+.0f} points",
                    p_value(row["p"]),
                    p_value(row["p_holm"]),
                ]
            )
        )
    return (
        "By *correct*, on the same scenarios. The p-values describe this set of written scenarios; they say "
        "nothing of a population.\n\n" + "\n".join(lines)
    )


def _twins(twins: list[dict[str, Any]]) -> str:
    head = ["strategy", "pairs told apart", "of"]
    lines = [_line(head), _line(["---"] * len(head))]
    lines += [_line([label(row), str(row["right"]), str(row["pairs"])]) for row in twins]
    return (
        "Pairs of scenarios with the same words over different worlds. A reader of words alone tells none "
        "apart, a coin at most a quarter.\n\n" + "\n".join(lines)
    )
