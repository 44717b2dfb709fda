"""A program whose manifest names no dialect is not taken for one: its first request tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.harnesses.manifest import Heard
from evalkit.runs.store import Store
from evalkit.scoring.foreign_episode import hear, why_not_expressible
from tests.harnesses.episodes import program, scenario

#: A harness of the standard library alone that speaks Responses, streamed or not, or Chat Completions.
SPEAKS = """
import json, os, sys, urllib.request
base, body = os.environ["OPENAI_BASE_URL"], {body}
urllib.request.urlopen(base + "{path}", json.dumps(body).encode()).read()
"""
RESPONSES = SPEAKS.format(path="/responses", body='{"model": "m", "input": "go"}')
STREAMED = SPEAKS.format(path="/responses", body='{"model": "m", "input": "go", "stream": True}')
CHAT = SPEAKS.format(
    path="/chat/completions", body='{"model": "m", "messages": [{"role": "user", "content": "go"}]}'
)
MESSAGES = """
import json, os, urllib.request
base = os.environ["ANTHROPIC_BASE_URL"]
body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
urllib.request.urlopen(base + "/messages", json.dumps(body).encode()).read()
"""
CHAPTERS = """
scenario: two-chapters
family: contradictory_stop
task: {prompt: Proof-read every chapter., done_when: Every chapter is proof-read.}
world: {kind: items, items: [ch-one, ch-two]}
model:
  - call: list_items
  - {work: 1, stop: end_turn}
  - work: rest
  - {say: "Both are read.", claim: done}
"""


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        (RESPONSES, Heard("responses", False)),
        (STREAMED, Heard("responses", True)),
        (CHAT, Heard("chat", False)),
        (MESSAGES, Heard("anthropic", False)),
        ("", Heard("anthropic", False, True)),
    ],
    ids=["responses", "streamed", "chat", "messages without /v1", "no request"],
)
def test_what_is_heard(tmp_path: Path, text: str, heard: Heard) -> None:
    assert hear(program(tmp_path, text)).heard == heard


def test_what_is_declared_is_not_asked_for(tmp_path: Path) -> None:
    declared = program(tmp_path, "raise SystemExit('never started')", dialect="chat", resident=False)
    assert hear(declared) is declared


def test_what_the_heard_dialect_cannot_say_is_not_expressible(tmp_path: Path) -> None:
    """A label that contradicts the output: Responses has none, so no status is invented."""
    known = hear(program(tmp_path, RESPONSES))
    reason = why_not_expressible(scenario(CHAPTERS), known)
    assert reason is not None
    assert "no label beside the output" in reason
    assert why_not_expressible(scenario(CHAPTERS), hear(program(tmp_path, MESSAGES))) is None


def test_a_run_says_it_keeps_it_and_leaves_out_what_cannot_be_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program(tmp_path, RESPONSES)
    (tmp_path / "two.yaml").write_text(CHAPTERS)
    (tmp_path / "plain.yaml").write_text(
        CHAPTERS.replace("two-chapters", "plain").replace(", stop: end_turn", "")
    )
    words = ["run", "two.yaml", "plain.yaml", "--harness", "agent.py", "--out", "out", "--no-charts"]
    said = CliRunner().invoke(main, words)
    assert said.exit_code == 0, said.output
    assert "agent.py speaks OpenAI Responses, as its first request tells" in said.output
    store = Store.open(tmp_path / "out", write=False)
    assert store.recipe.heard == {"agent.py": Heard("responses", False)}
    assert list(store.recipe.not_expressible) == ["two-chapters × agent.py"]
    store.close()
