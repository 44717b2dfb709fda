"""``evalkit strategies``."""

from __future__ import annotations

from dataclasses import fields

import click

from evalkit.cli.errors import one_line_errors
from evalkit.cli.groups import Group
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.registry import find_strategy, strategy_names
from evalkit.strategies.strategy import Strategy


@click.group(cls=Group)
def command() -> None:
    """List and show strategies."""


@command.command("list")
def list_() -> None:
    """All strategies that have a name, with what they rest on."""
    width = max(map(len, strategy_names()))
    for name in strategy_names():
        preset = PRESETS.get(name)
        click.echo(f"{name:<{width}}  {preset.origin if preset else 'entry point'}")


@command.command()
@click.argument("name")
def show(name: str) -> None:
    """What NAME is: its condition, its policies, what it cannot catch."""
    with one_line_errors():
        strategy = find_strategy(name)
    preset = PRESETS.get(name)
    click.echo(strategy.name)
    if preset is not None:
        click.echo(f"  origin        {preset.origin}")
        click.echo(f"  needs         {preset.needs}")
        click.echo(f"  cannot catch  {preset.cannot}")
    click.echo(f"  done_when     {strategy.done_when!r}")
    offers = strategy.offers
    channels = [channel for channel in ("finish", "checklist", "output") if getattr(offers, channel)]
    if offers.keyword:
        channels.append(f"keyword {offers.keyword}")
    click.echo(f"  offers        {', '.join(channels) or 'text only'}")
    defaults = Strategy(done_when=strategy.done_when)
    for field in fields(strategy):
        if field.name in ("done_when", "name"):
            continue
        value = getattr(strategy, field.name)
        mark = "" if value == getattr(defaults, field.name) else "  (not the default)"
        click.echo(f"  {field.name:<13} {value}{mark}")
