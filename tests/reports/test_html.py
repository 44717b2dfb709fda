"""The page: what stands in it, what is escaped, how large it is, where transcripts go."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from evalkit.core.tasks import Offered
from evalkit.harnesses.episode_record import Exchange, Kept
from evalkit.media.medium import Medium
from evalkit.media.recordings import note_recording
from evalkit.reports.page import html
from evalkit.reports.page.cases import cases, headline_contenders, telling_first
from evalkit.reports.page.html import write_page
from evalkit.reports.page.scenes import LONGEST, scenes, wanted_scenes
from evalkit.runs.foreign_records import keep_trace
from evalkit.runs.plan import Contender, Plan, make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import Store, void_row
from evalkit.scenarios.loader import load_text
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode_fields import MARKS
from evalkit.stats.severity import failures, worst
from evalkit.stats.summary import summarize
from evalkit.strategies.presets import PRESETS
from evalkit.wire.episode import WireEpisode
from evalkit.wire.server import Server
from tests.helpers import document
from tests.made_runs import FALSE_DONE, entry, grid, made_run, recipe, row

NASTY = '</script><script>alert("x")</script><b>&'


def planned(documents: list[dict[str, Any]], strategies: tuple[str, ...], seeds: int = 1) -> Plan:
    text = "\n---\n".join(yaml.safe_dump(one, sort_keys=False) for one in documents)
    return make_plan(load_text(text, "made.yaml"), {"made.yaml": text}, strategies, seeds, None)


def played(folder: Path, plan: Plan) -> Store:
    store = Store.create(folder, plan.recipe)
    run_plan(plan, store, 1)
    return store


def early(name: str, say: str = "Some of it is done; going on.") -> dict[str, Any]:
    model = [{"call": "list_items"}, {"work": 1}, {"say": say, "claim": "partial"}, {"work": "rest"}]
    return document([*model, {"say": "Done.", "claim": "done"}], scenario=name)


class Page(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = file.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script":
            self.scripts[-1] += data

    def data(self, place: int) -> Any:
        return json.loads(self.scripts[place])


def page_of(store: Store, **options: Any) -> Page:
    return Page(write_page(store, summarize(store), [], **options))


def test_nothing_of_a_run_is_markup(tmp_path: Path) -> None:
    plan = planned([early("nasty", NASTY)], ("silence", "gate"))
    (written,) = plan.recipe.entries
    nasty = replace(plan.recipe, entries=(replace(written, family=NASTY),))
    page = page_of(played(tmp_path, Plan(nasty, plan.scenarios)))
    assert len(page.scripts) == 3
    assert "alert(" not in page.scripts[2]
    assert 'alert("x")' not in re.sub(r"<script.*?</script>", "", page.text, flags=re.DOTALL)
    (scene,) = page.data(1).values()
    assert any(NASTY in text for turn in scene["turns"] for _, text in turn[3])
    assert page.data(0)["families"] == [NASTY]


def test_nothing_is_fetched(tmp_path: Path) -> None:
    page = page_of(played(tmp_path, planned([early("a")], ("silence",))))
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed")
        for name in ("src", "href"):
            assert not re.match(r"(\w+:)?//", attributes.get(name) or "")
    policy = next(
        a for tag, a in page.tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    assert (policy["content"] or "").startswith("default-src 'none'")


def test_every_failing_episode_is_in_a_case(tmp_path: Path) -> None:
    store = grid(tmp_path, [[[1, 0, 0], [0, 0, 0]], [[1, 1, 1], [1, 0, 1]]], strategies=["s", "t"])
    found = list(cases(store, headline_contenders(store)))
    (failing,) = next(store.rows("select count(*) from episode where not correct"))
    assert sum(case.episodes for case in found) == failing == 6
    assert [(case.scenario, case.contender, case.seeds, case.episodes) for case in found] == [
        (0, 0, (1, 2), 2),
        (0, 1, (0, 1, 2), 3),
        (1, 1, (1,), 1),
    ]
    flags = {MARKS[place] for place in range(len(MARKS)) if found[0].flags & (1 << place)}
    assert flags == {"premature_stop", "false_done"}


def test_the_same_moves_at_other_turns_are_one_case(tmp_path: Path) -> None:
    fallen = [
        {**FALSE_DONE, "causes": f"say (claim done), turn {4 + seed}", "turns": 9 - seed} for seed in (0, 1)
    ]
    rows = [row(seed, 0, 0, seed, **values) for seed, values in enumerate(fallen)]
    (case,) = cases(made_run(tmp_path, recipe([entry("a")], ["s"], seeds=2), rows), {0})
    assert (case.seeds, case.episodes, case.turns, case.cause) == ((0, 1), 2, 8, "say (claim done), turn 4")


def test_of_one_contender_the_worst_comes_first(tmp_path: Path) -> None:
    """Where there are two, what tells them apart does."""
    mild, bad = {"correct": 0, "unclosed": 1}, {"correct": 0, "spoiled": 1, "false_done": 1}
    entries = [entry(name) for name in "abc"]
    rows = [row(0, 0, 0, **mild), row(1, 1, 0, **bad), row(2, 2, 0, **FALSE_DONE)]
    store = made_run(tmp_path / "one", recipe(entries, ["s"]), rows)
    assert [case.scenario for case in telling_first(list(cases(store, {0})), 1)] == [1, 2, 0]
    assert worst(store) == "b/s"
    found, number = failures(store, 2)
    assert ([one.said for one in found], number) == (["spoiled", "false done"], 3)
    both = [row(3, 0, 1), row(4, 1, 1, **bad), row(5, 2, 1, **FALSE_DONE)]
    store = made_run(tmp_path / "two", recipe(entries, ["s", "t"]), [*rows, *both])
    assert [case.scenario for case in telling_first(list(cases(store, {0, 1})), 2)] == [0, 1, 1, 2, 2]


def test_a_dishonest_report_is_a_fault_of_its_own(tmp_path: Path) -> None:
    dishonest = {**FALSE_DONE, "honest_report": 0}
    store = made_run(tmp_path, recipe([entry("a")], ["s"]), [row(0, 0, 0, **dishonest)])
    (case,) = cases(store, {0})
    assert case.flags & (1 << len(MARKS))


def test_every_strategy_is_shown_on_the_seeds_that_failed(tmp_path: Path) -> None:
    choice = {"either": [{"p": 0.5, "do": [{"say": "Half.", "claim": "partial"}]}]}
    model = [{"call": "list_items"}, {"work": 1}, choice, {"work": "rest"}, {"say": "Done.", "claim": "done"}]
    store = played(tmp_path, planned([document(model)], ("silence", "gate"), seeds=6))
    found = list(cases(store, {0, 1}))
    assert found
    assert found[0].contender == 0
    wanted = wanted_scenes(found, 2, 100)
    assert wanted == [(0, (found[0].seeds[0],))]
    (scene,) = scenes(store, wanted, {0, 1})
    seed = found[0].seeds[0]
    assert set(scene.episodes) == {f"0:{seed}", f"1:{seed}"}
    failing, passing = scene.episodes[f"0:{seed}"], scene.episodes[f"1:{seed}"]
    assert (failing["correct"], passing["correct"]) == (False, True)
    assert [step[0] for step in failing["steps"]] == [1, 2, 3]
    last = scene.answers[failing["steps"][-1][2]]
    assert last[0] == "ended done (done_when)"
    assert passing["complete"] == max(step[0] for step in passing["steps"]) - 1


def test_equal_turns_are_kept_once(tmp_path: Path) -> None:
    store = played(tmp_path, planned([early("a")], ("silence", "acceptance", "artifact")))
    (scene,) = scenes(store, [(0, (0,))], {0, 1, 2})
    steps = [step for episode in scene.episodes.values() for step in episode["steps"]]
    assert len(steps) > len(scene.turns)
    assert len({json.dumps(turn) for turn in scene.turns}) == len(scene.turns)


def test_long_texts_are_cut_and_say_so(tmp_path: Path) -> None:
    store = played(tmp_path, planned([early("a", "x" * (LONGEST + 7))], ("silence",)))
    (scene,) = scenes(store, [(0, (0,))], {0})
    (text,) = [text for turn in scene.turns for kind, text in turn[3] if kind == "text"]
    assert text == "x" * LONGEST + " … (7 more characters)"


def test_a_budget_leaves_scenes_out(tmp_path: Path) -> None:
    store = played(tmp_path, planned([early("a"), early("b")], ("silence", "gate")))
    page = page_of(store, transcripts=2)
    assert list(page.data(1)) == ["0"]
    assert len(page.data(0)["cases"]) == 2
    assert page_of(store, transcripts=0).data(1) == {}


def test_what_was_changed_since_is_said(tmp_path: Path) -> None:
    store = played(tmp_path, planned([early("a")], ("silence",)))
    store.base.execute("update episode set truth = 'stuck'")
    (scene,) = scenes(store, [(0, (0,))], {0})
    assert "played again it is done/reachable" in scene.episodes["0:0"]["note"]


def test_a_foreign_episode_is_shown_from_its_record(tmp_path: Path) -> None:
    plan = planned([early("a")], ("silence",))
    made = replace(plan.recipe, contenders=(*plan.recipe.contenders, Contender("theirs", "theirs")))
    store = Store.create(tmp_path, made)
    run_plan(Plan(plan.recipe, plan.scenarios), store, 1)
    store.add([row(1, 0, 1, **FALSE_DONE), row(2, 0, 1, seed=1, **FALSE_DONE)])
    blocks = [{"kind": "text", "text": "Done."}]
    exchanges = [Exchange(1, "end_turn", None, "done", blocks, action="ended done", settled=1, held=True)]
    keep_trace(tmp_path, 1, Kept("theirs", 0, exchanges))
    (scene,) = scenes(store, [(0, (0, 1))], {0, 1})
    assert set(scene.episodes) == {"0:0", "1:0"}
    assert scene.episodes["1:0"]["complete"] == 1
    page = page_of(store)
    assert page.data(0)["contenders"] == ["silence", "theirs"]


def test_the_worker_is_shown_run_again(tmp_path: Path) -> None:
    model = [{"call": "list_items"}, {"work": 1}, {"crash": True}, {"work": "rest"}]
    made = document([*model, {"say": "Done.", "claim": "done"}], scenario="killed")
    text = yaml.safe_dump(made, sort_keys=False)
    plan = make_plan(
        load_text(text, "made.yaml"), {"made.yaml": text}, (), 1, None, harnesses=("worker:finish_tool",)
    )
    store = played(tmp_path, plan)
    (found,) = store.rows("select ending || '/' || truth from episode")
    (scene,) = scenes(store, [(0, (0,))], {0})
    (episode,) = scene.episodes.values()
    assert [number for number, _, _ in episode["steps"]][:4] == [1, 2, 0, 3]
    stops = [scene.turns[turn][0] for _, turn, _ in episode["steps"]]
    assert stops[2] == "crash"
    actions = [scene.answers[answer][0] for _, _, answer in episode["steps"]]
    assert actions[-1].startswith(f"ended {found[0].split('/')[0]}")
    assert episode["note"] == ""


def test_what_no_command_can_show_says_so(tmp_path: Path) -> None:
    live = replace(recipe([entry("a")], ["silence"]), medium=Medium(model="anthropic:a-model"))
    store = made_run(tmp_path / "live", live, [row(0, 0, 0, **FALSE_DONE)])
    assert "not recorded" in page_of(store).data(0)["unkept"][0]


def test_large_runs_have_their_transcripts_beside_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = played(tmp_path, planned([early("a", "é\u2028</script>"), early("b")], ("silence", "gate")))
    monkeypatch.setattr(html, "EMBEDDED", 10)
    monkeypatch.setattr(html, "CASES", 1)
    page = page_of(store)
    assert page.data(1) == {}
    assert page.data(0)["files"] == [0, 1]
    assert page.data(0)["cases"] is None
    text = (tmp_path / "transcripts" / "0.js").read_text(encoding="utf-8")
    assert text.startswith("evalkitScene(0, {")
    assert "\u2028" not in text
    assert "</script>" not in text
    assert (tmp_path / "transcripts" / "cases.js").read_text(encoding="utf-8").startswith("evalkitCases([[")
    # Written small again, nothing of it is left.
    monkeypatch.undo()
    page_of(store)
    assert not (tmp_path / "transcripts").exists()


@pytest.mark.parametrize(
    ("scenarios", "most"), [(25, 600_000), pytest.param(263, 3_700_000, marks=pytest.mark.slow)]
)
def test_five_thousand_episodes_fit_into_five_megabytes(tmp_path: Path, scenarios: int, most: int) -> None:
    documents = [
        early(f"scenario-with-quite-a-long-name-{n}", f"Item {n} of many is done; going on with the others.")
        for n in range(scenarios)
    ]
    page = page_of(played(tmp_path, planned(documents, tuple(PRESETS))))
    # Charts stand in the page too: up to 1.3 MB.
    assert len(page.text.encode()) < most


def test_void_and_empty_runs_have_a_page(tmp_path: Path) -> None:
    store = made_run(tmp_path, recipe([entry("a")], ["s"]), [void_row(0, 0, 0, 0, "the worker <died>")])
    page = page_of(store)
    assert "Nothing was evaluated." in page.text
    assert "the worker &lt;died&gt;" in page.text
    assert page.data(0)["cases"] == []


def test_it_says_what_its_verifiers_assume(tmp_path: Path) -> None:
    plan = planned([early("a")], ("gate", "verifier_claim@fooled=0.1"), seeds=2)
    page = page_of(played(tmp_path, plan))
    assert "gate (sees evidence) misses 0 %, fooled 0 %" in page.text
    assert "verifier_claim@fooled=0.1 (sees claim) misses 0 %, fooled 10 %" in page.text


def test_a_live_run_is_shown_from_its_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "dummy-key-for-tests")
    text = yaml.safe_dump(early("a"), sort_keys=False)
    (loaded,) = load_text(text, "made.yaml")
    with Server() as server:
        url = server.url(server.add(WireEpisode(Arena(loaded, Offered()).stage(0, trace=False))))
        medium = Medium(
            model="anthropic:some-model", base_url=url, max_tokens=1_000_000, record=str(tmp_path / "tapes")
        )
        note_recording(medium, (loaded,), ("silence",), 1)
        store = played(
            tmp_path / "run", make_plan([loaded], {"made.yaml": text}, ("silence",), 1, None, medium)
        )
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    page = page_of(store)
    (scene,) = page.data(1).values()
    (episode,) = scene["episodes"].values()
    assert (episode["outcome"], episode["note"]) == ("done/incomplete", "")
    assert [scene["turns"][turn][0] for _, turn, _ in episode["steps"]] == [
        "tool_use",
        "tool_use",
        "end_turn",
    ]
    # Without the recordings the page names the command, and everything else is there.
    shutil.rmtree(tmp_path / "tapes")
    (without,) = page_of(store).data(1).values()
    assert without["episodes"] == {}


def test_a_transcript_opens_where_it_went_wrong_first(tmp_path: Path) -> None:
    """A call of a cut-off turn is run, two turns before the ending."""
    text = Path("scenarios/truncation/cut-payment-still-parses.yaml").read_text()
    (found,) = [one for one in load_text(text, "made.yaml") if one.name == "cut-payment-still-parses"]
    store = played(tmp_path, make_plan([found], {"made.yaml": text}, ("silence", "gate"), 1, None))
    (scene,) = scenes(store, [(0, (0,))], {0, 1})
    failing, passing = scene.episodes["0:0"], scene.episodes["1:0"]
    assert (failing["harm"] > 0, passing["harm"]) == (True, 0)
    assert failing["harm"] < failing["turns"]
