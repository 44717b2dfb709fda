"""An event counts only with evidence that it landed: injectors that do nothing, or hit the wrong thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.containment.guarded import Guarded
from evalkit.harnesses.command import Deadline
from evalkit.harnesses.endings import Finished
from evalkit.harnesses.resident import ResidentRunner
from evalkit.wire import lives
from tests.harnesses.test_approvals import MOORINGS, NEVER_ASKS, ONE_OF_EACH
from tests.harnesses.test_whole_life import CRASH, LATER, SAVES, TALKS, WORDS, play

ANSWERED = CRASH.replace("MOMENT", "request")
KILL = {"crash": True}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that waits for its sender's death is given up soon."""
    monkeypatch.setattr(lives, "_DEAD_S", 2.0)


@pytest.mark.parametrize("resident", [True, False], ids=["resident", "command"])
class TestWhatDidNotLand:
    @pytest.mark.long
    def test_one_that_does_is_exercised(self, tmp_path: Path, resident: bool) -> None:
        assert not play(tmp_path, SAVES, ANSWERED, resident=resident, events=KILL).not_exercised

    @pytest.mark.long
    def test_an_injector_that_does_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resident: bool
    ) -> None:
        passed = Deadline.passed

        def spared(self: Deadline, printed: int) -> Finished | None:
            found = passed(self, printed)
            return None if found is not None and found.killed else found

        monkeypatch.setattr(Deadline, "passed", spared)
        assert play(tmp_path, SAVES, ANSWERED, resident=resident, events=KILL).not_exercised

    def test_a_kill_at_another_point(self, tmp_path: Path, resident: bool) -> None:
        """Something else has killed it before the moment that the scenario names."""
        dies = SAVES.replace(
            "KEPT.write_text", "(KEPT.exists() and os.kill(os.getpid(), 9)); KEPT.write_text", 1
        )
        episode = play(tmp_path, dies, ANSWERED, resident=resident, events=KILL)
        assert (episode.ending, episode.not_exercised) == ("error", True)

    @pytest.mark.long
    def test_a_process_that_survived(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resident: bool
    ) -> None:
        survivors: list[Guarded] = []
        kill = Guarded.kill

        def spares_the_first(self: Guarded) -> int:
            if survivors:
                return kill(self)
            survivors.append(self)
            return 0

        monkeypatch.setattr(Guarded, "kill", spares_the_first)
        try:
            assert play(tmp_path, SAVES, ANSWERED, resident=resident, events=KILL).not_exercised
        finally:
            kill(survivors[0])


#: It ends at its first turn, before anything happens to it.
QUITS = "while turn(job, messages):\n            pass", "turn(job, messages)\n        return None"
APPROVES = MOORINGS.replace("APPROVE", ONE_OF_EACH)


@pytest.mark.long
@pytest.mark.parametrize("when", ["between_turns", "in_tool", "in_turn"])
def test_words_that_the_script_never_came_to(tmp_path: Path, when: str) -> None:
    text, events = WORDS.replace("WHEN", when), {"user": [when]}
    assert play(tmp_path, TALKS.replace(*QUITS), text, events=events).not_exercised
    # Who goes on and does not look for them was told, and has not delivered them.
    assert not play(tmp_path, TALKS, text, events=events).not_exercised


def test_a_message_that_nobody_waited_for(tmp_path: Path) -> None:
    events = {"user": ["ended"]}
    assert play(tmp_path, TALKS.replace(*QUITS), LATER, resident=True, events=events).not_exercised
    assert not play(tmp_path, TALKS, LATER, resident=True, events=events).not_exercised


def test_a_decision_about_a_call_that_never_came(tmp_path: Path) -> None:
    events = {"approve": "returns"}
    quits = NEVER_ASKS.replace("while turn(", "while turn(job, messages) and False and turn(")
    assert quits != NEVER_ASKS
    assert play(tmp_path, quits, APPROVES, resident=True, events=events).not_exercised
    # Who runs the calls without asking has come to them.
    assert not play(tmp_path, NEVER_ASKS, APPROVES, resident=True, events=events).not_exercised


def test_two_legs_that_are_the_same_leg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resident program is told that it resumes, and is the process that was to be dead."""
    end, spared = ResidentRunner._end, []

    def spares_the_first(self: ResidentRunner) -> int:
        if self._group is None or spared:
            return end(self)
        spared.append(self._group)
        return 0

    # Its ending was read, and it waits for a line.
    ended = CRASH.replace("  - crash: {at: MOMENT}\n", "") + "  - crash: {at: ended}\n"
    monkeypatch.setattr(ResidentRunner, "_end", spares_the_first)
    assert play(tmp_path, SAVES, ended, resident=True, events=KILL).not_exercised
    assert len(spared) == 1
