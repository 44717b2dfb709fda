"""Worlds of other packages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evalkit import worlds
from evalkit.worlds import WorldError, world_class, world_kinds


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    found = {
        "missing": "no_such_module:World",
        "nameless": "evalkit.worlds.items:NoSuchWorld",
        "other": "evalkit.worlds.items:Tool",
        "items": "evalkit.worlds.ledger:LedgerWorld",
        "mine": "evalkit.worlds.items:ItemsWorld",
    }
    monkeypatch.setattr(worlds, "_plugins", lambda: found)
    world_class.cache_clear()
    yield
    world_class.cache_clear()


@pytest.mark.usefixtures("plugins")
class TestPlugins:
    def test_they_come_after_the_shipped_ones_and_do_not_replace_them(self) -> None:
        kinds = ("items", "ledger", "inbox", "repo", "files", "missing", "nameless", "other", "mine")
        assert world_kinds() == kinds
        assert world_class("items").__name__ == "ItemsWorld"
        assert world_class("mine").__name__ == "ItemsWorld"

    @pytest.mark.parametrize(
        ("kind", "message"),
        [
            ("missing", "world 'missing' cannot be loaded from no_such_module:World"),
            ("nameless", "has no attribute 'NoSuchWorld'"),
            ("other", "is not a subclass of evalkit.worlds.World"),
        ],
    )
    def test_one_that_cannot_be_used_is_named(self, kind: str, message: str) -> None:
        with pytest.raises(WorldError) as caught:
            world_class(kind)
        assert message in str(caught.value)
