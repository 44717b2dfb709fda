"""How the models of a run are met, as it is told on the command line and kept in the run folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evalkit.core.tasks import Offered
from evalkit.extras import need
from evalkit.loop.state import SUPPORTED_EVENTS
from evalkit.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from evalkit.models.spending import Price
    from evalkit.wire.dialects import Dialect

SCRIPTED = "scripted"


class Provider(NamedTuple):
    """An API of a provider: its dialect, where it is, the variable that holds the key."""

    dialect: Dialect
    url: str
    key_variable: str


PROVIDERS = {
    "anthropic": Provider("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "openai": Provider("responses", "https://api.openai.com", "OPENAI_API_KEY"),
    "openai-chat": Provider("chat", "https://api.openai.com", "OPENAI_API_KEY"),
}


class MediumError(ValueError):
    """A medium that cannot be used; one line."""


class Medium(msgspec.Struct, frozen=True):
    """How models are met. ``model`` is ``scripted`` or PROVIDER:NAME.

    ``dialect`` takes the scripted model over the wire. ``record`` and ``replay`` are folders of cassettes.
    ``probe`` is the number of turns in which the ideal driver may show that a live run was reachable.
    """

    model: str = SCRIPTED
    dialect: str | None = None
    streamed: bool = False
    record: str | None = None
    replay: str | None = None
    base_url: str | None = None
    fallback: str | None = None
    max_usd: float | None = None
    max_tokens: int | None = None
    probe: int = 0
    #: A file of prices of one's own.
    prices: str | None = None

    @property
    def model_name(self) -> str:
        """The provider's name of a live model."""
        return self.model.partition(":")[2]

    @property
    def live(self) -> bool:
        """Whether a provider's model is asked, or was when it was recorded."""
        return self.model != SCRIPTED

    @property
    def alone(self) -> bool:
        """Whether one process must do it all: it spends from one budget or writes one set of cassettes."""
        return self.record is not None or (self.live and self.replay is None)


#: The SDKs through which a model is asked, on the wire or live.
_SDKS = ("anthropic", "openai")


def check_medium(medium: Medium) -> None:
    """MediumError for what cannot work, before anything is run."""
    if medium.record and medium.replay:
        raise MediumError("--record and --replay exclude each other")
    if medium.dialect is not None:
        need("--dialect", "h11", *_SDKS)
    if medium.live or medium.replay or medium.record:
        need("--replay" if medium.replay else "--record" if medium.record else "--model", *_SDKS, "vcr")
    if not medium.live:
        if medium.record and medium.dialect is None:
            raise MediumError("--record needs a model on the wire: --dialect, or --model PROVIDER:NAME")
        if medium.probe:
            raise MediumError("--probe is for live models; scripted runs know their truth")
        return
    variable = provider_of(medium).key_variable
    if medium.replay is None:
        if medium.base_url is None and not os.environ.get(variable):
            raise MediumError(f"--model {medium.model}: {variable} is not set")
        if medium.max_usd is None and medium.max_tokens is None:
            raise MediumError("a live run needs a spending limit: --max-usd or --max-tokens")
        prices_for(medium)


def provider_of(medium: Medium) -> Provider:
    """The entry of :data:`PROVIDERS` for a live model. MediumError where there is none."""
    provider, _, name = medium.model.partition(":")
    if provider not in PROVIDERS or not name:
        raise MediumError(
            f"--model {medium.model!r}: expected scripted or PROVIDER:NAME of {', '.join(PROVIDERS)}"
        )
    return PROVIDERS[provider]


def prices_for(medium: Medium, file: Path | None = None) -> dict[str, Price]:
    """The prices of the models that a live run may ask. MediumError where a limit in dollars lacks one."""
    from evalkit.models.spending import PRICES, PricesError, price_of, prices_of

    file = file or (Path(medium.prices) if medium.prices else PRICES)
    names = tuple(dict.fromkeys((medium.model_name, medium.fallback or medium.model_name)))
    try:
        if medium.max_usd is not None:
            return prices_of(names, file)
        known = {name: price_of(name, file) for name in names}
        return {name: price for name, price in known.items() if price is not None}
    except PricesError as error:
        raise MediumError(f"{error}, or give --max-tokens instead of --max-usd") from None


def kept_medium(medium: Medium) -> Medium:
    """A medium as it may be kept in a run: without the user, password and key in its URL."""
    if medium.base_url is None:
        return medium
    from evalkit.secrets.cleaning import keep_secret
    from evalkit.secrets.urls import clean_url, credentials_of

    for secret in credentials_of(medium.base_url):
        keep_secret(secret)
    return msgspec.structs.replace(medium, base_url=clean_url(medium.base_url))


def unplayable(medium: Medium, scenario: Scenario, offered: tuple[Offered, ...]) -> str:
    """Why a scenario cannot be played over a medium with these channels; empty where it can."""
    where = "live, " if medium.live else "in replay, " if medium.replay is not None else ""
    lacking = [event for event in scenario.events if where or event not in SUPPORTED_EVENTS]
    if lacking:
        return f"{where}the reference loop has no notion of: {', '.join(lacking)}"
    if medium.live or medium.dialect is None:
        return ""
    from evalkit.wire.expressible import not_expressible

    dialect: Dialect = medium.dialect  # type: ignore[assignment]
    return not_expressible(scenario, dialect, streamed=medium.streamed, offered=offered) or ""
