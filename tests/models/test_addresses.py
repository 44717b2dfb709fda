"""Where a client asks, of the base URL that was given."""

from __future__ import annotations

import pytest

from evalkit.models import clients


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("http://host", "http://host/v1"),
        ("http://host/v1/", "http://host/v1"),
        ("http://host/api/paas/v4", "http://host/api/paas/v4"),
        ("http://host/v1beta/openai", "http://host/v1beta/openai"),
        ("http://host/v1beta2", "http://host/v1beta2"),
        ("http://host/openai/deployments/x", "http://host/openai/deployments/x"),
        # A random token that begins like a version is none.
        (
            "http://host/e/v4Kq_0aBcdEFGhijklMNOpqrsTUVwxyz",
            "http://host/e/v4Kq_0aBcdEFGhijklMNOpqrsTUVwxyz/v1",
        ),
    ],
)
def test_a_version_is_added_where_there_is_none(given: str, asked: str) -> None:
    assert clients._versioned(given) == asked
