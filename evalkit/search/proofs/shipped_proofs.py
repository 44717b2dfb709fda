"""The shipped table: every property of every preset, proved, refuted with its scenario, or bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from evalkit.search.proofs.environment import Setting
from evalkit.search.proofs.prove import MAX_STATES, Progress, Proof, Result, prove
from evalkit.search.properties import PROPERTIES
from evalkit.strategies.presets import PRESETS

#: Items of the world in which the presets are explored with the larger alphabet.
LARGER_ITEMS = 2
#: The preset that the durable worker is explored with.
WORKED = "gate"
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


def prove_larger(
    setting: Setting, names: tuple[str, ...] = (), *, progress: Callable[[str], Progress | None] | None = None
) -> list[Proof]:
    """The same with the larger alphabet in a small world, and of one preset as the worker runs it."""
    items = min(setting.items, LARGER_ITEMS)
    full = msgspec.structs.replace(setting, items=items, skippable=0, alphabet="full")
    worker = msgspec.structs.replace(full, worker=True)
    # Nobody watches the steps of a worker.
    seen = tuple(name for name in names or PROPERTIES if not name.startswith("capped_"))
    told = progress(f"{WORKED}, worker") if progress is not None else None
    return [
        *prove_presets(full, names, progress=progress),
        prove(PRESETS[WORKED].strategy, worker, seen, progress=told),
    ]


def write_table(proofs: list[Proof], path: Path, larger: Sequence[Proof] = ()) -> list[Path]:
    """Write the table, and the scenario of each refutation into a folder beside it; all paths written.

    ``larger`` are proofs with the larger alphabet; of these the scenarios are written that refute what
    stands in ``proofs`` as held. Timings are left out: the file is the same each time.
    """
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.yaml"):
        old.unlink()
    written = [path]
    for name, result in (*_refuted(proofs), *_news(proofs, larger)):
        found = result.counterexample
        assert found is not None
        written.append(folder / f"{name}.yaml")
        document = {**found.document, "scenario": name}
        written[-1].write_text(msgspec.structs.replace(found, document=document).text, encoding="utf-8")
    path.write_text(table_text(proofs, folder.name, larger), encoding="utf-8")
    return written


def table_text(proofs: list[Proof], folder: str, larger: Sequence[Proof] = ()) -> str:
    """The tables as Markdown; scenarios are linked from ``folder``."""
    setting = proofs[0].setting
    names = [result.property for result in proofs[0].results]
    lines = [
        "# What is proved of the presets",
        "",
        f"Written by `{COMMAND}`; not to be edited by hand.",
        "",
        "Against each preset a model is let do whatever it can, turn after turn, in a world of"
        f" {_world(setting)}. ✓ is a proof over all behaviours; beside it stands how many of its witnesses"
        " were reached (a run that ends done with all of the work done, each cap, each limit, each policy's"
        " branch), and what was not is listed below. A number is the length in turns of the shortest run"
        " that breaks the property, and links the scenario that shows it; ≤ n means that all runs of n turns"
        " were explored and none breaks it; – means that the property says nothing of the preset. The"
        " model's moves and the assumptions are in [Worst cases](worst-cases.md).",
        "",
        *_table(proofs, names, dict(_links(_refuted(proofs), folder))),
    ]
    if larger:
        lines += [
            "",
            "## With the larger alphabet",
            "",
            "The same with batches of which a call fails or is cut off, effects that come late, two finish"
            " calls, refusals with calls, a user who writes between turns, after the end or to leave,"
            f" compactions and approvals, in a world of {_world(larger[0].setting)}. What is refuted above"
            " and here is linked above.",
            "",
            *_table(larger, names, dict(_links(_news(proofs, larger), folder))),
        ]
    lines += ["", "## The properties", ""]
    lines += [f"- **{name.replace('_', ' ')}**: {PROPERTIES[name].says}." for name in names]
    for title, made in (("How much was explored", proofs), ("With the larger alphabet", larger)):
        if made:
            lines += ["", f"## {title}" if made is proofs else f"### {title}", ""]
            lines += ["| preset | moves | states | transitions |", "| --- |" + " --- |" * 3]
            for proof in made:
                states, transitions = _explored(proof.results)
                lines.append(f"| {_name(proof)} | {proof.moves} | {states:,} | {transitions:,} |")
    lines += ["", "## What was not reached", "", *_not_reached([*proofs, *larger])]
    lines += ["", "## The refutations", ""]
    for name, result in (*_refuted(proofs), *_news(proofs, larger)):
        found = result.counterexample
        assert found is not None
        lines.append(
            f"- `{found.strategy}`, [{result.property.replace('_', ' ')}]({folder}/{name}.yaml): "
            f"{'; '.join(found.moves)}: `{found.outcome}`."
        )
    return "\n".join(lines) + "\n"


def _refuted(proofs: Sequence[Proof]) -> list[tuple[str, Result]]:
    """The refutations, each with the name of its scenario."""
    results = [result for proof in proofs for result in proof.results]
    return [
        (result.counterexample.document["scenario"], result)
        for result in results
        if result.counterexample is not None
    ]


def _news(proofs: Sequence[Proof], larger: Sequence[Proof]) -> list[tuple[str, Result]]:
    """The refutations with the larger alphabet of what is not refuted without it."""
    known = {name for name, _ in _refuted(proofs)}
    found = []
    for proof in larger:
        for name, result in _refuted([proof]):
            if proof.setting.worker or name not in known:
                found.append((f"{name}-worker" if proof.setting.worker else f"{name}-larger", result))
    return found


def _links(named: Iterable[tuple[str, Result]], folder: str) -> Iterable[tuple[int, str]]:
    return ((id(result), f"{folder}/{name}.yaml") for name, result in named)


def _table(proofs: Sequence[Proof], names: list[str], links: Mapping[int, str]) -> list[str]:
    head = "| preset | " + " | ".join(name.replace("_", " ") for name in names) + " |"
    rows = []
    for proof in proofs:
        cells = {result.property: _cell(result, links) for result in proof.results}
        rows.append(f"| {_name(proof)} | " + " | ".join(cells.get(name, "–") for name in names) + " |")
    return [head, "| --- |" + " --- |" * len(names), *rows]


def _name(proof: Proof) -> str:
    return f"`{proof.strategy}`" + (" by the worker, killed" if proof.setting.worker else "")


def _world(setting: Setting) -> str:
    checks = {"full": "full checks", "weak": "weak checks", "none": "no checks"}[setting.checks]
    return f"{setting.items} items with {checks}"


def _cell(result: Result, links: Mapping[int, str]) -> str:
    if result.counterexample is not None:
        turns, link = result.counterexample.turns, links.get(id(result))
        return f"{turns}" if link is None else f"[{turns}]({link})"
    if result.answer == "proved":
        return f"✓ {result.witnesses.count}"
    return {"bounded": f"≤ {result.depth}", "refused": "?", "not_applicable": "–"}[result.answer]


def _not_reached(proofs: Iterable[Proof]) -> list[str]:
    """What stands beside a ✓ as missing, and the moves that were made in no state."""
    lines = []
    for proof in proofs:
        said: dict[str, list[str]] = {}
        for result in proof.results:
            if result.answer == "proved":
                missing, never = result.witnesses.missing, result.witnesses.never
                told = [*missing, *(f"the move *{name}*" for name in never)]
                said.setdefault(", ".join(told), []).append(result.property.replace("_", " "))
        said.pop("", None)
        where = f"{proof.setting.alphabet}, {proof.setting.items} items"
        lines += [f"- {_name(proof)} ({where}), {', '.join(about)}: {what}." for what, about in said.items()]
    return lines or ["Everything was."]


def _explored(results: Iterable[Result]) -> tuple[int, int]:
    """States and transitions of the different explorations behind some answers."""
    runs = {(result.states, result.transitions, result.seconds) for result in results}
    return sum(run[0] for run in runs), sum(run[1] for run in runs)
