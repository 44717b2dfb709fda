"""Live runs: episodes side by side in one process, each kept when it ends, all from one ledger.

The reference loop waits in a thread of its own for the SDKs' async clients, which share one event loop and
one limiter; a thread has a connection of its own. Episodes that share a cassette run one after the other, so
that each finds what the one before it asked.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from evalkit.media.live import Live, Session
from evalkit.media.medium import Medium, prices_for
from evalkit.models.ledger import KEPT, LIMITED, Ledger
from evalkit.models.portal import Stopped
from evalkit.models.spending import LimitReached
from evalkit.runs.plan import Plan, Span
from evalkit.runs.store import row_of, void_row
from evalkit.scoring.arena import Arena

if TYPE_CHECKING:
    pass

Row: TypeAlias = tuple[Any, ...]

#: Seconds that episodes get to end when a run is interrupted.
GRACE = 1.0


class LiveRun:
    """A plan's live cells, worked off by ``concurrency`` threads; ``url`` is the medium's, whole."""

    def __init__(
        self,
        plan: Plan,
        ledger: Ledger,
        *,
        concurrency: int = 1,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.plan = plan
        self.ledger = ledger
        self.concurrency = concurrency
        self.session = Session(plan.recipe.medium, ledger, concurrency=concurrency, url=url, headers=headers)
        self._began = time.monotonic()
        self._spent = ledger.usd, ledger.tokens
        self._groups: queue.SimpleQueue[list[tuple[Span, int]]] = queue.SimpleQueue()
        self._finished: queue.SimpleQueue[tuple[Row, int, str] | BaseException | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._stopped = False
        self._limit: LimitReached | None = None

    def run(self, spans: Iterable[Span]) -> Iterator[list[Row]]:
        """The rows of cells, each as it is finished. LimitReached after all that the limit allows."""
        groups = self._grouped(spans)
        for group in groups:
            self._groups.put(group)
        with self.session:
            self._began = time.monotonic()
            play = Live(self.plan.recipe.medium, self.session)
            threads = self._threads = [
                threading.Thread(target=self._work, args=(play,), daemon=True)
                for _ in range(min(self.concurrency, len(groups)))
            ]
            for thread in threads:
                thread.start()
            working = len(threads)
            try:
                while working:
                    found = self._finished.get()
                    if isinstance(found, BaseException):
                        raise found
                    if found is None:
                        working -= 1
                        continue
                    row, attempt, outcome = found
                    yield [row]
                    self.ledger.end(attempt, outcome)
            finally:
                self._stopped = True
        if self._limit is not None:
            raise self._limit

    def left(self) -> Iterator[Row]:
        """The rows of episodes that ended while a run was interrupted: they were paid for."""
        deadline = time.monotonic() + GRACE
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        while not self._finished.empty():
            found = self._finished.get()
            if isinstance(found, tuple):
                row, attempt, outcome = found
                yield row
                self.ledger.end(attempt, outcome)

    def _grouped(self, spans: Iterable[Span]) -> list[list[tuple[Span, int]]]:
        """The cells one by one; those of one cassette together."""
        taped = self.plan.recipe.medium.record is not None
        groups: dict[tuple[int, int], list[tuple[Span, int]]] = {}
        for span in spans:
            for offset in range(span.seeds):
                seed = span.first_seed + offset
                key = (span.scenario, seed) if taped else (-1, span.cell + offset)
                groups.setdefault(key, []).append((span, offset))
        return list(groups.values())

    def _work(self, play: Live) -> None:
        try:
            while self._goes_on():
                for span, offset in self._groups.get_nowait():
                    if self._goes_on():
                        self._episode(play, span, offset)
        except (queue.Empty, Stopped):
            pass
        except BaseException as error:
            self._finished.put(error)
        self._finished.put(None)

    def _goes_on(self) -> bool:
        return not self._stopped and self._limit is None

    def _episode(self, play: Live, span: Span, offset: int) -> None:
        cell, seed = span.cell + offset, span.first_seed + offset
        place = (cell, span.scenario, span.contender, seed)
        strategy = self.plan.strategies[span.contender]
        purse = self.ledger.begin(cell)
        try:
            arena = Arena(self.plan.scenarios[span.scenario], strategy.offers)
            episode = play(arena, strategy, seed, purse=purse)
        except LimitReached as reached:
            self.ledger.end(purse.attempt, LIMITED)
            self._limit = reached
        except Exception as error:
            note = f"{type(error).__name__}: {error}"
            self._finished.put((void_row(*place, note), purse.attempt, f"void: {type(error).__name__}"))
        else:
            self._finished.put((row_of(*place, episode), purse.attempt, KEPT))

    def told(self) -> str:
        """What was spent, of how much, and how fast, in words for a line of progress."""
        ledger, seconds = self.ledger, max(0.001, time.monotonic() - self._began)
        said = [f"{self.session.pace.requests / seconds:.1f} requests/s"]
        if ledger.prices:
            limit = "" if ledger.max_usd is None else f" of ${ledger.max_usd:g}"
            said.insert(0, f"${ledger.usd:.4f}{limit}")
        if ledger.max_tokens is not None or not ledger.prices:
            limit = "" if ledger.max_tokens is None else f" of {ledger.max_tokens:,}"
            said.insert(0, f"{ledger.tokens:,}{limit} tokens")
        return ", ".join(said)


def ledger_of(folder: Path, medium: Medium, finished: set[int]) -> Ledger:
    """The ledger of a run folder, made or gone on with; ``finished`` are the cells that its store has.

    The limits of the medium are those of all of the run from now on. LedgerError where another process spends
    from it.
    """
    ledger = Ledger(folder, max_usd=medium.max_usd, max_tokens=medium.max_tokens, prices=prices_for(medium))
    ledger.reconcile(finished)
    return ledger
