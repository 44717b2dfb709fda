"""Each bad harness ends within its limit with its own ending, and leaves nothing running."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from evalkit.harnesses.endings import Finished
from evalkit.scoring.arena import Arena
from evalkit.scoring.foreign_episode import contract_of, run_foreign, runner_of, server_for_harnesses
from tests.harnesses.episodes import LOOP, PLAIN, played, program, running, scenario
from tests.processes import living

END = """
import json, os
def end(ending):
    with open(os.environ["EVALKIT_ENDING_FILE"], "w") as file:
        file.write(ending if isinstance(ending, str) else json.dumps(ending))
"""


def test_a_loop_by_hand_ends_done_and_is_scored(tmp_path: Path) -> None:
    episode, kept = played(program(tmp_path, LOOP))
    assert (episode.outcome, episode.native, episode.turns) == ("done/reachable", "exit:0", 3)
    assert episode.premature_stop
    assert episode.silent
    assert episode.causes == ("say (claim partial), turn 3",)
    assert [step.action for step in kept.exchanges] == ["went on", "went on", "ended"]
    assert kept.exchanges[1].results == [{"text": "parcel-a: done", "error": False}]


def test_exits_at_once_without_a_word(tmp_path: Path) -> None:
    episode, _ = played(program(tmp_path, "import sys; sys.exit(3)"))
    assert (episode.outcome, episode.native, episode.turns) == ("error/reachable", "exit:3", 0)


def test_exits_at_once_as_done(tmp_path: Path) -> None:
    episode, _ = played(program(tmp_path, ""))
    assert (episode.outcome, episode.false_done) == ("done/reachable", True)


def test_what_was_refused_is_said_where_it_fails_at_that(tmp_path: Path) -> None:
    """It answers a call with words alone, and knows of no more than the status."""
    silent = LOOP.replace('"content": results}', '"content": "go on"}')
    episode, kept = played(program(tmp_path, silent))
    assert episode.outcome == "error/reachable"
    assert "HTTP Error 400" in episode.note
    assert "; evalkit had refused its last request: call without its result, id toolu_" in episode.note
    assert episode.note.endswith("request 2")
    assert kept.seen["model requests"] == 2


def test_requests_to_model_and_tools_are_told_apart(tmp_path: Path) -> None:
    episode, kept = played(program(tmp_path, LOOP))
    assert (kept.seen["model requests"], kept.seen["tool requests"]) == (episode.turns, 2)
    assert "refused" not in episode.note


def test_what_went_wrong_first_is_named_and_nothing_in_a_correct_episode(tmp_path: Path) -> None:
    """It runs every call twice, and then stops early: the harm came before the decision."""
    call = 'post(os.environ["EVALKIT_TOOLS_URL"] + "/" + call["name"], call["input"])'
    twice = LOOP.replace(f"said = {call}", f"{call}; said = {call}")
    episode, kept = played(program(tmp_path, twice))
    assert episode.duplicate_effects, episode
    assert kept.wrong is not None
    assert kept.wrong.said.startswith("went wrong first at turn 2: duplicate effects: ")
    asks = LOOP.replace("if not calls:", "if not calls and len(messages) > 8:").replace(
        "results = []", 'results = [] if calls else [{"type": "text", "text": "Sure?"}]'
    )
    sure = (
        PLAIN.replace("  - {say: One of two is sent., claim: partial}\n", "")
        + "  - {say: Yes., claim: done}\n"
    )
    episode, kept = played(program(tmp_path, asks), text=sure)
    assert (episode.correct, kept.wrong, len(episode.causes)) == (True, None, 1), episode


def test_sleeps_for_ever(tmp_path: Path) -> None:
    began = time.monotonic()
    episode, _ = played(program(tmp_path, "import time\nwhile True: time.sleep(60)"), seconds=0.3)
    assert (episode.ending, episode.native) == ("never", "time limit of 0.3 s")
    assert time.monotonic() - began < 10


def test_ignores_the_signal_to_end(tmp_path: Path) -> None:
    text = "import signal, time\nfor n in (15, 2, 1): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)"
    episode, _ = played(program(tmp_path, text), seconds=0.5)
    assert episode.ending == "never"


def test_floods_its_output(tmp_path: Path) -> None:
    text = "import os\nwhile True: os.write(1, b'x' * 1_000_000)"
    episode, kept = played(program(tmp_path, text))
    assert (episode.ending, episode.native) == ("error", "printed more than 64 MB")
    assert len(kept.output) < 100_000
    assert "bytes left out" in kept.output


@pytest.mark.parametrize(
    ("ending", "note"),
    [
        ("no json at all", "is no object"),
        ('{"ending": "finished"}', "allowed: done, partial, escalated, limit, error"),
        ('{"ending": "never"}', "allowed"),
        ("[1, 2]", "is no object"),
        ("{}", "neither ending nor native"),
        ('{"ending": "done", "report": {"outstanding": "all"}}', "no list of item ids"),
        ("[" * 100_000, "is no object"),
    ],
)
def test_writes_an_invalid_ending(tmp_path: Path, ending: str, note: str) -> None:
    episode, _ = played(program(tmp_path, END + f"end({ending!r})"))
    assert (episode.ending, episode.native) == ("error", "invalid ending")
    assert note in episode.note


def test_kills_itself(tmp_path: Path) -> None:
    text = END + "import signal\nend({'ending': 'done'}) if 0 else os.kill(os.getpid(), signal.SIGKILL)"
    episode, _ = played(program(tmp_path, text))
    assert (episode.ending, episode.native) == ("error", "signal:SIGKILL")


def test_starts_children_that_leave_its_group(tmp_path: Path) -> None:
    text = END + (
        "import subprocess, sys\n"
        f"sleep = [sys.executable, '-c', 'import time; time.sleep(600)', {str(tmp_path)!r}]\n"
        "subprocess.Popen(sleep)\n"
        "subprocess.Popen(sleep, start_new_session=True, env={})\n"
        "end({'ending': 'escalated', 'native': 'left them'})\n"
    )
    episode, kept = played(program(tmp_path, text))
    assert (episode.ending, episode.native) == ("escalated", "left them")
    assert kept.seen["processes left running"] == 2
    assert living(str(tmp_path)) == []
    assert not episode.lost_work


def test_work_that_was_under_way_is_lost(tmp_path: Path) -> None:
    text = LOOP.replace(
        "    results = []",
        "    if calls[0]['name'] == 'do_item':\n"
        "        import subprocess, sys\n"
        "        subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "        break\n"
        "    results = []",
    )
    episode, _ = played(program(tmp_path, text))
    assert (episode.outcome, episode.lost_work) == ("done/reachable", True)


def test_a_missing_program_is_an_error(tmp_path: Path) -> None:
    harness = program(tmp_path, "", run=["no-such-program-anywhere"])
    episode, _ = played(harness)
    assert episode.ending == "error"
    assert episode.native.startswith("cannot be started")


def test_never_ends_at_the_cap_of_model_turns(tmp_path: Path) -> None:
    text = LOOP.replace(
        "        break\n",
        "        messages.append({'role': 'user', 'content': 'Go on.'})\n        continue\n",
    )
    episode, _ = played(program(tmp_path, text))
    assert (episode.ending, episode.truth, episode.turns) == ("never", "complete", 60)
    assert episode.over_continuation


RESIDENT = """
import json, os, signal, sys, time
for number, line in enumerate(sys.stdin):
    job = json.loads(line)
    kind = open(KINDS).read().split()[0]
    open(KINDS, "a").close()
    rest = open(KINDS).read().split()[1:]
    open(KINDS, "w").write(" ".join(rest))
    if kind == "crash": os.kill(os.getpid(), signal.SIGKILL)
    if kind == "leave": sys.exit(0)
    if kind == "hang": time.sleep(600)
    if kind == "nonsense": print("this is no ending", flush=True); continue
    if kind == "flood": sys.stdout.write("x" * 3_000_000); sys.stdout.flush(); time.sleep(600)
    print(json.dumps({"ending": "done", "native": f"{os.getpid()}/{number}"}), flush=True)
"""


@pytest.mark.long
def test_a_resident_harness_harms_only_its_own_episode(tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.write_text("fine fine crash fine nonsense fine leave fine hang fine flood fine")
    harness = program(tmp_path, f"KINDS = {str(kinds)!r}\n{RESIDENT}", resident=True, endings=[])
    with running(harness, seconds=1.5) as run:
        endings = [run()[0] for _ in range(12)]
    natives = [episode.native for episode in endings]
    assert [episode.ending for episode in endings[::2] if episode.ending == "done"] == ["done"]
    assert [episode.ending for episode in endings[1::2]] == ["done"] * 6
    assert natives[2] == "signal:SIGKILL"
    assert natives[4] == "invalid ending"
    assert natives[6] == "exit:0 without an ending"
    assert (endings[8].ending, natives[8]) == ("never", "time limit of 1.5 s")
    assert natives[10] == "printed a line of more than 1 MB"
    first, second = natives[0].split("/"), natives[1].split("/")
    assert (first[0], first[1], second[1]) == (second[0], "0", "1")
    assert living(str(tmp_path)) == []


SPY = (
    END
    + """
import glob, pathlib
seen = "\\n".join(f"{name}={value}" for name, value in os.environ.items())
home = pathlib.Path.home()
files = [str(file) for file in home.rglob("*")]
for place in ("~", "~/.config", "$HOME", "$XDG_CONFIG_HOME"):
    for file in glob.glob(os.path.expandvars(os.path.expanduser(place)) + "/**/*", recursive=True):
        if os.path.isfile(file): seen += open(file).read()
end({"ending": "done", "native": str("PLANTED" in seen), "report": {"reason": str(files)}})
"""
)


@pytest.mark.parametrize("resident", [False, True])
def test_no_secret_of_the_caller_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resident: bool
) -> None:
    home = tmp_path / "home"
    (home / ".config" / "claude").mkdir(parents=True)
    (home / ".claude.json").write_text("PLANTED")
    (home / ".netrc").write_text("PLANTED")
    (home / ".config" / "claude" / "settings.json").write_text("PLANTED")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    for name in (
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "HTTPS_PROXY",
    ):
        monkeypatch.setenv(name, "PLANTED")
    folder = tmp_path / "program"
    folder.mkdir()
    text = SPY
    if resident:
        body = (
            SPY.replace(END, "")
            .replace("end(", "print(json.dumps(")
            .replace("str(files)}})", "str(files)}}), flush=True)")
        )
        text = "import json, os, sys\nfor line in sys.stdin:\n" + "".join(
            f"    {row}\n" for row in body.splitlines()
        )
        harness = program(folder, text, resident=True)
    else:
        harness = program(folder, text)
    episode, kept = played(harness)
    assert (episode.ending, episode.native) == ("done", "False"), kept.output
    assert os.environ["ANTHROPIC_API_KEY"] == "PLANTED"


#: All that a harness finds in its environment; what is added here is added on purpose.
ALLOWED = {
    *("PATH", "TZ", "LD_LIBRARY_PATH", "SYSTEMROOT", "HOME", "USERPROFILE", "TMPDIR", "LANG"),
    *("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "NO_PROXY", "no_proxy"),
    *("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"),
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"),
}


def test_it_finds_nothing_in_its_environment_but_what_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANY_NAME_AT_ALL", "x")
    text = END + "end({'ending': 'done', 'report': {'reason': ' '.join(os.environ)}, 'native': 'x'})"
    harness = program(tmp_path, text)
    contract, runner = contract_of(harness), runner_of(harness, seconds=20)
    seen: list[str] = []
    run = runner.run

    def noted(told: dict[str, str], *more: Any) -> Finished:
        finished = run(told, *more)
        seen.extend(finished.told["report"]["reason"].split())
        return finished

    monkeypatch.setattr(runner, "run", noted)
    with server_for_harnesses() as server:
        run_foreign(Arena(scenario(), contract.offered), 0, contract, runner, server)
    runner.close()
    found = {name for name in seen if not name.startswith("EVALKIT_")}
    assert found - {"LC_CTYPE", "PWD", "SHLVL", "_"} <= ALLOWED
    assert {"HOME", "ANTHROPIC_BASE_URL"} <= found
