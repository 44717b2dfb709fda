"""A termination strategy: what counts as done, and what to do otherwise. Immutable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args, get_type_hints

from evalkit.core.tasks import Offered
from evalkit.strategies.condition import Condition, condition_of
from evalkit.strategies.folds import Fold

PausePolicy = Literal["resend", "as_content", "stop"]
CutOffPolicy = Literal["raise_limit", "continue", "fail_calls", "as_content", "stop"]
OverflowPolicy = Literal["compact", "raise_limit", "as_content", "stop"]
RefusalPolicy = Literal["escalate", "fallback", "retry", "as_content", "stop"]
EmptyPolicy = Literal["nudge", "stop"]
UnknownPolicy = Literal["as_content", "nudge", "stop"]
FaultPolicy = Literal["retry", "fail"]
RepeatPolicy = Literal["run", "own_key"]
Exhausted = Literal["escalate", "done", "limit", "error"]

#: Identical retries of a refused turn and of a failed answer, in a row.
REFUSALS_IN_A_ROW = 3
FAULTS_IN_A_ROW = 5


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """``done_when`` and the policies around it. ValueError for a value that a field cannot have."""

    #: What counts as done.
    done_when: Condition
    #: What runs and reports call it; a value that is given to a run needs one of its own.
    name: str = "custom"
    #: A paused turn: sent back unchanged, read as content, or the end.
    pause: PausePolicy = "resend"
    #: A cut-off turn: asked again with a larger limit, continued, its calls failed, read as content, the end.
    cut_off: CutOffPolicy = "raise_limit"
    #: A full window: asked again with a compacted history or a larger limit, read as content, the end.
    overflow: OverflowPolicy = "compact"
    #: A refusal: escalated, asked of a fallback model, retried, read as content, the end.
    refusal: RefusalPolicy = "escalate"
    #: An end of turn without visible text: nudged, or the end.
    empty: EmptyPolicy = "nudge"
    #: A stop label that nobody knows.
    unknown: UnknownPolicy = "as_content"
    #: An answer that failed: retried where it can pass, or the end.
    faults: FaultPolicy = "retry"
    #: A call that was made before: run as it is, or where its tool takes a key under the harness's own, the
    #: same until something undoes what it did.
    repeats: RepeatPolicy = "run"
    #: When ``done_when`` is asked.
    check: Literal["end_of_turn", "each_tool_turn"] = "end_of_turn"
    #: Whether a limit that is reached is looked at before or after ``done_when``.
    limit_checked: Literal["after_done", "before_done"] = "after_done"
    #: Nudges since the last new successful call of a tool that is not read-only, or the last message of the
    #: user; None is no cap.
    nudges: int | None = 3
    #: Nudges in all; None is no cap.
    nudge_budget: int | None = None
    #: Resends of paused turns in a row; None is no cap.
    resends: int | None = 25
    #: Answers to cut-off turns in a row; None is no cap.
    cut_offs: int | None = 3
    #: The ending when nudges, resends or re-issues run out.
    then: Exhausted = "escalate"
    #: Model turns of a run; None is no limit. Of each limit the smaller of this and the scenario's binds.
    max_turns: int | None = 40
    #: Input and output tokens of a run; None is no limit.
    max_tokens: int | None = None
    #: US dollars of a run; None is no limit.
    max_usd: float | None = None
    #: When a run is hopeless: it ends as ``then`` says, unless ``done_when``, asked once before, is met.
    #: Asked when the calls of a turn have run, and before a nudge; None is never.
    give_up_when: Condition | None = None
    #: What a nudge says: the open items where gaps name any, or only "Continue."
    nudge_says: Literal["gaps", "continue"] = "gaps"
    #: A Stop hook's loop guard: the second block in a row for the same gaps lets the stop through.
    loop_guard: bool = False
    #: ``first_block`` takes the first block as the text and ends ``error`` where it is not text.
    text: Literal["all", "first_block"] = "all"

    def __post_init__(self) -> None:
        for name in ("done_when", "give_up_when"):
            value = getattr(self, name)
            if value is None and name == "give_up_when":
                continue
            try:
                # It is frozen, and a plain function is taken for the condition that it stands for.
                object.__setattr__(self, name, condition_of(value))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name must be a text, got {self.name!r}")
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
        for name in ("nudges", "nudge_budget", "resends", "cut_offs", "max_turns", "max_tokens", "max_usd"):
            value = getattr(self, name)
            whole = int if name != "max_usd" else (int, float)
            if value is not None and (not isinstance(value, whole) or isinstance(value, bool) or value <= 0):
                raise ValueError(f"{name} must be above 0, or None for none; got {value!r}")

    @cached_property
    def offers(self) -> Offered:
        """The channels it agrees with the model."""
        return self.done_when.offers

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """What it remembers of a run."""
        folds = {fold.name: fold for part in self.conditions for fold in part.folds}
        return tuple(folds.values())

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All that it asks."""
        return (self.done_when, *(() if self.give_up_when is None else (self.give_up_when,)))

    @cached_property
    def random(self) -> bool:
        """Whether a seed can change what it does."""
        return any(condition.random for condition in self.conditions)

    def but(self, **changes: Any) -> Strategy:
        """The same strategy with some fields changed."""
        return replace(self, **changes)


_ALLOWED = {name: get_args(hint) for name, hint in get_type_hints(Strategy).items()}
#: The fields that have one of some words, with the words.
_CHOICES = {name: words for name, words in _ALLOWED.items() if words and {*map(type, words)} == {str}}
