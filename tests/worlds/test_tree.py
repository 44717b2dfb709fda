"""Folders as values."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.worlds import tree as trees
from evalkit.worlds.tree import PathRefused, Tree, TreeTooLarge, make_entry, place, read_tree, tree_of

EMPTY = Tree({})


class TestPlace:
    @pytest.mark.parametrize(
        "path",
        [
            *("../x", "a/../../x", "..", "/etc/passwd", "~", "~/x", "a/..", "", " ", ".", "./"),
            *(".git", ".git/config", "./.git/HEAD", ".GIT/config"),
            *("a\\b", "a\nb", "a\0b", "\ud800", "x" * 300, "a/" * 700, None, 3),
        ],
    )
    def test_what_leads_out_or_cannot_be_is_refused(self, path: object) -> None:
        with pytest.raises(PathRefused):
            place(path)

    @pytest.mark.parametrize(
        ("path", "plain"),
        [("a", "a"), ("./a//b.txt", "a/b.txt"), ("a/..b", "a/..b"), (".gitignore", ".gitignore"), ("ä", "ä")],
    )
    def test_others_get_their_plain_form(self, path: str, plain: str) -> None:
        assert place(path) == plain

    @given(st.text(alphabet="ab./~\\ ", max_size=12))
    def test_a_plain_path_stays_within_the_folder(self, path: str) -> None:
        try:
            plain = place(path)
        except PathRefused:
            return
        assert os.path.normpath(os.path.join("/some/folder", plain)).startswith("/some/folder/")
        assert place(plain) == plain


class TestWithFile:
    def test_makes_another_tree(self) -> None:
        one = tree_of({"a": "1"})
        other = one.with_file("b/c", b"2")
        assert (one.paths(), other.paths()) == (["a"], ["a", "b/c"])

    def test_the_same_content_is_the_same_tree(self) -> None:
        one = tree_of({"a": "1"})
        assert one.with_file("a", b"1") is one

    def test_nothing_is_written_through_a_file_a_link_or_onto_a_folder(self) -> None:
        tree = Tree({"file": make_entry("file", b"x"), "link": make_entry("link", b"file", "link")})
        for path in ("file/x", "link/x", "link"):
            with pytest.raises(PathRefused):
                tree.with_file(path, b"y")
        with pytest.raises(PathRefused, match="a: is a folder"):
            tree_of({"a/b": "1"}).with_file("a", b"y")

    def test_an_empty_folder_gives_way_to_what_is_put_into_it(self) -> None:
        tree = Tree({"a": make_entry("a", b"", "folder")}).with_file("a/b", b"1")
        assert list(tree.entries) == ["a/b"]


class TestEquality:
    @given(st.dictionaries(st.sampled_from("abcd"), st.text(max_size=3), max_size=4))
    def test_the_order_of_writing_does_not_matter(self, texts: dict[str, str]) -> None:
        one = tree_of(texts)
        other = tree_of(dict(reversed(texts.items())))
        assert one == other
        assert hash(one) == hash(other)

    def test_content_kind_and_name_do(self) -> None:
        trees_of = [
            EMPTY,
            tree_of({"a": "1"}),
            tree_of({"a": "2"}),
            tree_of({"b": "1"}),
            Tree({"a": make_entry("a", b"1", "program")}),
            Tree({"a": make_entry("a", b"1", "link")}),
        ]
        assert len({tree.digest for tree in trees_of}) == len(trees_of)

    def test_gits_own_folder_is_no_part_of_the_work(self) -> None:
        tree = Tree({"a": make_entry("a", b"1"), ".git/HEAD": make_entry(".git/HEAD", b"x")})
        assert tree.work == tree_of({"a": "1"})
        assert tree != tree.work
        assert tree.paths() == ["a"]


class TestOnDisk:
    def test_what_is_written_is_read_again(self, tmp_path: Path) -> None:
        tree = Tree(
            {
                "a/b.txt": make_entry("a/b.txt", b"1\0\xff"),
                "run.sh": make_entry("run.sh", b"#!/bin/sh\n", "program"),
                "link": make_entry("link", b"a/b.txt", "link"),
                "empty/inside": make_entry("empty/inside", b"", "folder"),
            }
        )
        tree.write_to(tmp_path)
        assert os.access(tmp_path / "run.sh", os.X_OK)
        again, dropped = read_tree(tmp_path, EMPTY)
        assert (again, dropped) == (tree, ())

    def test_links_that_leave_and_things_that_are_no_files_are_not_taken_over(self, tmp_path: Path) -> None:
        (tmp_path / "out").symlink_to("/etc")
        (tmp_path / "up").symlink_to("../other")
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "up").symlink_to("../../x")
        (tmp_path / "deep" / "beside").symlink_to("../kept")
        (tmp_path / "kept").write_text("1")
        os.mkfifo(tmp_path / "pipe")
        tree, dropped = read_tree(tmp_path, EMPTY)
        assert dropped == ("deep/up", "out", "pipe", "up")
        assert sorted(tree.entries) == ["deep/beside", "kept"]

    def test_equal_entries_are_shared(self, tmp_path: Path) -> None:
        tree = tree_of({"a": "1", "b": "2"})
        tree.write_to(tmp_path)
        (tmp_path / "b").write_text("3")
        again, _ = read_tree(tmp_path, tree)
        assert again.entries["a"] is tree.entries["a"]
        assert again.read("b") == b"3"

    def test_names_need_not_be_utf8(self, tmp_path: Path) -> None:
        with open(os.fsencode(tmp_path) + b"/\xff", "w") as file:
            file.write("1")
        tree, _ = read_tree(tmp_path, EMPTY)
        target = tmp_path / "copy"
        target.mkdir()
        tree.write_to(target)
        assert os.listdir(os.fsencode(target)) == [b"\xff"]
        assert tree.digest

    def test_a_folder_that_grew_too_large_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(trees, "MAX_FILES", 2)
        monkeypatch.setattr(trees, "MAX_BYTES", 1000)
        for name in "abc":
            (tmp_path / name).write_text("1")
        with pytest.raises(TreeTooLarge):
            read_tree(tmp_path, EMPTY)
        (tmp_path / "c").unlink()
        read_tree(tmp_path, EMPTY)
        (tmp_path / "b").write_bytes(b"x" * 1001)
        with pytest.raises(TreeTooLarge, match="b is larger"):
            read_tree(tmp_path, EMPTY)
