"""``python -m evalkit.wire``: the rules of requests with their evidence; what is not expressible where."""

from __future__ import annotations

from collections.abc import Iterable

from evalkit.scenarios.suites import load_suites
from evalkit.strategies.presets import all_offered
from evalkit.wire.codecs import CODECS
from evalkit.wire.dialects import DIALECTS
from evalkit.wire.expressible import Row, table
from evalkit.wire.rules import NEUTRAL_SOURCES, OTHER_RULES


def rules_text() -> str:
    """The rules of requests as a Markdown table."""
    lines = ["| API | rule | evidence | source |", "| --- | --- | --- | --- |"]
    lines += [f"| all | {name} | documented | {source} |" for name, source in NEUTRAL_SOURCES.items()]
    lines += [f"| {api} | {name} | {' | '.join(known)} |" for (api, name), known in OTHER_RULES.items()]
    for dialect in DIALECTS:
        lines += [
            f"| {dialect} | {rule.name} | {rule.evidence} | {rule.source} |" for rule in CODECS[dialect].rules
        ]
    return "\n".join(lines)


def table_text(rows: Iterable[Row]) -> str:
    """What is not expressible as a Markdown table."""
    lines = ["| scenario | dialect | where | why |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {row.scenario} | {row.dialect} | {' and '.join(row.modes)} | {row.reason} |" for row in rows
    ]
    return "\n".join(lines)


def page_text() -> str:
    """The page on the wire of the documentation, as a test holds it."""
    parts = [
        "# The wire: what requests must hold to, and what a dialect cannot say",
        "Made by `python -m evalkit.wire > docs/wire.md`; a test holds it.",
        "## Rules of requests",
        "A request that breaks one is refused with status 400 in the API's own shape, naming the message. "
        "Rules of all APIs count as `protocol_faults` of the episode, in process too; those of one API as "
        "`dialect_faults`, which make no episode incorrect. *documented*: the API's documentation says it; "
        "*recorded*: a real refusal is quoted or in a recording; *assumed*: neither, so it only warns.",
        rules_text(),
        "## Not expressible",
        "What the shipped scenarios say and a dialect has no way to say; there the scenario is left out of a "
        "run and named in its summary. *whole* is an answer that is not streamed.",
        table_text(table(load_suites(), all_offered())),
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(page_text())
