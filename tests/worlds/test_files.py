"""The world of a folder."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.worlds import Outcome, World, WorldError, WorldSpec, make_world
from tests.worlds.declarations import do, undo, world


def files(items: tuple[str, ...] = ("report",), **options: Any) -> World:
    return make_world(WorldSpec("files", items, options=options))


def run(target: World, command: str) -> Outcome:
    return target.perform("run", {"command": command})


EXISTS = {"report": {"exists": "report.md"}}


class TestTools:
    def test_the_list_shows_files_and_what_is_wanted(self) -> None:
        target = files(files={"data.csv": "1\n"}, checks=EXISTS)
        assert target.call("list_files", {}).text == "data.csv\nWanted: report (report.md)"
        do(target, "report")
        assert target.call("list_files", {}).text == "data.csv\nreport.md\nWanted: report (report.md)"

    def test_write_and_read(self) -> None:
        target = files(checks=EXISTS)
        written = target.perform("write_file", {"path": "./report.md", "text": "hello"})
        assert written == Outcome("report.md: written", action="write_file ./report.md")
        assert target.call("read_file", {"path": "report.md"}) == Outcome("hello")
        assert target.holds()

    def test_writing_the_same_again_has_no_effect(self) -> None:
        target = files(checks=EXISTS)
        do(target, "report")
        do(target, "report")
        assert list(target.effects.values()) == [1]

    @pytest.mark.parametrize("path", ["../x", "/tmp/x", "~/x", "", None, "a/../../b"])
    def test_paths_that_leave_are_refused(self, path: Any) -> None:
        target = files(checks=EXISTS)
        for tool in ("read_file", "write_file"):
            outcome = target.perform(tool, {"path": path, "text": "x"})
            assert outcome.error
        assert target.effects == {}

    def test_links_lead_nowhere(self) -> None:
        target = files(files={"a.txt": "1"}, checks=EXISTS)
        assert not run(target, "ln -s a.txt link").error
        assert target.call("read_file", {"path": "link"}).error
        assert target.call("write_file", {"path": "link", "text": "x"}).error
        made = run(target, "python -c \"import os; os.symlink('/e' + 'tc', 'out')\"")
        assert "not kept, no files of the folder: out" in made.text

    def test_a_command_sees_and_leaves_the_files(self) -> None:
        target = files(files={"a.txt": "1"}, checks=EXISTS)
        outcome = run(target, "cat a.txt && cp a.txt report.md")
        assert outcome == Outcome("1", action="run cat a.txt && cp a.txt report.md")
        assert target.holds()

    def test_a_failed_command_says_how(self) -> None:
        outcome = run(files(checks=EXISTS), "echo why; exit 2")
        assert outcome == Outcome("exit status 2\nwhy", error=True)

    def test_a_command_out_of_time_keeps_what_it_did(self) -> None:
        target = files(checks=EXISTS, seconds=0.3)
        outcome = run(target, "echo 1 > report.md; sleep 30")
        assert outcome.error
        assert "stopped: it ran for more than 0.3 s" in outcome.text
        assert target.holds()

    @pytest.mark.parametrize("command", [None, "", "a\0b", 7, "x" * 200_000, "cat /etc/passwd", "rm -r ../x"])
    def test_what_is_no_command_of_the_folder_is_an_error(self, command: Any) -> None:
        target = files(checks=EXISTS)
        assert run(target, command).error
        assert target.effects == {}

    def test_a_folder_that_outgrows_its_limits_is_put_back(self) -> None:
        target = files(files={"a.txt": "1"}, checks=EXISTS)
        outcome = run(target, "for i in 1 2; do head -c 9000000 /dev/zero > big$i; done; rm a.txt")
        assert outcome.error
        assert "what the command did is undone" in outcome.text
        assert target.call("read_file", {"path": "a.txt"}) == Outcome("1")

    def test_a_very_long_text_is_refused(self) -> None:
        assert files(checks=EXISTS).perform("write_file", {"path": "a", "text": "x" * 300_000}).error


class TestItems:
    def test_the_work_follows_from_existence_and_text(self) -> None:
        checks = {"contains": {"path": "out/report.md", "text": "total 3"}}
        target = files(checks={"report": [{"exists": "out/report.md"}, checks]})
        assert target.settle_calls("report", "") == (
            ("write_file", {"path": "out/report.md", "text": "total 3\n"}),
        )

    def test_undoing_brings_back_what_was_there_first(self) -> None:
        target = files(
            files={"report.md": "draft\n"},
            checks={"report": {"contains": {"path": "report.md", "text": "final"}}},
        )
        do(target, "report")
        assert target.holds()
        undo(target, "report")
        assert target.call("read_file", {"path": "report.md"}).text == "draft\n"
        assert not target.artifact()

    def test_an_item_of_several_steps_is_on_record_with_the_last(self) -> None:
        work = {"first": [{"write": "in.txt", "text": "1"}, {"run": "sh x"}], "third": [{"run": "sh z"}]}
        target = world("files", options={"work": work})
        assert target.evidence is not None
        first = target.vocabulary["first"]
        assert target.evidence("write_file", {"path": "in.txt"}, "in.txt: written", False) == 0
        assert target.evidence("write_file", {"path": "in.txt"}, "in.txt: needs approval", True) == first
        assert target.evidence("run", {"command": " sh x "}, "", False) == first
        assert target.evidence("run", {"command": "sh y"}, "", False) == 0
        assert target.evidence("read_file", {"path": "in.txt"}, "1", False) == 0
        assert target.evidence("write_file", {"path": "../x"}, "", True) == 0

    def test_a_checks_own_command_is_a_record_too(self) -> None:
        target = world("files")
        assert target.evidence is not None
        third = target.vocabulary["third"]
        assert target.evidence("run", {"command": "test -s out/third.txt"}, "", False) == third


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "checks: item 'report' has none; give exists, contains, matches, run or sql"),
        ({"checks": {"other": {"exists": "a"}}}, "checks: unknown item 'other'; known: report"),
        ({"checks": {"report": {"exist": "a"}}}, "checks[...].exist: unknown field"),
        ({"checks": {"report": {"exists": 3}}}, "checks[...].exists: expected text"),
        ({"checks": {"report": {"run": "true"}}}, "work: item 'report' has none"),
        ({"checks": EXISTS, "work": {"report": []}}, "work: report: at least one step is needed"),
        ({"checks": EXISTS, "work": {"report": [{}]}}, "a step has either 'write' with 'text', or 'run'"),
        ({"checks": EXISTS, "work": {"report": [{"write": "/a"}]}}, "work: report: /a: only paths within"),
        ({"checks": EXISTS, "work": {"report": [{"run": "ls /tmp"}]}}, "/tmp is not within the folder"),
        ({"checks": EXISTS, "files": {"../a": "x"}}, "files: ../a: leaves the folder"),
        ({"checks": EXISTS, "files": {"a": "x", "a/b": "x"}}, "files: a/b: a is a file"),
        ({"checks": EXISTS, "seconds": 0}, "seconds: must be above 0, got 0"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(WorldError) as caught:
        files(**options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
