"""Commands that have commands of their own."""

from __future__ import annotations

import click

#: Longer than any first sentence.
_ALL = 1000


class Group(click.Group):
    """A group whose help says the first sentence of each command to its end: click cuts it at the width."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        named = ((name, self.get_command(context, name)) for name in self.list_commands(context))
        with formatter.section("Commands"):
            formatter.write_dl([(name, found.get_short_help_str(_ALL)) for name, found in named if found])
