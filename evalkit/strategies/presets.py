"""The shipped strategies."""

from __future__ import annotations

from dataclasses import dataclass

from evalkit.core.decisions import Verdict
from evalkit.core.tasks import Offered
from evalkit.strategies import conditions as c
from evalkit.strategies.condition import Condition, _merged
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.view import View


class ChecksFirst(Condition):
    """Acceptance where the task has checks, else the recorded evidence and the checklist."""

    def __init__(self, otherwise: Condition | None = None) -> None:
        self.checks = c.acceptance()
        self.otherwise = otherwise or c.verifier(sees="evidence") & c.checklist()
        self.finite = True
        self.offers, self.folds, self.random = _merged((self.checks, self.otherwise))

    def __repr__(self) -> str:
        return f"{self.checks} if there are checks else {self.otherwise}"

    def __call__(self, view: View) -> Verdict:
        return self.otherwise(view) if view.task.checks == "none" else self.checks(view)


@dataclass(frozen=True)
class Preset:
    """A shipped strategy, where it comes from, what a harness must have for it, and what it cannot catch."""

    strategy: Strategy
    origin: str
    needs: str
    cannot: str


def _preset(name: str, origin: str, needs: str, cannot: str, strategy: Strategy) -> tuple[str, Preset]:
    return name, Preset(strategy.but(name=name), origin, needs, cannot)


_SILENCE = Strategy(
    done_when=c.silence(),
    pause="as_content",
    cut_off="as_content",
    overflow="as_content",
    refusal="as_content",
    unknown="as_content",
)

PRESETS: dict[str, Preset] = dict(
    (
        _preset(
            "silence",
            "The one-line loop: no tool call, so return.",
            "Nothing.",
            "Anything: a report, a pause, a cut-off turn and a refusal all read as done.",
            _SILENCE,
        ),
        _preset(
            "read_text",
            "A client that reads content[0].text of the last turn.",
            "Nothing.",
            "What silence cannot; and it fails where thinking comes before the words.",
            _SILENCE.but(text="first_block"),
        ),
        _preset(
            "keyword",
            "AutoGen's termination message: the model says TERMINATE.",
            "A model that is told to say the word when it is done.",
            "A word said too early or within a report, and one forgotten (it nudges to its turn limit).",
            Strategy(done_when=c.keyword(), nudges=None, max_turns=20),
        ),
        _preset(
            "turn_cap",
            "A loop with a small recursion limit and no other rule.",
            "Nothing.",
            "What silence cannot; and it cuts off long honest work.",
            _SILENCE.but(max_turns=10),
        ),
        _preset(
            "infinite_nudge",
            'The naive "if not done, say continue", without a cap.',
            "Checks that the harness can run.",
            "A run that is stuck: it goes on until something else ends it.",
            Strategy(
                done_when=c.acceptance(),
                nudges=None,
                resends=None,
                cut_offs=None,
                max_turns=None,
                nudge_says="continue",
            ),
        ),
        _preset(
            "finish_tool",
            "A submit tool, as in SWE-bench harnesses: the call is believed.",
            "A finish tool, offered to the model.",
            "A finish call made too early.",
            Strategy(done_when=c.finish()),
        ),
        _preset(
            "validated_finish",
            "A finish tool whose call is held against the known items.",
            "A finish tool, and a tool result that lists the items.",
            "Items reported completed that were never done.",
            Strategy(done_when=c.finish(validate=True)),
        ),
        _preset(
            "typed_output",
            "The OpenAI Agents SDK's output type: a final output of the schema ends the run.",
            "A schema of the final output.",
            "An output that is valid and wrong.",
            Strategy(done_when=c.typed_output(), then="error"),
        ),
        _preset(
            "checklist",
            "The vendor guidance's to-do list, kept outside the context.",
            "A checklist tool, and a tool result that lists the items.",
            "Items ticked that were never done.",
            Strategy(done_when=c.checklist()),
        ),
        _preset(
            "acceptance",
            "The harness runs the task's own checks.",
            "Checks that the harness can run.",
            "What its checks do not see: weak ones half the work, none at all everything.",
            Strategy(done_when=c.acceptance()),
        ),
        _preset(
            "artifact",
            "SWE-bench style: a diff exists, so there is a result.",
            "A look at what the work left: a diff, a file, a changed row.",
            "An artifact that is only a part of the work.",
            Strategy(done_when=c.artifact()),
        ),
        _preset(
            "certificate",
            "Evidence-carrying termination: each claim bound to evidence that replays.",
            "A list of the items, a record of results by item, and a tool that reads an item again.",
            "Invariants broken beside the items, and items it never listed.",
            Strategy(done_when=c.certificate()),
        ),
        _preset(
            "verifier_claim",
            "A second model that is shown the final message.",
            "A second model.",
            "A false claim: it reads the same words as a true one.",
            Strategy(done_when=c.verifier(sees="claim")),
        ),
        _preset(
            "verifier_transcript",
            "A second model that reads the whole conversation.",
            "A second model, and a tool result that lists the items.",
            "A tool that reports success without effect, and work undone later.",
            Strategy(done_when=c.verifier(sees="transcript")),
        ),
        _preset(
            "verifier_evidence",
            "A second model that is shown what the harness recorded.",
            "A second model, a list of the items, and a record of results by item.",
            "A tool that reports success without effect, and work undone later.",
            Strategy(done_when=c.verifier(sees="evidence")),
        ),
        _preset(
            "stop_hook",
            "A Stop hook that blocks on open checklist items and has the stop_hook_active guard.",
            "A checklist tool, a list of the items, and a hook that runs at each stop.",
            "Items ticked but not done; and the guard lets a repeated claim through.",
            Strategy(done_when=c.checklist(), loop_guard=True),
        ),
        _preset(
            "unattended",
            "The vendor guidance for unattended runs: checklist, and a smaller model that reads along.",
            "A checklist tool, a list of the items, and a second model.",
            "A tool that reports success without effect.",
            Strategy(done_when=c.checklist() & c.verifier(sees="transcript")),
        ),
        _preset(
            "gate",
            "All of it together: checks, evidence and checklist, three nudges, then a person.",
            "A checklist tool, a list of the items, a record of results by item, a second model; checks.",
            "Without checks: a tool that reports success without effect.",
            Strategy(
                done_when=c.acceptance() & c.verifier(sees="evidence") & c.checklist(),
                refusal="fallback",
                repeats="own_key",
            ),
        ),
        _preset(
            "checks_first",
            "The checks alone where there are any, the gate's other parts where there are none.",
            "Checks; else what gate needs.",
            "What weak checks do not see.",
            Strategy(done_when=ChecksFirst()),
        ),
    )
)

#: The presets that run unless others are asked for: one for each idea, from none to all of them together.
DEFAULT = ("silence", "finish_tool", "checklist", "acceptance", "certificate", "gate")


def all_offered() -> tuple[Offered, ...]:
    """The different channel sets that the presets offer."""
    return tuple(dict.fromkeys(preset.strategy.offers for preset in PRESETS.values()))
