"""Each cause of an ending has a signal of its own, and endings add up."""

from __future__ import annotations

from typing import Any

from evalkit.strategies import conditions as c
from evalkit.strategies.strategy import Strategy
from tests.helpers import play, scenario

LIST = {"call": "list_items"}
NEVER = ~(c.silence() | ~c.silence())
STUCK: list[Any] = [LIST, {"say": "Hm.", "until": "never"}]


def for_ever(move: dict[str, Any]) -> list[Any]:
    return [LIST, {"repeat": {"times": "forever", "do": [move]}}]


def test_each_cause_has_a_signal_of_its_own() -> None:
    leaves = {"user": {"text": "Bye.", "when": "between_turns", "closes": True}}
    causes: dict[str, tuple[list[Any], Strategy]] = {
        "done_when": (STUCK, Strategy(done_when=c.silence())),
        "nudges": (STUCK, Strategy(done_when=NEVER)),
        "max_turns": (STUCK, Strategy(done_when=NEVER, max_turns=2)),
        "max_tokens": (STUCK, Strategy(done_when=NEVER, max_tokens=10)),
        "max_usd": (STUCK, Strategy(done_when=NEVER, max_usd=1e-9)),
        "user_gone": ([LIST, leaves, {"say": "Bye."}], Strategy(done_when=NEVER)),
        "loop guard": (STUCK, Strategy(done_when=NEVER, loop_guard=True)),
        "resends": (for_ever({"pause": {}}), Strategy(done_when=NEVER)),
        "cut_offs": (for_ever({"truncate": "text"}), Strategy(done_when=NEVER)),
        "refusal:cyber": (for_ever({"refuse": {"category": "cyber"}}), Strategy(done_when=NEVER)),
        "fault:http_500": (for_ever({"fault": {"status": 500}}), Strategy(done_when=NEVER)),
        "stopped:pause_turn": (for_ever({"pause": {}}), Strategy(done_when=NEVER, pause="stop")),
        "stopped:max_tokens": (for_ever({"truncate": "text"}), Strategy(done_when=NEVER, cut_off="stop")),
        "stopped:refusal": (for_ever({"refuse": {}}), Strategy(done_when=NEVER, refusal="stop")),
        "stopped:empty": (for_ever({"empty": True}), Strategy(done_when=NEVER, empty="stop")),
        "stopped:odd": (for_ever({"say": "x", "stop": "odd"}), Strategy(done_when=NEVER, unknown="stop")),
        "first block is not text": (for_ever({"think": "x"}), Strategy(done_when=NEVER, text="first_block")),
        "evalkit's cap": (
            for_ever({"call": "list_items"}),
            Strategy(done_when=NEVER, max_turns=None),
        ),
    }
    signals = {cause: play(scenario(moves), strategy).native for cause, (moves, strategy) in causes.items()}
    assert signals == {cause: cause for cause in causes}
