"""What is broken, hostile or foreign is a one-line problem with its place, and the rest is read."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.formats import inspect_logs, spans
from evalkit.transcripts.judging.run import judge_recording
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_file, read_paths
from evalkit.transcripts.recording import Recording
from tests.transcripts import files
from tests.transcripts.test_foreign import CASES as FOREIGN


def both(path: Path) -> tuple[list[Recording], list[str]]:
    """The recordings of a file, and its problems without the folder."""
    recordings, problems = [], []
    for found in read_file(path):
        if isinstance(found, Problem):
            assert "\n" not in str(found)
            problems.append(str(found).replace(f"{path.parent.as_posix()}/", ""))
        else:
            recordings.append(found)
    return recordings, problems


def test_a_broken_line_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    good = json.dumps({"messages": files.chat()})
    path.write_text(f"{good}\n{good[:50]}\n\n{good}\nnot json\n")
    recordings, problems = both(path)
    assert len(recordings) == 2
    assert [problem.split(": is not JSON")[0] for problem in problems] == [
        "r.jsonl: line 2",
        "r.jsonl: line 5",
    ]
    assert problems[1].startswith("r.jsonl: line 5: is not JSON: malformed: ")
    assert [recording.id.split("#")[1] for recording in recordings] == ["line1", "line4"]


def test_a_truncated_array_gives_what_came_before_the_break(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    text = json.dumps([files.tau_bench(task) for task in range(3)])
    path.write_text(text[:-300])
    recordings, problems = both(path)
    assert len(recordings) == 2
    assert problems == ["r.json: entry 3: the file ends within it"]


@pytest.mark.parametrize(
    ("value", "recordings", "problem"),
    [
        (files.tau2(), 0, "entry 1: the file ends within it"),
        (
            files.inspect_document(files.inspect_sample(), files.inspect_sample(2)),
            1,
            "the file ends within it",
        ),
        (files.swe_agent(), 0, "is not JSON"),
    ],
)
def test_truncated_documents(tmp_path: Path, value: Any, recordings: int, problem: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(value)[:-200])
    found, problems = both(path)
    assert len(found) == recordings
    assert len(problems) == 1
    assert problem in problems[0]


def test_a_truncated_archive_and_a_broken_member(tmp_path: Path) -> None:
    whole = files.write_eval(tmp_path / "a.eval", files.inspect_sample(1), files.inspect_sample(2))
    data = whole.read_bytes()
    cut = tmp_path / "cut.eval"
    cut.write_bytes(data[: len(data) // 2])
    assert both(cut)[1] == ["cut.eval: is not a whole archive: file is not a zip file"]
    with zipfile.ZipFile(tmp_path / "b.eval", "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1_epoch_1.json", "{broken")
        archive.writestr("samples/2_epoch_1.json", json.dumps(files.inspect_sample(2)))
    recordings, problems = both(tmp_path / "b.eval")
    assert len(recordings) == 1
    assert len(problems) == 1
    assert problems[0].startswith("b.eval: samples/1_epoch_1.json: is not JSON")


def test_zip_bombs_are_refused_before_they_are_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1_epoch_1.json", b" " * 5_000_000)
    tracemalloc.start()
    problems = both(path)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert problems[0].startswith("bomb.eval: samples/1_epoch_1.json: unpacks to over 500 times its size")
    assert peak < 1_000_000
    monkeypatch.setattr(inspect_logs, "MAX_RATIO", 10_000)
    monkeypatch.setattr(inspect_logs, "MAX_MEMBER", 1_000_000)
    assert "unpacks to 5,000,000 bytes; at most 1,000,000" in both(path)[1][0]
    monkeypatch.setattr(inspect_logs, "MAX_UNPACKED", 4_000_000)
    assert "unpacks to 5,000,002 bytes; at most 4,000,000" in both(path)[1][0]
    monkeypatch.setattr(inspect_logs, "MAX_MEMBERS", 1)
    assert "is an archive of 2 members; at most 1" in both(path)[1][0]


def test_a_member_that_lies_about_its_size_is_not_unpacked_beyond_it(tmp_path: Path) -> None:
    path = tmp_path / "liar.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1_epoch_1.json", b'"' + b"a" * 3_000_000 + b'"')
    size = (3_000_002).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (100).to_bytes(4, "little")))
    recordings, problems = both(path)
    assert not recordings
    assert len(problems) == 1


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as archive:
        archive.writestr("word/document.xml", "<a/>")
    assert both(tmp_path / "x.eval")[1] == ["x.eval: is an archive, but no Inspect log (no header.json)"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"\x80\x04\x95 pickle", "is no transcript"),
        (b"!!python/object/apply:os.system ['true']", "is no transcript"),
        (b"[" * 100_000, "entry 1"),
        (b'{"a":' * 100_000, "is nested too deep"),
        (b"[1, 2, 3]", "is of no known format"),
        (b'{"a": 1}', "is of no known format; its fields: a"),
        (b"[]", "holds no recording"),
        (b'[{"role": "user", "content": "hi"}]', "holds no model turn"),
        (b'{"messages": [{"role": "user", "content": "\xff"}]}', "not"),
        (b'{"a": 1}\n{"b": 2}\n', "is of no known format"),
    ],
)
def test_what_is_no_transcript_says_so(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(data)
    recordings, problems = both(path)
    assert not recordings
    assert len(problems) == 1
    assert why in problems[0]


def test_missing_files_and_devices(tmp_path: Path) -> None:
    assert both(tmp_path / "none.json")[1] == ["none.json: cannot be read: No such file or directory"]
    assert [str(found) for found in read_file(Path("/dev/null"))] == ["/dev/null: is no file"]


def test_nan_rewards_byte_order_marks_and_lone_surrogates_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record = {"messages": files.chat(), "reward": float("nan")}
    record["messages"][-1]["content"] = "Done \ud83d."
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(record).encode() + b"\n" + json.dumps(record).encode())
    recordings, problems = both(path)
    assert not problems
    assert [recording.label.complete for recording in recordings] == [None, None]
    for recording in recordings:
        assert judge_recording(recording, [PRESETS["silence"].strategy])[1].ending == "done"


@pytest.mark.long
def test_a_file_of_lines_is_read_one_line_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    with path.open("w") as out:
        for number in range(400):
            out.write(json.dumps({"messages": files.chat(f"{number}" + "x" * 50_000)}) + "\n")
    tracemalloc.start()
    count = sum(isinstance(found, Recording) for found in read_file(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 400
    # Of 20 MB.
    assert peak < 5_000_000


def test_an_array_of_results_is_read_one_result_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    results = [files.tau_bench(number, last=f"{number}" + "x" * 50_000) for number in range(400)]
    with path.open("w") as out:
        out.write(json.dumps(results))
    del results
    tracemalloc.start()
    count = sum(isinstance(found, Recording) for found in read_file(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 400
    assert peak < 5_000_000


def test_traces_are_given_out_when_they_have_been_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "QUIET", 6)

    def trace(name: str) -> list[dict[str, Any]]:
        return [{**value, "trace_id": name} for value in files.agents_trace()[1:]]

    late = trace("one")[:1]
    values = [*trace("one"), *trace("two"), *trace("three"), *late]
    recordings, problems = both(files.write_lines(tmp_path / "t.jsonl", values))
    assert [recording.id.split("#")[1] for recording in recordings] == ["one", "two", "three"]
    assert problems == ["t.jsonl: 1 spans came long after their trace's others and were left out"]


VALUES: list[Any] = [
    files.chat(),
    files.anthropic(),
    files.responses(),
    [files.tau_bench()],
    files.tau2(),
    files.inspect_document(files.inspect_sample()),
    files.swe_agent(calls=True),
    files.mini_swe_agent(),
    files.atif(),
    files.claude_code(stream=True),
    {"data": files.agents_trace()},
    files.otel(),
    files.otel("numbered"),
    files.group_chat(),
    files.team(),
    *(case[2] for case in FOREIGN),
]
JUNK = st.sampled_from([None, True, 0, -1, 1.5, "", "x", [], [None], {}, {"type": 1}, {"role": []}, [[]]])


def mutated(value: Any, draw: Any) -> Any:
    """A value with one thing in it replaced by junk, or left out."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(value)))
        if not draw(st.integers(0, 3)):
            return {name: inner for name, inner in value.items() if name != key}
        return {**value, key: mutated(value[key], draw)}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], mutated(value[place], draw), *value[place + 1 :]]
    return draw(JUNK)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_whatever_a_file_holds_it_is_read_or_refused(tmp_path_factory: Any, data: st.DataObject) -> None:
    value = data.draw(st.sampled_from(VALUES))
    for _ in range(data.draw(st.integers(1, 3))):
        value = mutated(value, data.draw)
    path = tmp_path_factory.mktemp("fuzz") / "r.json"
    if isinstance(value, list) and data.draw(st.booleans()):
        files.write_lines(path, value)
    else:
        files.write(path, value)
    text = path.read_bytes()
    if data.draw(st.booleans()):
        path.write_bytes(text[: data.draw(st.integers(0, len(text)))])
    found = list(read_paths([path]))
    assert found
    for item in found:
        if isinstance(item, Recording):
            judge_recording(item, [PRESETS["unattended"].strategy, PRESETS["silence"].strategy])
        else:
            assert "\n" not in str(item)
