"""What fuzzing begins with: sound input of each kind, and input that was made to hurt."""

from __future__ import annotations

import gzip
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from evalkit.harnesses.episode_record import Exchange, Kept, Wrong
from evalkit.models.spending import PRICES
from evalkit.reports.ci.baseline import baseline_of, baseline_text
from evalkit.runs.run import run_plan
from evalkit.runs.store import FILE, Store
from tests.helpers import document
from tests.hostile import RAW, written
from tests.runs.test_run import plan as run_of
from tests.transcripts import files
from tests.transcripts.test_foreign import CASES as FOREIGN

ROOT = Path(__file__).resolve().parents[2]
DEEP = "[" * 20_000
LONG = "9" * 6_000


def bomb() -> str:
    """YAML whose aliases stand for 10¹² values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(lines)


_YAML: list[str] = [
    *RAW,
    DEEP,
    "{" * 20_000,
    "- " * 5_000,
    "a: " * 500,
    bomb(),
    "&a [*a]",
    "a: &a {b: *a}",
    "<<: {a: 1}\n<<: {b: 2}",
    "!!python/object/apply:os.system ['touch escaped']",
    "!!python/name:os.system",
    "!!python/object/new:type {}",
    "? [a]\n: b",
    "\ufeffscenario: x",
    "%YAML 9.9\n---\nx: 1",
    "--- " * 300,
    "a: 1\na: 2",
    "scenario: x\nworld: {kind: repo, items: ['../../x']}",
    f"scenario: {LONG}\nlimits: {{turns: {LONG}}}",
]
_SCENARIO = written(document([{"call": "list_items"}, {"work": "rest"}, {"say": "Done.", "claim": "done"}]))


def _scenarios() -> list[bytes]:
    shipped = sorted((ROOT / "scenarios").rglob("*.yaml"), key=lambda file: file.stat().st_size)[:12]
    spoilt = [
        _SCENARIO.replace(old, new)
        for old, new in (
            ("work: rest", f"work: {LONG}"),
            ("work: rest", f"repeat: {{times: {10**18}, do: [{{work: rest}}]}}"),
            ("- users", "- ../../escaped"),
            ("- users", "- '\u202e\u2066 x'"),
            ("kind: items", "kind: files"),
            ("claim: done", f"claim: {DEEP}"),
        )
    ]
    return [*(file.read_bytes() for file in shipped), *(text.encode() for text in [*spoilt, *_YAML])]


def _strategies() -> list[bytes]:
    sound = [
        "done_when: silence",
        "done_when: {all: [acceptance, {verifier: {sees: evidence}}, checklist]}\nnudges: 3\nthen: escalate",
        "done_when: {any: [{keyword: {word: DONE}}, {not: silence}]}\nmax_turns: 5\npause: stop",
        "done_when: {typed_output: {schema: {type: object, properties: {a: {type: string}}}}}",
    ]
    return [text.encode() for text in [*sound, *_YAML, "done_when: {all: " * 300]]


def _cassettes() -> list[bytes]:
    shipped = sorted((ROOT / "cassettes").rglob("*.json"), key=lambda file: file.stat().st_size)[:8]
    odd = [
        '{"version": 1, "interactions": [{}]}',
        '{"version": 1, "interactions": [{"request": {"method": 1, "uri": 2, "body": 3, "headers": 4}, '
        '"response": {}}]}',
        '{"version": 99, "interactions": 7}',
        DEEP,
        f'{{"version": {LONG}}}',
    ]
    return [*(file.read_bytes() for file in shipped), *(text.encode() for text in odd)]


def _transcripts() -> list[bytes]:
    values: list[Any] = [
        {"messages": files.chat()},
        files.anthropic(),
        files.responses(),
        files.response_objects(),
        [files.tau_bench(1)],
        files.tau2(),
        files.inspect_document(files.inspect_sample()),
        files.swe_agent(),
        files.mini_swe_agent(),
        files.atif(),
        files.claude_code(),
        {"data": files.agents_trace()},
        files.otel(),
        files.group_chat(),
        *(case[2] for case in FOREIGN),
    ]
    with tempfile.TemporaryDirectory() as folder:
        archive = files.write_eval(Path(folder) / "a.eval", files.inspect_sample(1)).read_bytes()
    lines = "\n".join(json.dumps(record) for record in files.claude_code())
    return [*(json.dumps(value).encode() for value in values), archive, lines.encode(), DEEP.encode()]


def _requests() -> list[bytes]:
    call = {"type": "function", "id": "c1", "function": {"name": "do_item", "arguments": "{}"}}
    bodies: list[Any] = [
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]},
        {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "go"}]},
        {"model": "m", "input": "go", "background": True},
        {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "go"}]}]},
        {"model": "m", "input": "go", "previous_response_id": "resp_../../x", "store": False},
        {"model": "m", "messages": [{"role": "assistant", "tool_calls": [call]}], "tools": [{"x": 1}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]},
        {"item": "users"},
        {"tool_choice": {"type": "tool", "name": []}, "tools": 7, "messages": {}},
    ]
    odd = [DEEP, "", "null", "7", '"x"', "[]", f'{{"max_tokens": {LONG}}}', '{"model": "\\ud800"}', "\xff"]
    return [*(json.dumps(body).encode() for body in bodies), *(text.encode("latin-1") for text in odd)]


def _endings() -> list[bytes]:
    texts = [
        '{"ending": "done"}',
        '{"ending": "partial", "report": {"outstanding": ["a"], "skipped": ["b"], "reason": "c"}}',
        '{"native": "error_max_turns", "error": "x"}',
        '{"ending": ["done"]}',
        '{"ending": {"a": 1}, "native": 7}',
        '{"native": "a\\nb\\u2028c", "error": {"x": [1]}}',
        '{"ending": "done", "report": {"outstanding": ["\\ud800"]}}',
        '{"ending": NaN}',
        "[1]",
        DEEP,
        LONG,
        "",
        "\x00",
    ]
    return [text.encode() for text in texts]


def _recipes() -> list[bytes]:
    recipe = msgspec.json.encode(run_of(1).recipe)
    text = recipe.decode()
    changed = [
        text.replace('"seeds":1', f'"seeds":{10**12}'),
        text.replace('"seeds":1', '"seeds":-1'),
        text.replace('"s.yaml"', '"../../../../etc/passwd"'),
        text.replace('"gate"', '"os:system"'),
        text.replace('"gate"', '"../../x.yaml"'),
        text.replace('"loop"', '"worker:../x"'),
        text.replace('"loop"', '"/bin/true"'),
        text.replace('"items"', '"repo"'),
        text.replace('"scripted"', '"nobody:x"'),
        text.replace("random", "\\ud800"),
        '{"evalkit": "99"}',
        DEEP,
        "",
    ]
    return [recipe, *(change.encode() for change in changed)]


def _run_folders() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder) / "run", run_of(2).recipe)
        run_plan(run_of(2), store, 1)
        store.base.execute("pragma journal_mode = delete")
        store.close()
        whole = (Path(folder) / "run" / FILE).read_bytes()
    return [whole, whole[:5_000], whole[:100] + b"\xff" * 4_000 + whole[4_100:], b"", b"SQLite format 3\x00"]


def _traces() -> list[bytes]:
    blocks = [{"kind": "text", "text": "On it."}, {"kind": "call", "text": "do_item {}"}]
    results = [{"text": "done\x1b[31m", "error": False}]
    exchange = Exchange(1, "tool_use", "odd\x07", "none", blocks, results, "nudged", "Go \u202eon.", 1, True)
    kept = Kept(
        "mine",
        0,
        [exchange],
        "printed\n\x1b]0;x\x07",
        "exit:0",
        1.5,
        {"side": 2},
        Wrong(1, False, "done", "x"),
    )
    sound = msgspec.json.encode(kept)
    text = sound.decode()
    changed = [
        text.replace('"kind"', '"kin"'),
        text.replace('"error":false', '"e":1'),
        text.replace('"settled":1', f'"settled":{10**12}'),
        text.replace('"seconds":1.5', '"seconds":1e308'),
        DEEP,
        "{}",
        "",
    ]
    packed = gzip.compress(sound)
    return [sound, packed, packed[:40], gzip.compress(b"0" * 1_000_000), *(one.encode() for one in changed)]


#: TOML that was made to hurt.
_TOML = (
    "x = " + DEEP,
    f"x = {LONG}",
    "[a]\n[a]",
    "a.b.c = 1\na = 1",
    "x = nan",
    "x = 1979-05-27",
    "\x00",
    "",
)


def _tomls(sound: str, *changes: tuple[str, str]) -> list[bytes]:
    """A sound document, each of its changes, and what hurts on top of it."""
    texts = [sound, *(sound.replace(was, now) for was, now in changes), *(f"{sound}\n{bad}" for bad in _TOML)]
    return [text.encode("utf-8", "surrogatepass") for text in (*texts, *_TOML)]


def _manifests() -> list[bytes]:
    shipped = [file.read_bytes() for file in sorted((ROOT / "harnesses").glob("*/harness.toml"))]
    sound = shipped[0].decode()
    changes = (("run", "runs"), ('"agent.py"', '"../../x"'), ("[setup]", "[[setup]]"), ("true", "1"))
    return [*shipped, *_tomls(sound, *changes)]


def _gates() -> list[bytes]:
    sound = 'strategies = ["silence"]\npass_share = 0.9\n[limits]\ncorrect = {all = 0.5, full = 0.9}\n'
    changes = (("0.9", "9e999"), ("0.9", "-1"), ("all", "nobody"), ("{all = 0.5, full = 0.9}", "[1]"))
    inside = ("strategies", "[tool.evalkit.gate]\nstrategies"), ("strategies", "tool = 1\nstrategies")
    more = ("strategies", "tool.evalkit = 1\nstrategies"), ("strategies", "gate = []\nstrategies")
    return _tomls(sound, *changes, *inside, *more)


def _baselines() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        plan = run_of(2)
        store = Store.create(Path(folder) / "run", plan.recipe)
        run_plan(plan, store, 1)
        sound = baseline_text(baseline_of(store))
        store.close()
    changed = [sound.replace("evalkit.baseline/", "evalkit.baseline/9"), sound.replace("1", "-1")]
    deep = '{"schema": ' * 20_000
    return [text.encode() for text in (sound, *changed, sound[:200], deep, DEEP, "[]", "{}", "")]


def _prices() -> list[bytes]:
    changes = (("15.0", "nan"), ("15.0", "-1"), ("[prices]", "[price]"), ("input", "inputs"))
    return _tomls(PRICES.read_text(encoding="utf-8"), *changes)


def _stops() -> list[bytes]:
    told = '{"session_id": "s", "cwd": "/", "hook_event_name": "Stop", "stop_hook_active": true}'
    lists = (
        "- [ ] open\n- [x] done\n1. [X] more",
        '[{"item": "a", "done": true}, {"content": "b", "status": "completed"}]',
        '{"todos": [{"text": "a"}]}',
        '[{"item": ""}]',
        '{"type": "tool_use"}\n{"type": "user", "text": "go on"}',
    )
    return [text.encode() for text in (told, told[:30], *lists, DEEP, "- [" * 5_000, LONG, "null", "")]


_MAKERS = {
    "scenario": _scenarios,
    "strategy": _strategies,
    "cassette": _cassettes,
    "transcript": _transcripts,
    "request": _requests,
    "ending": _endings,
    "recipe": _recipes,
    "run_folder": _run_folders,
    "trace": _traces,
    "manifest": _manifests,
    "gate": _gates,
    "baseline": _baselines,
    "prices": _prices,
    "stop": _stops,
}


@cache
def seeds(target: str) -> tuple[bytes, ...]:
    """The corpus of a target."""
    return tuple(_MAKERS[target]())
