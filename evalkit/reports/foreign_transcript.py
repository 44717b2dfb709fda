"""A foreign episode as it was kept, turn by turn, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from evalkit.core.escaping import for_terminal
from evalkit.core.names import counted
from evalkit.core.trace import Finding
from evalkit.harnesses.episode_record import Kept
from evalkit.scoring.episode_fields import MARKS, Episode
from evalkit.scoring.reasons import flag_in_words
from evalkit.stats.causes import told_once

_OUTPUT_LINES = 12


def kept_text(kept: Kept, scenario: str, items: int, figures: str) -> str:
    """The transcript of a foreign episode; ``figures`` are its outcome and flags."""
    lines = [f"{scenario} × {kept.harness}, seed {kept.seed}, {kept.seconds:.2f} s"]
    complete = False
    for step in kept.exchanges:
        label = step.stop if step.native in (None, step.stop) else f"{step.stop} (label {step.native})"
        head = f"{step.number:>3}" if step.number else "  –"
        if step.by:
            label += f", {step.by}"
        settled = min(step.settled, items)
        bar = "■" * settled + "□" * (items - settled)
        lines += [f"     * {short(event)}" for event in step.before]
        lines.append(f"{head}  {label:<24} {bar if items <= 40 else f'{step.settled} of {items}'}")
        lines += [f"       {block['kind']}: {short(block['text'])}" for block in step.blocks]
        lines += [
            f"       {'error' if result['error'] else 'result'}: {short(result['text'])}"
            for result in step.results
        ]
        if step.action not in ("", "went on"):
            lines.append(f"     → {step.action}" + (f": {short(step.says)}" if step.says else ""))
        if step.held != complete:
            complete = step.held
            lines.append(truth_change_line(complete))
    if kept.open:
        lines.append(f"not settled: {', '.join(kept.open)}")
    lines.append(figures)
    if kept.wrong is not None:
        lines.append(kept.wrong.said)
    if kept.seen:
        lines.append("seen: " + "; ".join(f"{name} {in_words(value)}" for name, value in kept.seen.items()))
    if kept.output.strip():
        printed = kept.output.strip().splitlines()
        last = f"the last {_OUTPUT_LINES} of " if len(printed) > _OUTPUT_LINES else ""
        lines.append(f"printed ({last}{counted(len(printed), 'line')}), {kept.exit}:")
        lines += [f"   | {short(line)}" if line.strip() else "   |" for line in printed[-_OUTPUT_LINES:]]
    return "\n".join(for_terminal(line) for text in lines for line in text.split("\n")) + "\n"


def in_words(value: Any) -> str:
    """What the server saw of one kind, in a line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def truth_change_line(complete: bool) -> str:
    """The line where the truth of the work changes."""
    return f"       *** {'the work is complete from here' if complete else 'no longer complete'}"


def figures_text(values: Mapping[str, Any], findings: Sequence[Finding] = ()) -> str:
    """Outcome, flags, what keeps it from being correct, causes and note of an episode, from its row."""
    native = f" ({values['native']})" if values["native"] else ""
    spent = f"{counted(values['turns'], 'turn')}, {counted(values['tokens'], 'token')}"
    lines = [f"outcome: {values['outcome']}{native} after {spent}"]
    if values["helper_turns"]:
        helped = f"{values['helper_turns']} turns, {values['helper_tokens']:,} of the tokens"
        lines.append(f"helpers: {helped}")
    found = {name: values[name] for name in MARKS if values[name]}
    if values["honest_report"] == 0:
        found["dishonest_report"] = True
    flags = [
        name.replace("_", " ") + (f" ({value})" if value is not True and value > 1 else "")
        for name, value in found.items()
    ]
    lines.append(f"flags: {', '.join(flags) or 'none'}")
    why = values["why"]
    lines.append("correct" if values["correct"] else f"not correct: {why}")
    told = [flag_in_words(name, value, findings) for name, value in found.items()]
    lines += [f"  {line}" for line in told if ": " in line and line not in why]
    if values["causes"] and not values["correct"]:
        lines.append("fell for: " + "; ".join(told_once(values["causes"].split("\n"))))
    if values["note"]:
        lines.append(f"note: {values['note']}")
    return "\n".join(lines)


def episode_figures(episode: Episode) -> str:
    """Outcome, flags, causes and note of an episode just run."""
    values = msgspec.structs.asdict(episode)
    causes = "\n".join(episode.causes)
    return figures_text({**values, "outcome": episode.outcome, "causes": causes}, episode.findings)


def short(text: str, width: int = 160) -> str:
    """A text on one line, cut to ``width``."""
    flat = " ⏎ ".join(text.splitlines()) or "(nothing)"
    return flat if len(flat) <= width else flat[: width - 1] + "…"
