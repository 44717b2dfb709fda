"""A hard limit on what live calls may cost, checked before each call."""

from __future__ import annotations

import threading
import tomllib
from functools import lru_cache
from pathlib import Path

import msgspec

PRICES = Path(__file__).with_name("prices.toml")


class LimitReached(Exception):
    """The next call could go over the spending limit, so it is not made."""


class Price(msgspec.Struct, frozen=True):
    """US dollars per million tokens, input and output."""

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """The cost in US dollars."""
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


class PriceTable(msgspec.Struct, frozen=True):
    """Prices by the beginning of a model's name, and the date they were noted."""

    as_of: str
    prices: dict[str, Price]


@lru_cache(maxsize=1)
def price_table() -> PriceTable:
    """The shipped table."""
    return msgspec.convert(tomllib.loads(PRICES.read_text(encoding="utf-8")), PriceTable)


def price_of(model: str) -> Price | None:
    """The price of the longest name in the table that a model's name begins with; None where none does."""
    fitting = [name for name in price_table().prices if model.startswith(name)]
    return price_table().prices[max(fitting, key=len)] if fitting else None


class Budget:
    """What a run may spend, shared by its episodes. ``max_usd`` needs a price; None is no limit.

    A call counts with its worst case (all of its output limit) until its usage is known.
    """

    def __init__(
        self, *, max_usd: float | None = None, max_tokens: int | None = None, price: Price | None = None
    ) -> None:
        if max_usd is not None and price is None:
            raise ValueError("a limit in dollars needs the model's price")
        self.max_usd = max_usd
        self.max_tokens = max_tokens
        self.price = price or Price(0.0, 0.0)
        self.tokens = 0
        self.usd = 0.0
        self._reserved: dict[int, tuple[int, float]] = {}
        self._lock = threading.Lock()
        self._calls = 0

    def reserve(self, input_tokens: int, output_limit: int) -> int:
        """Set a call's worst case aside; its number. LimitReached where the rest is not enough."""
        with self._lock:
            tokens = input_tokens + output_limit
            usd = self.price.of(input_tokens, output_limit)
            held = self._reserved.values()
            if self.max_tokens is not None:
                total = self.tokens + sum(amount for amount, _ in held) + tokens
                if total > self.max_tokens:
                    raise LimitReached(f"--max-tokens {self.max_tokens:,}: {self.tokens:,} spent")
            if self.max_usd is not None and self.usd + sum(cost for _, cost in held) + usd > self.max_usd:
                raise LimitReached(f"--max-usd {self.max_usd:g}: {self.usd:.4f} spent")
            self._calls += 1
            self._reserved[self._calls] = (tokens, usd)
            return self._calls

    def settle(self, call: int, input_tokens: int, output_tokens: int) -> None:
        """Note what a call really used."""
        with self._lock:
            self._reserved.pop(call, None)
            self.tokens += input_tokens + output_tokens
            self.usd += self.price.of(input_tokens, output_tokens)
