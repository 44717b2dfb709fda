"""What live calls cost: tokens by kind, prices, and the limit that no call may go over."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from evalkit.core.toml import toml_of
from evalkit.wire.answers import Answer

PRICES = Path(__file__).with_name("prices.toml")

#: Who counted the tokens of a request: the provider, evalkit's own counter where it told no usage, or nobody,
#: so that the worst case stands.
Source: TypeAlias = Literal["provider", "counter", "worst case"]


class LimitReached(Exception):
    """The next call could go over the spending limit, so it is not made."""


class PricesError(ValueError):
    """A price that is not known, or a file of prices that cannot be read; one line."""


class Usage(msgspec.Struct, frozen=True):
    """The tokens of one request by what they cost. ``thinking`` is a part of ``output``."""

    input: int = 0
    cache_read: int = 0
    cache_written: int = 0
    output: int = 0
    thinking: int = 0
    source: Source = "provider"

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.input + self.cache_read + self.cache_written + self.output


class Price(msgspec.Struct, frozen=True):
    """US dollars per million tokens. Without a price of their own, cached ones cost what fresh ones cost."""

    input: float
    output: float
    cache_read: float | None = None
    cache_written: float | None = None

    def of(self, usage: Usage) -> float:
        """The cost in US dollars."""
        read = self.input if self.cache_read is None else self.cache_read
        written = self.input if self.cache_written is None else self.cache_written
        cost = usage.input * self.input + usage.cache_read * read + usage.cache_written * written
        return (cost + usage.output * self.output) / 1_000_000

    def at_worst(self, input_tokens: int, output_limit: int) -> float:
        """The most that a request can cost in US dollars."""
        dearest = max(self.input, self.cache_read or 0.0, self.cache_written or 0.0)
        return (input_tokens * dearest + output_limit * self.output) / 1_000_000


class PriceTable(msgspec.Struct, frozen=True):
    """Prices by the beginning of a model's name, and the date they were noted."""

    as_of: str
    prices: dict[str, Price]


@lru_cache(maxsize=4)
def price_table(file: Path = PRICES) -> PriceTable:
    """The shipped table, or another file in its form. PricesError where it is none."""
    try:
        return msgspec.convert(toml_of(file.read_bytes()), PriceTable)
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise PricesError(f"{file}: holds no prices: {' '.join(str(error).split())}") from None


def price_of(model: str, file: Path = PRICES) -> Price | None:
    """The price of the longest name in a table that a model's name begins with; None where none does.

    A gateway puts its own name before the model's: ``openai/gpt-5`` costs what ``gpt-5`` does.
    """
    prices = price_table(file).prices
    for name in (model, model.rpartition("/")[2]):
        fitting = [known for known in prices if name.startswith(known)]
        if fitting:
            return prices[max(fitting, key=len)]
    return None


def prices_of(models: tuple[str, ...], file: Path = PRICES) -> dict[str, Price]:
    """The prices of models. PricesError names one that has none, and the file."""
    found = {}
    for model in models:
        price = price_of(model, file)
        if price is None:
            raise PricesError(
                f"no price for {model!r} in {file}: add it there, name another file by --prices"
            )
        found[model] = price
    return found


def usage_of(answer: Answer, asked: int, worst: Usage) -> Usage:
    """What an answer used. ``asked`` is what the request holds by evalkit's counter.

    One that came without its usage is counted by that counter, one that broke off by its worst case: nobody
    knows what was made of it by then.
    """
    if answer.turn.kind == "failed" and not answer.output_tokens:
        return worst
    if not answer.counted:
        return Usage(asked, output=max(answer.output_tokens, answer.turn.tokens), source="counter")
    fresh = max(0, answer.input_tokens - answer.cache_read - answer.cache_written)
    return Usage(fresh, answer.cache_read, answer.cache_written, answer.output_tokens, answer.thinking)
