"""What a run says of how far it is and of the time that remains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.cli import progress
from evalkit.cli.progress import EARLIEST, Remaining, in_words, progress_of


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.long
@given(
    there=st.integers(0, 500_000),
    run=st.integers(1, 1_000_000),
    seconds=st.floats(EARLIEST, 1e6),
    part=st.floats(0.01, 1.0),
    start=st.floats(0, 1_000),
)
def test_at_a_steady_speed_it_is_right_whatever_was_there_before(
    there: int, run: int, seconds: float, part: float, start: float
) -> None:
    clock = Clock()
    remaining = Remaining(clock)
    total = there + 3 + run
    assert remaining.seconds(there, total) is None
    clock.now += start
    assert remaining.seconds(there, total) is None
    assert remaining.seconds(there + 3, total) is None
    done = max(1, int(run * part))
    clock.now += seconds
    left = remaining.seconds(there + 3 + done, total)
    assert left == pytest.approx((run - done) * seconds / done)


def test_it_says_nothing_too_early_or_where_nothing_was_done() -> None:
    clock = Clock()
    remaining = Remaining(clock)
    remaining.seconds(0, 10)
    remaining.seconds(1, 10)
    clock.now += EARLIEST / 2
    assert remaining.seconds(5, 10) is None
    clock.now += EARLIEST
    assert remaining.seconds(1, 10) is None
    assert remaining.seconds(10, 10) == 0.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (125, "2 min 5 s"), (7_320, "2 h 2 min")],
)
def test_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_plain_lines_name_the_remaining_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    monkeypatch.setattr(progress.time, "monotonic", clock)
    monkeypatch.setattr(Remaining.__init__, "__defaults__", (clock,))
    with progress_of(100, quiet=False) as tell:
        assert tell is not None
        tell(0, 100)
        clock.now += 5.0
        tell(10, 100)
        clock.now += 20.0
        tell(40, 100)
        clock.now += 1.0
        tell(41, 100)
    assert capsys.readouterr().err == "40 of 100 episodes, about 40 s left\n"


def test_quiet_is_quiet() -> None:
    with progress_of(100, quiet=True) as tell:
        assert tell is None
