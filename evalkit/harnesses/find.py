"""Finding a harness by what a user names: a shipped one, a folder, a program, a Python callable."""

from __future__ import annotations

import os
from pathlib import Path

from evalkit.core.names import did_you_mean
from evalkit.harnesses.manifest import FILE, Harness, Manifest, ManifestError, read_manifest

_PACKAGE = Path(__file__).resolve().parent.parent
_INSIDE = _PACKAGE / "_harnesses"
#: The folder of the shipped harnesses: inside an installed package, beside it in a checkout.
SHIPPED = _INSIDE if _INSIDE.is_dir() else _PACKAGE.parent / "harnesses"
#: The scenarios that every harness is shown: what models do when they stop.
BEHAVIOURS = SHIPPED / "behaviours.yaml"
#: What a harness counts, what it is limited by, when it gives up: the rest of its card.
SCENES = SHIPPED / "card.yaml"
#: One small scenario for each event that a manifest can claim.
EVENTS = SHIPPED / "events.yaml"
#: One scenario for each class of crash and of approval.
GUARANTEES = SHIPPED / "guarantees.yaml"
#: How a program is run, by the ending of its name; anything else must be executable.
_RUNS: dict[str, tuple[str, ...]] = {
    ".py": ("{python}",),
    ".js": ("{node}",),
    ".mjs": ("{node}",),
    ".cjs": ("{node}",),
    ".ts": ("{typescript}",),
    ".mts": ("{typescript}",),
    ".sh": ("bash",),
}


def shipped() -> dict[str, Harness]:
    """The shipped harnesses by name, each followed by its variants."""
    found: dict[str, Harness] = {}
    for file in sorted(SHIPPED.glob(f"*/{FILE}")):
        manifest = read_manifest(file.parent)
        for variant in ("", *manifest.variants):
            harness = Harness(manifest, file.parent, variant)
            found[harness.name] = harness
    return found


def find_harness(name: str) -> Harness:
    """The harness that a name stands for; ManifestError where none does.

    ``name`` is a shipped name, a folder with ``harness.toml``, a program (``.py``, ``.js``, ``.ts``, ``.sh``
    or an executable), or ``module:function``; a folder's or shipped one's variant stands behind a colon.
    """
    path, _, variant = name.rpartition(":")
    for place, wanted in ((Path(name), ""), (Path(path or name), variant if path else "")):
        if (place / FILE).is_file():
            return _variant(Harness(read_manifest(place), place.resolve()), wanted)
    if Path(name).is_file():
        return _program(Path(name).resolve())
    harnesses = shipped()
    if name in harnesses:
        return harnesses[name]
    if path in harnesses:
        return _variant(harnesses[path], variant)
    if _is_callable(name):
        return _callable(name)
    if Path(name).is_dir():
        raise ManifestError(f"harness {name!r}: the folder holds no {FILE}")
    names = [key for key in harnesses if ":" not in key]
    guess = _like_it(Path(name)) or did_you_mean(path or name, names)
    raise ManifestError(
        f"harness {name!r}: no such folder, program, module:function or name{guess}; "
        f"names: {', '.join(names) or 'none is shipped'}"
    )


def _like_it(path: Path) -> str:
    """The program beside a path that was meant, where it has the ending of one."""
    if path.suffix not in _RUNS or not path.parent.is_dir():
        return ""
    there = [str(path.parent / file.name) for file in path.parent.iterdir() if file.suffix in _RUNS]
    return did_you_mean(str(path), there)


def _variant(harness: Harness, variant: str) -> Harness:
    if variant and variant not in harness.manifest.variants:
        allowed = ", ".join(harness.manifest.variants) or "it has none"
        raise ManifestError(f"harness {harness.manifest.name!r}: no variant {variant!r}; variants: {allowed}")
    return Harness(harness.manifest, harness.folder, variant)


def _program(path: Path) -> Harness:
    before = _RUNS.get(path.suffix)
    if before is None and not os.access(path, os.X_OK):
        raise ManifestError(f"harness {path.name!r}: is not executable, and no .py, .js, .ts or .sh")
    manifest = Manifest(path.stem, f"the program {path.name}", (*(before or ()), path.name))
    return Harness(manifest, path.parent)


def _is_callable(name: str) -> bool:
    module, _, function = name.partition(":")
    return function.isidentifier() and all(part.isidentifier() for part in module.split("."))


def _callable(name: str) -> Harness:
    manifest = Manifest(
        name.replace(":", "."),
        f"the Python callable {name}",
        ("{python}", "-m", "evalkit_harness", name),
        resident=True,
        env={"EVALKIT_IMPORT_FROM": str(Path.cwd())},
    )
    return Harness(manifest, Path.cwd())
