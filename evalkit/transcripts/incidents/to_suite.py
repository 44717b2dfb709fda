"""The most different incidents of many recordings, as a suite: by cause, format, ending and length."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from evalkit.scenarios.yaml_source import ScenarioError
from evalkit.transcripts.incidents.incident import incident_of, slug_of
from evalkit.transcripts.incidents.to_scenario import own_rule, skeleton
from evalkit.transcripts.recording import Recording, Unreadable
from evalkit.transcripts.replay import Replay

#: Candidates that are kept of one kind; of equal ones more are no help.
_EACH = 20


class Suite:
    """Collects incidents: runs that were called done and were not. Which come first makes no difference."""

    def __init__(self) -> None:
        self.incidents = self.runs = 0
        self._kinds: dict[tuple[str, ...], list[tuple[str, Recording]]] = {}

    def add(self, recording: Recording) -> None:
        """Take a recording, where it is an incident."""
        self.runs += 1
        if recording.parent or recording.label.complete is not False or recording.ending != "done":
            return
        self.incidents += 1
        replay = Replay(recording)
        kind = (
            incident_of(recording, replay).cause,
            recording.format,
            own_rule(replay),
            f"{len(recording.steps).bit_length()}",
        )
        kept = self._kinds.setdefault(kind, [])
        kept.append((_drawn(recording), recording))
        kept.sort(key=lambda pair: pair[0])
        del kept[_EACH:]

    def chosen(self, most: int) -> Iterable[tuple[str, str]]:
        """Names and texts of scenarios, one of each kind first, then a second of each, up to ``most``."""
        count = 0
        names: set[str] = set()
        for place in range(_EACH):
            for kind in sorted(self._kinds):
                if count == most:
                    return
                if place < len(self._kinds[kind]):
                    recording = self._kinds[kind][place][1]
                    name = slug_of(f"{kind[0]}-{kind[1]}-{recording.id.rpartition('/')[2]}")
                    name = name if name not in names else f"{name[:50]}-{count}"
                    names.add(name)
                    try:
                        text = skeleton(recording, name)
                    except (Unreadable, ScenarioError):
                        continue
                    count += 1
                    yield (name, text)


def _drawn(recording: Recording) -> str:
    return hashlib.blake2b(recording.id.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
