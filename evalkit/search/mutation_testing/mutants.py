"""The mutants: the reference loop and its strategies with one rule broken each, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from evalkit.core.decisions import Reissue, Resend, Verdict
from evalkit.core.tasks import DEFAULT_OUTPUT
from evalkit.search.mutation_testing import wrong_loops as w
from evalkit.search.proofs.steps import REFERENCE, Rules
from evalkit.strategies import conditions as c
from evalkit.strategies.condition import Condition
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.view import View

_GATE = PRESETS["gate"].strategy.done_when
_replace = msgspec.structs.replace


class Mutant(msgspec.Struct, frozen=True):
    """One broken rule. ``original`` names the preset it is held against.

    ``fields`` are changed fields of the strategy, ``rules`` changed loop functions.
    """

    name: str
    breaks: str
    original: str = "gate"
    fields: Mapping[str, Any] = {}
    rules: Rules = REFERENCE

    @property
    def strategy(self) -> Strategy:
        """The strategy that the mutant runs with."""
        return PRESETS[self.original].strategy.but(name=self.name, **self.fields)


# Conditions that are wrong in one thing


@dataclass(frozen=True)
class _LooseKeyword(c.keyword):
    """Finds the keyword in longer words, or in any case."""

    substring: bool = False
    any_case: bool = False

    def __call__(self, view: View) -> Verdict:
        text, word = view.turn.text, self.word
        if self.any_case:
            text, word = text.upper(), word.upper()
        if self.substring:
            return Verdict(word in text, f"looks for {word}")
        inner = c.keyword(word)
        return inner(View(view.task, _replace(view.turn, text=text), view.memory, view.instruments))


@dataclass(frozen=True)
class _AnyFinish(c.finish):
    """Takes a finish for valid that names any item at all."""

    def __call__(self, view: View) -> Verdict:
        verdict = super().__call__(view)
        if view.finish is not None and view.finish.completed:
            return Verdict(True, "something was completed", 0, True)
        return verdict


@dataclass(frozen=True)
class _AnyOutput(c.typed_output):
    """Takes any JSON object for the typed output."""

    def __call__(self, view: View) -> Verdict:
        return c.typed_output({"type": "object"})(view)


@dataclass(frozen=True)
class _OwnOutput(c.typed_output):
    """Looks at the default schema and not at the task's."""

    def __call__(self, view: View) -> Verdict:
        return c.typed_output(DEFAULT_OUTPUT)(view)


@dataclass(frozen=True)
class _AnyTick(c.checklist):
    """Takes a checklist for complete once anything is ticked."""

    def __call__(self, view: View) -> Verdict:
        verdict = super().__call__(view)
        return Verdict(True, "something is ticked", 0, True) if view.items("ticked") else verdict


@dataclass(frozen=True)
class _AnyEvidence(c.verifier):
    """Takes the evidence for complete once there is any."""

    def __call__(self, view: View) -> Verdict:
        done = view.items("succeeded") | view.items("skipped")
        return Verdict(bool(done), "there is evidence", 0, True)


_EVIDENCE = c.verifier(sees="evidence")


def _policy(name: str, breaks: str, **fields: Any) -> Mutant:
    return Mutant(name, breaks, fields=fields)


def _condition(name: str, breaks: str, done_when: Condition, original: str = "gate") -> Mutant:
    return Mutant(name, breaks, original, {"done_when": done_when})


def _loop(name: str, breaks: str, rules: Rules, original: str = "gate", **fields: Any) -> Mutant:
    return Mutant(name, breaks, original, fields, rules)


_POLICIES = (
    _policy("cap_removed", "nudges have a cap", nudges=None),
    _policy("cap_one_more", "three nudges, not four", nudges=4),
    _policy("cap_one_less", "three nudges, not two", nudges=2),
    _policy("budget_of_three", "nudges are counted since the last effect, not in all", nudge_budget=3),
    _policy("cap_ends_done", "a cap that runs out is no success", then="done"),
    _policy("cap_ends_error", "a cap that runs out is an escalation", then="error"),
    _policy("gaps_not_named", "a nudge names the open items", nudge_says="continue"),
    _policy("limit_before_done", "done_when is asked before a limit ends a run", limit_checked="before_done"),
    _policy("loop_guard", "the same gaps twice let no stop through", loop_guard=True),
    _policy("pause_as_content", "a paused turn is no end of turn", pause="as_content"),
    _policy("pause_stops", "a paused turn is sent back", pause="stop"),
    _policy("one_resend", "a turn may be paused more than once", resends=1),
    _policy("resends_uncapped", "resends have a cap", resends=None, max_turns=None),
    _policy("cut_off_call_run", "a call that was cut off is not run", cut_off="as_content"),
    _policy("cut_off_stops", "a cut-off turn is asked again", cut_off="stop"),
    _policy("cut_off_continued", "a cut-off turn gets a larger limit", cut_off="continue"),
    _policy("one_cut_off", "a turn may be cut off more than once", cut_offs=1),
    _policy("cut_offs_uncapped", "re-issues have a cap", cut_offs=None),
    _policy("refusal_as_content", "a refusal is no answer", refusal="as_content"),
    _policy("no_fallback", "a refusal goes to the fallback model", refusal="escalate"),
    _policy("refusal_stops", "a refusal is escalated and no error", refusal="stop"),
    _policy("empty_stops", "an empty turn is nudged", empty="stop"),
    _policy("unknown_stops", "an unknown label says nothing about the content", unknown="stop"),
    _policy("unknown_nudged", "calls under an unknown label are run", unknown="nudge"),
    _policy("no_retry", "a failed answer is asked for again", faults="fail"),
    _policy("first_block_only", "words may come after other blocks", text="first_block"),
)

_CONDITIONS = (
    _condition("checks_ignored", "the checks must pass", _EVIDENCE & c.checklist()),
    _condition("evidence_ignored", "each item needs a recorded success", c.acceptance() & c.checklist()),
    _condition("checklist_ignored", "each item must be ticked", c.acceptance() & _EVIDENCE),
    _condition("checklist_trusted", "a tick alone is no proof", c.checklist()),
    _condition("checks_trusted", "checks alone may see too little", c.acceptance()),
    _condition("claim_trusted", "a claim alone is no proof", _GATE | c.verifier()),
    _condition("any_for_all", "all must be met, not one", c.acceptance() | _EVIDENCE | c.checklist()),
    _condition("claim_needed", "done does not depend on words", _GATE & c.verifier()),
    _condition("any_tick", "every item is ticked, not one", c.acceptance() & _EVIDENCE & _AnyTick()),
    _condition(
        "any_evidence", "all items need evidence", c.acceptance() & _AnyEvidence("evidence") & c.checklist()
    ),
    _condition("finish_unvalidated", "a finish is held against the items", c.finish(), "validated_finish"),
    _condition("finish_counted", "a finish accounts for every item", _AnyFinish(True), "validated_finish"),
    _condition("keyword_anywhere", "the user's words do not end a run", c.keyword(scope="any"), "keyword"),
    _condition("keyword_substring", "a keyword is a whole word", _LooseKeyword(substring=True), "keyword"),
    _condition("keyword_any_case", "a keyword is case-sensitive", _LooseKeyword(any_case=True), "keyword"),
    _condition("output_any_shape", "typed output has the schema's shape", _AnyOutput(), "typed_output"),
    _condition("output_own_schema", "typed output has the task's schema", _OwnOutput(), "typed_output"),
    _condition(
        "error_forgotten",
        "an item's last result counts",
        c.checklist() & c.verifier() & _EVIDENCE,
        "unattended",
    ),
    _condition("claim_not_needed", "the model must claim done", _EVIDENCE, "verifier_transcript"),
    _condition("evidence_not_replayed", "evidence is replayed", _EVIDENCE, "certificate"),
)

_LOOPS = (
    _loop("limit_one_more", "the turn limit is a limit", w.starts_at(-1)),
    _loop("limit_one_less", "the last allowed turn is allowed", w.starts_at(1)),
    _loop("last_calls_dropped", "the calls of the last turn are run", Rules(on_turn=w.drops_last_calls)),
    _loop("pause_as_done", "a paused turn is no end", w.ends(w.of_kind("pause"))),
    _loop("pause_answered", "nothing follows a paused turn", w.answers(w.message_after_pause)),
    _loop("pause_for_ever", "resends have a cap", w.never_gives_up("pause", Resend()), max_turns=None),
    _loop("pauses_in_all", "resends are counted in a row", w.counts_in_all("resends"), resends=3),
    _loop("cut_off_as_done", "a cut-off turn is no end", w.ends(w.of_kind("cut_off"))),
    _loop("limit_not_raised", "a cut-off turn gets a larger limit", w.answers(w.same_limit)),
    _loop("refusal_as_done", "a refusal is no end of work", w.ends(w.of_kind("refusal"))),
    _loop("refusal_for_ever", "refusals have a cap", w.never_gives_up("refusal", Reissue("retry"))),
    _loop("fallback_is_the_same", "the fallback is another model", w.answers(w.same_model)),
    _loop("category_ignored", "a reasoning_extraction refusal has no fallback", w.reads(w.without_category)),
    _loop("empty_as_done", "an empty turn is no end of work", w.ends(w.is_empty)),
    _loop("thinking_as_done", "thinking is no answer", w.ends(w.only_thinks)),
    _loop("words_as_done", "words are no proof", w.ends(w.only_speaks)),
    _loop("unknown_as_done", "an unknown label is no end", w.ends(w.of_kind("unknown"))),
    _loop("label_trusted", "content wins over a label", w.reads(w.by_label)),
    _loop("end_turn_as_done", "the label end_turn is no proof", w.ends(lambda turn: turn.stop == "end_turn")),
    _loop("report_as_blocked", "a report is no blocker", w.ends(w.only_reports, "escalated")),
    _loop("blocked_as_done", "a blocker is no success", w.ends(lambda turn: turn.claim == "blocked")),
    _loop("reset_by_any_call", "only new effects reset the nudges", w.resets_nudges(w.any_call)),
    _loop("reset_by_repeats", "a repeated effect is not new", w.resets_nudges(w.any_effect)),
    _loop("reset_by_ticks", "the harness's own tools are no progress", w.resets_nudges(w.any_tick)),
    _loop("never_reset", "a new effect resets the nudges", w.remembers(w.keeps_nudges)),
    _loop("errors_as_success", "a failed call is no evidence", w.records(w.without_error)),
    _loop("first_call_only", "all calls of a turn are run", w.answers(w.first_call_only)),
    _loop(
        "claims_before_calls",
        "the other calls of a finish turn run first",
        Rules(on_turn=w.claims_before_calls),
        "validated_finish",
    ),
    _loop("skip_without_reason", "a skip needs a reason", w.reads(w.with_reason), "validated_finish"),
    _loop(
        "partial_as_done", "a wrong skip makes it partial", w.answers(w.partial_as_done), "validated_finish"
    ),
    _loop(
        "rejection_unsaid",
        "a rejection says what is missing",
        REFERENCE,
        "validated_finish",
        nudge_says="continue",
    ),
    _loop("nothing_outstanding", "a report names what is open", w.answers(w.silent_report)),
    _loop("nudge_without_words", "a continuation after a decision says why", w.answers(w.silent_nudge)),
    _loop("retry_changed", "a retry is the same request", Rules(on_turn=w.changes_retries)),
    _loop("retry_for_ever", "failed answers have a cap", w.never_gives_up("failed", Reissue("retry"))),
)

MUTANTS: dict[str, Mutant] = {mutant.name: mutant for mutant in (*_POLICIES, *_CONDITIONS, *_LOOPS)}
