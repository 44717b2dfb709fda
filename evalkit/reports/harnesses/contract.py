"""A harness's card as a test file of its own: the same reason, bounded steps, the budget.

Asked for in microsoft/autogen#7275: deterministic contract tests of termination.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from evalkit.harnesses.manifest import Harness
from evalkit.scoring.harness_card import Card, Sight

Runner: TypeAlias = Literal["pytest", "node"]
RUNNERS: tuple[Runner, ...] = ("pytest", "node")

_SAID = """How {name} ends: written by `evalkit scenarios contract` from its card (evalkit {evalkit}).

Each scene is a small task with a scripted model, played twice. What stands here was seen when the file was
written: where a test fails, the harness has changed, for the worse or for the better. `evalkit harnesses run
{name} SCENE` shows a scene turn by turn. Takes about a minute; needs evalkit with the extra `harness`."""

_PYTEST = '''"""{said}
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = {harness}
#: The folder in which that name means it.
HERE = Path(__file__).resolve().parent / {here}
REASON = ("ending", "native", "truth", "label", "then", "ran_cut_off")
STEPS = ("turns", "answers", "nudges")
BUDGET = ("tokens", "over_limit")
{notes}CONTRACT = {{
{contract}
}}


@pytest.fixture(scope="module")
def plays():
    """What each scene shows, in two plays."""
    command = [sys.executable, "-m", "evalkit", "harnesses", "card", HARNESS, "--json"]
    done = [subprocess.run(command, cwd=HERE, capture_output=True, text=True) for _ in range(2)]
    assert not any(play.returncode for play in done), done[0].stderr + done[1].stderr
    return [json.loads(play.stdout)["sights"] for play in done]


def seen(plays, scene):
    assert scene in plays[0], f"{{scene}} is not played any more: its cap of turns is gone"
    return plays[0][scene]


@pytest.mark.parametrize("scene", CONTRACT)
def test_ends_for_the_same_reason(plays, scene):
    now, held = seen(plays, scene), CONTRACT[scene]
    assert {{name: now.get(name) for name in REASON}} == {{name: held.get(name) for name in REASON}}


@pytest.mark.parametrize("scene", CONTRACT)
def test_takes_no_more_steps(plays, scene):
    now, held = seen(plays, scene), CONTRACT[scene]
    assert {{name: now.get(name, 0) for name in STEPS if now.get(name, 0) > held.get(name, 0)}} == {{}}


@pytest.mark.parametrize("scene", CONTRACT)
def test_spends_no_more(plays, scene):
    now, held = seen(plays, scene), CONTRACT[scene]
    assert {{name: now.get(name, 0) for name in BUDGET if now.get(name, 0) > held.get(name, 0)}} == {{}}


@pytest.mark.parametrize("scene", CONTRACT)
def test_does_the_same_again(plays, scene):
    assert seen(plays, scene) == plays[1].get(scene)
'''

_NODE = """/* {said}
 * The command is `evalkit`, or what the variable EVALKIT names.
 */
import assert from "node:assert/strict";
import {{ spawnSync }} from "node:child_process";
import {{ test }} from "node:test";
import {{ fileURLToPath }} from "node:url";

const HARNESS = {harness};
// The folder in which that name means it.
const HERE = fileURLToPath(new URL({here}, import.meta.url));
const REASON = ["ending", "native", "truth", "label", "then", "ran_cut_off"];
const STEPS = ["turns", "answers", "nudges"];
const BUDGET = ["tokens", "over_limit"];
{notes}const CONTRACT = {{
{contract}
}};

function play() {{
  const words = ["harnesses", "card", HARNESS, "--json"];
  const options = {{ cwd: HERE, encoding: "utf8", maxBuffer: 1 << 26 }};
  const done = spawnSync(process.env.EVALKIT ?? "evalkit", words, options);
  assert.equal(done.status, 0, done.stderr ?? String(done.error));
  return JSON.parse(done.stdout).sights;
}}

const plays = [play(), play()];
const only = (names, sight) => Object.fromEntries(names.map((name) => [name, sight[name]]));
const more = (names, now, held) => names.filter((name) => (now[name] ?? 0) > (held[name] ?? 0));

for (const [scene, held] of Object.entries(CONTRACT)) {{
  const now = plays[0][scene] ?? {{ why: "it is not played any more: its cap of turns is gone" }};
  const shown = JSON.stringify(now);
  test(`${{scene}}: ends for the same reason`, () => assert.deepEqual(only(REASON, now), only(REASON, held)));
  test(`${{scene}}: takes no more steps`, () => assert.deepEqual(more(STEPS, now, held), [], shown));
  test(`${{scene}}: spends no more`, () => assert.deepEqual(more(BUDGET, now, held), [], shown));
  test(`${{scene}}: does the same again`, () => assert.deepEqual(plays[1][scene], plays[0][scene]));
}}
"""


def runner_for(harness: Harness) -> Runner:
    """What tests of a harness's language run with: node:test for Node and TypeScript, else pytest."""
    return "node" if harness.manifest.run[:1] in (("{node}",), ("{typescript}",)) else "pytest"


def contract_text(name: str, card: Card, again: Mapping[str, Sight], runner: Runner, here: str) -> str:
    """A test file that holds a harness to its card.

    ``name`` is what the user called it, ``again`` what a second play showed: what differs cannot be held to.
    ``here`` is the folder in which the name means it, as seen from the file's.
    """
    played = {scene: sight for scene, sight in card.sights.items() if not sight.why}
    held = {scene: sight for scene, sight in played.items() if _stable(sight, again.get(scene))}
    mark = "#" if runner == "pytest" else "//"
    notes = _note(
        mark, "not held to, as two plays differ or time ended them", [s for s in played if s not in held]
    )
    notes += _note(
        mark,
        "evalkit's cap of turns ends these, the harness does not",
        [scene for scene, sight in held.items() if sight.ending == "never"],
    )
    said = _SAID.format(name=name, evalkit=card.evalkit)
    template = _PYTEST
    if runner == "node":
        template, said, here = _NODE, said.replace("\n", "\n * ").replace(" * \n", " *\n"), f"{here}/"
    return template.format(
        said=said,
        harness=json.dumps(name),
        here=json.dumps(here),
        notes=notes,
        contract="\n".join(f"    {_entry(scene, sight, runner)}," for scene, sight in held.items()),
    )


def _stable(sight: Sight, again: Sight | None) -> bool:
    return sight == again and not sight.timed_out


def _note(mark: str, says: str, scenes: list[str]) -> str:
    return f"{mark} {says}: {', '.join(scenes)}\n" if scenes else ""


def _entry(scene: str, sight: Sight, runner: Runner) -> str:
    facts: dict[str, Any] = msgspec.to_builtins(sight)
    inner = ", ".join(f"{json.dumps(name)}: {_literal(value, runner)}" for name, value in facts.items())
    return f"{json.dumps(scene)}: {{{inner}}}"


def _literal(value: object, runner: Runner) -> str:
    return repr(value) if runner == "pytest" and isinstance(value, bool) else json.dumps(value)
