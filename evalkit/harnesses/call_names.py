"""How a scripted call reaches a harness: under its names of the tools, or as a command of its shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL
from evalkit.core.turns import Block, Call, Turn, parse_arguments
from evalkit.harnesses.manifest import Channel, Harness, Shell
from evalkit.wire.answers import rebuilt
from evalkit.wire.tool_names import ToolNames


class HarnessNames(ToolNames, frozen=True):
    """As a manifest maps them. ``arguments`` are of the harness's own tools, by evalkit's names of those."""

    arguments: Mapping[str, Mapping[str, str]] = {}
    shell: Shell | None = None

    def renamed(self, turn: Turn) -> Turn:
        """A turn as the harness is to get it."""
        if not turn.calls or not (self.prefix or self.aliases or self.shell):
            return turn
        blocks: list[Block] = [
            self._call(block) if isinstance(block, Call) else block for block in turn.content
        ]
        return rebuilt(turn, tuple(blocks))

    def outward(self, tool: str) -> str:
        """The harness's name of a tool; its own tools stand behind no prefix."""
        if tool in self.aliases:
            return self.aliases[tool]
        return tool if tool in (FINISH_TOOL, CHECKLIST_TOOL) and self.shell else self.prefix + tool

    def _call(self, call: Call) -> Call:
        arguments = self._told(call)
        if self.shell is None or call.tool in self.aliases:
            return Call(call.id, self.outward(call.tool), arguments)
        pattern = self.shell.finish if call.tool == FINISH_TOOL else self.shell.command
        whole = parse_arguments(arguments) is not None
        command = pattern.replace("{tool}", call.tool).replace(
            "{arguments}", shlex.quote(arguments) if whole else f"'{arguments}"
        )
        said = json.dumps({self.shell.argument: command}, ensure_ascii=False)
        # A call that is cut off stays one: without the end of its JSON.
        return Call(call.id, self.shell.tool, said if whole else said[:-2])

    def _told(self, call: Call) -> str:
        mapped = self.arguments.get(call.tool)
        told = parse_arguments(call.arguments)
        if not mapped or told is None:
            return call.arguments
        completed = ", ".join(map(str, told.get("items_completed", told.get("done", ()))))
        skipped = ", ".join(map(str, told.get("items_skipped", ())))
        reason = str(told.get("reason_skipped", ""))
        summary = f"Completed: {completed or 'nothing'}." + (
            f" Skipped: {skipped}: {reason}." if skipped else ""
        )
        values = {"{completed}": completed, "{skipped}": skipped, "{reason}": reason, "{summary}": summary}
        filled = {}
        for name, text in mapped.items():
            for sign, value in values.items():
                text = text.replace(sign, value)
            filled[name] = text
        return json.dumps(filled, ensure_ascii=False)


def names_of(harness: Harness) -> HarnessNames:
    """The names that a harness has for the tools."""
    offers, tools = harness.offers, harness.manifest.tools
    own = {FINISH_TOOL: offers.finish, CHECKLIST_TOOL: offers.checklist}
    mapped = {name: channel for name, channel in own.items() if isinstance(channel, Channel)}
    return HarnessNames(
        prefix=tools.prefix,
        aliases={name: channel.tool for name, channel in mapped.items()},
        arguments={name: channel.arguments for name, channel in mapped.items()},
        shell=tools.shell,
    )
