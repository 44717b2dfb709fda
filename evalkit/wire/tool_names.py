"""How a harness calls the world's tools: by their own names, behind a prefix, or by names of its own."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evalkit.core.turns import Block, Call, Turn
from evalkit.wire.answers import rebuilt


class ToolNames(msgspec.Struct, frozen=True):
    """``prefix`` stands before a tool's name (``mcp__x__``); ``aliases`` are names of single tools."""

    prefix: str = ""
    aliases: Mapping[str, str] = {}

    def outward(self, tool: str) -> str:
        """The harness's name of a tool."""
        return self.aliases.get(tool) or self.prefix + tool

    def inward(self, name: str) -> str:
        """The tool that a harness's name stands for."""
        for tool, alias in self.aliases.items():
            if alias == name:
                return tool
        return name.removeprefix(self.prefix)

    def renamed(self, turn: Turn) -> Turn:
        """A turn with the harness's names."""
        if not self.prefix and not self.aliases:
            return turn
        blocks: list[Block] = [
            Call(block.id, self.outward(block.tool), block.arguments) if isinstance(block, Call) else block
            for block in turn.content
        ]
        return rebuilt(turn, tuple(blocks))
