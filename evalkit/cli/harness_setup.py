"""Making the environments of harnesses before they are run."""

from __future__ import annotations

import click

from evalkit.cli.errors import UsageProblem


def set_up_all(names: tuple[str, ...]) -> None:
    """Set up each harness that is not; progress on standard error."""
    from evalkit.harnesses.find import find_harness
    from evalkit.harnesses.pinned_environment import SetupError, is_ready, set_up

    for name in names:
        harness = find_harness(name)
        if not is_ready(harness):
            try:
                set_up(harness, lambda said: click.echo(said, err=True))
            except SetupError as error:
                raise UsageProblem(str(error)) from None
