"""The staged content of a git index."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from evalkit.worlds.git_index import index_digest


def index_of(folder: Path, texts: dict[str, str]) -> bytes:
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "--template="], cwd=folder, check=True)
    for path, text in texts.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    return (folder / ".git" / "index").read_bytes()


def test_times_and_inodes_do_not_count(tmp_path: Path) -> None:
    texts = {"a": "1", "b/cccccccccc": "2"}
    one, other = index_of(tmp_path / "one", texts), index_of(tmp_path / "other", texts)
    assert one != other
    assert index_digest(one) == index_digest(other)


def test_staged_content_and_names_do(tmp_path: Path) -> None:
    contents = [{"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "1", "b": "1"}]
    digests = {index_digest(index_of(tmp_path / f"{place}", texts)) for place, texts in enumerate(contents)}
    assert len(digests) == len(contents)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_have_a_digest(data: bytes, headed: bool) -> None:
    data = b"DIRC\0\0\0\x02" + data if headed else data
    assert len(index_digest(data)) == 16
