"""``python -m evalkit.scoring`` prints ``docs/episodes.md``: the figures of an episode, each defined."""

from __future__ import annotations

from evalkit.scoring.episode_fields import KEPT, Figure

_HEAD = """# The figures of an episode

Written by `python -m evalkit.scoring` from the one declaration in `evalkit/scoring/episode_fields.py`; the
columns of `episodes.csv`, after the scenario, the strategy or harness, and the seed. Flags are 1 and 0, and
empty where an episode is outside of a rate's base. A figure marked *spoils* keeps an episode from being
correct.

| column | kind | what it says |
| --- | --- | --- |
"""


def _row(figure: Figure) -> str:
    kind = figure.kind + (", spoils" if figure.spoils else "")
    return f"| `{figure.name}` | {kind} | {figure.says} |\n"


def page() -> str:
    """The page as Markdown."""
    return _HEAD + "".join(_row(figure) for figure in KEPT)


if __name__ == "__main__":
    print(page(), end="")
