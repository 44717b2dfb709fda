"""A card of a harness that a user names."""

from __future__ import annotations

import click

from evalkit.cli.harness_setup import playing
from evalkit.scoring.harness_card import Card, measure


def card_of(name: str) -> Card:
    """Play the series with a harness, set up and heard, and read its card off it."""
    with playing(name) as (harness, play):
        click.echo(f"{name}: playing the scenes of its card", err=True)
        return measure(harness, lambda scene: play(scene, 0))
