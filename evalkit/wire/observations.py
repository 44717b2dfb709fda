"""What the server saw of a harness, beside what its trace counts."""

from __future__ import annotations

import hashlib
from collections import Counter

from evalkit.wire.dialects import Dialect
from evalkit.wire.incoming import BadRequest
from evalkit.wire.rules import NEUTRAL_SOURCES


class Seen:
    """Counters of one episode.

    ``requests`` counts all, ``tool_requests`` those of them that run a tool. ``turned_away``: the last
    request for a turn was refused. ``side`` counts side requests by kind, ``amnesia`` new conversations,
    ``compactions`` rewritten ones, ``repeated`` answers given again, ``refused`` requests that broke a
    rule. ``dialect_faults`` are the dialect's own rules among those, ``warnings`` rules that are only
    assumed. ``inexpressible`` says what the dialect could not say of the script; ``unreachable`` counts
    answers that an API would not give to what was asked, by the reason.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.tool_requests = 0
        self.turned_away = False
        #: The dialect of the first request for a turn, and whether it asked for a stream.
        self.first: tuple[Dialect, bool] | None = None
        #: Whether its first request held turns of a conversation that was never had here.
        self.begins_within = False
        self.side: Counter[str] = Counter()
        self.amnesia = 0
        self.compactions = 0
        self.repeated = 0
        self.refused = 0
        self.dialect_faults: list[str] = []
        self.warnings: Counter[str] = Counter()
        self.inexpressible: Counter[str] = Counter()
        self.unreachable: Counter[str] = Counter()
        #: Requests of child agents' conversations, by the child's name.
        self.children: Counter[str] = Counter()
        #: Tools that were called and that nobody offered.
        self.unoffered: Counter[str] = Counter()
        self._refused_body = b""

    def refused_before(self, raw: bytes) -> bool:
        """Whether this is the last request that was refused: a client that repeats it breaks no new rule."""
        return hashlib.blake2b(raw).digest() == self._refused_body

    def note_refusal(self, bad: BadRequest, raw: bytes) -> bool:
        """Count a refused request once, however often it is repeated; whether it is a dialect fault."""
        if self.refused_before(raw):
            return False
        self._refused_body = hashlib.blake2b(raw).digest()
        self.refused += 1
        if bad.rule in NEUTRAL_SOURCES:
            return False
        self.dialect_faults.append(bad.rule)
        return True
