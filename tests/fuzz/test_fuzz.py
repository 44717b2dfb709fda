"""The corpus and what Hypothesis makes of it: no traceback, no process, no file outside of the folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.corpus import seeds
from tests.fuzz.targets import TARGETS
from tests.fuzz.watch import Escaped, confined

#: Examples for a target; ``make fuzz`` asks for more where atheris is not to be had.
EXAMPLES = int(os.environ.get("EVALKIT_FUZZ_EXAMPLES", "40"))
#: Seconds that any one input may take, on a machine that does other things as well.
PATIENCE = 20.0
#: Pieces that mean something to one reader or another.
TOKENS = st.sampled_from(
    [
        *(b"", b"{", b"}", b"[", b"]", b'"', b":", b"\n", b"- ", b"&a ", b"*a", b"\x00", b"\xff", b"\\ud800"),
        *(b"null", b"NaN", b"-1", b"1e999", b"9" * 40, b"../../x", b"0x", b"true"),
        b"!!python/object/apply:os.system ",
    ]
)


def run(name: str, data: bytes) -> None:
    begun = time.monotonic()
    with confined() as folder:
        TARGETS[name](folder, data)
    assert time.monotonic() - begun < PATIENCE


@st.composite
def spoilt(draw: st.DrawFn, name: str) -> bytes:
    """A piece of the corpus with some places cut, repeated, swapped with another's, or overwritten."""
    data = draw(st.sampled_from(seeds(name)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 1, 2, 8, 64, 1_000])))
        other = draw(st.sampled_from(seeds(name)))
        at = draw(st.integers(0, len(other)))
        middle = draw(
            st.one_of(
                TOKENS, st.binary(max_size=8), st.just(data[start:end] * 3), st.just(other[at : at + 64])
            )
        )
        data = data[:start] + middle + data[end:]
    return data


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus(name: str) -> None:
    for data in seeds(name):
        run(name, data)


@pytest.mark.long
@pytest.mark.parametrize("name", TARGETS)
def test_what_comes_of_the_corpus(name: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(spoilt(name))
    def each(data: bytes) -> None:
        run(name, data)

    each()


class TestTheWatch:
    """It sees what it is there for."""

    def test_a_process(self) -> None:
        with pytest.raises(Escaped), confined():
            subprocess.run([sys.executable, "-c", ""], check=False)

    def test_a_shell(self) -> None:
        with pytest.raises(Escaped), confined():
            os.system("true")

    def test_a_file_elsewhere(self, tmp_path: Path) -> None:
        with pytest.raises(Escaped), confined() as folder:
            (folder / ".." / "escaped").write_text("x")
        with pytest.raises(Escaped), confined():
            (tmp_path / "escaped").mkdir()
        assert list(tmp_path.iterdir()) == []

    def test_one_that_was_swallowed(self, tmp_path: Path) -> None:
        def swallows() -> None:
            try:
                (tmp_path / "escaped").write_text("x")
            except BaseException:
                return

        with pytest.raises(Escaped), confined():
            swallows()

    def test_a_file_in_the_folder_is_none(self) -> None:
        with confined() as folder:
            (folder / "file").write_text("x")
            (folder / "file").rename(folder / "other")
