"""Open items from checklist files, check commands and a session's transcript."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from evalkit.worker.open_items import acted_since, read_checklist, run_checks
from evalkit.worker.task_records import Item, TaskError


def test_boxes_of_a_markdown_list(tmp_path: Path) -> None:
    file = tmp_path / "TODO.md"
    file.write_text("# To do\n- [ ] write tests\n  * [x] nested\n1. [X] numbered\n- plain\n-[ ] none\n")
    assert read_checklist(file) == (
        Item("write tests", False),
        Item("nested", True),
        Item("numbered", True),
    )


def test_the_same_text_twice_is_open_where_one_is(tmp_path: Path) -> None:
    file = tmp_path / "TODO.md"
    file.write_text("- [x] a\n- [ ] a\n")
    assert read_checklist(file) == (Item("a", False),)


@pytest.mark.parametrize(
    "value",
    [
        [{"item": "a", "done": True}, {"item": "b", "done": False}],
        {"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]},
        [{"text": " a ", "status": "done"}, {"title": "b"}],
    ],
)
def test_lists_in_json(tmp_path: Path, value: object) -> None:
    file = tmp_path / "todo.json"
    file.write_text(json.dumps(value))
    assert read_checklist(file) == (Item("a", True), Item("b", False))


@pytest.mark.parametrize(
    ("text", "problem"),
    [("[", "not JSON"), ("3", "expected a list"), ("[3]", "entry 0"), ('[{"done": true}]', "entry 0")],
)
def test_a_list_that_cannot_be_read_is_named(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "todo.json"
    file.write_text(text)
    with pytest.raises(TaskError, match=problem):
        read_checklist(file)
    with pytest.raises(TaskError, match="cannot be read"):
        read_checklist(tmp_path / "none.json")


def test_checks_pass_by_their_exit_code_in_the_sessions_folder(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    passed, failed, silent, late = run_checks(
        ("test -e there", "echo boom; exit 3", "exit 4", "exec tail -f /dev/null"), tmp_path, 0.2
    )
    assert passed.passed
    assert (failed.passed, failed.detail) == (False, "boom")
    assert silent.detail == "exit code 4"
    assert (late.passed, late.detail) == (False, "still running after 0.2 s")


def test_a_tool_call_after_the_words_is_seen(tmp_path: Path) -> None:
    tool = json.dumps({"message": {"content": [{"type": "tool_use", "name": "Edit"}]}})
    said = json.dumps({"message": {"content": 'Stop hook feedback:\nopen: "a"\nmore'}})
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join([tool, said]))
    assert not acted_since(file, 'open: "a"')
    file.write_text("\n".join([said, tool]))
    assert acted_since(file, 'open: "a"')
    assert not acted_since(file, "never said")
    assert not acted_since(tmp_path / "none", "x")


def test_a_check_that_leaves_something_running_does_not_hold_up(tmp_path: Path) -> None:
    start = time.monotonic()
    (found,) = run_checks(["sleep 60 & sleep 60"], tmp_path, 0.3)
    assert found.detail == "still running after 0.3 s"
    (found,) = run_checks(["sleep 60 & exit 0"], tmp_path, 0.3)
    assert time.monotonic() - start < 10
