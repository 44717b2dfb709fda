"""The task of the benchmarks as a scenario: list the items, do each, say so."""

from __future__ import annotations


def scenario_text(turns: int) -> str:
    """The scenario in so many model turns. A choice in it makes every seed an episode of its own."""
    items = ", ".join(f"item-{number}" for number in range(turns - 2))
    return f"""
scenario: bench-{turns}
family: bench
task: {{prompt: Do every item., done_when: Every item is done.}}
limits: {{turns: 1000}}
world: {{kind: items, items: [{items}]}}
model:
  - call: list_items
  - work: rest
  - either: [{{p: 0.5, do: [{{say: All is done., claim: done}}]}}]
  - say: All is done.
    claim: done
"""
