"""What a recorded run did and did not do, as the items of a scenario: its actions, the undone, the wrong.

A logical action is a tool with its arguments. One that only ever failed is no item. What a run that ended
incomplete left undone, or did wrong, is known where the task's author says which calls a right run makes;
else it is one item of which nobody knows more.
"""

from __future__ import annotations

import json
import re
from typing import Literal, TypeAlias

import msgspec

from evalkit.core.tasks import occurs_whole
from evalkit.core.turns import Call, parse_arguments
from evalkit.strategies.wording import OWN_WORDS
from evalkit.transcripts.effects import only_reads
from evalkit.transcripts.recording import HAND_OVERS, Recording, bare_name, finishes
from evalkit.transcripts.replay import Replay

#: What the label says was missing, and nobody recorded.
UNDONE = "left-undone"

#: Why a run that was called done was not: what further work can do, an act that it cannot mend; or not known.
Cause: TypeAlias = Literal["undone", "wrong act", "both", "unknown", "none"]


class Incident(msgspec.Struct, frozen=True):
    """The items of a run: by action, those left undone, those that were wrong; and the cause."""

    items: dict[str, str]
    undone: tuple[str, ...]
    wrong: tuple[str, ...]
    cause: Cause


def action_of(call: Call) -> str:
    """A logical action: the tool and its arguments in one order."""
    arguments = parse_arguments(call.arguments)
    given = call.arguments if arguments is None else json.dumps(arguments, sort_keys=True)
    return f"{call.tool} {given}"


def incident_of(recording: Recording, replay: Replay) -> Incident:
    """What a recording did, and what was wrong with it as far as somebody says."""
    succeeded: dict[str, Call] = {}
    for moment in replay.moments:
        for ran in moment.ran:
            if ran.tool is not None and not ran.tool.read_only and not ran.result.error:
                succeeded.setdefault(action_of(ran.call), ran.call)
    items = _named(succeeded)
    if recording.label.complete is not False:
        return Incident(items, (), (), "none")
    if recording.expected is None:
        return Incident(items, (UNDONE,), (), "unknown")
    wanted = {
        action_of(call): call
        for call in recording.expected
        if not only_reads(call.tool) and not finishes(call)
    }
    missing = {action: call for action, call in wanted.items() if action not in succeeded}
    wrong = tuple(
        items[action] for action in succeeded if action not in wanted and _changes(succeeded[action])
    )
    undone = tuple(_named(missing, len(items)).values())
    if undone and wrong:
        return Incident(items, undone, wrong, "both")
    if undone:
        return Incident(items, undone, (), "undone")
    if wrong:
        return Incident(items, (), wrong, "wrong act")
    # The same calls, and yet incomplete: it was about words.
    return Incident(items, (UNDONE,), (), "unknown")


#: Calls that change nothing although their names do not say so.
_NO_CHANGE = frozenset(("calculate", "think")) | HAND_OVERS


def _changes(call: Call) -> bool:
    return bare_name(call.tool) not in _NO_CHANGE


def _named(actions: dict[str, Call], after: int = 0) -> dict[str, str]:
    """An item id for each action."""
    return {
        action: f"{slug_of(bare_name(call.tool)) or 'call'}-{number}"
        for number, (action, call) in enumerate(actions.items(), after + 1)
    }


def slug_of(text: str) -> str:
    """A scenario name or item id of a text."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower().rpartition("/")[2]).strip("-")
    slug = words[:60].strip("-") or "recorded"
    return f"{slug}-run" if any(occurs_whole(slug, words) for words in OWN_WORDS) else slug
