"""What a fit reads of a recording: tool turns, ends of turn, exits, truth; and whose they are."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from evalkit.fit.drawn_recordings import record_of
from evalkit.fit.grouping import Grouping, GroupingError
from evalkit.fit.lives import life_of
from evalkit.scenarios.life import Act, Life, Part, staged
from evalkit.transcripts.formats.tau import tau_bench
from evalkit.transcripts.read import read_file
from evalkit.transcripts.recording import Label, Recording
from evalkit.transcripts.source import Source
from tests.fit.made import lives
from tests.transcripts import files


def _read(path: Path) -> Recording:
    (found,) = (found for found in read_file(path) if isinstance(found, Recording))
    return found


def test_a_dialogue_is_read_as_acts_and_ends_of_turn(tmp_path: Path) -> None:
    life = life_of(_read(files.write(tmp_path / "r.json", [files.tau_bench(reward=1.0)])))
    acts = (Act(changes=False), Act(changes=True), Act(changes=True))
    assert life.parts == (Part(acts, "done"),)
    assert (life.exit, life.truth, life.turns, life.changed) == ("done", "right", 4, True)


def test_a_hand_over_ends_a_run_in_its_tools(tmp_path: Path) -> None:
    life = life_of(_read(files.write(tmp_path / "r.json", [files.tau_bench(last="")])))
    assert (life.exit, life.parts[-1].end, len(life.parts[-1].acts)) == ("escalated", "", 4)


def test_an_end_at_a_limit_is_no_end_of_its_own(tmp_path: Path) -> None:
    """Its last turn ended, and its harness ended the run for another reason."""
    life = life_of(_read(files.write(tmp_path / "r.json", [files.tau_bench(last="And gamma?")])))
    assert life.exit == "broken off"
    assert [(part.end, part.asked) for part in life.parts] == [("done", True), ("", False)]


def test_stages_go_by_ends_of_turn_changes_and_claims() -> None:
    asks, works = Part((), "none", True), Part((Act(changes=True),), "none", True)
    fails = Part((Act(changes=True, failed=True),), "none", True)
    life = Life("t", (asks, fails, asks, works, Part((), "done", True), asks), "done")
    found = [(first, last) for _, first, last in staged(life, (1, 2))]
    assert found == [
        ("opening", "opening"),
        ("middle", "middle"),
        ("late", "late"),
        ("late", "changed"),
        ("changed", "changed"),
        ("claimed", "claimed"),
    ]


def test_a_drawn_life_that_is_written_and_read_is_the_same() -> None:
    """So a population's recordings say of it what it says of itself."""
    for life in lives(20, 4):
        read = tau_bench(record_of(life, life.task), Source("drawn"))
        assert life_of(msgspec.structs.replace(read, task=life.task)) == life


# Whose


@pytest.mark.parametrize(
    ("by", "task", "model"),
    [
        (None, "7", ""),
        ("field", "7", ""),
        ("prompt", files.PROMPT, ""),
        (r"(?P<model>[\w.-]+)-on-(?P<task>\w+)\.json", "airline", "gpt"),
    ],
)
def test_task_and_model_by_field_prompt_or_pattern(
    tmp_path: Path, by: str | None, task: str, model: str
) -> None:
    recording = _read(files.write(tmp_path / "gpt-on-airline.json", [files.tau_bench(task=7)]))
    assert Grouping(by).of(recording) == (task, model)


def test_without_a_task_of_its_own_a_recording_goes_by_its_prompt(tmp_path: Path) -> None:
    recording = _read(files.write(tmp_path / "r.json", files.chat()))
    assert Grouping().of(recording) == (files.PROMPT, "")


def test_formats_that_name_their_task_or_model_are_read_so(tmp_path: Path) -> None:
    assert _read(files.write(tmp_path / "t.json", files.tau2())).task == "7"
    sample = _read(files.write(tmp_path / "i.json", files.inspect_document(files.inspect_sample())))
    # Ids of samples begin anew in each log, so a sample goes by its prompt.
    assert Grouping().of(sample) == (files.PROMPT, "m")


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("(", "--by '(': is no regular expression"),
        ("task", "expected field, prompt, or a regular expression with (?P<task>"),
        ("x(?P<task>y)", "the pattern of --by finds no task in its name; say how with --by"),
        ("field", "names no task; say how with --by"),
    ],
)
def test_a_grouping_that_cannot_be_is_a_line(tmp_path: Path, by: str, said: str) -> None:
    recording = _read(files.write(tmp_path / "r.json", files.chat()))
    with pytest.raises(GroupingError) as caught:
        Grouping(by).of(recording)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_run_without_a_label_has_no_truth(tmp_path: Path) -> None:
    recording = _read(files.write(tmp_path / "r.json", files.chat()))
    assert life_of(recording).truth == ""
    wrong = msgspec.structs.replace(recording, label=Label(False, "x"))
    assert life_of(wrong).truth == "unknown"
