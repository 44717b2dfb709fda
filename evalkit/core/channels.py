"""What a turn says through the channels that a harness agrees with its model.

Each rule stands here once; world, loop, trace, strategies, ideal driver, explorer, wire and worker ask it.
"""

from __future__ import annotations

from evalkit.core.decisions import Action, Reject, Send
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Offered, occurs_whole
from evalkit.core.turns import Call, Finish, Turn, parse_arguments, read_finish

#: The tools of harnesses, which no world answers.
OWN_TOOLS = frozenset((FINISH_TOOL, CHECKLIST_TOOL))


def is_own(tool: str, offered: Offered) -> bool:
    """Whether a tool is one of the harness's own that it offers; one that it does not is an unknown tool."""
    return (tool == FINISH_TOOL and offered.finish) or (tool == CHECKLIST_TOOL and offered.checklist)


def world_calls(turn: Turn, offered: Offered) -> int:
    """How many calls of a turn are for the world's tools and could be run: what a limit of calls counts."""
    return sum(not is_own(call.tool, offered) for call in turn.runnable)


def protocol_state(turn: Turn) -> str:
    """What a turn's stop reason says of it: its kind, or ``overflow`` for a window that is full."""
    return "overflow" if turn.stop == "context_window" else turn.kind


def speaks(turn: Turn) -> bool:
    """Whether what a turn says and calls is the model's word: it was delivered, not cut off, not refused."""
    return turn.kind not in _UNHEARD


_UNHEARD = frozenset(("cut_off", "refusal", "failed", "in_progress"))


def finish_call(turn: Turn, offered: Offered) -> Call | None:
    """The offered finish tool's call that counts: the last whose arguments are an object, else the last."""
    if not offered.finish or not turn.calls:
        return None
    found = None
    for call in turn.calls:
        if call.tool == FINISH_TOOL and (found is None or _is_object(call) or not _is_object(found)):
            found = call
    return found


def _is_object(call: Call) -> bool:
    return parse_arguments(call.arguments) is not None


def finish_of(turn: Turn, offered: Offered) -> Finish | None:
    """The one finish of a turn, by the tool or in words; with a call of the tool the words tell nothing more.

    A call whose arguments are no object is a finish with nothing in it.
    """
    call = finish_call(turn, offered)
    return turn.told if call is None else read_finish(call.arguments)


def skip_told(turn: Turn, offered: Offered) -> tuple[str, ...]:
    """The ids that a turn reports as skipped: with a reason, in any channel, beside calls or not."""
    if turn.told is None and not (offered.finish and turn.calls):
        return ()
    told = finish_of(turn, offered) if speaks(turn) else None
    return told.skipped if told is not None and told.reason else ()


def claims(turn: Turn, offered: Offered) -> bool:
    """Whether a turn with calls claims to be the last all the same: by a finish call or the whole keyword."""
    if offered.finish and finish_call(turn, offered) is not None:
        return True
    return offered.keyword is not None and occurs_whole(offered.keyword, turn.text)


def is_decision(turn: Turn, offered: Offered) -> bool:
    """Whether a turn is a decision wherever it stands.

    An end of turn without client calls (a typed output is one), a call of an offered finish tool, the agreed
    keyword. Pauses, cut-offs, refusals, faults and answers in progress are none.
    """
    if turn.kind not in ("content", "unknown"):
        return False
    return not turn.calls or claims(turn, offered)


def is_nudge(turn: Turn, action: Action, offered: Offered) -> bool:
    """Whether an action is a continuation that a harness adds after a decision: words, a rejected finish."""
    if not is_decision(turn, offered):
        return False
    return isinstance(action, Reject) or (isinstance(action, Send) and action.text is not None)
