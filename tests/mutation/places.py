"""What is broken, and which quick tests look after it when the scenarios see nothing."""

from __future__ import annotations

from dataclasses import dataclass

_LOOP = (
    "tests/loop/test_loop.py",
    "tests/loop/test_policies.py",
    "tests/strategies/test_giving_up.py",
    "tests/strategies/test_evidence.py",
)
_LOOP_MODULES = (
    "evalkit.loop.transitions",
    "evalkit.loop.decisions",
    "evalkit.loop.policies",
    "evalkit.loop.endings",
    "evalkit.loop.state",
    "evalkit.drivers.in_process",
)
_EVENTS = ("tests/harnesses/test_events.py",)
#: Killed, resumed, and asked over a wire from an earlier turn.
_RESUMED = (
    "tests/worker/test_scripted.py",
    "tests/worker/test_crash_moments.py",
    "tests/wire/test_conversation.py",
    "tests/wire/test_going_back.py",
)
_SCRIPT = (
    "tests/scenarios/test_player.py",
    "tests/scoring/test_episode.py",
    "tests/scenarios/test_language.py",
)
_SCORES = (
    "tests/scoring/test_episode.py",
    "tests/scoring/test_flags.py",
    "tests/scoring/test_odd_cases.py",
    "tests/scoring/test_signals.py",
    "tests/scoring/test_episode_fields.py",
)


@dataclass(frozen=True, order=True)
class Place:
    """Modules of one kind. ``plays`` says that the library's episodes pass through them."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    plays: bool = True


def _statistics(module: str, *tests: str) -> Place:
    files = tuple(f"tests/stats/{test}.py".replace("stats/../", "") for test in tests)
    return Place("statistics", (f"evalkit.stats.{module}",), files, plays=False)


PLACES = (
    Place(
        "player",
        ("evalkit.scenarios.player", "evalkit.scenarios.program", "evalkit.scenarios.emissions"),
        (*_SCRIPT, *_EVENTS, *_RESUMED, "tests/wire/test_broken_calls.py"),
    ),
    Place(
        "stage",
        tuple(
            f"evalkit.stage.{name}" for name in ("stage", "events", "conversation", "child_agents", "tools")
        ),
        (
            "tests/stage/test_stage.py",
            "tests/stage/test_person.py",
            "tests/harnesses/test_compaction.py",
            "tests/harnesses/test_child_agents.py",
            *_EVENTS,
            *_RESUMED,
            *_SCORES,
        ),
    ),
    Place(
        "truth",
        (
            "evalkit.worlds.base",
            "evalkit.worlds.items",
            "evalkit.worlds.inbox",
            "evalkit.worlds.ledger",
            "evalkit.worlds.file_checks",
        ),
        (
            "tests/worlds/test_items.py",
            "tests/worlds/test_ledger.py",
            "tests/worlds/test_inbox.py",
            "tests/worlds/test_contract.py",
            "tests/worlds/test_file_checks.py",
        ),
    ),
    Place(
        "observer",
        ("evalkit.core.trace", "evalkit.core.continuation"),
        ("tests/core/test_traces.py", *_SCORES, *_LOOP),
    ),
    Place(
        "scoring",
        (
            "evalkit.scoring.arena",
            "evalkit.scoring.soundness",
            "evalkit.scoring.episode",
            "evalkit.scoring.episode_fields",
            "evalkit.scoring.ideal",
            "evalkit.scoring.reasons",
            "evalkit.scoring.synopsis",
            "evalkit.scoring.twins",
        ),
        (
            "tests/scoring/test_ideal.py",
            *_SCORES,
            "tests/scoring/test_soundness.py",
            "tests/scoring/test_seed_choices.py",
        ),
    ),
    Place("scoring", ("evalkit.scoring.seed_choices",), ("tests/scoring/test_seed_choices.py",)),
    _statistics("intervals", "test_intervals", "test_distributions"),
    _statistics("distributions", "test_distributions"),
    _statistics("pass_k", "test_pass_k"),
    _statistics("power", "test_power"),
    _statistics("signflip", "test_signflip"),
    *(
        _statistics(name, "test_made_runs", "test_summary", "test_pass_k", "test_turns")
        for name in ("causes", "pilot_variance", "scenario_results", "summary", "tally", "turns", "twins")
    ),
    *(
        _statistics(name, "test_made_runs", "../reports/test_compare", "../reports/test_gate")
        for name in ("strategy_comparison", "ranking", "run_comparison")
    ),
    Place("gate", ("evalkit.reports.ci.gate",), ("tests/reports/test_gate.py",), plays=False),
    Place("loop", _LOOP_MODULES, (*_LOOP, *_EVENTS)),
)
