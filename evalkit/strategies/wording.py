"""The words that the loop says to a model: said from here, and looked through from here for ids of items."""

from __future__ import annotations

CONTINUE = "Continue."
NOT_ACCEPTED = "Not accepted."
NO_FINISH = "no finish call"
NOTHING_LISTED = "no items known: list them before finishing"
CHECKS_FAIL = "checks fail"
#: The default of the condition that looks for a word.
TERMINATE = "TERMINATE"


def still_open(names: str) -> str:
    """A nudge that names the open items."""
    return f"These items are still open: {names}. Continue with them, or say what blocks you."


def unaccounted(count: int, names: str) -> str:
    """The answer to a finish call that leaves items out."""
    return f"{count} items unaccounted for: {names}. Handle them or list them in items_skipped with a reason."


def not_accepted(reason: str) -> str:
    """The answer to a finish call that is not accepted for another reason."""
    return f"Not accepted: {reason}."


#: All of it without names: an item's id must not occur in these.
OWN_WORDS = (
    CONTINUE,
    still_open(""),
    unaccounted(0, "").removeprefix("0 "),
    *map(not_accepted, (NO_FINISH, NOTHING_LISTED, CHECKS_FAIL)),
    TERMINATE,
)
