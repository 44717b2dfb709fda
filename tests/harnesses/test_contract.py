"""What a manifest says, and what a harness gets and gives under it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from evalkit.core.turns import Call, make_turn
from evalkit.harnesses.call_names import names_of
from evalkit.harnesses.callables import CallableRunner
from evalkit.harnesses.endings import Finished, ending_of
from evalkit.harnesses.find import SHIPPED, find_harness, shipped
from evalkit.harnesses.manifest import Harness, ManifestError, Rule, parse_manifest, read_manifest
from evalkit.scoring.arena import Arena
from evalkit.scoring.foreign_episode import (
    Contract,
    contract_of,
    run_foreign,
    server_for_harnesses,
    why_not_expressible,
)
from tests.harnesses.episodes import LOOP, played, program, scenario

BASE = {"name": "x", "summary": "", "run": ["{python}", "agent.py"]}


def harness(**fields: object) -> Harness:
    return Harness(parse_manifest({**BASE, **fields}, "harness.toml"), Path())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"run": []}, "run: is empty"),
        ({"name": "a b"}, "must be a word"),
        ({"time_limit_s": 0}, "must be above 0, got 0"),
        ({"dialect": "grpc"}, "dialect: expected one of anthropic, chat, responses; got 'grpc'"),
        ({"colour": "red"}, "colour: unknown field; allowed: name, summary, run"),
        ({"setup": {"python": ["openai"]}}, "'openai' has no version; pin it with =="),
        ({"setup": {"node": {"ai": "^7"}}}, "ai '^7' is no exact version"),
        (
            {"endings": [{"native": "x", "ending": "finished", "why": ""}]},
            "endings[0].ending: expected one of done, error, escalated, limit, partial; got 'finished'",
        ),
        ({"endings": [{"native": "x", "ending": "done"}]}, "endings[0]: field 'why' is missing"),
        ({"dialct": "chat"}, "dialct: unknown field (did you mean 'dialect'?); allowed: name"),
        ({"events": {"user": ["endd"]}}, "events.user[0]: expected one of between_turns, ended, in_tool"),
        ({"setup": {"python": "openai==1"}}, "setup.python: expected a list, got text"),
        (
            {"variants": {"v": {"summary": "", "ofers": {}}}},
            "variants.v.ofers: unknown field (did you mean 'offers'?)",
        ),
        (
            {"variants": {"v": {"summary": "", "events": {"crash": 1}}}},
            "variants.v.events.crash: expected true or",
        ),
        (
            {"variants": {"v": {"summary": "", "events": {"compact": "x"}}}},
            "variants.v.events.compact: 'x'; expected",
        ),
        (
            {"run": ["{pyton}", "a.py"]},
            "run: unknown {pyton} (did you mean '{python}'?); allowed: {python}, {node}",
        ),
        (
            {"variants": {"v": {"summary": "", "run": ["{nod}"]}}},
            "variants.v.run: unknown {nod} (did you mean",
        ),
        (
            {"offers": {"finish": {"tool": "submit", "arguments": {"answer": "so: {sumary}"}}}},
            "offers.finish.arguments.answer: unknown {sumary} (did you mean '{summary}'?); allowed",
        ),
    ],
)
def test_a_wrong_manifest_names_file_and_field(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ManifestError, match=r"^harness\.toml: ") as caught:
        harness(**fields)
    assert message in str(caught.value)


def test_a_variant_stands_in_the_place_of_the_manifests() -> None:
    base = harness(
        offers={"keyword": "TERMINATE"},
        endings=[{"native": "*", "ending": "done", "why": "w"}],
        env={"A": "1", "B": "1"},
        variants={
            "v": {
                "summary": "other",
                "offers": {"output": True},
                "env": {"B": "2"},
                "endings": [{"native": "x", "ending": "limit", "why": "w"}],
                "run": ["{python}", "other.py"],
                "streamed": True,
                "events": {"crash": True},
                "side": [{"name": "summary", "contains": "c", "kind": "compact"}],
            }
        },
    )
    variant = Harness(base.manifest, base.folder, "v")
    assert (base.name, variant.name, variant.summary) == ("x", "x:v", "other")
    assert (base.offers.offered.keyword, variant.offers.offered.keyword) == ("TERMINATE", None)
    assert [rule.native for rule in variant.rules] == ["x", "*"]
    assert variant.env == {"A": "1", "B": "2"}
    assert (base.run[-1], variant.run) == ("agent.py", ("{python}", "other.py"))
    assert (base.streamed, variant.streamed) == (False, True)
    assert (contract_of(base).events.crash, contract_of(variant).events.crash) == (False, True)
    assert [len(contract_of(each).sides) for each in (base, variant)] == [0, 1]


def test_another_program_of_a_variant_is_run_and_told_apart(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(LOOP)
    base = program(tmp_path, "", variants={"v": {"summary": "", "run": ["{python}", "other.py"]}})
    variant = Harness(base.manifest, base.folder, "v")
    assert played(variant)[0].turns == 3
    before = variant.fingerprint
    (tmp_path / "other.py").write_text(LOOP + "\n")
    assert variant.fingerprint != before


RULES = (
    Rule("*MaxTurns*", "limit", "its cap"),
    Rule("exit:7", "partial", "its own code"),
    Rule("*", "done", "it returned"),
)


@pytest.mark.parametrize(
    ("finished", "kind", "native"),
    [
        (Finished({"ending": "partial", "native": "n"}), "partial", "n"),
        (Finished({"native": "stop"}), "done", "stop"),
        (Finished({"native": "a.MaxTurnsExceeded", "error": "20"}), "limit", "a.MaxTurnsExceeded"),
        (Finished({"native": "a.ApiError", "error": "boom"}), "error", "a.ApiError"),
        (Finished(exit="exit:0"), "done", "exit:0"),
        (Finished(exit="exit:7"), "partial", "exit:7"),
        (Finished(exit="signal:SIGSEGV"), "error", "signal:SIGSEGV"),
        (Finished({"ending": "done"}, problem="time limit", never=True), "never", "time limit"),
        (Finished({"ending": "done"}, problem="printed too much"), "error", "printed too much"),
    ],
)
def test_what_an_ending_means(finished: Finished, kind: str, native: str) -> None:
    ending, _ = ending_of(finished, RULES)
    assert (ending.kind, ending.native) == (kind, native)


def test_a_native_ending_that_no_rule_names_is_an_error_that_says_so() -> None:
    ending, note = ending_of(Finished({"native": "finished"}), ())
    assert (ending.kind, note) == ("error", "no rule of the manifest says what 'finished' means")


def test_calls_behind_a_prefix_and_in_a_finish_tool_of_its_own() -> None:
    names = names_of(
        harness(
            tools={"prefix": "mcp__x__"},
            offers={"finish": {"tool": "submit", "arguments": {"answer": "{summary} ({completed})"}}},
        )
    )
    told = {"items_completed": ["a", "b"], "items_skipped": ["c"], "reason_skipped": "gone"}
    calls = (Call("1", "do_item", '{"item":"a"}'), Call("2", "finish_task", json.dumps(told)))
    turn = names.renamed(make_turn(calls, "tool_use"))
    assert [call.tool for call in turn.calls] == ["mcp__x__do_item", "submit"]
    assert json.loads(turn.calls[1].arguments) == {
        "answer": "Completed: a, b. Skipped: c: gone. (a, b)",
    }
    assert names.inward("mcp__x__do_item") == "do_item"


def test_calls_as_commands_of_a_shell_whole_and_cut_off() -> None:
    names = names_of(
        harness(tools={"shell": {"tool": "bash", "finish": "echo OVER"}}, offers={"finish": True})
    )
    calls = (
        Call("1", "do_item", '{"item":"it\'s"}'),
        Call("2", "do_item", '{"item":"x'),
        Call("3", "finish_task", "{}"),
    )
    whole, cut, finish = names.renamed(make_turn(calls, "tool_use")).calls
    assert {whole.tool, cut.tool, finish.tool} == {"bash"}
    command = json.loads(whole.arguments)["command"]
    assert command == 'evalkit-tool do_item \'{"item":"it\'"\'"\'s"}\''
    assert json.loads(finish.arguments) == {"command": "echo OVER"}
    with pytest.raises(ValueError, match="Unterminated string"):
        json.loads(cut.arguments)


def test_a_shell_command_reaches_the_world(tmp_path: Path) -> None:
    text = LOOP.replace(
        'said = post(os.environ["EVALKIT_TOOLS_URL"] + "/" + call["name"], call["input"])',
        'import subprocess; assert call["name"] == "sh"; '
        'ran = subprocess.run(call["input"]["command"], shell=True, capture_output=True, text=True); '
        'said = {"text": ran.stdout}',
    ).replace('"tools": tools', '"tools": [{"name": "sh", "input_schema": {"type": "object"}}]')
    episode, kept = played(program(tmp_path, text, tools={"shell": {"tool": "sh"}}))
    assert (episode.outcome, episode.turns, episode.orphan_calls) == ("done/reachable", 3, 0), kept.output
    assert kept.exchanges[1].results == [{"text": "parcel-a: done", "error": False}]


def test_what_is_found_by_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("")
    (tmp_path / "agent.mjs").write_text("")
    assert find_harness("agent.py").manifest.run == ("{python}", "agent.py")
    assert find_harness("./agent.mjs").manifest.run == ("{node}", "agent.mjs")
    assert find_harness("my.module:run").manifest.resident
    assert find_harness("pydantic-ai:validator").variant == "validator"
    assert find_harness(str(SHIPPED / "langchain") + ":after_agent").variant == "after_agent"
    with pytest.raises(ManifestError, match="no variant 'x'; variants: validator"):
        find_harness("pydantic-ai:x")
    with pytest.raises(ManifestError, match="names: ag2, "):
        find_harness("nothing")
    (tmp_path / "data.txt").write_text("")
    with pytest.raises(ManifestError, match="is not executable"):
        find_harness("data.txt")


def test_every_shipped_program_is_short_and_every_ending_has_its_reason() -> None:
    harnesses = shipped()
    assert len(harnesses) >= 20
    for name, found in harnesses.items():
        assert read_manifest(found.folder) == found.manifest
        assert all(rule.why for rule in found.rules), name
        for file in found.folder.glob("agent.*"):
            assert len(file.read_text().splitlines()) <= 90, file
        for file in found.folder.glob("life.*"):
            assert len(file.read_text().splitlines()) <= 135, file


def test_a_module_function_runs_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "def run(job):\n"
        "    job.call('list_items', {})\n"
        "    return {'ending': 'escalated', 'report': {'outstanding': job.open_items()}}\n"
    )
    episode, kept = played(find_harness("mine:run"))
    assert (episode.ending, episode.honest_report) == ("escalated", True), kept.output


#: Both send themselves back until nothing is said to be open, do an item, and do so again.
_SENDS_BACK = {
    "back.py": """
from evalkit_harness import serve

def run(job):
    job.call("list_items", {})
    said = []
    for _ in range(2):
        while items := job.still_open():
            said.append(f"{len(items)}")
        job.call("do_item", {"item": job.open_items()[0]})
    return {"ending": "escalated", "native": " ".join(said)}

serve(run)
""",
    "back.mjs": """
const { serve } = await import(process.env.EVALKIT_CLIENT);
await serve(async (job) => {
  await job.call("list_items", {});
  const said = [];
  for (let round = 0; round < 2; round++) {
    for (let items; (items = job.stillOpen()).length; ) said.push(items.length);
    await job.call("do_item", { item: job.openItems()[0] });
  }
  return { ending: "escalated", native: said.join(" ") };
});
""",
}


@pytest.mark.parametrize("name", _SENDS_BACK)
def test_what_is_still_open_is_said_three_times_and_again_when_it_is_less(name: str, tmp_path: Path) -> None:
    if name.endswith("mjs") and shutil.which("node") is None:
        pytest.skip("needs Node")
    (tmp_path / name).write_text(_SENDS_BACK[name])
    episode, kept = played(find_harness(str(tmp_path / name)))
    assert episode.native == "2 2 2 1 1 1", kept.output


def test_a_callable_that_raises_or_hangs_ends_only_its_own_episode() -> None:
    def raises(told: object) -> None:
        raise KeyError("no such thing")

    with server_for_harnesses() as server:
        arena = Arena(scenario(), Contract("x").offered)
        episode, kept = run_foreign(arena, 0, Contract("x"), CallableRunner(raises), server)
        assert (episode.ending, episode.native) == ("error", "KeyError")
        assert "no such thing" in kept.output
        import threading

        release = threading.Event()
        hangs = CallableRunner(lambda told: release.wait(20), seconds=0.1)
        episode, _ = run_foreign(arena, 0, Contract("x"), hangs, server)
        assert episode.ending == "never"
        release.set()


def test_what_a_harness_cannot_express_is_said() -> None:
    paused = """
scenario: paused-once
family: pause_turn
summary: ''
task: {prompt: Do it., done_when: It is done.}
world: {kind: items, items: [one-thing]}
model: [{call: list_items}, {pause: {}}, {work: rest}, {say: Done., claim: done}]
"""
    assert why_not_expressible(scenario(paused), harness()) is None
    reason = why_not_expressible(scenario(paused), harness(dialect="chat"))
    assert reason is not None
    assert "no label 'pause_turn'" in reason


def test_a_call_cut_in_its_json_arrives_empty_and_is_not_to_be_run(tmp_path: Path) -> None:
    """The API sends it so where it does not stream; clients run it, and that is the fault to measure."""
    text = """
scenario: half-a-call
family: truncation
task: {prompt: Seal every jar., done_when: Every jar is sealed.}
world: {kind: items, items: [jar-plum, jar-fig]}
model:
  - call: list_items
  - truncate: {work: jar-plum}
  - work: rest
  - {say: "Both are sealed.", claim: done}
"""
    assert why_not_expressible(scenario(text), harness()) is None
    runs_it = program(tmp_path, LOOP, dialect="anthropic")
    episode, _ = played(runs_it, 20.0, text)
    assert episode.ran_cut_off_call
    assert not episode.correct
