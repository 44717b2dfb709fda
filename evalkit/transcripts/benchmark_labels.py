"""Labels that a benchmark puts beside a run: Harbor, Terminal-Bench, SWE-bench, OpenHands's evaluation."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from evalkit.transcripts.documents import Broken, decode
from evalkit.transcripts.labels import complete_of
from evalkit.transcripts.recording import Label, Recording
from evalkit.wire.answers import listed, mapped

#: The names of such files, and how far above a run they may lie.
NAMES = ("result.json", "results.json", "report.json", "eval_outputs.json")
_UP = 3
_MOST = 50_000_000


def with_label(recording: Recording) -> Recording:
    """The recording with the label beside it, where it has none of its own."""
    if recording.label.complete is not None or recording.parent:
        return recording
    file = Path(recording.file)
    folders = [file.parent, *file.parent.parents][: _UP + 1]
    task = recording.task or file.name.partition(".")[0]
    for up, folder in enumerate(folders):
        label = _of_folder(folder, task, up)
        if label is not None:
            return msgspec.structs.replace(recording, label=label)
    return recording


def _of_folder(folder: Path, task: str, up: int) -> Label | None:
    for name in NAMES:
        value = _read(folder / name)
        if value is not None:
            label = label_in(value, task, name, one_run=up <= 1)
            if label is not None:
                return label
    reward = folder / "verifier" / "reward.txt"
    if up <= 1 and reward.is_file():
        try:
            complete = complete_of(float(reward.read_text(encoding="utf-8")[:40]))
        except (OSError, ValueError):
            return None
        return Label(complete, "verifier/reward.txt", by="state") if complete is not None else None
    return None


@lru_cache(maxsize=64)
def _read(file: Path) -> Any:
    try:
        if not file.is_file() or file.stat().st_size > _MOST:
            return None
        return decode(file.read_bytes())
    except (OSError, Broken):
        return None


def label_in(value: Any, task: str, name: str, *, one_run: bool) -> Label | None:
    """What a file of results says of a task; of the only run of its folder where it names none."""
    given = mapped(value)
    if one_run:
        # Harbor: the verifier's rewards of one trial.
        verified = mapped(given.get("verifier_result"))
        rewards = mapped(verified.get("rewards"))
        reward = rewards.get("reward", verified.get("reward", next(iter(rewards.values()), None)))
        complete = complete_of(reward) if reward is not None else None
        if complete is not None:
            return Label(complete, f"{name} reward {reward}", by="state")
        # Terminal-Bench: one trial.
        if isinstance(given.get("is_resolved"), bool):
            return Label(given["is_resolved"], f"{name} is_resolved", by="state")
    # Terminal-Bench: all trials of a run.
    for trial in listed(given.get("results")):
        inner = mapped(trial)
        if task in (inner.get("task_id"), inner.get("trial_name")) and isinstance(
            inner.get("is_resolved"), bool
        ):
            return Label(inner["is_resolved"], f"{name} is_resolved", by="state")
    # SWE-bench: a report an instance, or the lists of a run.
    told = mapped(given.get(task))
    if isinstance(told.get("resolved"), bool):
        return Label(told["resolved"], f"{name} resolved", by="state")
    if isinstance(given.get("resolved_ids"), list):
        for key, complete in (
            ("resolved_ids", True),
            ("unresolved_ids", False),
            ("empty_patch_ids", False),
            ("error_ids", False),
        ):
            if task in listed(given.get(key)):
                return Label(complete, f"{name} {key}", by="state")
    return None
