"""How the tests look for counterexamples: the same ones each time, however long one takes.

``HYPOTHESIS_PROFILE=explore`` looks for new ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import Phase, settings

from tests.rules import Watching

# What a command does is what is tested, and not what one did in an earlier run.
os.environ.setdefault("EVALKIT_KEPT_COMMANDS", "off")
# What is said is as in a pipe, whatever the width of the terminal that the tests are started from.
os.environ.pop("COLUMNS", None)

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
#: Where it is enough to know that there is one.
settings.register_profile(
    "unshrunk", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that is named for a rule fails where it does not come to the rule's line."""
    rules = {name for marker in item.iter_markers("rule") for name in marker.args}
    if not rules:
        return (yield)
    with Watching() as watching:
        result = yield
    missed = rules - watching.met
    assert not missed, f"named for rules that it does not come to: {', '.join(sorted(missed))}"
    return result
