"""The lives of one harness: when the script kills it, and how many processes go on with its run."""

from __future__ import annotations

import threading
import time

from evalkit.wire.replies import Reply

#: How long a request is held for its sender to be dead.
_DEAD_S = 30.0


class Lives:
    """How often a harness was killed and started again, and what holds its requests meanwhile.

    ``kill_at`` is when the script kills it (:func:`time.monotonic`); until it is dead, nothing is answered.
    ``count`` is how often it was: a request belongs to one of its lives. ``gathers`` is how many processes
    are to resume it at once, until their first requests have all come, which ``gathered`` says.
    """

    def __init__(self) -> None:
        self.kill_at: float | None = None
        self.count = 0
        self.gathers = 0
        self.gathered = False
        #: Those of the processes to gather that ended before their first request.
        self.absent = 0
        self._dead = threading.Event()

    @property
    def resumed(self) -> bool:
        """Whether the harness was killed and started again."""
        return self.count > 0

    def end_in(self, wait_ms: int) -> None:
        """It is to be killed so many milliseconds from now."""
        self.kill_at = time.monotonic() + wait_ms / 1000

    def await_death(self) -> Reply:
        """What a request gets of a harness that is being killed: nothing, once it is dead."""
        self._dead.wait(_DEAD_S)
        return Reply(cut="before_headers", said="no answer: the harness is killed")

    def ended_unheard(self) -> None:
        """A process that was to resume it beside others has ended without a request."""
        self.gathers -= 1
        self.absent += 1

    def begin(self, resumers: int) -> None:
        """It is dead; what follows is another process, or several at once."""
        self.kill_at = None
        self.gathers = resumers if resumers > 1 else 0
        self.absent = 0
        self.count += 1
        dead, self._dead = self._dead, threading.Event()
        dead.set()
