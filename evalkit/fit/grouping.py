"""Which task and which model a recording is of: its own fields, its prompt, or a pattern on its name."""

from __future__ import annotations

import re

import msgspec

from evalkit.transcripts.recording import Recording

#: Words for ``--by`` beside a pattern.
FIELDS, PROMPT = "field", "prompt"


class GroupingError(ValueError):
    """A way of grouping that cannot be used, or a recording that it says nothing of; one line."""


class Grouping:
    """How recordings are grouped. ``by``: ``field``, ``prompt``, or a regular expression with ``task``.

    Without ``by`` the recording's own field counts, and where there is none its prompt. A pattern is searched
    in the recording's id (``FILE#NAME``); its groups are ``(?P<task>…)`` and, if known, ``(?P<model>…)``.
    """

    def __init__(self, by: str | None = None) -> None:
        self.by = by
        self.pattern: re.Pattern[str] | None = None
        if by is None or by in (FIELDS, PROMPT):
            return
        try:
            self.pattern = re.compile(by)
        except re.error as error:
            raise GroupingError(f"--by {by!r}: is no regular expression: {error}") from None
        if "task" not in self.pattern.groupindex:
            raise GroupingError(
                f"--by {by!r}: expected field, prompt, or a regular expression with (?P<task>…)"
            )

    def of(self, recording: Recording) -> tuple[str, str]:
        """Task and model. GroupingError where the task cannot be told."""
        task, model = self._found(recording)
        if not task:
            raise GroupingError(f"{recording.id}: {self._lacks()}; say how with --by")
        return task, model or recording.model

    def _found(self, recording: Recording) -> tuple[str, str]:
        if self.pattern is not None:
            found = self.pattern.search(recording.id)
            names = found.groupdict() if found else {}
            return names.get("task") or "", names.get("model") or ""
        if self.by == FIELDS:
            return recording.task, ""
        if self.by == PROMPT:
            return _said(recording), ""
        return recording.task or _said(recording), ""

    def _lacks(self) -> str:
        if self.pattern is not None:
            return "the pattern of --by finds no task in its name"
        return "names no task" if self.by == FIELDS else "names no task and has no prompt"


def _said(recording: Recording) -> str:
    return " ".join(recording.prompt.split())


def known(recording: Recording, grouping: Grouping) -> Recording:
    """The recording with its task and model as the grouping has them."""
    task, model = grouping.of(recording)
    return msgspec.structs.replace(recording, task=task, model=model)
