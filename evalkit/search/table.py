"""The shipped table: every property of every preset, proved, refuted with its scenario, or bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from evalkit.search.ground import Setting
from evalkit.search.properties import PROPERTIES
from evalkit.search.prove import MAX_STATES, Progress, Proof, Result, prove
from evalkit.strategies.presets import PRESETS

#: The command that writes the shipped table.
COMMAND = "evalkit prove --all --save docs/proofs.md"


def prove_presets(
    setting: Setting,
    names: tuple[str, ...] = (),
    *,
    depth: int | None = None,
    max_states: int = MAX_STATES,
    progress: Callable[[str], Progress | None] | None = None,
) -> list[Proof]:
    """The proofs of all presets; ``progress`` makes what is told of each one's exploration."""
    return [
        prove(
            preset.strategy,
            setting,
            names,
            depth=depth,
            max_states=max_states,
            progress=progress(name) if progress is not None else None,
        )
        for name, preset in PRESETS.items()
    ]


def write_table(proofs: list[Proof], path: Path) -> list[Path]:
    """Write the table, and the scenario of each refutation into a folder beside it; all paths written.

    Timings are left out: the file is the same each time.
    """
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.yaml"):
        old.unlink()
    written = [path]
    for proof in proofs:
        for result in proof.results:
            if result.counterexample is not None:
                written.append(folder / f"{result.counterexample.document['scenario']}.yaml")
                written[-1].write_text(result.counterexample.text, encoding="utf-8")
    path.write_text(table_text(proofs, folder.name), encoding="utf-8")
    return written


def table_text(proofs: list[Proof], folder: str) -> str:
    """The table as Markdown; scenarios are linked from ``folder``."""
    setting = proofs[0].setting
    names = [result.property for result in proofs[0].results]
    lines = [
        "# What is proved of the presets",
        "",
        f"Written by `{COMMAND}`; not to be edited by hand.",
        "",
        "Against each preset a model is let do whatever it can, turn after turn, in a world of"
        f" {setting.items} items with {_checks(setting)}. ✓ is a proof over all behaviours; a number is the"
        " length in turns of the shortest run that breaks the property, and links the scenario that shows"
        " it; ≤ n means that all runs of n turns were explored and none breaks it; – means that the property"
        " says nothing of the preset. The model's moves and the assumptions are in"
        " [Worst cases](worst-cases.md).",
        "",
        "| preset | " + " | ".join(name.replace("_", " ") for name in names) + " |",
        "| --- |" + " --- |" * len(names),
    ]
    for proof in proofs:
        lines.append(f"| `{proof.strategy}` | " + " | ".join(_cell(r, folder) for r in proof.results) + " |")
    lines += ["", "## The properties", ""]
    lines += [f"- **{name.replace('_', ' ')}**: {PROPERTIES[name].says}." for name in names]
    lines += ["", "## How much was explored", ""]
    lines += ["| preset | moves | states | transitions |", "| --- |" + " --- |" * 3]
    for proof in proofs:
        states, transitions = _explored(proof.results)
        lines.append(f"| `{proof.strategy}` | {proof.moves} | {states:,} | {transitions:,} |")
    lines += ["", "## The refutations", ""]
    for proof in proofs:
        for result in proof.results:
            found = result.counterexample
            if found is not None:
                place = f"{folder}/{found.document['scenario']}.yaml"
                lines.append(
                    f"- `{proof.strategy}`, [{result.property.replace('_', ' ')}]({place}): "
                    f"{'; '.join(found.moves)}: `{found.outcome}`."
                )
    return "\n".join(lines) + "\n"


def _checks(setting: Setting) -> str:
    return {"full": "full checks", "weak": "weak checks", "none": "no checks"}[setting.checks]


def _cell(result: Result, folder: str) -> str:
    if result.counterexample is not None:
        return f"[{result.counterexample.turns}]({folder}/{result.counterexample.document['scenario']}.yaml)"
    return {"proved": "✓", "bounded": f"≤ {result.depth}", "refused": "?", "not_applicable": "–"}[
        result.answer
    ]


def _explored(results: Iterable[Result]) -> tuple[int, int]:
    """States and transitions of the different explorations behind some answers."""
    runs = {(result.states, result.transitions, result.seconds) for result in results}
    return sum(run[0] for run in runs), sum(run[1] for run in runs)
