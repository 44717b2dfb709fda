"""What evalkit observes of an episode, turn by turn, kept as counters.

A delivered turn is *resolved* when the next request arrives or the run has ended: only then is it known
what the harness made of it, and its calls have run.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import msgspec

from evalkit.core.channels import is_decision, is_own, speaks
from evalkit.core.continuation import Continuation
from evalkit.core.decisions import EndingKind
from evalkit.core.delivered_results import carried
from evalkit.core.keys import logical_action
from evalkit.core.prices import cost
from evalkit.core.requests import Request, Result, broken_at, cannot_pass, finish_answer, neutral_faults
from evalkit.core.tasks import FINISH_TOOL, Limits, Offered
from evalkit.core.turns import Call, Kind, Turn, parse_arguments

NO_LIMITS = Limits()
NOTHING_ASKED = Request()
NOTHING_RAN: Mapping[str, Result] = {}
#: So many findings of an episode are kept; the flags count all.
FINDINGS_KEPT = 60
#: The causes of decisions that no move of a script has named.
_NO_TURNS = {"failed": "fault", "in_progress": "an answer still in progress"}
#: The neutral rules, as one says that they were broken.
RULES_SAID = {
    "call_without_result": "call without its result",
    "result_without_call": "result without its call",
    "result_twice": "two results for one call",
    "pause_changed": "paused turn changed",
    "pause_followed": "paused turn followed by something",
}


class Finding(msgspec.Struct, frozen=True, gc=False):
    """One thing that a flag counts: the flag, the number of the turn, and what it was, in words."""

    flag: str
    turn: int
    thing: str


class Trace(Continuation):
    """The observer of one episode. ``delivered`` and ``resolved`` are called in turn.

    ``limits`` are those that the harness was told.
    """

    # Slots: of a dict with more than thirty names Python neither shares the keys nor finds them as fast.
    __slots__ = (
        "_answered",
        "_ended_on",
        "_futile",
        "_limited",
        "_made_up",
        "_no_turn",
        "_spent",
        "_stops",
        "acted",
        "altered_results",
        "amnesia",
        "called",
        "cause",
        "changes",
        "closed_calls",
        "concurrent_runs",
        "dialect_faults",
        "findings",
        "forgotten_words",
        "futile_retries",
        "helper_tokens",
        "helper_turns",
        "invented_turns",
        "last",
        "limits",
        "lost_words",
        "not_exercised",
        "orphan_calls",
        "output_tokens",
        "over_limit",
        "protocol_faults",
        "ran_cut_off_call",
        "requests",
        "reworded_results",
        "rolled_back",
        "tool_calls",
        "unapproved_calls",
        "unasked_calls",
        "undelivered_words",
        "wall_at",
    )

    def __init__(self, offered: Offered, limits: Limits = NO_LIMITS) -> None:
        super().__init__(offered)
        self.limits = limits
        self._limited = limits != NO_LIMITS
        self.requests = 0
        self.output_tokens = 0
        self.tool_calls = 0
        self.last: Turn | None = None
        self.cause = ""
        self.protocol_faults: list[str] = []
        self.called: dict[str, int] = {}
        #: Each effect in order: its logical action and the turn in which it was had.
        self.acted: list[tuple[str, int]] = []
        self.changes = 0
        #: The stop reason of each turn.
        self._stops: list[str] = []

        # What follows is read under these names by :class:`evalkit.scoring.episode_fields.Episode`.
        #: Requests that broke a rule of one dialect alone; none in process.
        self.dialect_faults = 0
        self.orphan_calls = 0
        self.ran_cut_off_call = False
        self.over_limit = 0
        self.altered_results = 0
        self.reworded_results = 0
        self.closed_calls = 0
        self.invented_turns = 0
        self.futile_retries = 0
        self.amnesia = 0
        self.rolled_back = 0
        self.concurrent_runs = 0
        self.unapproved_calls = 0
        self.unasked_calls = 0
        self.undelivered_words = 0
        self.forgotten_words = 0
        self.lost_words = 0
        self.not_exercised = False
        #: What helpers did within calls: turns, and their part of the tokens.
        self.helper_turns = 0
        self.helper_tokens = 0
        #: Each flag's turn and thing, for whoever tells of the episode.
        self.findings: list[Finding] = []

        #: The kind of the answer that a run ended on, where it was no turn, and the turns until then.
        self._ended_on = (0, "")
        #: The last answer where it was no turn: its kind, and the move that made it.
        self._no_turn: tuple[Kind, str] | None = None
        self._futile = ""
        #: By logical action: what was answered last, and how often the world had changed by then.
        self._answered: dict[str, tuple[str, int]] = {}
        #: What was last made up in a tool's place: said again it is made up again.
        self._made_up: dict[str, str] = {}
        #: Turns, tokens, output tokens and tool calls before the query that the limits are counted for.
        self._spent = (0, 0, 0, 0)
        #: The turn of the first call that was refused since what it would do is masked.
        self.wall_at: int | None = None

    def found(self, flag: str, thing: str, turn: int | None = None) -> None:
        """Keep what a flag counts, in words."""
        if len(self.findings) < FINDINGS_KEPT:
            self.findings.append(Finding(flag, self.turns if turn is None else turn, thing))

    # What comes from the model

    def delivered(
        self, turn: Turn, tokens: int, cause: str, output: int | None = None, actions: tuple[str, ...] = ()
    ) -> None:
        """A model turn reached the harness.

        ``tokens`` is what it cost, input and output; ``output`` the latter, where a provider counted it.
        ``actions`` are the logical actions that it asks for.
        """
        if self._limited and (reached := self.reached):
            self._beyond(reached)
        self.turns += 1
        self.tokens += tokens
        self.output_tokens += turn.tokens if output is None else output
        self.last = turn
        self.cause = cause
        self._no_turn = None
        self._futile = ""
        self._stops.append(turn.stop)
        if actions:
            self.calls_for(actions)

    def calls_for(self, actions: tuple[str, ...]) -> None:
        """The model asks for logical actions."""
        called = self.called
        for action in actions:
            called[action] = called.get(action, 0) + 1

    def no_turn(self, turn: Turn, cause: str) -> None:
        """An answer that is no turn reached the harness: a fault, or one that is still in progress."""
        self._no_turn = turn.kind, cause or _NO_TURNS[turn.kind]
        self._futile = (turn.native or "") if cannot_pass(turn.native) else ""

    def asked_anew(self, request: Request) -> None:
        """A request was made that resolves no turn: the first one, or one after an answer that is no turn."""
        if self._futile and request.again:
            self.futile_retries += 1
            # rule: futile_retries
            self.found("futile_retries", f"request {self.requests} asks the same again after {self._futile}")

    @property
    def reached(self) -> str:
        """The native name of the limit that leaves no further turn; empty where there is one."""
        return self._reached(self.turns - self._spent[0]) if self._limited else ""

    def _reached(self, turns: int) -> str:
        """The limit that so many turns, and what was spent, have reached."""
        _, spent, written, _ = self._spent
        usd = 0.0 if self.limits.usd is None else self._usd(spent, written)
        return self.limits.reached(turns, self.tokens - spent, usd)

    def _usd(self, tokens: int, output: int) -> float:
        """The dollars spent since so many tokens, so many of them output, had been."""
        out = self.output_tokens - output
        return cost(self.tokens - tokens - out, out)

    def _beyond(self, name: str) -> None:
        """A turn was asked for when the limit of that native name was reached."""
        limits = self.limits
        said = {"max_turns": ("turns", limits.turns), "max_tokens": ("tokens", limits.tokens)}
        unit, limit = said.get(name, ("dollars", limits.usd))
        self.over_limit += 1
        # rule: over_limit
        self.found("over_limit", f"a turn asked for after the limit of {limit:g} {unit}", self.turns + 1)

    def helped(self, read: int, wrote: int) -> None:
        """A helper took a turn within a call: its tokens are the run's, its turns are shown apart."""
        if self._limited and (reached := self._reached(0)):
            self._beyond(reached)
        self.helper_turns += 1
        self.helper_tokens += read + wrote
        self.tokens += read + wrote
        self.output_tokens += wrote

    @property
    def stops(self) -> dict[str, int]:
        """Turns by stop reason, in the order in which they first came."""
        stops: dict[str, int] = {}
        for stop in self._stops:
            stops[stop] = stops.get(stop, 0) + 1
        return stops

    @property
    def final_stop(self) -> str:
        """The stop reason of the last turn, or what came at the end in the place of one."""
        turns, kind = self._ended_on
        if turns == self.turns and kind:
            return kind
        return self._stops[-1] if self._stops else ""

    # What the harness does

    def is_decision(self, turn: Turn) -> bool:
        """Whether a turn is a decision with the channels offered."""
        return is_decision(turn, self.offered)

    def runs(self, turn: Turn | None, call: Call) -> None:
        """The harness asks for a tool of the world; ``turn`` is the last that was delivered."""
        self.tool_calls += 1
        limit = self.limits.calls
        if limit is not None and self.tool_calls - self._spent[3] > limit:
            self.over_limit += 1
            # rule: over_limit_of_calls
            self.found("over_limit", f"{_said(call)}, a call beyond the limit of {limit} calls")
        if turn is None:
            return
        if not speaks(turn):
            self.orphan_calls += 1
            if any(_stands_for(call, made) for made in turn.calls):
                self.ran_cut_off_call = True
                kind = "refused" if turn.kind == "refusal" else "cut off"
                # rule: ran_cut_off_call
                self.found("ran_cut_off_call", f"{_said(call)} of the turn that was {kind}")
            else:
                self.found("orphan_calls", f"{_said(call)}, which the model did not call")
        elif call not in turn.calls:
            self.orphan_calls += 1
            # rule: orphan_calls
            self.found("orphan_calls", f"{_said(call)}, which the model did not call")

    def met_wall(self) -> None:
        """A call was refused since what it would do is masked, and the harness was told so."""
        if self.wall_at is None:
            self.wall_at = self.turns

    def had_effect(self, action: str, changes: int) -> None:
        """A logical action had its effect; ``changes`` is how often the world has become another by now."""
        self.acted.append((action, self.turns))
        self.changes = changes

    def broke(self, rule: str, id: str) -> None:
        """The last request broke a rule that every API shares, at the call or result of that id."""
        self.protocol_faults.append(rule)
        about = f", id {id}" if id else ""
        # rule: protocol_faults
        self.found("protocol_faults", f"{RULES_SAID[rule]}{about}, request {self.requests}")

    def began_anew(self) -> None:
        """The last request begins a conversation anew."""
        self.amnesia += 1
        self.found("amnesia", f"request {self.requests} begins a new conversation")

    def went_back(self, number: int, forgotten: int) -> None:
        """The last request goes on from an earlier turn, as if those after it had not been."""
        self.rolled_back += forgotten
        if forgotten:
            # rule: rolled_back
            self.found("rolled_back", f"request {self.requests} goes on from turn {number}")

    def branched(self, number: int) -> None:
        """The last request goes on from a turn that another conversation goes on from at the same time."""
        self.concurrent_runs += 1
        self.found("concurrent_runs", f"request {self.requests} goes on from turn {number} too")

    def broke_dialect(self, rule: str) -> None:
        """The last request broke a rule of one API alone."""
        self.dialect_faults += 1
        self.found("dialect_faults", f"{rule}, request {self.requests + 1}")

    def invented(self, words: str) -> None:
        """A request has a turn of the assistant that the model never said."""
        self.invented_turns += 1
        self.found("invented_turns", f"{words[:60]!r} in request {self.requests + 1}")

    def user_wrote(self, asks: bool = False) -> None:
        """The user wrote: turns are counted anew; where it asks for items, all is judged by that question."""
        self._most, self._most_fruitless = self._after_completion(), self._after_fruitless_nudges()
        if asks:
            self._next_question()
        else:
            self._begin_stretch()
        if self.limits.per == "query":
            self._spent = (self.turns, self.tokens, self.output_tokens, self.tool_calls)
        self._answered.clear()

    def resolved(
        self,
        settled: int,
        held: bool,
        request: Request,
        ran: Mapping[str, Result] = NOTHING_RAN,
    ) -> None:
        """The last turn was answered by ``request``, its own words without those of the user.

        ``settled`` counts the settled items, ``ran`` has what the tools answered, by call id.
        """
        turn = self.last
        self.last = None
        if turn is None:
            return
        calls, results = turn.calls, request.results
        # Whether all is sent back as the tools answered it: nothing is altered then, and no rule broken.
        whole = request.echo is turn and [ran.get(call.id) for call in calls] == [*results]
        repeats = bool(calls)
        if whole:
            for call in calls:
                repeats = self._again(call, ran[call.id].text) and repeats
        elif calls:
            repeats = self._carry(turn, request, ran)
        if self._progress(turn, settled, held, repeats):
            self._decide(turn, held, None, self.cause)
            if request.text is not None or finish_answer(turn, request.results, FINISH_TOOL) is not None:
                self._nudge()
        if turn.kind == "pause" or self._resends:
            self._resend(turn.kind == "pause" and request.echo is not None and request.text is None)
        # What asks the same again was judged when it was asked first, against the turn that it goes on from.
        whole = whole and bool(calls)
        if not (request.again or whole) and (calls or results or turn.kind == "pause"):
            for rule in neutral_faults(turn, request):
                self.broke(rule, broken_at(rule, request.echo or turn, request.results))

    def ended(
        self, settled: int, held: bool, ending: EndingKind, ran: Mapping[str, Result] = NOTHING_RAN
    ) -> None:
        """The run is over; ``ran`` has what the tools answered to the last turn's calls."""
        turn = self.last
        self.last = None
        if turn is None:
            # Whoever was stopped by evalkit's cap did not end there.
            if self._no_turn is not None and ending != "never":
                kind, cause = self._no_turn
                self._no_turn = None
                self._ended_on = (self.turns, kind)
                self._decide(None, held, ending, cause)
            return
        repeats = bool(turn.calls) and self._carry(turn, NOTHING_ASKED, ran)
        decision = self._progress(turn, settled, held, repeats)
        if decision or turn.kind in ("pause", "cut_off", "refusal") or ending == "done":
            self._decide(turn, held, ending, self.cause)

    # What a request carries

    def _again(self, call: Call, text: str) -> bool:
        """Whether a call only repeats what was answered the same since the world last changed."""
        action, said = logical_action(call, 0), (text, self.changes)
        same = self._answered.get(action) == said
        self._answered[action] = said
        return same

    def _carry(self, turn: Turn, request: Request, ran: Mapping[str, Result]) -> bool:
        """Hold a request's results against what the tools answered; whether each call only repeats."""
        repeats = True
        shown = {result.id: result for result in request.results}
        for call in turn.calls:
            heard, given = ran.get(call.id), shown.get(call.id)
            if given is not None and heard is not given and not is_own(call.tool, self.offered):
                if heard is None:
                    self._not_heard(call, given)
                elif heard.text != given.text:
                    self._compare(call, heard, given, ran)
            told = heard or given
            if told is None:
                repeats = False
                continue
            repeats = self._again(call, told.text) and repeats
        return repeats

    def _not_heard(self, call: Call, given: Result) -> None:
        """A result for a call that no tool answered: from the harness's own record, or made up."""
        action = logical_action(call, 0)
        before = self._answered.get(action)
        if before is None or before[0] != given.text or self._made_up.get(action) == given.text:
            self._made_up[action] = given.text
            self.closed_calls += 1
            # rule: closed_calls
            self.found("closed_calls", f"{_said(call)}: {given.text[:60]!r}, and no tool said so")

    def _compare(self, call: Call, heard: Result, given: Result, ran: Mapping[str, Result]) -> None:
        others = [result.text for name, result in ran.items() if name != call.id]
        became = carried(heard.text, given.text, others)
        if became == "altered":
            self.altered_results += 1
            what = "reached the model empty" if not given.text.strip() else "reached the model as another's"
            # rule: altered_results
            self.found("altered_results", f"the answer to {_said(call)} {what}")
        elif became == "reworded":
            self.reworded_results += 1
            # rule: reworded_results
            self.found("reworded_results", f"the answer to {_said(call)}")

    def fork(self) -> Trace:
        """An independent copy, for asking what a further turn would make of the run."""
        twin = copy(self)
        for name in (*Continuation.__slots__, *Trace.__slots__):
            value = getattr(self, name)
            if isinstance(value, list | dict):
                setattr(twin, name, copy(value))
        return twin


def _said(call: Call) -> str:
    """A call in few words."""
    values = parse_arguments(call.arguments)
    about = call.arguments if values is None else " ".join(map(str, values.values()))
    return f"{call.tool} {about}".strip()[:80]


def _stands_for(call: Call, made: Call) -> bool:
    """Whether a call that a harness runs is one that the model made, whose arguments may be cut off."""
    if call.id == made.id:
        return True
    values = parse_arguments(made.arguments)
    return call.tool == made.tool and values in (None, parse_arguments(call.arguments))
