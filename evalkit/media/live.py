"""A live model: what its episodes share, and one episode with it, recorded or replayed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from evalkit.core import thresholds
from evalkit.core.requests import FALLBACK_MODEL, FIRST_MODEL
from evalkit.core.tasks import Limits
from evalkit.media.medium import Medium, kept_medium, prices_for, provider_of
from evalkit.media.recordings import OnTape
from evalkit.models.ledger import Ledger, Purse
from evalkit.models.pacing import Pace
from evalkit.models.portal import Portal
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_to_ending, score
from evalkit.scoring.episode_fields import SHORT
from evalkit.secrets.cleaning import keep_secret
from evalkit.secrets.urls import credentials_of
from evalkit.strategies.strategy import Strategy

if TYPE_CHECKING:
    from evalkit.drivers.in_process import Watcher

#: Seconds that a provider may take for the next part of an answer.
TIMEOUT = 600.0


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
        provider = provider_of(medium)
        self.ledger = ledger
        self.url = url or medium.base_url or provider.url
        self.key = os.environ.get(provider.key_variable, "")
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
        provider = provider_of(medium)
        if session is None and medium.replay is None:
            ledger = Ledger(max_usd=medium.max_usd, max_tokens=medium.max_tokens, prices=prices_for(medium))
            session = Session(medium, ledger).__enter__()
        self.session = session
        kept = kept_medium(medium)
        secrets = session.secrets if session is not None else ()
        kept = msgspec.structs.replace(kept, dialect=provider.dialect)
        super().__init__(kept, kept.base_url or provider.url, secrets)
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
            ending, note = run_to_ending(lambda: drive(mind, stage, watch=watch))
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
