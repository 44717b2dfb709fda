"""What reads input from outside, each as a function of bytes that returns whatever they are.

A target lets through nothing but the error that its reader documents, in one line.
"""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import vcr.cassette  # noqa: F401 - what a reader imports when it is first used may open a socket

from evalkit.core.decisions import ENDINGS
from evalkit.core.tasks import Offered
from evalkit.harnesses.command import parse_ending
from evalkit.harnesses.endings import Finished, ending_of
from evalkit.harnesses.manifest import FILE as MANIFEST
from evalkit.harnesses.manifest import ManifestError, Rule, read_manifest
from evalkit.media.medium import MediumError, check_medium
from evalkit.models.cassettes import CassetteError, Origin, Tape, canonical, read_origin
from evalkit.models.spending import PricesError, price_of, price_table
from evalkit.reports.ci.baseline import BaselineError, Incompatible, baseline_text, read_baseline
from evalkit.reports.ci.rules import RulesError, read_rules
from evalkit.reports.foreign_transcript import kept_text
from evalkit.runs.foreign_records import read_trace, trace_file
from evalkit.runs.plan import PlanError, changes_since, plan_from
from evalkit.runs.run import run_plan
from evalkit.runs.store import FILE, RunError, Store
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.yaml_source import ScenarioError
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.stage.stage import NeverEnds
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.registry import StrategyError, read_strategy
from evalkit.transcripts.judging.run import judge_recording
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_file
from evalkit.wire.connection import HttpRequest
from evalkit.wire.episode import WireEpisode
from evalkit.wire.server import _route
from evalkit.worker.open_items import acted_since, read_checklist
from evalkit.worker.stop_hook import read_stop
from evalkit.worker.task_records import TaskError
from tests.helpers import scenario as made
from tests.runs.test_run import plan as run_of

Target = Callable[[Path, bytes], None]

STRATEGIES = ("silence", "gate", "unattended")
#: Worlds whose tools start no process.
IN_MEMORY = ("items", "ledger", "inbox")
PATHS: tuple[tuple[str, str], ...] = (
    ("POST", "/v1/messages"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/messages/count_tokens"),
    ("POST", "/tools/do_item"),
)
NAMES = ("r.json", "r.jsonl", "r.eval", "r.traj")
RULES = (Rule("error_*", "error", "its own word"), Rule("*", "done", "it returned"))
_TALK = made([{"call": "list_items"}, {"work": "rest"}, {"say": "Done.", "claim": "done"}])


def one_line(error: Exception) -> None:
    """What a user is told of bad input."""
    told = str(error)
    assert told.strip(), repr(error)
    assert len(told.splitlines()) == 1, told
    assert len(told) <= 2_000, told


def scenario(folder: Path, data: bytes) -> None:
    """A scenario file: refused, or every preset asked comes to an end with it."""
    try:
        loaded = load_text(data.decode("utf-8", "surrogateescape"), "fuzz.yaml")
    except ScenarioError as error:
        return one_line(error)
    for found in loaded[:2]:
        if found.world.kind not in IN_MEMORY:
            continue
        for name in STRATEGIES:
            strategy = PRESETS[name].strategy
            assert run_episode(Arena(found, strategy.offers), strategy, 0).ending in ENDINGS
    return None


def strategy(folder: Path, data: bytes) -> None:
    """A strategy file: refused, or it comes to an end."""
    file = folder / "fuzz.yaml"
    file.write_bytes(data)
    try:
        found = read_strategy(file)
    except StrategyError as error:
        return one_line(error)
    assert run_episode(Arena(_TALK, found.offers), found, 0).ending in ENDINGS
    return None


def cassette(folder: Path, data: bytes) -> None:
    """A cassette, and the note of where it comes from: refused, or its exchanges can be looked up."""
    (folder / "cassettes.json").write_bytes(data)
    file = folder / "tape.json"
    file.write_bytes(data)
    for read in (lambda: read_origin(folder), lambda: _play(file)):
        try:
            read()
        except CassetteError as error:
            one_line(error)


def _play(file: Path) -> None:
    origin = Origin("m", "anthropic", False, True, "here", "now")
    tape = Tape(file, record=False, origin=origin)
    ask = canonical("POST", "http://127.0.0.1/v1/messages", b'{"messages": []}')
    assert tape.nearest(ask)
    for place in range(len(tape)):
        tape.response(place)


def transcript(folder: Path, data: bytes) -> None:
    """A recording of any format: read and judged, or refused with its place."""
    judges = [PRESETS[name].strategy for name in STRATEGIES]
    for name in NAMES:
        file = folder / name
        file.write_bytes(data)
        for found in read_file(file):
            if isinstance(found, Problem):
                assert "\n" not in str(found), str(found)
            else:
                judge_recording(found, judges)


def request(folder: Path, data: bytes) -> None:
    """A request body of each dialect, twice: answered, and nothing of it is a failure of evalkit."""
    for method, path in PATHS:
        episode = WireEpisode(Arena(_TALK, Offered(finish=True)).stage(0, cap=60))
        for _ in range(2):
            reply = _route(episode, HttpRequest(method, path, {}, data), path, {}, False)
            assert 200 <= reply.status < 500, (path, reply)
        assert episode.failure is None or isinstance(episode.failure, NeverEnds), (path, episode.failure)


def ending(folder: Path, data: bytes) -> None:
    """What a harness writes as its ending: one that is known, and a note in one line."""
    told: Any = parse_ending(data)
    found, note = ending_of(Finished(told=told, output=data.decode("utf-8", "replace")), RULES)
    assert found.kind in ENDINGS
    assert "\n" not in note, note


def recipe(folder: Path, data: bytes) -> None:
    """The recipe of a run folder: refused, or the run can be gone on with."""
    store = Store.create(folder / "run", run_of(1).recipe)
    store.base.execute("update meta set value = ? where name = 'recipe'", (data.decode("utf-8", "replace"),))
    store.close()
    _go_on(folder / "run")


def run_folder(folder: Path, data: bytes) -> None:
    """The file of a run folder: refused, or the run can be gone on with."""
    (folder / "run").mkdir()
    (folder / "run" / FILE).write_bytes(data)
    _go_on(folder / "run")


def trace(folder: Path, data: bytes) -> None:
    """The record of a foreign episode, packed or not: shown, or none."""
    for content in (data, gzip.compress(data, 1)):
        file = trace_file(folder, 1)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
        kept = read_trace(folder, 1)
        if kept is not None:
            shown = kept_text(kept, "scenario", 3, "")
            assert all(letter.isprintable() or letter == "\n" for letter in shown), repr(shown)


def manifest(folder: Path, data: bytes) -> None:
    """A harness's manifest: refused, or it has a command to run."""
    (folder / MANIFEST).write_bytes(data)
    try:
        found = read_manifest(folder)
    except ManifestError as error:
        return one_line(error)
    assert found.run or found.service is not None
    return None


def gate(folder: Path, data: bytes) -> None:
    """The rules of the gate, in a file of their own and in a project's."""
    for name in ("evalkit.toml", "pyproject.toml"):
        (folder / name).write_bytes(data)
        try:
            assert read_rules(folder / name).pass_share >= 0
        except RulesError as error:
            one_line(error)


def baseline(folder: Path, data: bytes) -> None:
    """A baseline that the gate holds a run against."""
    (folder / "baseline.json").write_bytes(data)
    try:
        assert baseline_text(read_baseline(folder / "baseline.json"))
    except (BaselineError, Incompatible) as error:
        one_line(error)


def prices(folder: Path, data: bytes) -> None:
    """A table of prices of one's own."""
    (folder / "prices.toml").write_bytes(data)
    price_table.cache_clear()
    try:
        for model in ("claude-opus-x", "gateway/gpt-5"):
            price_of(model, folder / "prices.toml")
    except PricesError as error:
        one_line(error)


def stop(folder: Path, data: bytes) -> None:
    """What a Stop hook is given, and the checklists that it reads."""
    try:
        read_stop(data)
    except TaskError as error:
        one_line(error)
    for name in ("todo.json", "TODO.md"):
        (folder / name).write_bytes(data)
        try:
            read_checklist(folder / name)
        except TaskError as error:
            one_line(error)
    acted_since(folder / "todo.json", "go on")


def _go_on(folder: Path) -> None:
    try:
        store = Store.open(folder, write=True)
    except RunError as error:
        return one_line(error)
    try:
        for change in changes_since(store.recipe):
            assert "\n" not in change, change
        plan = plan_from(store.recipe)
        in_memory = all(found.world.kind in IN_MEMORY for found in plan.scenarios)
        # A harness of its own is a program that going on is meant to start.
        foreign = any(contender.foreign for contender in plan.recipe.contenders)
        medium = plan.recipe.medium
        check_medium(medium)
        if plan.episodes() <= 50 and in_memory and not foreign and not (medium.live or medium.record):
            run_plan(plan, store, 1)
    except (RunError, PlanError, MediumError) as error:
        one_line(error)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # ``evalkit`` tells it in one line: evalkit/cli/errors.py.
        one_line(error)
    finally:
        store.close()
    return None


TARGETS: dict[str, Target] = {
    "scenario": scenario,
    "strategy": strategy,
    "cassette": cassette,
    "transcript": transcript,
    "request": request,
    "ending": ending,
    "recipe": recipe,
    "run_folder": run_folder,
    "trace": trace,
    "manifest": manifest,
    "gate": gate,
    "baseline": baseline,
    "prices": prices,
    "stop": stop,
}
