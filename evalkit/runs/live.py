"""Live runs: episodes side by side in one process, each kept when it ends, all from one ledger.

The reference loop waits in a thread of its own for the SDKs' async clients, which share one event loop and
one limiter; a thread has a connection of its own. Episodes that share a cassette run one after the other, so
that each finds what the one before it asked.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from evalkit.core import thresholds
from evalkit.core.requests import FALLBACK_MODEL, FIRST_MODEL
from evalkit.core.tasks import Limits
from evalkit.models.ledger import KEPT, LIMITED, Ledger, Purse
from evalkit.models.pacing import Pace
from evalkit.models.portal import Portal, Stopped
from evalkit.models.spending import LimitReached
from evalkit.runs.medium import Medium, OnTape, kept_medium, prices_for, provider_of
from evalkit.runs.plan import Plan, Span
from evalkit.runs.store import row_of, void_row
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, ending_of, score
from evalkit.scoring.episode_fields import SHORT
from evalkit.secrets.cleaning import keep_secret
from evalkit.secrets.urls import credentials_of
from evalkit.strategies.strategy import Strategy

if TYPE_CHECKING:
    from evalkit.drivers.in_process import Watcher

Row: TypeAlias = tuple[Any, ...]

#: Seconds that a provider may take for the next part of an answer.
TIMEOUT = 600.0
#: Seconds that episodes get to end when a run is interrupted.
GRACE = 1.0


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address (``HTTPS_PROXY``, ``NO_PROXY`` and the like).

    What runs on this machine needs none.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in ("localhost", "127.0.0.1", "::1") or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


class Session:
    """What the live episodes of a process share, from ``with`` to its end.

    ``url`` is where the model is, with what is secret in it. ``concurrency`` is how many requests may be
    under way at once.
    """

    def __init__(
        self,
        medium: Medium,
        ledger: Ledger,
        *,
        concurrency: int = 1,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        _, place, variable = provider_of(medium)
        self.ledger = ledger
        self.url = url or medium.base_url or place
        self.key = os.environ.get(variable, "")
        self.headers = dict(headers or {})
        given = (self.key, *credentials_of(self.url), *(v for v in self.headers.values() if len(v) > SHORT))
        self.secrets = tuple(secret for secret in given if secret)
        for secret in self.secrets:
            keep_secret(secret)
        self.pace = Pace(concurrency, ledger.waited)
        self.portal = Portal()
        self._trust: Any = None
        self._transports: list[Any] = []
        self._own = threading.local()

    def __enter__(self) -> Session:
        import httpx2

        self._trust = httpx2.create_ssl_context()
        self.portal.__enter__()
        return self

    def transport(self) -> Any:
        """The connection of the thread that asks, kept open for its next episodes.

        One pool for all would look at each of its connections twice a request.
        """
        import httpx2

        made = getattr(self._own, "transport", None)
        if made is None:
            made = httpx2.AsyncHTTPTransport(verify=self._trust, proxy=proxy_for(self.url))
            self._own.transport = made
            self._transports.append(made)
        return made

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for transport in self._transports:
            with suppress(Exception):
                self.portal.wait(transport.aclose())
        self.portal.__exit__(kind, error, trace)


class Live(OnTape):
    """A provider's model: live over a session, or replayed. Without a session a live one has its own."""

    def __init__(self, medium: Medium, session: Session | None = None) -> None:
        dialect, place, _ = provider_of(medium)
        if session is None and medium.replay is None:
            ledger = Ledger(max_usd=medium.max_usd, max_tokens=medium.max_tokens, prices=prices_for(medium))
            session = Session(medium, ledger).__enter__()
        self.session = session
        kept = kept_medium(medium)
        secrets = session.secrets if session is not None else ()
        super().__init__(msgspec.structs.replace(kept, dialect=dialect), kept.base_url or place, secrets)
        self.name = medium.model_name

    def __call__(
        self,
        arena: Arena,
        strategy: Strategy,
        seed: int,
        watch: Watcher | None = None,
        on_stage: Callable[[Any], None] | None = None,
        purse: Purse | None = None,
    ) -> Episode:
        """Play an episode; ``watch`` is told of each turn, ``on_stage`` of the stage before the first one.

        What it asks is paid from the ``purse``. LimitReached where that forbids the next request.
        """
        from evalkit.drivers.in_process import LoopMind, drive
        from evalkit.drivers.live import LiveStage
        from evalkit.drivers.over_sdk import opening
        from evalkit.models.cassettes import Playing
        from evalkit.models.clients import NO_KEY, connect
        from evalkit.scoring.live_truth import RecordedJudge

        medium, session = self.medium, self.session
        taped = medium.record is not None or medium.replay is not None
        playing = Playing(self.tape(arena, seed)) if taped else None
        if session is not None and purse is None:
            purse = session.ledger.begin(-1)
        task = arena.task(seed)
        model = connect(
            self.dialect,
            session.url if session is not None else "http://model",
            opening(task, strategy.offers),
            streamed=medium.streamed,
            timeout=TIMEOUT,
            api_key=(session.key if session is not None else "") or NO_KEY,
            http=self._http(playing, purse),
            names={FIRST_MODEL: self.name, FALLBACK_MODEL: medium.fallback or self.name},
            portal=session.portal if session is not None else None,
            headers=session.headers if session is not None else None,
        )
        cap = _cap(arena.scenario.limits)
        world = arena.world()
        stage = LiveStage(model, world, task, strategy.offers, purse, cap=cap, playing=playing)
        mind = LoopMind(strategy, task, stage)
        if on_stage is not None:
            on_stage(stage)
        try:
            ending, note = ending_of(lambda: drive(mind, stage, watch=watch))
            return score(RecordedJudge(arena.scenario, medium.probe), stage, ending, seed, note)
        finally:
            if playing is not None:
                playing.tape.save()

    def _http(self, playing: Any, purse: Purse | None) -> Any:
        """The HTTP client of an episode."""
        if self.session is None:
            return self.client(playing)
        assert purse is not None
        import httpx2

        from evalkit.models.transport import live_transport

        transport = live_transport(purse, self.session.pace, self.session.transport(), playing)
        return httpx2.AsyncClient(transport=transport)


def _cap(limits: Limits) -> int:
    """evalkit's own cap for live runs, where no ideal harness can say how long it takes."""
    return max(thresholds.TURN_CAP, 2 * (limits.turns or 0))


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
