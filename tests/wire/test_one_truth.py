"""One truth: an episode is the same in process and over each dialect, streamed or not.

Every field of the episode is compared, tokens included; the native signal of a run that a fault ended is not:
it is what that client saw of the fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from evalkit.core.tasks import Offered
from evalkit.drivers.over_sdk import Line
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy
from evalkit.wire.dialects import DIALECTS, Dialect
from evalkit.wire.expressible import has_background, not_expressible
from evalkit.wire.server import Server
from tests.helpers import library, scenario

LIBRARY = library()
#: (dialect, streamed, held): the server holds the conversation.
LINES: list[tuple[Dialect, bool, bool]] = [
    (dialect, streamed, False) for dialect in DIALECTS for streamed in (False, True)
]
HELD: list[tuple[Dialect, bool, bool]] = [("anthropic", False, True), ("responses", True, True)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(stall_scale=0) as running:
        yield running


def fields(episode: Episode) -> dict[str, Any]:
    found = msgspec.structs.asdict(episode)
    if found["native"].startswith("fault:"):
        del found["native"]
    return found


def compare(
    server: Server, loaded: Scenario, strategy: Strategy, line: tuple[Dialect, bool, bool], arena: Arena
) -> bool:
    """Whether the scenario is expressible there; its episode must then be the one in process."""
    dialect, streamed, held = line
    if not_expressible(loaded, dialect, streamed=streamed, offered=[strategy.offers]):
        return False
    wire = Line(server, dialect, streamed, held=held, background=has_background(loaded), timeout=20)
    want = fields(run_episode(arena, strategy, 0))
    got = fields(run_episode(arena, strategy, 0, run=wire.run))
    assert got == want, (loaded.name, strategy.name, line)
    return True


# Every move, over every line, by strategies that react to it

#: What stands between listing the items and doing the rest of them.
MOVES: dict[str, list[Any]] = {
    "parallel": [{"work": 2, "parallel": True}],
    "batch": [{"turn": [{"say": "At once."}, {"work": 2}, {"finish": {"completed": "all"}}]}],
    "pause": [{"pause": {"text": "So"}, "until": "resent"}],
    "cut call": [{"truncate": "call", "until": "higher_limit"}],
    "cut call that parses": [{"truncate": "call", "parses": True}],
    "cut text": [{"truncate": "text"}],
    "refusal": [{"refuse": {}, "until": "other_model"}],
    "category": [{"refuse": {"category": "reasoning_extraction"}}],
    "thinking": [{"think": "hm"}, {"turn": [{"think": "so"}, {"work": 1}]}],
    "empty": [{"empty": True}, {"work": 1}, {"empty": True}],
    "named": [{"say": "One done.", "claim": "partial", "until": "named"}],
    "rejected": [{"finish": {"completed": "all"}, "until": "rejected"}],
    "skips": [{"work": 2}, {"finish": {"completed": 2, "skipped": ["invoices"], "reason": "locked"}}],
    "labels": [{"work": 1, "stop": "brand_new"}, {"say": "So", "stop": None}],
    "fault": [{"fault": {"status": 529, "times": 2}}, {"work": 1}, {"fault": {"cut": "before_headers"}}],
    "too many faults": [{"work": 1}, {"fault": {"status": 500, "times": 9}}],
    "cut streams": [{"fault": {"cut": "mid_stream"}}, {"fault": {"cut": "no_end"}}],
    "error in a stream": [{"fault": {"body": "error_event"}}],
    "broken bodies": [{"fault": {"cut": "mid_body"}}, {"fault": {"body": "malformed"}}],
    "stall": [{"fault": {"stall_s": 5}}],
    "background": [{"background": {"polls": 3}}],
    "late": [{"work": 1, "reply": {"error": True, "effect": "late"}}],
    "server tools": [{"raw": {"content": [{"server_call": "web_search", "result": "x"}, {"work": "users"}]}}],
    "delegate": [{"delegate": {"name": "child", "do": [{"work": 2}, {"say": "Child done."}]}}],
    "phases": [{"say": "One.", "phase": "commentary"}],
    "a user between turns": [{"work": 1}, {"user": {"text": "And invoices first.", "when": "between_turns"}}],
    "a user at the end": [{"say": "One done."}, {"user": {"text": "Go on."}}, {"work": 1}],
    "a user after a fault": [{"user": {"text": "Now.", "when": "between_turns"}}, {"fault": {"status": 500}}],
    "a user during faults": [
        {"fault": {"status": 500}},
        {"user": {"text": "Hello?", "when": "between_turns"}},
        {"fault": {"status": 500}},
    ],
    "a user who leaves": [
        {"say": "So."},
        {"user": {"text": "Finish orders.", "closes": True}},
        {"say": "Bye."},
    ],
    "a full window that says so": [{"fault": {"status": 400, "window": "full"}}, {"work": 1}],
    "a full window after a nudge": [{"say": "Hm."}, {"fault": {"status": 413, "window": "full"}}],
    "two finish calls": [
        {"turn": [{"finish": {"completed": ["users"]}}, {"finish": {"completed": "all"}}]},
    ],
    "a finish that nobody offers": [{"call": "finish_task", "with": {"items_completed": ["users"]}}],
    "compaction": [{"work": 1}, {"compact": True}, {"work": 1}],
    "compaction at a nudge": [{"work": 1}, {"say": "One."}, {"compact": True}, {"work": 1}],
    "approval": [{"say": "May I?", "claim": "blocked"}, {"approve": ["users"]}],
    "wait": [{"wait": {"item": "users", "polls": 3}}],
    "a later question": [
        {"work": ["users"]},
        {"say": "That one is done.", "claim": "done"},
        {"user": {"text": "Now orders, please.", "asks": ["orders"]}},
    ],
    "two later messages": [
        {"work": 1},
        {"user": {"text": "One.", "when": "between_turns"}},
        {"user": {"text": "Two.", "when": "between_turns"}},
        {"work": 1},
        {"say": "Two done.", "claim": "partial"},
        {"user": {"text": "Three."}},
        {"user": {"text": "Four."}},
        {"say": "Hm.", "claim": "partial"},
    ],
    "words in a pause": [
        {"pause": {"text": "So"}},
        {"user": {"text": "Be quick.", "when": "between_turns"}},
    ],
    "words in a tool": [{"user": {"text": "Mind the step.", "when": "in_tool"}}, {"work": 1}],
    "words in a turn": [{"user": {"text": "Mind the gap.", "when": "in_turn"}}, {"work": 1}],
    "a faithful summary": [{"work": 1}, {"compact": {"summary": "faithful"}}, {"work": 1}],
    "an empty summary": [{"work": 1}, {"compact": {"summary": "empty", "times": 2}}, {"work": "unseen"}],
    "a summary that forgets": [{"work": 2}, {"compact": {"forgets": ["users"]}}, {"work": "unseen"}],
    "a summary in words": [{"work": 1}, {"compact": {"summary": "Work goes on."}}],
    "compaction after a fault": [{"fault": {"status": 529}}, {"compact": True}],
    "compaction after a cut-off": [{"truncate": "text"}, {"compact": True}, {"work": 1}],
    "a full window": [{"work": 1}, {"truncate": "text", "limit": "context_window", "until": "shortened"}],
    "a window that is said to be full": [{"work": 1}, {"fault": {"status": 413, "window": "full"}}],
    "a fault that stays": [{"work": 1}, {"fault": {"status": 403}}],
    "broken at a call": [{"fault": {"cut": "in_call"}}, {"work": 1}, {"fault": {"cut": "after_call"}}],
    "a busy helper": [
        {
            "delegate": {
                "name": "child",
                "do": [
                    {"truncate": "text", "until": "higher_limit"},
                    {"fault": {"status": 529, "times": 2}},
                    {"turn": [{"say": "Beside a call."}, {"work": 1}, {"tick": 1}]},
                    {"repeat": {"times": 2, "do": [{"call": "list_items"}]}},
                    {"pause": {}},
                    {"say": "All of it is done.", "claim": "done"},
                ],
            }
        }
    ],
    "late by three": [
        {"work": 1, "reply": {"effect": "late", "lands": 3}},
        {"work": 1, "reply": {"effect": "late", "lands": "never", "text": "accepted"}},
    ],
    "never ends": [{"repeat": {"times": "forever", "do": [{"say": "Busy."}, {"call": "list_items"}]}}],
}
#: Between them they offer each channel and use each policy that a preset uses.
REACTING = ("silence", "gate", "validated_finish", "keyword", "typed_output", "infinite_nudge")


def turned(lines: list[Any], by: int) -> list[Any]:
    return lines[by % len(lines) :] + lines[: by % len(lines)]


@pytest.mark.long
@pytest.mark.parametrize("move", MOVES)
def test_moves_are_the_same_over_every_line(server: Server, move: str) -> None:
    model = [{"call": "list_items"}, *MOVES[move], {"work": "rest"}, {"say": "Done.", "claim": "done"}]
    loaded = scenario(model, limits={"turns": 14})
    ran = 0
    for place, line in enumerate(turned([*LINES, *HELD], len(move))):
        # Three lines that can say it, each with another strategy, and others for each move.
        strategy = PRESETS[REACTING[(place + len(move)) % len(REACTING)]].strategy
        if ran < 3:
            ran += compare(server, loaded, strategy, line, Arena(loaded, strategy.offers))
    assert ran


@pytest.mark.parametrize("line", [*LINES, *HELD], ids=str)
def test_words_before_the_first_turn(server: Server, line: tuple[Dialect, bool, bool]) -> None:
    loaded = scenario(
        [
            {"user": {"text": "Please go on with it.", "when": "between_turns"}},
            {"work": "rest"},
            {"say": "Done.", "claim": "done"},
        ]
    )
    strategy = PRESETS["acceptance"].strategy
    assert compare(server, loaded, strategy, line, Arena(loaded, strategy.offers))


@pytest.mark.parametrize("line", [*LINES, *HELD], ids=str)
def test_decisions_about_calls(server: Server, line: tuple[Dialect, bool, bool]) -> None:
    loaded = scenario(
        [
            {"call": "list_items"},
            {"work": "rest", "parallel": True},
            {"approve": {"allow": ["users"], "refuse": ["orders"], "change": {"invoices": "users"}}},
            {"say": "As far as I may.", "claim": "partial"},
        ],
        world={"gated": ["users", "orders", "invoices"]},
    )
    strategy = PRESETS["acceptance"].strategy
    assert compare(server, loaded, strategy, line, Arena(loaded, strategy.offers))


@pytest.mark.parametrize("line", [*LINES, *HELD], ids=str)
def test_keys_of_the_loop_s_own(server: Server, line: tuple[Dialect, bool, bool]) -> None:
    again: dict[str, Any] = {"work": ["rent"], "again": True}
    ledger = {"kind": "ledger", "items": ["rent", "power"]}
    twice: dict[str, Any] = {"work": ["rent", "power", "rent"], "parallel": True}
    moves = [
        {"call": "list_payments"},
        twice,
        {"undo": ["rent"]},
        again,
        again,
        {"say": "So.", "claim": "done"},
    ]
    loaded = scenario(moves, world=ledger)
    strategy = PRESETS["gate"].strategy
    arena = Arena(loaded, strategy.offers)
    assert run_episode(arena, strategy, 0).outcome == "done/complete"
    assert compare(server, loaded, strategy, line, arena)


@pytest.mark.parametrize(
    "limits",
    [{"calls": 3}, {"turns": 3}, {"turns": 3, "per": "query"}, {"tokens": 150, "per": "query"}],
    ids=str,
)
def test_limits_and_later_questions(server: Server, limits: dict[str, Any]) -> None:
    asks = {"user": {"text": "orders and invoices too", "asks": ["orders", "invoices"]}}
    done = {"say": "Done.", "claim": "done"}
    moves = [{"call": "list_items"}, {"work": ["users"]}, done, asks, {"work": "rest"}, done]
    loaded = scenario(moves, limits=limits)
    for place, name in enumerate(("silence", "gate", "checklist")):
        strategy = PRESETS[name].strategy
        assert compare(server, loaded, strategy, LINES[2 * place], Arena(loaded, strategy.offers))


@pytest.mark.parametrize("line", [*LINES, *HELD], ids=str)
def test_the_design_s_own_example(server: Server, line: tuple[Dialect, bool, bool]) -> None:
    loaded = next(found for found in LIBRARY if found.name == "migration-reports-at-four-of-six")
    strategy = PRESETS["gate"].strategy
    assert compare(server, loaded, strategy, line, Arena(loaded, strategy.offers))


@pytest.mark.parametrize("place", range(12))
def test_a_sample_of_the_library(server: Server, place: int) -> None:
    """Each test takes other scenarios, presets and lines."""
    quick = [loaded for loaded in LIBRARY if loaded.world.kind in ("items", "inbox", "ledger")]
    everything = [(loaded, name) for loaded in quick for name in PRESETS]
    lines = [*LINES, *HELD]
    step = len(everything) // 24
    for number in range(place * step, len(everything), 12 * step):
        loaded, name = everything[number]
        strategy = PRESETS[name].strategy
        compare(server, loaded, strategy, lines[number % len(lines)], Arena(loaded, strategy.offers))


@pytest.mark.slow
@pytest.mark.parametrize("loaded", LIBRARY, ids=lambda loaded: loaded.name)
def test_the_whole_library_by_every_preset(server: Server, loaded: Scenario) -> None:
    arenas: dict[Offered, Arena] = {}
    for name in PRESETS:
        strategy = PRESETS[name].strategy
        arena = arenas.setdefault(strategy.offers, Arena(loaded, strategy.offers))
        for line in LINES:
            compare(server, loaded, strategy, line, arena)
