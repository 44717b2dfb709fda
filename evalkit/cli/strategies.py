"""``evalkit strategies``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import click

from evalkit.cli.errors import one_line_errors
from evalkit.cli.groups import Group
from evalkit.reports.layout import print_entries
from evalkit.strategies.presets import PRESETS, Preset
from evalkit.strategies.registry import find_strategy, strategy_names
from evalkit.strategies.strategy import Strategy


@click.group(cls=Group)
def command() -> None:
    """List and show strategies."""


@command.command("list")
def list_() -> None:
    """All strategies that have a name, with what they rest on."""
    width = max(map(len, strategy_names()))
    origins = {name: preset.origin for name, preset in PRESETS.items()}
    rows = (f"{name:<{width}}  {origins.get(name, 'entry point')}" for name in strategy_names())
    print_entries(rows, width + 2)


@command.command()
@click.argument("name")
def show(name: str) -> None:
    """What NAME is: its condition, its policies, what it cannot catch."""
    with one_line_errors():
        strategy = find_strategy(name)
    click.echo(strategy.name)
    print_entries((f"  {head:<13} {text}" for head, text in _rows(strategy, PRESETS.get(name))), 16)


def _rows(strategy: Strategy, preset: Preset | None) -> Iterator[tuple[str, str]]:
    """Each thing to know of a strategy, and what it is."""
    if preset is not None:
        yield "origin", preset.origin
        yield "needs", preset.needs
        yield "cannot catch", preset.cannot
    yield "done_when", repr(strategy.done_when)
    offers = strategy.offers
    channels = [channel for channel in ("finish", "checklist", "output") if getattr(offers, channel)]
    if offers.keyword:
        channels.append(f"keyword {offers.keyword}")
    yield "offers", ", ".join(channels) or "text only"
    defaults = Strategy(done_when=strategy.done_when)
    for field in fields(strategy):
        if field.name in ("done_when", "name"):
            continue
        value = getattr(strategy, field.name)
        mark = "" if value == getattr(defaults, field.name) else "  (not the default)"
        yield field.name, f"{value}{mark}"
