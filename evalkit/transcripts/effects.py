"""Which recorded calls may have changed the world: a rule on names; in doubt a call changes something."""

from __future__ import annotations

from evalkit.transcripts.recording import bare_name

_PREFIXES = (
    "calculate", "check", "compare", "count", "describe", "fetch", "find", "get", "glob", "grep", "inspect",
    "list", "look", "open_file", "preview", "query_", "read", "retrieve", "scroll", "search", "show", "think",
    "view", "web_fetch", "web_search", "webfetch", "websearch",
)  # fmt: skip
_NAMES = frozenset(("ls", "cat", "head", "tail", "pwd", "open", "goto", "toolsearch", "exitplanmode"))


def only_reads(tool: str) -> bool:
    """Whether a tool's name says that it only reads (``get_user_details``, ``Read``, ``list_files``).

    A shell or an interpreter may do anything, so it never does.
    """
    name = bare_name(tool)
    if name in _NAMES:
        return True
    return name.startswith(_PREFIXES)
