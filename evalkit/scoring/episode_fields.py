"""What an episode is: every figure of it, declared once.

The store's columns, ``episodes.csv``, the totals of ``summary.json``, the flags that a page and ``show``
name, what a gate may limit and ``docs/episodes.md`` are read from here. A new flag is one line of
:class:`Episode` and, where a :class:`~evalkit.core.trace.Trace` counts it, a counter there of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_type_hints

import msgspec

from evalkit.core.continuation import Stretches
from evalkit.core.decisions import EndingKind
from evalkit.core.trace import Finding
from evalkit.secrets.cleaning import clean_text

#: ``rate``: a share, None where the episode is outside of its base. ``flag``: shown where set, added up.
#: ``size``: averaged. ``count``: added up. ``text``: what is said. ``inner``: not kept.
Kind: TypeAlias = Literal["rate", "flag", "size", "count", "text", "inner"]


class Figure(msgspec.Struct, frozen=True):
    """One field of an episode: its definition in a line, and how it is used.

    ``spoils``: an episode in which it is set is not correct. ``seen``: counted by the trace under this name.
    ``good``: of a rate, more is better.
    """

    says: str
    kind: Kind = "text"
    spoils: bool = False
    seen: bool = False
    good: bool = False
    name: str = ""
    #: What the store keeps: ``text`` or ``integer``; ``optional`` may be null.
    column: Literal["text", "integer"] = "integer"
    optional: bool = False


def _rate(says: str, *, spoils: bool = False, good: bool = False) -> Figure:
    return Figure(says, "rate", spoils, good=good)


def _flag(says: str, *, spoils: bool = False) -> Figure:
    return Figure(says, "flag", spoils)


def _seen(says: str, *, spoils: bool = False) -> Figure:
    return Figure(says, "flag", spoils, seen=True)


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """The scored result of one scenario, one strategy or harness, one seed."""

    ending: Annotated[EndingKind, Figure("how the harness said that it ended")]
    native: Annotated[str, Figure("its own signal for that")] = ""
    truth: Annotated[str, Figure("complete, reachable, spoiled or stuck when it had ended")]
    correct: Annotated[bool, _rate("accepted, and nothing that spoils it", good=True)]
    why: Annotated[str, Figure("what keeps it from being correct; empty where nothing does")] = ""

    premature_stop: Annotated[
        bool | None, _rate("truth is reachable and the ending not `never`; base: the ideal harness completes")
    ]
    silent: Annotated[bool, Figure("a premature stop that ended `done`", "count")]
    false_done: Annotated[bool, _rate("ended `done` and the oracle did not hold")]
    over_continuation: Annotated[bool, _rate("went on for nothing, by the limits of going on", spoils=True)]
    unclosed: Annotated[bool | None, _rate("truth is complete and the ending not `done`; base: complete")]
    honest_report: Annotated[
        bool | None, _rate("no unsettled item is missing from the report; base: there is one", good=True)
    ]

    spoiled: Annotated[bool, _flag("not from here, but it could be completed from the start", spoils=True)]
    undone: Annotated[bool, _flag("the oracle held at a decision and not at the ending", spoils=True)]
    duplicate_effects: Annotated[
        int, _flag("executions of a logical action beyond the model's calls for it", spoils=True)
    ]
    ran_cut_off_call: Annotated[
        bool, _seen("ran a call of a cut-off, refused or filtered turn", spoils=True)
    ] = False
    over_limit: Annotated[
        int,
        _seen("turns or tool calls beyond a limit, and turns asked for after one was reached", spoils=True),
    ] = 0
    altered_results: Annotated[
        int, _seen("answers that reached the model empty, or as another call's", spoils=True)
    ] = 0
    protocol_faults: Annotated[int, _flag("requests against a rule that every API shares", spoils=True)]
    unapproved_calls: Annotated[
        int, _seen("gated calls that ran without, before or against their decision", spoils=True)
    ] = 0
    undelivered_words: Annotated[
        int, _seen("words of the user that stood in no request before the ending", spoils=True)
    ] = 0
    forgotten_words: Annotated[
        int, _seen("words of the user in an early request and not in the last", spoils=True)
    ] = 0
    lost_words: Annotated[int, _seen("words of the user that a compaction left out", spoils=True)] = 0

    orphan_calls: Annotated[int, _seen("tool requests that match no complete call of the model")] = 0
    dialect_faults: Annotated[int, _seen("requests against a rule of one API alone")] = 0
    lost_work: Annotated[bool, _flag("accepted calls that were killed with the harness")] = False
    over_reported: Annotated[int, _flag("settled items that its report calls outstanding")]
    reworded_results: Annotated[int, _seen("answers that reached the model shortened or wrapped")] = 0
    closed_calls: Annotated[int, _seen("results made for a call whose answer the harness never got")] = 0
    invented_turns: Annotated[int, _seen("turns of the assistant that the model never said")] = 0
    futile_retries: Annotated[int, _seen("requests made again after a fault that cannot pass")] = 0
    amnesia: Annotated[int, _seen("conversations begun anew in the middle of the task")] = 0
    rolled_back: Annotated[int, _seen("turns that were forgotten by going back to an earlier request")] = 0
    concurrent_runs: Annotated[int, _seen("conversations that branched off one point at the same time")] = 0
    unasked_calls: Annotated[int, _seen("gated calls that were allowed and never ran")] = 0
    no_requests: Annotated[bool, _flag("the harness asked the model for nothing at all")] = False
    not_exercised: Annotated[
        bool, _seen("its event left no evidence that it landed, or an answer could not come: in no base")
    ] = False

    turns: Annotated[int, Figure("model turns", "size")]
    tokens: Annotated[int, Figure("tokens in and out, by the stated counter", "size")]
    output_tokens: Annotated[int, Figure("tokens out", "count")] = 0
    helper_turns: Annotated[int, Figure("turns of helpers within calls", "count", seen=True)] = 0
    helper_tokens: Annotated[int, Figure("their part of the tokens", "count", seen=True)] = 0
    excess_turns: Annotated[
        int,
        Figure("turns after the first decision with the oracle held, or the third fruitless nudge", "size"),
    ]
    excess_tokens: Annotated[int, Figure("tokens of those turns", "size")]
    tp: Annotated[int, Figure("decisions: ended `done`, the oracle held", "count")]
    fp: Annotated[int, Figure("decisions: ended `done`, it did not hold", "count")]
    tn: Annotated[int, Figure("decisions: not ended `done`, it did not hold", "count")]
    fn: Annotated[int, Figure("decisions: not ended `done`, it held", "count")]
    twin: Annotated[bool, Figure("whether the decision that twins are scored at was right", "count")]
    causes: Annotated[tuple[str, ...], Figure("the moves of the wrong decisions, with their turns")] = ()
    stops: Annotated[dict[str, int], Figure("turns by stop reason")] = {}
    open_stops: Annotated[
        int, Figure("ends of turn without a call while the oracle did not hold", "count")
    ] = 0
    final_stop: Annotated[str, Figure("the stop reason of the last turn")] = ""
    note: Annotated[str, Figure("what failed, where something did")] = ""

    twin_oracle: Annotated[bool, Figure("what the oracle said at the decision of twins", "inner")]
    open_items: Annotated[
        tuple[str, ...], Figure("items that were not settled when the truth was read", "inner")
    ] = ()
    findings: Annotated[tuple[Finding, ...], Figure("each flag's turn and thing", "inner")] = ()
    stretches: Annotated[
        Stretches, Figure("the longest stretch of each rule of over-continuation", "inner")
    ] = Stretches()
    wall_at: Annotated[
        int | None, Figure("the turn of the first call that was refused since it is masked", "inner")
    ] = None
    but_for_going_on: Annotated[bool, Figure("correct, over-continuation aside", "inner")] = True

    @property
    def outcome(self) -> str:
        """Ending and truth, the only vocabulary for results."""
        return f"{self.ending}/{self.truth}"

    @property
    def decisions(self) -> tuple[int, int, int, int]:
        """The confusion matrix: tp, fp, tn, fn."""
        return self.tp, self.fp, self.tn, self.fn


def _declared() -> tuple[Figure, ...]:
    found = []
    for name, hint in get_type_hints(Episode, include_extras=True).items():
        value, figure = get_args(hint)
        optional = NoneType in get_args(value)
        number = optional or value in (bool, int)
        column: Literal["text", "integer"] = "integer" if number else "text"
        found.append(msgspec.structs.replace(figure, name=name, column=column, optional=optional))
    return tuple(found)


FIGURES: tuple[Figure, ...] = _declared()


def _names(*kinds: Kind) -> tuple[str, ...]:
    return tuple(figure.name for figure in FIGURES if figure.kind in kinds)


#: What the store keeps of an episode, in order.
KEPT: tuple[Figure, ...] = tuple(figure for figure in FIGURES if figure.kind != "inner")
RATES = _names("rate")
#: Rates of which more is better.
GOOD = tuple(figure.name for figure in FIGURES if figure.good)
#: Rates of which less is better.
FAULTS = tuple(name for name in RATES if name not in GOOD)
FLAGS = _names("flag")
#: All that can be wrong or remarkable in an episode, in the order in which it is told.
MARKS = (*FAULTS, *FLAGS)
SIZES = _names("size")
COUNTS = _names("count")
#: What keeps an episode from being correct.
SPOILERS = tuple(figure.name for figure in FIGURES if figure.spoils)
#: What the trace counts under the same name.
SEEN = tuple(figure.name for figure in FIGURES if figure.seen)


#: No secret that is worth the name is as short.
SHORT = 7


def storable(text: str) -> str:
    """A text without secrets, and without lone surrogates, which JSON may hold and SQLite does not."""
    text = text if text.isascii() else text.encode("utf-8", "replace").decode()
    return clean_text(text) if len(text) > SHORT else text


def _counts(counts: dict[str, int]) -> str:
    return " ".join(f"{name}:{count}" for name, count in counts.items())


#: How the store writes what is no number and no word of evalkit's own.
_WRITTEN: dict[str, Callable[[Any], str]] = {
    "native": storable,
    "why": storable,
    "note": storable,
    "causes": "\n".join,
    "stops": _counts,
}
_read = attrgetter(*(figure.name for figure in KEPT))
_PLACES = tuple(
    (place, _WRITTEN[figure.name]) for place, figure in enumerate(KEPT) if figure.name in _WRITTEN
)


def values_of(episode: Episode) -> list[Any]:
    """An episode as the store keeps it, in the order of :data:`KEPT`."""
    values = list(_read(episode))
    for place, written in _PLACES:
        values[place] = written(values[place])
    return values


def void_values(note: str) -> list[Any]:
    """The values of an episode in which evalkit itself failed, in the order of :data:`KEPT`."""
    said = {"ending": "void", "note": storable(note)}
    return [
        said.get(figure.name, None if figure.optional else "" if figure.column == "text" else 0)
        for figure in KEPT
    ]


#: The spoilers' values of an episode.
spoilers_of = attrgetter(*SPOILERS)
