"""The answer that a report gives first: at each level of checks which strategy, how sure, at what cost."""

from __future__ import annotations

import msgspec

from evalkit.reports.figures import (
    LEVEL_MEANINGS,
    LEVELS,
    Row,
    at_level,
    count,
    dollars,
    label,
    levels,
    number,
    p_value,
    points,
    rate,
)


class Answer(msgspec.Struct, frozen=True):
    """One level's answer, in sentences."""

    level: str
    title: str
    meaning: str
    best: str
    result: str
    sure: str
    runner_up: str
    cost: str
    share: float | None


def answers(summary: Row) -> list[Answer]:
    """One answer for each level of checks that the run has."""
    return [_answer(summary, level) for level in levels(summary)]


def _answer(summary: Row, level: str) -> Answer:
    rows = at_level(summary, level)
    top = rows[0]
    value = top["correct"]["scenario_count"]
    tied = [row for row in rows if row["correct"]["scenario_count"] == value]
    below = [row for row in rows if row["correct"]["scenario_count"] < value]
    others = f", as {_names([label(row) for row in tied[1:]])}" if len(tied) > 1 else ""
    runner_up = ""
    if below:
        second = below[0]
        runner_up = f"Next: {label(second)}, {rate(second['correct'])}{_beside(summary, level)}."
    return Answer(
        level=level,
        title=LEVELS[level],
        meaning=LEVEL_MEANINGS[level],
        best=label(top),
        result=f"{rate(top['correct'])} scenarios correct{others}",
        sure=_sure(summary, top, level),
        runner_up=runner_up,
        cost=_cost(top),
        share=top["correct"]["scenario_rate"],
    )


def _beside(summary: Row, level: str) -> str:
    """In how many scenarios the best is better and worse than the next: how far the order can be trusted."""
    lead = next((lead for lead in summary["leads"] if lead["checks"] == level), None)
    if lead is None:
        return ""
    return f"; beside it {label(lead)} is better in {lead['better']} and worse in {lead['worse']}"


def _names(names: list[str], most: int = 3) -> str:
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(names)


def _sure(summary: Row, top: Row, level: str) -> str:
    baseline = summary["run"]["baseline"]
    if top["strategy"] == baseline:
        return f"It is the baseline that the others are compared with ({baseline})."
    pair = next(
        (pair for pair in summary["pairs"] if pair["checks"] == level and label(pair) == label(top)), None
    )
    if pair is None:
        return f"Not compared: {baseline} has no scenario in common with it."
    text = (
        f"Against {baseline}: better in {pair['better']}, worse in {pair['worse']} of {pair['scenarios']} "
        f"({points(pair['difference'])} points)"
    )
    if pair["p"] is None:
        return f"{text}; {pair['note']}."
    return f"{text}; exact sign-flip test, p {_equals(pair['p_holm'])} after Holm over all that is shown."


def _equals(value: float) -> str:
    text = p_value(value)
    return text if text.startswith("<") else f"= {text}"


def _cost(row: Row) -> str:
    each = row["per_correct"]
    text = (
        f"{number(row['turns'])} turns and {number(row['tokens'])} tokens an episode "
        f"(about {dollars(row['usd'])} at the assumed price)"
    )
    if each["tokens"] is None:
        return f"{text}; no episode was correct."
    return f"{text}; {number(each['tokens'])} tokens for each correct one."


def caveats(summary: Row) -> list[str]:
    """What the numbers may claim, said once for the whole report."""
    run = summary["run"]
    if run["sampled"]:
        said = [
            "The scenarios are a sample; intervals are at 95 %, clustered by scenario. Seeds are averaged "
            "within a scenario."
        ]
    else:
        said = [
            "The scenarios are written, not sampled: figures are k of n scenarios and say nothing of a "
            "population. Seeds, where they matter, are averaged within a scenario."
        ]
    said.append(
        "Levels of checks are never pooled here: with full checks a strategy may run the oracle's own, so "
        "that level is an upper bound."
    )
    if run["model"] == "scripted":
        said.append(
            "The model is scripted: what it says and does is fixed, so differences are the strategies'."
        )
    if run["void"]:
        said.append(f"{count(run['void'])} episodes are void (evalkit failed) and out of every base.")
    return said
