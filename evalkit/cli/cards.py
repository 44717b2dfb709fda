"""A card of a harness that a user names."""

from __future__ import annotations

import click

from evalkit.cli.harnesses import pins, playing
from evalkit.scoring.cards import Card, measure

#: So long an episode of a card may take: what waits longer between two requests is said to time out.
SECONDS = 60.0


def card_of(name: str) -> Card:
    """Play the series with a harness, set up and heard, and read its card off it."""
    click.echo(f"{name}: playing the scenes of its card", err=True)
    with playing(name, SECONDS) as (harness, play):
        return measure(harness, lambda scene: play(scene, 0), pins(harness))
