"""``python -m evalkit.wire``: the rules of requests with their evidence; what is not expressible where."""

from __future__ import annotations

from collections.abc import Iterable

from evalkit.scenarios.suites import load_suites
from evalkit.strategies.presets import all_offered
from evalkit.wire.answers import DIALECTS
from evalkit.wire.dialects import SPOKEN
from evalkit.wire.expressible import Row, table
from evalkit.wire.rules import NEUTRAL_SOURCES, OTHER_RULES


def rules_text() -> str:
    """The rules of requests as a Markdown table."""
    lines = ["| API | rule | evidence | source |", "| --- | --- | --- | --- |"]
    lines += [f"| all | {name} | documented | {source} |" for name, source in NEUTRAL_SOURCES.items()]
    lines += [f"| {api} | {name} | {' | '.join(known)} |" for (api, name), known in OTHER_RULES.items()]
    for dialect in DIALECTS:
        lines += [
            f"| {dialect} | {rule.name} | {rule.evidence} | {rule.source} |" for rule in SPOKEN[dialect].rules
        ]
    return "\n".join(lines)


def table_text(rows: Iterable[Row]) -> str:
    """What is not expressible as a Markdown table."""
    lines = ["| scenario | dialect | where | why |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {row.scenario} | {row.dialect} | {' and '.join(row.modes)} | {row.reason} |" for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(rules_text(), table_text(table(load_suites(), all_offered())), sep="\n\n")
