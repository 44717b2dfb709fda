"""What each dialect cannot say, and that it says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalkit.core.tasks import Offered
from evalkit.scenarios.suites import load_suites
from evalkit.strategies.presets import all_offered
from evalkit.wire.__main__ import page_text, rules_text, table_text
from evalkit.wire.dialects import Dialect
from evalkit.wire.expressible import has_background, not_expressible, table
from tests.helpers import scenario

#: A script, and the part of the reason in each dialect that cannot say it (streamed, whole); None: it can.
CASES: list[tuple[Any, dict[str, tuple[str | None, str | None]]]] = [
    ([{"say": "Done."}], {}),
    ([{"work": 2, "parallel": True}], {}),
    ([{"empty": True}], {}),
    (
        [{"pause": {"text": "So"}}],
        {"responses": ("no label 'pause_turn'",) * 2, "chat": ("no label 'pause_turn'",) * 2},
    ),
    ([{"think": "hm"}], {"chat": ("no thinking",) * 2}),
    ([{"say": "a", "phase": "commentary"}], {"anthropic": ("no message phase",) * 2, "chat": ("phase",) * 2}),
    (
        [{"refuse": {"category": "cyber"}}],
        {"responses": ("no refusal category",) * 2, "chat": ("no refusal category",) * 2},
    ),
    ([{"refuse": {}}], {}),
    ([{"truncate": "call"}], {"anthropic": (None, "a call cut in its JSON")}),
    ([{"truncate": "call", "parses": True}], {}),
    (
        [{"truncate": "text", "limit": "context_window"}],
        {"responses": ("'context_window'",) * 2, "chat": ("'context_window'",) * 2},
    ),
    ([{"say": "a", "stop": "tool_use"}], {"responses": ("no label beside the output",) * 2}),
    ([{"work": 1, "stop": "end_turn"}], {"responses": ("no label beside the output",) * 2}),
    ([{"say": "a", "stop": "brand_new"}], {}),
    ([{"say": "a", "stop": None}], {}),
    ([{"say": "a", "stop": "length"}], {"chat": ("no label 'length'",) * 2}),
    (
        [{"say": "a", "stop": "failed"}],
        {"anthropic": ("no label 'failed'",) * 2, "chat": ("no label 'failed'",) * 2},
    ),
    (
        [{"background": {"polls": 1}}, {"say": "a"}],
        {"anthropic": ("no background",) * 2, "chat": ("no background",) * 2},
    ),
    (
        [{"raw": {"content": [{"server_call": "web_search", "result": "x"}]}}],
        {"chat": ("no server tools",) * 2},
    ),
]


@pytest.mark.parametrize(("model", "reasons"), CASES)
@pytest.mark.parametrize("dialect", ["anthropic", "responses", "chat"])
def test_reasons(model: Any, reasons: dict[str, tuple[str | None, str | None]], dialect: Dialect) -> None:
    for streamed, part in zip((True, False), reasons.get(dialect, (None, None)), strict=True):
        reason = not_expressible(scenario(model), dialect, streamed=streamed, offered=[Offered()])
        if part is None:
            assert reason is None
        else:
            assert reason is not None
            assert part in reason
            assert " at 0: " in reason


def test_it_depends_on_the_channels() -> None:
    model = [{"say": "Done.", "claim": "done", "stop": "tool_use"}]
    finish = not_expressible(scenario(model), "responses", streamed=True, offered=[Offered(finish=True)])
    words = not_expressible(scenario(model), "responses", streamed=True, offered=[Offered()])
    assert (finish, words is None) == (None, False)


def test_background_is_seen_within_loops() -> None:
    model = [{"repeat": {"times": 2, "do": [{"background": {"polls": 1}}, {"say": "a"}]}}]
    assert has_background(scenario(model))
    assert not has_background(scenario([{"say": "a"}]))


@pytest.mark.long
def test_the_table_of_the_library_names_known_scenarios_and_reasons() -> None:
    library = load_suites()[::6]
    rows = table(library, all_offered())
    names = {found.name for found in library}
    assert rows
    assert all(row.scenario in names and row.reason and row.modes for row in rows)
    sayable = len(names) - len(
        {row.scenario for row in rows if row.dialect == "anthropic" and len(row.modes) == 2}
    )
    assert sayable > 0.5 * len(names)


def test_tables_are_markdown() -> None:
    rows = table([scenario([{"truncate": "call"}])], [Offered()])
    (line,) = table_text(rows).splitlines()[2:]
    assert line.startswith("| a-scenario | anthropic | whole | truncate at 0: Anthropic Messages, not ")
    assert "| all | pause_changed | documented |" in rules_text()


@pytest.mark.long
def test_the_page_of_the_documentation_is_current() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "wire.md"
    assert page.read_text() == page_text() + "\n"
